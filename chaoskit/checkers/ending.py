"""stuck, diverged_state and leftover_process: how the trial ended and what it left behind."""

from __future__ import annotations

from collections.abc import Iterator

from chaoskit.checkers.comparison import counted
from chaoskit.model.events import AttemptEnded, EndStated
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History
from chaoskit.model.last_words import QUOTED_CHARACTERS, telling_line

_LEGAL = "the task ends with success, or refuses, or names a step of unknown outcome"
_GOES_ON = "the task goes on after a kill that damaged and changed nothing"


def stuck(history: History, expectation: Expectation) -> Iterator[Finding]:
    """The task never ended by itself, however often it was resumed; or it refused each time, after
    nothing but interruptions.
    """
    end = history.stated_end
    if history.completed or history.may_end_so:
        return
    if end is not None and expectation.refusals == "allowed":
        return
    failed = [
        (index, body)
        for index, body in history.attempts
        if body.how not in {"killed", "stopped"} and (body.how, body.code) != ("exit", 0)
    ]
    last = failed[-1][1]
    yield Finding(
        kind="stuck",
        operation="task",
        subject="refused" if end is not None else f"{last.how} {last.code}",
        expected=_LEGAL if end is None else _GOES_ON,
        seen=f"{counted(len(failed), 'attempt')} after the last kill, {_none(len(failed))} did",
        because=f"the last one {_how(last) if end is None else _refused(end)}",
        witness=tuple(index for index, _ in failed),
    )


def diverged_state(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Declared outputs that differ from those of an undisturbed run."""
    if not history.completed:
        return
    unstable = expectation.volatile.get("outputs", ())
    want = expectation.digests
    have = {name: digest for name, digest in history.digests.items() if name not in unstable}
    names = sorted(n for n in want.keys() | have.keys() if want.get(n) != have.get(n))
    if not names:
        return
    what = [f"{name} {_change(name in have, name in want)}" for name in names[:3]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    yield Finding(
        kind="diverged_state",
        operation="outputs",
        subject="outputs",
        expected=f"{counted(len(want), 'output')} as an undisturbed run leaves them",
        seen=f"{len(names)} that differ{'s' if len(names) == 1 else ''}",
        because="; ".join(what) + more,
        witness=(history.events[-1].index,),
    )


def leftover_process(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Processes that outlived the task."""
    for index, body in history.attempts:
        if body.leftovers:
            yield Finding(
                kind="leftover_process",
                operation="task",
                subject="leftover",
                expected="no process of the task is alive after it has ended",
                seen=f"{len(body.leftovers)} after attempt {body.attempt}",
                because="; ".join(body.leftovers[:3]),
                witness=(index,),
            )
            return


def _refused(end: EndStated) -> str:
    reason = end.reason[:QUOTED_CHARACTERS]
    return f"refused: {reason}" if reason else "refused, and gave no reason"


def _none(number: int) -> str:
    return "which never" if number == 1 else "none of which"


def _change(present: bool, expected: bool) -> str:  # noqa: FBT001 - two facts
    if not present:
        return "is missing"
    return "has other content" if expected else "was never expected"


def _how(ended: AttemptEnded) -> str:
    words = telling_line(ended.output_tail)[:QUOTED_CHARACTERS]
    said = f"; its last words: {words}" if words else ""
    match ended.how:
        case "timeout":
            return f"did not end within {ended.seconds:.1f} s{said}"
        case "signal":
            return f"was ended by signal {ended.code} of its own{said}"
        case "not-started":
            return f"could not be started{said}"
        case _:
            return f"ended with status {ended.code}{said}"
