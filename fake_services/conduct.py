"""The conduct of one service: how it treats each request, by its clock, its tokens, its behaviours.

Every door of a service shares one, so that requests are counted together whichever way they come.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaoskit.model.behaviours import Behaviour, BehaviourKind
from chaoskit.model.effects import Effect
from chaoskit.model.errors import unknown_name
from chaoskit.model.hosting import Observer

TOKEN_HEADER = "chaoskit-fencing-token"  # noqa: S105 - the name of a header
RUN_HEADER = "chaoskit-run"

_TOKEN = re.compile(r"[0-9]{1,18}")

Land = Callable[[Any], Sequence[Effect]]
"""Carries out a request whose sender is gone."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request is not even looked at: an HTTP status, and words for its sender."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Fence:
    """What a request says of who sends it: the name of the run, and its fencing token.

    ``token`` is None where there is none, or where what stands there is no number (``garbled``).
    """

    run: str = ""
    token: int | None = None
    garbled: bool = False

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Fence:
        """What the headers say; their names are lower case."""
        text = headers.get(TOKEN_HEADER)
        if text is None:
            return cls()
        run = headers.get(RUN_HEADER, "")
        if not _TOKEN.fullmatch(text):
            return cls(run, garbled=True)
        return cls(run, int(text))


NO_FENCE = Fence()


@dataclass(frozen=True, slots=True)
class Treatment:
    """How one request is treated: the ``request``-th since the reset, counting all operations."""

    request: int
    behaviours: Mapping[BehaviourKind, Behaviour] = field(default_factory=dict)
    refused: Refused | None = None

    def __contains__(self, kind: BehaviourKind) -> bool:
        return kind in self.behaviours

    def amount(self, kind: BehaviourKind) -> int | None:
        """What belongs to a behaviour of this kind; 0 where there is none."""
        found = self.behaviours.get(kind)
        return 0 if found is None else found.amount


@dataclass(frozen=True, slots=True)
class _Postponed:
    number: int
    left: int | None
    what: object


