"""Where a fault was, in words: the effect and the record on each side of it, and the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoskit.model.effects import Effect
from chaoskit.model.events import (
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    Event,
    ReplySent,
    RequestReceived,
)
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_fault
from chaoskit.reporting.places import Places, Stack

CHARGE = Effect(service="payments", kind="charge", fields=())


def asked(number: int, *, effects: int = 1, attempt: int = 1) -> Iterator[Body]:
    """A charge: the call that sends it, and what the service does."""
    yield CallSeen(attempt=attempt, call=f"sendto(payments)#{number}", sends=True, bytes=80)
    yield RequestReceived(
        attempt=attempt, request=number, service="payments", operation="charge", ordinal=number
    )
    for _ in range(effects):
        yield EffectApplied(attempt=attempt, effect=CHARGE, request=number)
    yield ReplySent(attempt=attempt, request=number, status=200)


def call(text: str) -> CallSeen:
    """One on a file."""
    return CallSeen(attempt=1, call=text, bytes=9000)


def history(*bodies: Body) -> History:
    """Of these, in order."""
    return History(tuple(Event(index, 0, body) for index, body in enumerate(bodies)))


SURVEY = history(
    call("open(a)#1"),
    Crossed(1, "begun", 1),
    *asked(1),
    call("write(a)#1"),
    Crossed(1, "line/task.py:7", 1),
    call("fsync(a)#1"),
    *asked(2, effects=2),
    call("rename(b->a)#1"),
    *asked(3, effects=0),
    call("p1:write(a)#1"),
)


PLACES = """
kill@open(a)#1: before open(a)#1
kill@open(a)#1+after: after open(a)#1, before payments.charge#1
kill@sendto(payments)#1: after open(a)#1, before payments.charge#1
kill@sendto(payments)#1+short:40: after open(a)#1, within sendto(payments)#1,\
 before payments.charge#1
kill@sendto(payments)#1+after: after payments.charge#1, before write(a)#1
kill@payments.charge#1.received: after open(a)#1, before payments.charge#1
kill@payments.charge#1.applied: after payments.charge#1, before write(a)#1
kill@payments.charge#1.answered: after payments.charge#1, before write(a)#1
late:1@payments.charge#1.received: after open(a)#1, before payments.charge#1
late:end@payments.charge#2.received: after payments.charge#1 and fsync(a)#1,\
 before payments.charge#2
kill@write(a)#1: after payments.charge#1, before write(a)#1
kill@write(a)#1+short:4096: after payments.charge#1, within write(a)#1, before fsync(a)#1
kill@write(a)#1+after: after payments.charge#1 and write(a)#1, before fsync(a)#1
power:drop@fsync(a)#1+after: after payments.charge#1 and fsync(a)#1, before payments.charge#2
kill@payments.charge#2.applied: after payments.charge#2, before rename(b->a)#1
kill@rename(b->a)#1: after payments.charge#2, before rename(b->a)#1
kill@payments.charge#3.received: after payments.charge#2 and rename(b->a)#1, before p1:write(a)#1
kill@payments.charge#3.applied: after payments.charge#2 and rename(b->a)#1, before p1:write(a)#1
kill@p1:write(a)#1: after payments.charge#2 and rename(b->a)#1, before p1:write(a)#1
kill@p1:write(a)#1+after: after payments.charge#2 and p1:write(a)#1
kill@begun#1: after open(a)#1, before payments.charge#1
kill@line/task.py:7#1: after payments.charge#1 and write(a)#1, before fsync(a)#1
kill@write(a)#2:
kill@payments.charge#4.applied:
kill@begun#2:
kill@250ms:
"""
"""A fault, and what it is between; nothing for what the undisturbed run has not passed."""


@pytest.mark.parametrize("line", PLACES.strip().splitlines())
def test_a_place_is_named_by_what_was_done_last_and_would_be_done_next(line: str) -> None:
    """The last effect and, if it came later, the last record; and the next of either."""
    fault, _, between = line.partition(": ")
    assert Places(SURVEY, {}).of(parse_fault(fault.removesuffix(":"))).between == between


def test_only_the_undisturbed_first_attempt_counts() -> None:
    """What a later attempt did is at no place of the first one's."""
    survey = history(*asked(1), *asked(2, attempt=2))
    assert Places(survey, {}).of(parse_fault("kill@payments.charge#2.applied")).between == ""
    assert Places(survey, {}).of(parse_fault("kill@sendto(payments)#1")).between == (
        "before payments.charge#1"
    )


