"""A run: a task's steps under one id in one store, across all the attempts that it takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from chaoskit import probe
from chaoskit.runtime import results
from chaoskit.runtime.atomic import AtomicSteps
from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.fingerprint import fingerprint
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.records import Means, Order, Plan, RunRecord
from chaoskit.runtime.steps import Effect, drive, drive_async, life
from chaoskit.runtime.store import Store

T = TypeVar("T")


class Run:
    """A run that is open in this attempt. Made by `open_run`; a context manager that closes it.

    Steps may be taken from several threads and tasks at once: a result belongs to the step's
    name, never to the order of arrival. Commits happen in the calling thread, so an async step
    holds up its event loop for the time of two of them.
    """

    def __init__(self, store: Store, record: RunRecord) -> None:
        self._store = store
        self._journal = Journal(store, record)
        self._atomic = AtomicSteps(self._journal)
        self._finished = record.finished
        self._result = None
        if record.finished:
            try:
                self._result = results.decode(record.result)
            except ValueError as error:
                what = f"the result of run {record.run_id!r}"
                raise store.unreadable(what, error) from error

    @property
    def run_id(self) -> str:
        """The id under which the run is resumed."""
        return self._journal.run.run_id

    @property
    def finished(self) -> bool:
        """Whether the whole run is done, so that nothing is left but to use its ``result``."""
        return self._finished

    @property
    def result(self) -> Any:
        """What `finish` was given, in this attempt or an earlier one.

        Raises:
            Misuse: the run is not finished.
        """
        if not self._finished:
            raise Misuse(f"run {self.run_id!r} is not finished, so it has no result yet")
        return self._result

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """The names of the steps that were begun and neither completed nor settled."""
        return self._journal.in_doubt()

    def step(  # noqa: PLR0913
        self,
        name: str,
        call: Callable[[Effect], T],
        *,
        inputs: object = None,
        order: Order = Order.INTENT_FIRST,
        look_up: Callable[[Effect], T | None] | None = None,
        keyed: bool = False,
    ) -> T:
        """Do one thing once: call ``call``, or give back what it returned in an earlier attempt.

        An answer that the other side gave, a refusal too, is a result: return it. An exception
        means that nobody knows: the step stays begun, and the next try decides as a resume would.

        Args:
            name: unique in the run and the same in every attempt: at most 200 letters, digits and
                ``_ . / : -``.
            call: does it, and returns any JSON value. Gives ``effect.key`` to a service that
                dedupes, and notes the ids of what it made with ``effect.produced``.
            inputs: what the step depends on, any JSON value; a mapping is compared per key.
            order: when it is recorded. With `Order.RECORD_AFTER` a kill in between repeats it.
            look_up: asks the service whether this step happened, by ``effect.key``, and returns
                what ``call`` would have returned, or None if it did not. It must see what was
                done a moment ago; a lagging search does not do.
            keyed: the service does the thing once however often it is called with one key.

        Raises:
            Refused: the step was recorded with other inputs, or begun in another order.
            OutcomeUnknown: an earlier attempt was stopped between the intent and the completion,
                and there is neither ``look_up`` nor ``keyed``. `settle` says how it goes on.
            DuplicateStep: the name was used before in this attempt.
            UnstorableResult: a resume could not give this result back.
            Misuse: the run is finished, or the arguments contradict each other.
        """
        plan = self._plan(name, inputs, order, _means(order, look_up, keyed=keyed))
        return cast("T", drive(life(self._journal, plan, call, look_up)))

    async def async_step(  # noqa: PLR0913
        self,
        name: str,
        call: Callable[[Effect], Awaitable[T]],
        *,
        inputs: object = None,
        order: Order = Order.INTENT_FIRST,
        look_up: Callable[[Effect], Awaitable[T | None] | T | None] | None = None,
        keyed: bool = False,
    ) -> T:
        """The same as `step` for a call that is awaited; several may be in flight at once.

        A cancelled step is one whose call raised: it stays begun.
        """
        plan = self._plan(name, inputs, order, _means(order, look_up, keyed=keyed))
        return cast("T", await drive_async(life(self._journal, plan, call, look_up)))

    def atomic_step(
        self,
        name: str,
        connection: sqlite3.Connection,
        body: Callable[[sqlite3.Cursor], T],
        *,
        inputs: object = None,
    ) -> T:
        """Do one thing in an SQLite database exactly once, with its completion in the same commit.

        A marker row in the table ``chaoskit_step`` of that database stands for the completion
        until the next atomic step there, or the end of the run; both remove it.

        Args:
            name: as for `step`.
            connection: an open connection in any transaction mode, with no transaction open. One
                with ``autocommit=False`` has always one open: it is committed first.
            body: writes with the cursor that it is given, and returns any JSON value. It neither
                commits nor rolls back, nor calls ``executescript``, which commits. If it raises,
                nothing happened.
            inputs: as for `step`.

        Raises:
            OutcomeUnknown: in an earlier attempt the body ended the transaction itself.
            Refused, DuplicateStep, UnstorableResult, Misuse: as for `step`.
        """
        plan = self._plan(name, inputs, Order.ATOMIC, Means.NOTHING)
        return cast("T", self._atomic.live(plan, connection, body))

    def settle(self, step: str, happened: bool, result: object = None) -> None:  # noqa: FBT001
        """Say whether a step in doubt happened; the next resume goes on from there.

        Args:
            step: the name that `OutcomeUnknown` gave.
            happened: True: it counts as completed; False: it is called again, with the same key.
            result: what its call would have returned.

        Raises:
            Misuse: the step is not in doubt.
        """
        self._journal.settle(step, result, happened=happened)

    def finish(self, result: object = None) -> None:
        """Record that the whole run is done, and forget its steps: one row stays in the store.

        Raises:
            OutcomeUnknown: a step is in doubt; to forget it would pass off the run as done.
            UnstorableResult: the result has no exact JSON form; the run is not finished.
            Misuse: the run is finished.
        """
        self._refuse_finished()
        text = results.encode(result, f"run {self.run_id!r}", "The run is not finished")
        if unsettled := self._journal.in_doubt():
            raise self._journal.unknown_at_finish(unsettled)
        probe.point("run.finish")
        self._atomic.forget_markers()
        self._store.finish_run(self.run_id, text)
        self._finished, self._result = True, results.decode(text)
        probe.point("run.finished")

    def close(self) -> None:
        """Close the store. What is recorded is recorded, whether or not this is reached."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _plan(self, name: str, inputs: object, order: Order, means: Means) -> Plan:
        self._refuse_finished()
        return Plan(name=name, order=order, inputs=fingerprint(inputs), means=means)

    def _refuse_finished(self) -> None:
        if self._finished:
            raise Misuse(
                f"run {self.run_id!r} is finished: check run.finished before its first step, or "
                "start another run with another run_id"
            )


def _means(order: Order, look_up: object, *, keyed: bool) -> Means:
    """What tells whether a begun step happened; a look-up says more than a key."""
    if order is Order.ATOMIC:
        raise Misuse("an atomic step needs the effect's own database: use run.atomic_step")
    if look_up is None:
        return Means.KEY if keyed else Means.NOTHING
    if order is Order.RECORD_AFTER:
        raise Misuse(
            "look_up= goes with Order.INTENT_FIRST: with Order.RECORD_AFTER nothing says that a "
            "step was begun, so there is nothing to look up"
        )
    return Means.LOOK_UP
