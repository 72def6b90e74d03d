"""What baseline runs teach about names that vary, and histories under these names."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chaoskit.explore.names import renamed, varying
from chaoskit.model.events import CallSeen, Event
from chaoskit.model.history import History
from chaoskit.trace.varying import Varying


def ran(*calls: str) -> History:
    """A run that makes these calls; on a service where it says ``sendto``."""
    bodies = [CallSeen(attempt=1, call=call, sends=call.startswith("sendto")) for call in calls]
    return History(tuple(Event(index, 0, body) for index, body in enumerate(bodies)))


def wrote(*names: str) -> History:
    """A run that writes once to each of these files."""
    return ran(*(f"write({name})#1" for name in names))


def told(history: History, names: Sequence[str]) -> list[str]:
    """The points of a run under names that were learnt."""
    return [body.call for _, body in renamed(history, names).of(CallSeen)]


@pytest.mark.parametrize(
    ("one", "two", "names"),
    [
        pytest.param(["tmp.411"], ["tmp.87"], ["tmp.*"], id="a pid"),
        pytest.param(["out.411.tmp"], ["out.87.tmp"], ["out.*.tmp"], id="a pid in the middle"),
        pytest.param(["out411.tmp"], ["out87.tmp"], ["out*.tmp"], id="no punctuation before it"),
        pytest.param(
            ["done-0-luigi-tmp-0123456789", "done-1-luigi-tmp-5550001112"],
            ["done-0-luigi-tmp-9876543210", "done-1-luigi-tmp-1112223334"],
            ["done-0-luigi-tmp-*", "done-1-luigi-tmp-*"],
            id="what stays tells files apart",
        ),
        pytest.param(
            ["o.pkl.thread-140-pid-11"], ["o.pkl.thread-139-pid-22"], ["o.pkl.thread-*-pid-*"],
            id="two of them",
        ),
        pytest.param(
            ["a1b2-7f.new/x-1", "a1b2-7f.new/x-2"], ["0c9d-e1.new/x-1", "0c9d-e1.new/x-2"],
            ["*.new"], id="a folder, whose files keep their names",
        ),
        pytest.param(
            ["p-11/q.21", "p-12/q.22"], ["p-13/q.23", "p-14/q.24"], ["p-*", "p-*/q.*"],
            id="files in such a folder",
        ),
        pytest.param(
            ["out-ab_d3f8k", "keep"], ["out-x2kd93ja", "keep"], ["out-*"],
            id="random characters that look like punctuation",
        ),
        pytest.param(
            ["job-kq3zx7wa", "job-mnopqrst"], ["job-2b4c6d8e", "job-zyxwvuts"], ["job-*"],
            id="base32 that may have no digit at all",
        ),
        pytest.param(
            ["new", "t.1", "t.new"], ["new", "t.2", "t.new"], ["t.*", "t.new"],
            id="a name that stays beside those that vary",
        ),
        pytest.param(["t.1", "t.2"], ["t.3", "t.4"], ["t.*"], id="one for each use"),
        pytest.param(
            ["s.Qb7-x_Zk19aR", "s"], ["s.hT_4mm0vKqq2", "s"], ["s.*"], id="base64 for URLs"
        ),
        pytest.param(["log_3"], ["tmp_3"], [], id="other words of one length"),
        pytest.param(["alpha"], ["beta"], [], id="words are no numbers"),
        pytest.param(["log-3"], ["cache-3"], [], id="the same number of different things"),
        pytest.param(["part-1", "part-2"], ["part-1"], [], id="a file that only one run writes"),
        pytest.param(["part-1"], ["part-1"], [], id="a number that stays"),
        pytest.param(["db:x.11"], ["db:x.12"], ["db:x.*"], id="a service's file"),
    ],
)  # fmt: skip
def test_what_differs_in_otherwise_equal_names_is_left_out(
    one: list[str], two: list[str], names: list[str]
) -> None:
    """And nothing else: what is equal in both runs, or is a word, stays; the order is no matter."""
    assert varying([wrote(*one), wrote(*two)]) == tuple(names)
    assert varying([wrote(*reversed(two)), wrote(*one)]) == tuple(names)
    assert sorted(told(wrote(*one), names)) == sorted(told(wrote(*two), names)) or not names


def test_calls_on_names_that_vary_are_counted_in_their_order() -> None:
    """The ordinal counts uses of the one name, in each attempt, process and call."""
    history = ran(
        "open(t.1)#1", "write(t.1)#1", "rename(t.1->a)#1", "open(t.2)#1", "write(t.2)#1",
        "p1:open(t.3)#1", "rename(t.2->a)#1", "sendto(t.9)#1", "sync()#1",
    )  # fmt: skip
    assert told(history, ("t.*",)) == [
        "open(t.*)#1", "write(t.*)#1", "rename(t.*->a)#1", "open(t.*)#2", "write(t.*)#2",
        "p1:open(t.*)#1", "rename(t.*->a)#2", "sendto(t.9)#1", "sync()#1",
    ]  # fmt: skip


WORDS = st.text("abcdefgh", min_size=1, max_size=5)
KINDS = ("pid", "digits", "hex", "base32")


def drawn(kind: str, rng: random.Random) -> str:
    """A part of a name as programs make them, never the same twice."""
    match kind:
        case "pid":
            return str(rng.randrange(300, 4_000_000))
        case "digits":
            return f"{rng.randrange(10**10):010d}"
        case "hex":
            return f"{rng.getrandbits(40):010x}"
        case _:
            return "".join(rng.choices(string.ascii_lowercase + "234567", k=16))


@given(
    roles=st.lists(st.tuples(WORDS, st.sampled_from(KINDS), WORDS), min_size=1, max_size=6),
    folder=st.sampled_from(["", "d/", "d/e/"]),
    seed=st.integers(0, 2**32),
)
def test_every_role_has_one_name_that_a_third_run_has_too(
    roles: list[tuple[str, str, str]], folder: str, seed: int
) -> None:
    """A name made of a fixed part, something drawn anew, and an ending is the same in every run,
    also in one from which nothing was learnt, and other roles have other names.
    """
    assume(len({(before, after) for before, _, after in roles}) == len(roles))
    rng = random.Random(seed)
    runs = [
        [f"{folder}{before}.{drawn(kind, rng)}.{after}" for before, kind, after in roles]
        for _ in range(3)
    ]
    # what looks like a word in both runs is one
    assume(all(re.search("[0-9]", name) for run in runs for name in run))
    known = Varying(varying([wrote(*names) for names in runs[:2]]))
    named = [list(map(known.of, names)) for names in runs]
    assert named[0] == named[1] == named[2]
    assert len(set(named[0])) == len(roles)


PATHS = st.lists(st.text("ab1-./*", min_size=1, max_size=8), max_size=6)


@given(PATHS, PATHS, PATHS)
def test_no_call_is_lost_and_names_stay_what_they_are(
    one: list[str], two: list[str], three: list[str]
) -> None:
    """Whatever was learnt, a run keeps the number of its calls, all of them different, and a name
    that was given is given again.
    """
    runs = [wrote(*dict.fromkeys(names)) for names in (one, two)]
    names = varying(runs)
    assert varying([runs[0], runs[0]]) == ()
    known = Varying(names)
    for path in (*one, *two, *three):
        assert known.of(known.of(path)) == known.of(path)
    for run in (*runs, wrote(*dict.fromkeys(three))):
        calls = told(run, names)
        assert len(set(calls)) == len(calls) == len(run.events)
    once = renamed(runs[0], names)
    assert renamed(once, names).events == once.events