class Conduct:
    """See the module. ``clock`` is the real one, in seconds since the epoch."""

    def __init__(
        self, name: str, operations: Sequence[str], clock: Callable[[], float] = time.time
    ) -> None:
        self.observer: Observer | None = None
        self._name = name
        self._operations = operations
        self._clock = clock
        self._landings: dict[type, Land] = {}
        self._patience_s = self._patience_left_s = 0.0
        self.reset(())

    def reset(self, behaviours: Sequence[Behaviour]) -> None:
        """As after the start, misbehaving in these ways; see `behave`."""
        self._counts: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._tokens: dict[str, int] = {}
        self._shift_s = 0.0
        self._waiting: list[_Postponed] = []
        self.behave(behaviours)

    def behave(self, behaviours: Sequence[Behaviour], *, anew: bool = False) -> None:
        """See `chaoskit.model.hosting.Misbehaving`; an outage that went on is over.

        Raises:
            UsageError: a behaviour names an operation that there is not.
        """
        mine = tuple(b for b in behaviours if b.service == self._name)
        for behaviour in mine:
            if not any(map(behaviour.covers, self._operations)):
                raise unknown_name("operation", behaviour.operation, self._operations)
        if anew:
            self._before = self._counts.copy()
        self._behaviours = mine
        self._begun: list[Behaviour] = []
        self._down: int | None = 0

    # The clock.

    def now_s(self) -> float:
        """The service's own time, in seconds since the epoch."""
        return self._clock() + self._shift_s

    def shift_clock(self, seconds: float) -> None:
        """See `chaoskit.model.hosting.Clocked`."""
        self._shift_s += seconds

    # Patience.

    def delay_replies(self, seconds: float, total_s: float) -> None:
        """See `chaoskit.model.hosting.Patient`."""
        self._patience_s, self._patience_left_s = seconds, total_s

    def patience(self) -> float:
        """How many seconds the next answer is held back."""
        if self._patience_left_s < self._patience_s:
            return 0.0
        self._patience_left_s -= self._patience_s
        return self._patience_s

    def delay_s(self, treatment: Treatment) -> float:
        """For how long the answer to a request is held back, all in all."""
        return (treatment.amount("late-reply") or 0) / 1000 + self.patience()

    # One request.

    def treat(self, operation: str, fence: Fence = NO_FENCE) -> Treatment:
        """Count one more request, and say how it is treated."""
        self._counts[operation] += 1
        request = self._counts.total()
        found = {b.kind: b for b in self._behaviours if self._meets(b, operation)}
        if self._is_down(found.get("down")):
            return Treatment(request, found, Refused(503, "the service is down; try again later"))
        refused = self._fenced(fence) if "fence" in found else None
        self._see(fence)
        if refused is None and (reject := found.get("reject")) is not None:
            refused = Refused(reject.amount or 500, "refused; nothing was done")
        return Treatment(request, found, refused)

    def treat_landing(self, operation: str, fence: Fence = NO_FENCE) -> Treatment:
        """How a request is treated that lands after its sender was given up: it may be fenced."""
        always = any(b.kind == "fence" and b.covers(operation) for b in self._behaviours)
        refused = self._fenced(fence) if always else None
        self._see(fence)
        return Treatment(self._counts.total(), {}, refused)

    def _meets(self, behaviour: Behaviour, operation: str) -> bool:
        counts = self._counts - self._before
        ordinal = sum(n for name, n in counts.items() if behaviour.covers(name))
        return behaviour.applies(self._name, operation, ordinal)

    def _is_down(self, outage: Behaviour | None) -> bool:
        if outage is not None and outage not in self._begun:  # it comes once, not again and again
            self._begun.append(outage)
            self._down = outage.amount
        if self._down is None:
            return True
        if self._down == 0:
            return False
        self._down -= 1
        return True

    def _fenced(self, fence: Fence) -> Refused | None:
        if fence.garbled:
            return Refused(400, "the fencing token is no number")
        seen = self._tokens.get(fence.run, 0)
        if fence.token is None or fence.token >= seen:
            return None
        return Refused(
            412,
            f"fencing token {fence.token} of run {fence.run!r} is too old: {seen} has been seen, "
            "so another process owns the run",
        )

    def _see(self, fence: Fence) -> None:
        if fence.token is not None:
            self._tokens[fence.run] = max(fence.token, self._tokens.get(fence.run, 0))

    # Requests that are carried out later.

    def lands(self, kind: type, land: Land) -> None:
        """From now on a postponed request that is a ``kind`` is carried out by ``land``."""
        self._landings[kind] = land

    def arrived(self) -> None:
        """A further request is about to be treated: what has waited for long enough lands before.

        Only now, and not as soon as the last one that it waited for was done: nobody can tell the
        two apart, and a copy of the world from then still has it waiting.
        """
        due = [one for one in self._waiting if one.left == 0]
        self._waiting = [one for one in self._waiting if one.left != 0]
        self._carry_out(due)

    def treated(self, number: int, treatment: Treatment, what: object) -> None:
        """A request was done or refused, and its second window comes next.

        Args:
            number: the observer's.
            treatment: of this request.
            what: what is to land later, where ``treatment`` says so.
        """
        self._waiting = [
            _Postponed(one.number, None if one.left is None else one.left - 1, one.what)
            for one in self._waiting
        ]
        if postpones(treatment):
            self._waiting.append(_Postponed(number, treatment.amount("commit-late"), what))

    @property
    def postponed(self) -> int:
        """See `chaoskit.model.hosting.Postponing`."""
        return len(self._waiting)

    def end(self) -> None:
        """See `chaoskit.model.hosting.Postponing`."""
        waiting, self._waiting = self._waiting, []
        self._carry_out(waiting)

    def _carry_out(self, due: Sequence[_Postponed]) -> None:
        assert self.observer is not None
        for one in due:
            self.observer.landed(one.number, self._landings[type(one.what)](one.what))

    # The world.

    def save(self) -> tuple[object, ...]:
        """All that is to be known again after `restore`, to be pickled."""
        return (
            *(self._behaviours, self._begun, self._down, self._before),
            *(self._counts, self._tokens, self._shift_s, self._waiting),
        )

    def restore(self, saved: tuple[Any, ...]) -> None:
        """The inverse of `save`."""
        self._behaviours, self._begun, self._down, self._before = saved[:4]
        self._counts, self._tokens, self._shift_s, self._waiting = saved[4:]


def postpones(treatment: Treatment) -> bool:
    """Whether a request is cut unanswered now, and carried out later."""
    return treatment.refused is None and "commit-late" in treatment
