"""One run's part of the store: which of its steps this attempt has touched, and what they mean.

Everything that a step does to the store goes through here, whichever order it is recorded in and
whether it is awaited or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from typing import Any

from chaoskit import probe
from chaoskit.runtime import results
from chaoskit.runtime.errors import (
    DuplicateStep,
    Misuse,
    OutcomeUnknown,
    Refused,
    announced,
)
from chaoskit.runtime.fingerprint import Fingerprint, differences
from chaoskit.runtime.records import (
    Decision,
    Order,
    Plan,
    Proof,
    RunRecord,
    State,
    StepRecord,
    absent,
    decide,
    orders_contradict,
)
from chaoskit.runtime.store import Store

NAME_CHARACTERS_MAX = 200
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:\-]*")

_AFTERMATH = {
    Order.INTENT_FIRST: (
        "The call has returned, so its effect may have happened; its completion is not recorded, "
        "and the step stays in doubt for the next resume"
    ),
    Order.RECORD_AFTER: (
        "The call has returned, so its effect may have happened; no record was written, and the "
        "next resume repeats the call"
    ),
    Order.ATOMIC: "The transaction was rolled back: nothing happened",
}


class Journal:
    """The steps of one run in a store, for one attempt."""

    def __init__(self, store: Store, run: RunRecord) -> None:
        self.run = run
        self.store = store
        self._names: set[str] = set()
        self._lock = Lock()

    @contextmanager
    def claimed(self, name: str) -> Iterator[None]:
        """Hold a step's name for this attempt; given back if the step does not reach its end.

        Raises:
            Misuse: the name cannot be one.
            DuplicateStep: another step of this attempt has this name.
        """
        _check_name(name)
        with self._lock:
            if name in self._names:
                raise DuplicateStep(
                    f"two steps of this attempt are named {name!r}, so a resume could not tell "
                    f'them apart: give each its own name, for example f"{name}/{{index}}"'
                )
            self._names.add(name)
        try:
            yield
        except BaseException:
            with self._lock:
                self._names.discard(name)
            raise

    def read(self, plan: Plan) -> StepRecord:
        """What is recorded of the planned step.

        Raises:
            Refused: it was recorded with other inputs, or begun in another order.
        """
        record = self.store.find_step(self.run.run_id, plan.name)
        if record is None:
            return absent(plan, self._key(plan.name))
        self.refuse_other_inputs(plan, record.inputs)
        if orders_contradict(record, plan):
            raise announced(
                Refused(
                    f"step {plan.name!r} was begun with order={record.order} and would go on with "
                    f"order={plan.order}, which reads the same record as something else: resume "
                    "with the recorded order, or settle the step first"
                )
            )
        return record

    def refuse_other_inputs(self, plan: Plan, recorded: Fingerprint) -> None:
        """Raise `Refused`, naming step and fields, if the step was recorded with other inputs."""
        if found := differences(recorded, plan.inputs):
            raise announced(
                Refused(
                    f"step {plan.name!r} was recorded with other inputs: {found}. Resume with the "
                    "recorded inputs, or start another run with another run_id"
                )
            )

    def decide(self, record: StepRecord, plan: Plan) -> Decision:
        """What to do with the step now; never `Decision.UNKNOWN`.

        Raises:
            OutcomeUnknown: the step was begun, and nothing can tell whether it happened.
        """
        decision = decide(record, plan)
        if decision is Decision.UNKNOWN:
            raise self.unknown(record)
        return decision

    def unknown(self, record: StepRecord) -> OutcomeUnknown:
        """The end of a run that needs a person for one step."""
        return announced(
            OutcomeUnknown(
                record.name,
                f"it was begun (attempt {record.attempt}, key {record.key}) and its completion "
                "was never recorded. Find out whether it happened, then call "
                f"chaoskit.runtime.settle({str(self.store.path)!r}, {self.run.run_id!r}, "
                f"{record.name!r}, happened=True or False) and resume",
            )
        )

    def unknown_at_finish(self, steps: tuple[str, ...]) -> OutcomeUnknown:
        """The end of a run whose steps are all behind it, some of them in doubt."""
        return announced(
            OutcomeUnknown(
                steps[0],
                "the run cannot finish while steps are in doubt, because it would forget them: "
                f"{', '.join(steps)}. Take each step again, or settle it",
            )
        )

    def restore(self, record: StepRecord) -> Any:
        """The result that a completed step returned, in this attempt or an earlier one.

        Raises:
            DamagedStore: what is stored is not a result.
        """
        try:
            result = results.decode(record.result)
        except ValueError as error:
            raise self.store.unreadable(f"the result of step {record.name!r}", error) from error
        probe.step(record.name, "restored")
        return result

    def encode(self, result: object, step: str, order: Order) -> str:
        """A step's result as the store holds it; raises `UnstorableResult`."""
        return results.encode(result, f"step {step!r}", _AFTERMATH[order])

    def put(self, record: StepRecord, *, after: StepRecord) -> None:
        """Record ``record`` durably in place of ``after``, which was read or written before."""
        self.store.put_step(self.run.run_id, record, expected_attempt=after.attempt)

    def in_doubt(self) -> tuple[str, ...]:
        """The names of the steps that need `settle`, a look-up or another call."""
        return self.store.in_doubt(self.run.run_id)

    def settle(self, step: str, result: object, *, happened: bool) -> None:
        """Record what a person found out about a step in doubt.

        Raises:
            Misuse: the step is not in doubt, or the arguments contradict each other.
        """
        if not isinstance(happened, bool):
            raise Misuse(f"happened is True or False, not {happened!r}")
        record = self.store.find_step(self.run.run_id, step)
        if record is None or record.state is not State.BEGUN:
            known = ", ".join(self.in_doubt()) or "none"
            raise Misuse(f"step {step!r} is not in doubt; steps in doubt: {known}")
        if not happened and result is not None:
            raise Misuse(f"step {step!r} cannot have a result if it did not happen")
        if happened:
            text = results.encode(result, f"step {step!r}", "Nothing was settled")
            settled = record.done(text, Proof.OPERATOR)
        else:
            settled = record.cleared()
        self.put(settled, after=record)

    def _key(self, step: str) -> str:
        """Equal in every attempt of this run, different for every other step and run."""
        return sha256(f"{self.run.uid}\n{step}".encode()).hexdigest()[:32]


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_CHARACTERS_MAX:
        raise Misuse(
            f"a step's name is at most {NAME_CHARACTERS_MAX} letters, digits and _ . / : - and "
            f"begins with a letter, digit or _, not {name!r}: what else tells steps apart goes "
            "into inputs="
        )
