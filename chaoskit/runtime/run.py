"""A run: a task's steps under one id in one store, across all the attempts that it takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

from chaoskit import probe
from chaoskit.runtime import advice, results
from chaoskit.runtime.atomic import AtomicSteps, Connection
from chaoskit.runtime.books import Books
from chaoskit.runtime.budgets import Per
from chaoskit.runtime.compensation import taken_back
from chaoskit.runtime.errors import Misuse, OutcomeUnknown, Refused, StoreUnavailable, announced
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.owning import Tenure, hold
from chaoskit.runtime.phases import Phase
from chaoskit.runtime.pins import Observe, OnChange
from chaoskit.runtime.planning import How, plan_atomic, plan_step
from chaoskit.runtime.records import RunRecord
from chaoskit.runtime.steps import Effect, drive, drive_async, life

T = TypeVar("T")
C = TypeVar("C")


class Run:
    """A run that is open in this attempt. Made by `open_run`; a context manager that closes it.

    Steps may be taken from several threads and tasks at once: a result belongs to the step's
    name, never to the order of arrival. Commits happen in the calling thread, so an async step
    holds up its event loop for the time of two of them.
    """

    def __init__(self, books: Books, record: RunRecord, *, ordered: bool = True) -> None:
        self._books = books
        self._tenure: Tenure | None = hold(books, record)
        self._journal = Journal(books, record, ordered=ordered)
        self._atomic = AtomicSteps(self._journal)
        self._finished = record.finished
        self._closed = False
        self._result = None
        if record.finished:
            try:
                self._result = results.decode(record.result)
            except ValueError as error:
                what = f"the result of run {record.run_id!r}"
                raise books.unreadable(what, error) from error

    @property
    def run_id(self) -> str:
        """The id under which the run is resumed."""
        return self._journal.run.run_id

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that the run was started with, and those that were added since."""
        return dict(self._journal.run.options)

    @property
    def token(self) -> int:
        """The fencing token of this attempt: greater than that of any earlier one."""
        return self._journal.run.token

    @property
    def finished(self) -> bool:
        """Whether the whole run is done, so that nothing is left but to use its ``result``."""
        return self._finished

    @property
    def compensating(self) -> bool:
        """Whether the run is being taken back, so that `compensate` is all that is left to do."""
        return self._journal.undos_begun

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

    def step(self, name: str, call: Callable[[Effect], T], **how: Unpack[How]) -> T:
        """Do one thing once: call ``call``, or give back what it returned in an earlier attempt.

        An answer that the other side gave, a refusal too, is a result: return it. An exception
        means that nobody knows: the step stays begun, and the next try decides as a resume would.

        Args:
            name: unique in the run and the same in every attempt: at most 200 letters, digits and
                ``_ . / : -``.
            call: does it, and returns any JSON value. Gives ``effect.key`` to a service that
                dedupes, and notes the ids of what it made with ``effect.produced``.
            how: see `chaoskit.runtime.planning.How`.

        Raises:
            Refused: the step does not go on; its kinds are in `chaoskit.runtime.errors`: other
                inputs, order or code, a changed world, a cancelled run, a budget, a poisoned step.
            OutcomeUnknown: an earlier attempt was stopped between the intent and the completion,
                and nothing can tell whether it happened. `settle` says how it goes on.
            DuplicateStep: the name was used before in this attempt.
            UnstorableResult: a resume could not give this result back.
            Misuse: the run is finished, or the arguments contradict each other.
        """
        self._refuse_finished()
        plan = plan_step(name, how)
        return cast("T", drive(life(self._journal, plan, call, how.get("look_up"))))

    async def async_step(
        self, name: str, call: Callable[[Effect], Awaitable[T]], **how: Unpack[How]
    ) -> T:
        """The same as `step` for a call that is awaited; several may be in flight at once.

        A look-up and an undo may be awaited or not. A cancelled step is one whose call raised: it
        stays begun.
        """
        self._refuse_finished()
        plan = plan_step(name, how)
        steps = life(self._journal, plan, call, how.get("look_up"), awaited=True)
        return cast("T", await drive_async(steps))

    def atomic_step(
        self,
        name: str,
        connection: Connection[C],
        body: Callable[[C], T],
        **how: Unpack[How],
    ) -> T:
        """Do one thing in a database exactly once, with its completion in the same commit.

        A marker row in the table ``chaoskit_step`` of that database (in PostgreSQL it is in the
        schema ``chaoskit``) stands for the completion until the next atomic step there, or the end
        of the run; both remove it.

        Args:
            name: as for `step`.
            connection: an open one of `sqlite3` or of psycopg, version 3, in any transaction mode,
                with no transaction open. One of sqlite3 with ``autocommit=False`` has always one
                open: it is committed first.
            body: writes with the cursor that it is given, and returns any JSON value. It neither
                commits nor rolls back, nor calls ``executescript``, which commits; savepoints are
                its own affair. If it raises, nothing happened. The one exception: psycopg's error
                of a connection that is lost at the commit, after which nobody knows. The step is
                taken again with a new connection, and finds out.
            how: ``inputs``, ``needs``, ``changes``, ``costs`` and ``undo``, as for `step`.

        Raises:
            OutcomeUnknown: in an earlier attempt the body ended the transaction itself.
            Refused, DuplicateStep, UnstorableResult, Misuse: as for `step`.
        """
        self._refuse_finished()
        return cast("T", self._atomic.live(plan_atomic(name, how), connection, body))

    def pin(self, name: str, observe: Observe, *, on_change: OnChange | None = None) -> None:
        """Say how something that steps depend on is observed; recorded the first time.

        A step that ``needs`` it has it observed again, once in each later attempt, and only if the
        step is not done yet.

        Args:
            name: of the pin.
            observe: takes nothing and returns any JSON value; see `file_digest`, `http_etag` and
                `sqlite_row`.
            on_change: without it a difference refuses the step. With it, called with the recorded
                and the found value (None for a recorded one that was too large to keep), it
                returns the names of steps to take again; these get new keys, and `Replanned` is
                raised, on which the task's function is called anew (`run_main` does).

        Raises:
            Misuse, UnstorableResult: the name or what was observed means nothing.
        """
        self._refuse_finished()
        self._journal.pins.declare(name, observe, on_change)

    def phase(self, name: str, *, cost_s: float | None = None, effects: int | None = None) -> Phase:
        """A part of the run whose repeatable steps are recorded together, at its end.

        Those are steps that only read, are keyed, or are recorded after. A kill repeats what was
        held back. An irreversible step inside is recorded by itself, and first what is held back.

        Args:
            name: as that of a step.
            cost_s: commit as soon as the calls that would be made again took so many seconds.
            effects: commit as soon as so many effects would be asked for again.
        """
        self._refuse_finished()
        return Phase(self._journal, name, cost_s, effects)

    def budget(self, name: str, limit: float, *, per: Per = "run") -> None:
        """Limit what steps may cost together.

        Args:
            name: as in ``costs=`` of steps.
            limit: the most, in the same unit. May be another one in each attempt.
            per: over all attempts of the run, or for this attempt alone.
        """
        self._journal.budgets.declare(name, limit, per)

    def left(self, budget: str) -> float:
        """What may still be spent of a budget."""
        return self._journal.budgets.left(budget)

    def cancel(self, reason: str) -> None:
        """Cancel the run durably: no step begins any more, in this attempt or a later one."""
        if not isinstance(reason, str) or not reason:
            raise Misuse(f"the reason of a cancellation is a text, not {reason!r}")
        self._refuse_finished()
        self._books.cancel(self.run_id, reason)

    def compensate(self) -> tuple[str, ...]:
        """Take back every step that is done and has an undo, the last one first.

        Each undo is a step of its own, named ``undo/`` and the step, so that this goes on after
        any kill: take the steps as ever, catch `Compensating`, and call this again. Once it was
        begun no forward step begins.

        Returns:
            The steps that are taken back.
        """
        self._refuse_finished()
        return tuple(drive(taken_back(self._journal)))

    async def async_compensate(self) -> tuple[str, ...]:
        """The same as `compensate`, for undos that are awaited."""
        self._refuse_finished()
        return tuple(await drive_async(taken_back(self._journal, awaited=True)))

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
            CodeChanged: a recorded step was not taken in this attempt.
            Cancelled: the run was cancelled.
            UnstorableResult: the result has no exact JSON form; the run is not finished.
            Misuse: the run is finished, or a phase is open.
        """
        self._refuse_finished()
        text = results.encode(result, f"run {self.run_id!r}", "The run is not finished")
        self._journal.refuse_unfinished()
        probe.point("run.finish")
        self._atomic.forget_markers()
        summary = advice.summary(self._journal.run, self._books, ended=True)
        self._books.finish(self.run_id, self.token, text, summary)
        self._finished, self._result = True, results.decode(text)
        probe.point("run.finished")

    def close(self) -> None:
        """Close the store and give the run back. What is recorded is recorded without it too."""
        if self._closed:
            return
        self._closed = True
        try:
            with suppress(StoreUnavailable, Refused):  # this process dies some day, provably
                if not self._finished:
                    summary = advice.summary(self._journal.run, self._books, ended=False)
                    self._books.release(self.run_id, self.token, summary)
        finally:
            self._tenure = None
            self._books.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Refused | OutcomeUnknown) and not error.told:
            announced(error)
        self.close()

    def _refuse_finished(self) -> None:
        if self._finished:
            raise Misuse(
                f"run {self.run_id!r} is finished: check run.finished before its first step, or "
                "start another run with another run_id"
            )
