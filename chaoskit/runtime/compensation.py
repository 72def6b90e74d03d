"""Taking a run back: each step that has an undo, the last one first, each undo a step of its own.

That the run is being taken back is recorded before the first undo, so that no later attempt goes
forward again; what is undone already is known by its own record, so that a kill costs nothing.
"""

from __future__ import annotations

from typing import Any

from chaoskit import probe
from chaoskit.runtime import refusals, results
from chaoskit.runtime.books import Change
from chaoskit.runtime.errors import Refused, announced
from chaoskit.runtime.fingerprint import fingerprint
from chaoskit.runtime.journal import UNDO, Journal
from chaoskit.runtime.planning import Undo
from chaoskit.runtime.records import Order, Plan, Policy, State, StepRecord
from chaoskit.runtime.steps import Effect, Life, life


def taken_back(journal: Journal, *, awaited: bool = False) -> Life:
    """Undo every step that has an undo; yields what to call, returns the names that were undone.

    Raises:
        OutcomeUnknown: a step with an undo is in doubt, so that nobody knows what to take back.
        Refused: this attempt has not declared the undo of a step that is done.
    """
    run_id, token = journal.run.run_id, journal.run.token
    journal.flush()
    if not journal.undos_begun:
        journal.books.commit(run_id, token, Change(compensates=True))
        journal.undos_begun = True
        probe.point("run.compensating")
    steps = [step for step in journal.books.steps(run_id) if step.undoable]
    _refuse_what_nobody_knows(journal, steps)
    undone = []
    for step in reversed(steps):
        if step.state is State.DONE:
            yield from _undo(journal, step, awaited=awaited)
            undone.append(step.name)
    return undone


def _undo(journal: Journal, step: StepRecord, *, awaited: bool) -> Life:
    undo: Undo = journal.undos[step.name].undo
    result = results.decode(step.result)
    plan = Plan(
        name=f"{UNDO}{step.name}",
        order=Order.INTENT_FIRST,
        inputs=fingerprint({"step": step.key, "result": result}),
        policy=Policy(keyed=undo.keyed, look_up=undo.look_up is not None),
        forward=False,
    )

    def call(effect: Effect) -> Any:
        return undo.call(effect, result)

    return (yield from life(journal, plan, call, undo.look_up, awaited=awaited))


def _refuse_what_nobody_knows(journal: Journal, steps: list[StepRecord]) -> None:
    where = journal.books.place, journal.run.run_id
    for step in steps:
        if step.in_doubt:
            raise announced(refusals.unknown(*where, step))
    missing = [s.name for s in steps if s.state is State.DONE and s.name not in journal.undos]
    if missing:
        raise announced(
            Refused(
                f"the undo of these steps is not declared in this attempt: {', '.join(missing)}. "
                "Take them, with their undo=, before run.compensate()"
            )
        )
