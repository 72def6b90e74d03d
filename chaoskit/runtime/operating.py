"""What a person does to runs from outside: look, settle, cancel, release, ask about tools.

Each function opens the store for itself and never makes one. `chaoskit runs` is these functions as
commands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from chaoskit.runtime.books import Books, open_books
from chaoskit.runtime.errors import Misuse, Owned, announced, nearest
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.owning import hold, refuse_if_owned, take
from chaoskit.runtime.records import Pin, RunRecord, StepRecord

Place = str | os.PathLike[str]


class RunView(NamedTuple):
    """A run with everything that is recorded of it; ``steps`` in the order of their records."""

    run: RunRecord
    steps: tuple[StepRecord, ...]
    pins: tuple[Pin, ...]


def all_runs(path: Place) -> Sequence[RunRecord]:
    """Every run in a store, by id."""
    with _opened(path) as books:
        return books.runs()


def view(path: Place, run_id: str) -> RunView:
    """Everything that is recorded of a run; raises `Misuse` if there is no such run."""
    with _opened(path) as books:
        run = _found(books, run_id)
        pins = tuple(books.pins(run_id).values())
        return RunView(run, tuple(books.steps(run_id)), pins)


def settle(
    path: Place,
    run_id: str,
    step: str,
    happened: bool,  # noqa: FBT001
    result: object = None,
) -> None:
    """Say whether a step in doubt happened, without the task; the next resume goes on from there.

    Args:
        path: the store.
        run_id: which run in it.
        step: the name that `OutcomeUnknown` gave.
        happened: True: it counts as completed; False: it is called again, with the same key.
        result: what its call would have returned.

    Raises:
        Misuse: there is no such run, or the step is not in doubt.
        Owned: the run's owner is alive, or may be.
        FileNotFoundError: there is no store.
        DamagedStore, Refused: as for `open_run`.
    """
    with _opened(path) as books:
        found = _found(books, run_id)
        refuse_if_owned(books, found)
        Journal(books, found).settled(step, result, happened=happened)  # a wrong name takes nothing
        run = take(books, found)
        if run is None:
            raise announced(Owned(f"run {run_id!r} was taken over meanwhile: try again"))
        tenure = hold(books, run)
        try:
            Journal(books, run).settle(step, result, happened=happened)
        finally:
            books.release(run_id, run.token, run.summary)
            del tenure


def cancel(path: Place, run_id: str, reason: str) -> None:
    """Cancel a run durably, whoever works on it: no step begins after this."""
    if not reason:
        raise Misuse("a cancellation needs a reason")
    with _opened(path) as books:
        if _found(books, run_id).finished:
            raise Misuse(f"run {run_id!r} is finished: there is nothing to cancel")
        books.cancel(run_id, reason)


def uncancel(path: Place, run_id: str) -> None:
    """Let a cancelled run go on at its next resume."""
    with _opened(path) as books:
        if _found(books, run_id).cancelled is None:
            raise Misuse(f"run {run_id!r} is not cancelled")
        books.cancel(run_id, None)


def release(path: Place, run_id: str) -> None:
    """Take a run away from its owner, on a person's word that it is dead.

    If it is not, it can record nothing any more: its token is no longer the run's.
    """
    with _opened(path) as books:
        if _found(books, run_id).owner is None:
            raise Misuse(f"run {run_id!r} has no owner: it can be resumed as it is")
        books.fence(run_id)


class ToolUse(NamedTuple):
    """An unfinished run that refers to a tool."""

    tool: str
    version: str
    binding: str
    place: str
    run_id: str
    cancelled: bool


def tool_uses(paths: Sequence[Place]) -> list[ToolUse]:
    """Every reference of an unfinished run to a tool, by tool. A cancelled run still counts."""
    found = []
    for path in paths:
        with _opened(path) as books:
            found += [
                ToolUse(
                    name,
                    tool["version"],
                    tool["binding"],
                    books.place,
                    run.run_id,
                    run.cancelled is not None,
                )
                for run in books.runs()
                if not run.finished
                for name, tool in run.tools.items()
            ]
    return sorted(found)


@contextmanager
def _opened(path: Place) -> Iterator[Books]:
    with closing(open_books(path, create=False)) as books:
        yield books


def _found(books: Books, run_id: str) -> RunRecord:
    run = books.find_run(run_id)
    if run is None:
        known = nearest(run_id, [run.run_id for run in books.runs()])
        raise Misuse(f"the store {books.place} holds no run {run_id!r}; it holds {known}")
    return run
