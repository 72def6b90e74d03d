"""Exactness: a task fails at just those system calls at which its own trace says that it must.

A task that first does and then records does twice where it is killed in between. Where "between"
begins and ends is read from the undisturbed run, by each test itself: it begins after the call that
sent the request off, and it ends with the call that makes the record durable against a kill.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.model.events import CallSeen, EffectApplied
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, parse_point
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trace.abi import this_abi
from tests.marks import rare

ROOT = Path(__file__).resolve().parents[2]
TASKS = ROOT / "tests" / "tasks"

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)


@dataclass(frozen=True, slots=True)
class Explored:
    """A campaign over all calls: the undisturbed run, and where a kill brought duplicates about."""

    survey: History
    twice: list[str]
    other: dict[str, tuple[str, ...]]
    calls: int


def explored(target: Target, runs: Path, jobs: int = 1) -> Explored:
    """Kill a task before every call (and after some), each of them once."""
    options = Options(target=target, mechanisms=("calls",), runs=str(runs), jobs=jobs)
    last = [event for event in run(options) if isinstance(event, Finished)][-1]
    twice, other = [], {}
    with Store(last.folder) as store:
        survey = store.survey()
        assert survey is not None
        for trial in store.trials():
            schedule = parse_schedule(trial.schedule)
            if schedule == Schedule():
                assert trial.judgement.verdict == "VALID"
                continue
            assert trial.landed, trial.schedule
            ((fault,),) = schedule.attempts
            kinds = tuple(sorted({finding.kind for finding in trial.judgement.roots}))
            if kinds == ("duplicate_effect",):
                twice.append(str(fault.point))
            elif trial.judgement.verdict != "VALID":
                other[str(fault.point)] = (*kinds, *trial.judgement.unknowns)
        assert store.get("real") == "", "these are to be run from copies of the world"
    return Explored(survey[0], twice, other, len(list(survey[0].of(CallSeen))))


def before(points: list[str]) -> set[str]:
    """Those that are met before the call."""
    parsed = [parse_point(point) for point in points]
    return {str(p) for p in parsed if isinstance(p, CallPoint) and p.side == "before"}


Ends = Callable[[CallSeen], bool]
"""Whether a call makes the record durable against a kill."""


def windows(history: History, ends: Ends) -> Iterator[list[str]]:
    """For each effect of an undisturbed run the calls before which a kill makes it happen twice.

    Until the call is made that ends the record the effect is done and not recorded; the call that
    sent the request is not among them, as before it nothing was done.
    """
    done = False
    window: list[str] = []
    for event in history.events:
        body = event.body
        if isinstance(body, EffectApplied):
            assert not done, "an effect before the one ahead of it was recorded"
            done = True
        elif isinstance(body, CallSeen) and done:
            window.append(body.call)
            if ends(body):
                yield window
                done, window = False, []
    assert not done


def is_commit(journal: str) -> Ends:
    """The call by which a transaction of one page is committed, in either of SQLite's ways."""

    def in_the_log(seen: CallSeen) -> bool:  # the page of a frame, which follows the frame's head
        return seen.call.startswith("pwrite(run.db-wal)") and seen.bytes == 4096

    def by_deleting(seen: CallSeen) -> bool:
        return seen.call.startswith("unlink(run.db-journal)")

    return in_the_log if journal == "WAL" else by_deleting


FORTY_STEPS = f"""
import {{client}}  # once, in the process of which all attempts are forks
import sys
sys.path.insert(0, {str(ROOT / "scenarios" / "exact")!r})
from forty_steps import _scenario
scenario = _scenario("{{client}}", journal="{{journal}}", client="{{client}}", care="{{care}}",
                     steps={{steps}})
"""


def forty_steps(
    folder: Path, journal: str, client: str = "http.client", care: str = "none", steps: int = 3
) -> Target:
    """The scenario of that name, with fewer steps."""
    file = folder / "steps.py"
    file.write_text(FORTY_STEPS.format(journal=journal, client=client, care=care, steps=steps))
    return Target(scenario=str(file))


WIDTH = {"WAL": 2, "DELETE": 16 + (os.geteuid() == 0)}
"""Calls from the effect to the commit: the head of a frame and its page; or the journal's making,
its ten writes and two syncs, its folder's, two pages and a sync of the database, and the deletion.
SQLite gives a journal the owner of its database where it runs as root.
"""


def assert_exact(found: Explored, ends: Ends, steps: int, width: int) -> None:
    """The failing points are those that the trace predicts, and the prediction is what it was."""
    predicted = list(windows(found.survey, ends))
    assert [len(window) for window in predicted] == [width] * steps
    assert before(found.twice) == {call for window in predicted for call in window}
    assert found.other == {}