def test_without_a_survey_there_is_nothing_to_say() -> None:
    """A campaign that was cut off before its survey was done has no places."""
    place = Places(None, {}).of(parse_fault("kill@open(a)#1"))
    assert (place.between, place.code, place.file, place.line) == ("", "", "", 0)


def test_a_line_is_named_as_a_reader_would_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the folder where chaoskit was called by a relative path, elsewhere by the whole."""
    monkeypatch.chdir(tmp_path)
    below = (str(tmp_path / "jobs" / "task.py"), 12, "main")
    known = {"open(a)#1": (below,), "fsync(a)#1": (("/usr/lib/x.py", 3, "Runner.go"),)}
    places = Places(SURVEY, known)
    one = places.of(parse_fault("kill@open(a)#1"))
    assert (one.code, one.file, one.line, one.function) == (
        "jobs/task.py:12 in main", "jobs/task.py", 12, "main",
    )  # fmt: skip
    other = places.of(parse_fault("kill@fsync(a)#1"))
    assert other.code == "/usr/lib/x.py:3 in Runner.go"
    assert other.between
    installed = Places(SURVEY, {"open(a)#1": (("/env/lib/site-packages/prog/a.py", 5, "run"),)})
    inside = installed.of(parse_fault("kill@open(a)#1"))
    assert (inside.code, inside.file) == ("prog/a.py:5 in run", "/env/lib/site-packages/prog/a.py")
    assert places.of(parse_fault("kill@open(a)#1+after")).code == "", "each side is looked at"


def stack(*lines: str) -> Stack:
    """``post:12`` is line 12 in the function post, ``.send:3`` one in a file of its own; the
    innermost one first.
    """
    parts = (line.partition(":") for line in lines)
    return tuple((f"/a/{'client' if f[0] == '.' else 'job'}.py", int(n), f) for f, _, n in parts)


@pytest.mark.parametrize(
    ("stacks", "codes"),
    [
        (["post:12 main:20", "post:12 main:20"], ["12 in post", "12 in post"]),
        (["post:12 main:20"], ["12 in post"]),
        (["ask:3 main:20", "post:12 main:21"], ["3 in ask", "12 in post"]),
        (
            ["post:12 charge:41 main:20", "post:12 mail:50 main:20", "open:7 main:20"],
            ["41 in charge, through 12 in post", "50 in mail, through 12 in post", "7 in open"],
        ),
        (
            ["post:12 charge:41 main:20", "post:12 charge:41 main:21", "post:12 mail:50 main:22"],
            [
                "20 in main, through 12 in post",
                "21 in main, through 12 in post",
                "50 in mail, through 12 in post",
            ],
        ),
        (
            ["post:12 main:20", "post:12 retry:30 main:20"],
            ["20 in main, through 12 in post", "30 in retry, through 12 in post"],
        ),
        (
            [".post:12 main:20", ".post:12 main:20", "open:7 main:21"],
            ["20 in main, through 12 in .post", "20 in main, through 12 in .post", "7 in open"],
        ),
        (
            [".post:12 .charge:41 main:20", ".post:12 .mail:50 main:21"],
            ["20 in main, through 12 in .post", "21 in main, through 12 in .post"],
        ),
        ([".post:12 .charge:41 main:20"], ["12 in .post"]),
        (["walk:5 walk:6", "walk:5 walk:6 walk:6"], ["5 in walk", "6 in walk, through 5 in walk"]),
    ],
    ids=[
        "loop",
        "once",
        "apart",
        "helper",
        "steps",
        "retried",
        "client",
        "clients",
        "stub",
        "recursion",
    ],
)
def test_the_line_that_is_named_first_tells_the_place_from_others(
    stacks: list[str], codes: list[str]
) -> None:
    """A helper that is called from several lines is named second, after the line that called it."""
    known = {f"open(a)#{n}": stack(*text.split()) for n, text in enumerate(stacks, 1)}
    places = Places(None, known)
    told = [places.of(parse_fault(f"kill@{point}")) for point in known]
    assert [re.sub(r"/a/\w+\.py:", "", place.code) for place in told] == codes
    assert [f"{place.line} in {place.function}" for place in told] == [
        code.partition(",")[0] for code in codes
    ]
