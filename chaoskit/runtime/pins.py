"""Pins: what a later step depends on, checked again at resume before the step, and only then.

Earlier steps are not run again to find out whether the world is as they left it: what the next step
needs is observed, and its digest compared with the one that was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from threading import RLock
from typing import Any, NamedTuple

from chaoskit import probe
from chaoskit.runtime import results
from chaoskit.runtime.books import Books, Change
from chaoskit.runtime.errors import Misuse, Replanned, StaleWorld, announced, nearest
from chaoskit.runtime.records import Order, Pin, Plan, RunRecord, State, StepRecord

Observe = Callable[[], Any]
OnChange = Callable[[Any, Any], Iterable[str]]

VALUE_CHARACTERS_MAX = 1000
"""A value of more JSON text is recorded by its digest alone."""
_SHOWN = 120


class _Declared(NamedTuple):
    observe: Observe
    on_change: OnChange | None


class Pins:
    """The pins of one run in one attempt.

    Args:
        books: where they are recorded.
        run: whose they are, with the owner's token.
        next_key: the key of a step's next generation.
    """

    def __init__(self, books: Books, run: RunRecord, next_key: Callable[[StepRecord], str]) -> None:
        self._books = books
        self._run = run
        self._next_key = next_key
        self._declared: dict[str, _Declared] = {}
        self._recorded: dict[str, Pin] | None = None
        self._sure: set[str] = set()
        self._lock = RLock()

    def declare(self, name: str, observe: Observe, on_change: OnChange | None) -> None:
        """Say how something is observed; the first time ever, observe and record it."""
        if not isinstance(name, str) or not name:
            raise Misuse(f"a pin's name is a text that is not empty, not {name!r}")
        with self._lock:
            self._declared[name] = _Declared(observe, on_change)
            if name not in self._known():
                pin = _pin(name, observe())
                self._commit(Change(pins=(pin,)))
                probe.point("pin.recorded")
                self._known()[name] = pin
                self._sure.add(name)

    def verify(self, plan: Plan, record: StepRecord) -> None:
        """Observe again what a step needs, once in an attempt, before the step begins.

        What the step itself changes may have been changed by an earlier try of it, and is left to
        its key or look-up.

        Raises:
            StaleWorld: it is not as recorded, and nothing says what then.
            Replanned: it is not, and the plan was changed.
            Misuse: a pin was not declared.
        """
        with self._lock:
            for name in (*plan.needs, *plan.changes):
                self._find(name, plan.name)
            for name in plan.needs:
                if name in self._sure:
                    continue
                if record.state is State.BEGUN and name in plan.changes:
                    continue
                self._look_again(name, plan.name)
                self._sure.add(name)

    def changed_by(self, plan: Plan) -> tuple[Pin, ...]:
        """What a step that has just happened made of the things it changes."""
        return tuple(_pin(name, self._find(name, plan.name).observe()) for name in plan.changes)

    def repinned(self, pins: Sequence[Pin]) -> None:
        """These were recorded together with the step that changed them."""
        with self._lock:
            for pin in pins:
                self._known()[pin.name] = pin
                self._sure.add(pin.name)

    def _known(self) -> dict[str, Pin]:
        if self._recorded is None:
            self._recorded = dict(self._books.pins(self._run.run_id))
        return self._recorded

    def _find(self, name: str, step: str) -> _Declared:
        if name not in self._declared:
            raise Misuse(
                f"step {step!r} needs {name!r}, which is not pinned: call run.pin({name!r}, …) "
                f"before the step; pinned: {nearest(name, self._declared)}"
            )
        return self._declared[name]

    def _look_again(self, name: str, step: str) -> None:
        observe, on_change = self._declared[name]
        recorded, value = self._known()[name], observe()
        found = _pin(name, value)
        if found.digest == recorded.digest:
            return
        if on_change is None:
            raise announced(
                StaleWorld(
                    f"{name!r} is not what step {step!r} was planned with: recorded "
                    f"{_shown(recorded)}, found {_shown(found)}. Put it back as it was, or start "
                    "another run with another run_id; a task that can plan anew says how with "
                    "run.pin(…, on_change=…)"
                )
            )
        before = json.loads(recorded.value) if recorded.value is not None else None
        self._replan(found, tuple(on_change(before, value)))

    def _replan(self, found: Pin, names: tuple[str, ...]) -> None:
        steps = {step.name: step for step in self._books.steps(self._run.run_id)}
        forgets = []
        for name in names:
            if name not in steps:
                raise Misuse(
                    f"on_change= of pin {found.name!r} names step {name!r}, which is not recorded; "
                    f"recorded: {nearest(name, steps)}"
                )
            step = steps[name]
            if step.state is State.DONE and not _may_forget(step):
                raise announced(_refused(found, step, "is done and cannot be taken back"))
            if step.in_doubt:
                raise announced(_refused(found, step, "may have happened, and is not settled"))
            if step.state is State.DONE:
                forgets.append(step.forgotten(self._next_key(step)))
        first = min((s.position for s in forgets if s.position is not None), default=None)
        self._commit(Change(pins=(found,), forgets=forgets, loosens=first))
        probe.point("pin.replanned")
        raise Replanned(found.name, names)

    def _commit(self, change: Change) -> None:
        self._books.commit(self._run.run_id, self._run.token, change)


def _may_forget(step: StepRecord) -> bool:
    """Whether a completed step may be taken again: it was declared to read only, by key, by
    look-up, or as one that may run twice.
    """
    return step.order is Order.RECORD_AFTER or (
        step.order is Order.INTENT_FIRST and step.policy != "nothing"
    )


def _refused(found: Pin, step: StepRecord, why: str) -> StaleWorld:
    return StaleWorld(
        f"{found.name!r} changed (found {_shown(found)}), and the new plan would take step "
        f"{step.name!r} again, which {why}: nothing was changed. Leave it out of the re-plan, or "
        "start another run with another run_id"
    )


def _pin(name: str, value: object) -> Pin:
    text = results.encode(value, f"pin {name!r}", "Nothing was recorded")
    digest = sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
    return Pin(name, digest, text if len(text) <= VALUE_CHARACTERS_MAX else None)


def _shown(pin: Pin) -> str:
    if pin.value is None:
        return f"digest {pin.digest}"
    return pin.value if len(pin.value) <= _SHOWN else f"{pin.value[:_SHOWN]}… ({pin.digest})"
