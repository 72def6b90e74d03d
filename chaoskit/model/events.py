"""Events: everything that was seen in one trial, numbered by the one process that saw it all.

Each body says one thing that happened. The supervisor wraps it in an `Event`, whose ``index``
is the order of the trial; ``at_us`` is for people and is never compared.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chaoskit.model.effects import Effect

SUCCESS = (0,)
"""The exit codes that mean success where a scenario names no others."""

How = Literal["exit", "signal", "killed", "stopped", "timeout", "not-started"]
"""How an attempt ended: by itself (code), by a signal of its own, by our fault, after we had asked
it to stop, by our time limit, or before it began (the command could not be run)."""

StepPhase = Literal["started", "recorded", "restored"]
"""A step's body began / its completion is durable / its stored result was used instead."""

StatedEnd = Literal["refused", "unknown"]
"""A legal end other than success, as the task itself states it."""


class AttemptStarted(msgspec.Struct, frozen=True, tag="attempt-started"):
    """The task was started; from the second attempt on it is asked to resume."""

    attempt: int
    resume: bool


class RequestReceived(msgspec.Struct, frozen=True, tag="request", kw_only=True):
    """A service has the whole request and has changed nothing yet.

    ``wants`` is the effect that it asks for, None for a mere look; ``token`` is the fencing token
    that came along; ``early`` says that it was sent before the one ahead of it on its connection
    was answered; ``ignored``: it asks for an effect that nobody judges, and ``wants`` is None.
    """

    attempt: int
    request: int
    service: str
    operation: str
    ordinal: int
    key: str | None = None
    wants: Effect | None = None
    token: int | None = None
    early: bool = False
    ignored: bool = False


class EffectApplied(msgspec.Struct, frozen=True, tag="effect", kw_only=True, gc=False):
    """A service's ledger has a new entry. ``request`` is None where no request was seen;
    ``ignored``: nobody judges it, as the scenario's ``ignore=`` says.
    """

    attempt: int
    effect: Effect
    request: int | None = None
    ignored: bool = False


class ReplySent(msgspec.Struct, frozen=True, tag="reply", kw_only=True):
    """The answer to a request; ``deduped`` when an earlier one's answer was given again."""

    attempt: int
    request: int
    status: int
    deduped: bool = False
    delivered: bool = True

    @property
    def good(self) -> bool:
        """Whether the caller knows by it that the request was carried out."""
        return self.delivered and self.status < 400


class Crossed(msgspec.Struct, frozen=True, tag="crossed"):
    """The task passed ``probe.point(name)`` for the ``ordinal``-th time in this attempt."""

    attempt: int
    name: str
    ordinal: int


class CallSeen(msgspec.Struct, frozen=True, tag="call", kw_only=True, gc=False):
    """The task is about to make a state-changing system call; ``call`` is the text of its point.

    ``sends``: it sends to a service. ``bytes``: how much it would write, 0 where that says nothing.
    ``alone``: no other thread or process of the task is there. ``cuts``: how many of the bytes can
    be all that a kill inside the call leaves in the file: up to a page boundary of it. ``program``
    is what the process runs, where it is not the task's first one.
    """

    attempt: int
    call: str
    sends: bool = False
    bytes: int = 0
    alone: bool = True
    cuts: tuple[int, ...] = ()
    program: str = ""

    @property
    def in_words(self) -> str:
        """The point's text, and whose call it is where that is not plain."""
        return f"{self.call} of {self.program}" if self.program else self.call


class TraceNoted(msgspec.Struct, frozen=True, tag="trace-noted"):
    """Something that the tracer saw and that limits what it can claim; ``what`` says which."""

    attempt: int
    what: str
    detail: str = ""


class StepReported(msgspec.Struct, frozen=True, tag="step"):
    """The task (or the runtime in it) says where one of its steps is."""

    attempt: int
    step: str
    phase: StepPhase


class EndStated(msgspec.Struct, frozen=True, tag="end-stated", kw_only=True):
    """The task says why it will not go on."""

    attempt: int
    end: StatedEnd
    reason: str
    step: str = ""


class FaultLanded(msgspec.Struct, frozen=True, tag="fault"):
    """A fault of the schedule took place; ``fault`` is its text form."""

    attempt: int
    fault: str


class EventsLeftOut(msgspec.Struct, frozen=True, tag="left-out", kw_only=True):
    """The trial has ``limit`` events, the most that are kept: only ends and faults follow.

    ``most`` of them are ``what``.
    """

    attempt: int
    limit: int
    what: str
    most: int


class AttemptEnded(msgspec.Struct, frozen=True, tag="attempt-ended", kw_only=True):
    """No process of the attempt is left, and every service has seen the end of its connections.

    ``code`` is the exit status or the signal number; ``leftovers`` are the command lines of
    processes that were still alive after the task itself had ended; ``success`` are the exit codes
    that mean success for this task.
    """

    attempt: int
    how: How
    code: int
    seconds: float
    leftovers: tuple[str, ...] = ()
    output_bytes: int = 0
    output_tail: str = ""
    success: tuple[int, ...] = SUCCESS

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself and claims success: the one reading of an exit code."""
        return self.how == "exit" and self.code in self.success


class Output(msgspec.Struct, frozen=True):
    """What a declared output is at the end of a trial: its size in bytes and its content.

    ``content`` is None where it is larger than 64 KiB, or the same as in the baseline run.
    """

    size: int
    content: bytes | None = None


class FileLeft(msgspec.Struct, frozen=True):
    """A file that a task wrote which never came to its end, as it is then.

    ``size`` is in bytes; ``head`` are the first characters, without credentials. ``pid`` is the
    number of a process that a lock holds, 0 for none; ``runs``: a process with that number was
    there when all of the task's had ended.
    """

    size: int
    head: str
    pid: int = 0
    runs: bool = False


class RecordsFound(msgspec.Struct, frozen=True, tag="records"):
    """The files that record completed steps, as an attempt left them: their sizes in bytes."""

    attempt: int
    files: dict[str, int]


class StateObserved(msgspec.Struct, frozen=True, tag="state"):
    """The declared outputs at the end of the trial, by path in the work folder: the SHA-256 of
    each, and what is needed to say how it differs. ``left``: files that may say why a task never
    came to its end.
    """

    digests: dict[str, str]
    outputs: dict[str, Output] = {}
    left: dict[str, FileLeft] = {}


Body = (
    AttemptStarted
    | RequestReceived
    | EffectApplied
    | ReplySent
    | Crossed
    | CallSeen
    | TraceNoted
    | StepReported
    | EndStated
    | FaultLanded
    | EventsLeftOut
    | AttemptEnded
    | RecordsFound
    | StateObserved
)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One line of a history."""

    index: int
    at_us: int
    body: Body


def renumbered(body: Body, shift: int) -> Body:
    """``body`` with ``shift`` added to the number of the request that it is about, if any."""
    if isinstance(body, RequestReceived | ReplySent):
        return msgspec.structs.replace(body, request=body.request + shift)
    if isinstance(body, EffectApplied) and body.request is not None:
        return msgspec.structs.replace(body, request=body.request + shift)
    return body