@pytest.mark.parametrize(
    ("client", "journal", "steps"),
    [
        ("http.client", "WAL", 5),
        ("http.client", "DELETE", 3),
        rare("requests", "WAL", 3),
        rare("requests", "DELETE", 2),
        rare("httpx", "WAL", 1),
        rare("httpx", "DELETE", 1),
    ],
)
def test_a_task_fails_between_effect_and_commit_and_nowhere_else(
    tmp_path: Path, client: str, journal: str, steps: int
) -> None:
    """Twice a step with a log, sixteen times with a journal, whatever client sends the requests."""
    if client != "http.client":
        pytest.importorskip(client)
    found = explored(forty_steps(tmp_path, journal, client, steps=steps), tmp_path / "runs")
    assert_exact(found, is_commit(journal), steps, WIDTH[journal])


@pytest.mark.exhaustive
def test_all_forty_steps_fail_at_two_calls_each(tmp_path: Path) -> None:
    """The whole task of the benchmarks: of some 240 calls just the eighty that are predicted."""
    found = explored(forty_steps(tmp_path, "WAL", steps=40), tmp_path / "runs", jobs=2)
    assert_exact(found, is_commit("WAL"), 40, WIDTH["WAL"])
    assert 230 <= found.calls <= 250


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_a_task_with_a_stored_key_never_fails(tmp_path: Path, journal: str) -> None:
    """Intent, look-up and key before the effect: no call at which a kill shows anything."""
    found = explored(forty_steps(tmp_path, journal, care="key", steps=2), tmp_path / "runs")
    assert (found.twice, found.other) == ([], {})
    assert found.calls > 30


RUNTIME = """
import os, sqlite3
from forty_steps import _charge, _CLIENTS
from chaoskit import Scenario
from chaoskit.runtime import open_run

def main():
    ask = _CLIENTS["http.client"](os.environ["CHAOSKIT_PAYMENTS_URL"])
    books = sqlite3.connect("books.db", isolation_level=None)
    books.execute("PRAGMA journal_mode = JOURNAL")
    books.execute("CREATE TABLE IF NOT EXISTS sales (step INTEGER PRIMARY KEY, charge TEXT)")
    with open_run("run.db", inputs=None) as run:
        if run.finished:
            return
        for step in (1, 2):
            def charge(effect, step=step):
                form = {"amount": str(1000 + step), "currency": "eur", "source": "tok_visa"}
                made = str(ask("POST", "/v1/charges", form | {"key": effect.key})["id"])
                effect.produced(made)
                return made
            made = run.step(f"charge/{step}", charge, keyed=True)
            run.atomic_step(
                f"row/{step}", books,
                lambda cursor, step=step, made=made: cursor.execute(
                    "INSERT INTO sales VALUES (?, ?)", (step, made)
                ) and None,
            )
        run.finish(2)

scenario = Scenario(task=main, services=("payments",))
"""


@pytest.mark.parametrize("journal", ["WAL", rare("DELETE")])
def test_the_runtime_never_fails(tmp_path: Path, journal: str) -> None:
    """chaoskit.runtime, with a key and with rows of its own transaction: no call shows anything."""
    source = RUNTIME.replace("JOURNAL", journal)
    head = f"import sys\nsys.path.insert(0, {str(ROOT / 'scenarios' / 'exact')!r})\n"
    (tmp_path / "runtime.py").write_text(head + textwrap.dedent(source), encoding="utf-8")
    target = Target(scenario=str(tmp_path / "runtime.py"))
    found = explored(target, tmp_path / "runs")
    assert (found.twice, found.other) == ([], {})
    assert found.calls > 40


# The same in other languages, and by other processes than the first one.


def is_renaming(seen: CallSeen) -> bool:
    """The call by which the task's note gets its name."""
    return "rename(new->done-" in seen.call


def command(*words: str) -> Target:
    """A program that charges two customers and notes each of them in a file."""
    return Target(command=CommandSpec(command=(*words, "{payments.url}"), services=("payments",)))


PROGRAMS = {
    "node": (("node", str(TASKS / "two.mjs")), ("", "")),
    "bash": (("bash", str(TASKS / "two.sh")), ("", "")),
    "children": ((sys.executable, str(TASKS / "two_by_children.py")), ("p1:", "p2:")),
}


@pytest.mark.parametrize("name", [rare("node"), "bash", rare("children")])
def test_other_programs_fail_between_effect_and_note_and_nowhere_else(
    tmp_path: Path, name: str
) -> None:
    """Node, a shell with its tools, children that do the work: where their own traces say."""
    words, who = PROGRAMS[name]
    for tool in (words[0], "curl"):
        if shutil.which(tool) is None and (name == "bash" or tool == words[0]):
            pytest.skip(f"{tool} is not installed")
    found = explored(command(*words), tmp_path / "runs")
    assert_exact(found, is_renaming, 2, 3)
    predicted = [call for window in windows(found.survey, is_renaming) for call in window]
    assert [call for call in predicted if "open(" in call] == [
        f"{who[0]}open(new)#1",
        f"{who[1]}open(new)#{1 if who[1] else 2}",
    ]
