"""stuck and leftover_process: how the trial ended, and which processes it left behind."""

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
