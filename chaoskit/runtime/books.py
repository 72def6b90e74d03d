"""What the runtime asks of a store, whatever database is behind it.

Everything above this protocol knows values only; everything below it is SQL. A second kind of
store is one more class with these methods, and one more line in `open_books`.

Each method is one read, or one commit. ``token`` is the fencing token of the writer: a write with
one that is no longer the run's own changes nothing and raises `StaleOwner`, checked in the very
statement or transaction that writes. A write that begins a forward step (``begins``) of a run that
is cancelled changes nothing and raises `Cancelled`. A child process that was forked from the one
that opened the books is refused at each method.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from chaoskit.runtime.errors import Misuse, Refused
from chaoskit.runtime.owner import Owner
from chaoskit.runtime.records import Pin, RunRecord, StepRecord

Durability = Literal["full", "normal"]
"""full: what is recorded survives power loss. normal: it survives any kill of the process, but
power loss may take the latest records; a commit then does not wait for the disk."""


class Put(NamedTuple):
    """A step's new record, in place of the one whose ``attempt`` was ``expected``; 0 for none."""

    step: StepRecord
    expected: int


class Change(NamedTuple):
    """What one commit writes of a run, all of it or nothing.

    Attributes:
        puts: new records of steps. One that is done already is not written over.
        begins: it begins a forward step, which a cancelled run does not allow.
        pins: pins, in place of those of the same name.
        forgets: steps that were done, as records in the state ``forgotten``.
        compensates: the run is taken back from here on.
        marker_file: an effect's database that may hold a marker of the run.
        loosens: from this position on no step has a position any more.
    """

    puts: Sequence[Put] = ()
    begins: bool = False
    pins: Sequence[Pin] = ()
    forgets: Sequence[StepRecord] = ()
    compensates: bool = False
    marker_file: str | None = None
    loosens: int | None = None


class Seen(NamedTuple):
    """A step as it was read, and what its run says at the same moment."""

    step: StepRecord | None
    token: int
    cancelled: str | None
    compensating: bool


class Timing(NamedTuple):
    """How many commits these books have made since they were opened, and how long they took."""

    commits: int
    seconds: float


class Books(Protocol):
    """A store of runs, open. Every method may be called from any thread."""

    @property
    def place(self) -> str:
        """Where the store is, as a person types it; without a password."""

    @property
    def timing(self) -> Timing:
        """What commits have cost so far."""

    def close(self) -> None:
        """Give the store back; may be called twice, and in a forked child, where it does nothing.

        What cannot be told to the store here is left: nothing durable depends on it.
        """

    def unreadable(self, what: str, why: object) -> Refused:
        """The refusal of a record that cannot be read back; told to a watching trial."""

    def find_run(self, run_id: str) -> RunRecord | None:
        """What is recorded of the run, None if nothing is."""

    def runs(self) -> Sequence[RunRecord]:
        """Every run, by id."""

    def add_run(self, run: RunRecord) -> bool:
        """Record a new run, its owner and token included; False if there is one of that id."""

    def take(self, run: RunRecord, owner: Owner) -> int | None:
        """Make ``owner`` the owner, with the next token, and store ``run``'s tools and options.

        Returns:
            The new token; None if the token is not ``run.token`` any more, or the run has finished
            meanwhile: its owner may have ended between our look and this.
        """

    def release(self, run_id: str, token: int, summary: Mapping[str, Any]) -> None:
        """Leave the run without an owner, with these figures; nothing if the token is stale."""

    def fence(self, run_id: str) -> None:
        """Leave the run without an owner, and with the next token, whoever has it."""

    def cancel(self, run_id: str, reason: str | None) -> None:
        """Say why the run is cancelled, or with None that it is not, whoever has it."""

    def see(self, run_id: str, step: str) -> Seen:
        """What is recorded of a step and of its run, in one read by primary keys."""

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """Every step that is recorded, in the order of its latest record."""

    def in_doubt(self, run_id: str) -> tuple[str, ...]:
        """The names of the steps of which `StepRecord.in_doubt` is true, sorted."""

    def positions(self, run_id: str) -> Mapping[int, str]:
        """The step at each position that is recorded."""

    def spent(self, run_id: str) -> Mapping[str, float]:
        """What was charged to each budget by all steps, forgotten ones included."""

    def pins(self, run_id: str) -> Mapping[str, Pin]:
        """Every pin by name."""

    def marker_files(self, run_id: str) -> tuple[str, ...]:
        """The effect databases that may hold a marker of the run."""

    def commit(self, run_id: str, token: int, change: Change) -> None:
        """Write the whole change in one commit.

        Raises:
            StaleOwner: ``token`` is not the run's any more.
            Cancelled: the change begins a step, and the run is cancelled.
            Refused: a step is not as it was expected; nothing was written.
            StoreUnavailable: disk, lock or rights do not allow it just now.
        """

    def finish(self, run_id: str, token: int, result: str, summary: Mapping[str, Any]) -> None:
        """Record the end with these figures, and forget steps, pins, marker files and the owner.

        Raises: as `commit`; `Cancelled` if the run is cancelled.
        """


def open_books(
    place: str | os.PathLike[str], durability: Durability = "full", *, create: bool = True
) -> Books:
    """Open the store at a path, or at a URL ``postgresql://…``.

    Args:
        place: where it is.
        durability: what a commit survives.
        create: make a new store where there is none.

    Raises:
        FileNotFoundError: the folder, or without ``create`` the store, does not exist.
        DamagedStore, OlderStore, StoreUnavailable, Refused: it is there and cannot be used.
        Misuse: the durability or the URL means nothing.
    """
    if durability not in {"full", "normal"}:
        raise Misuse(f"durability is 'full' or 'normal', not {durability!r}")
    text = os.fspath(place)
    scheme, found, _ = text.partition("://")
    if not found:
        if text.startswith(("postgresql:/", "postgres:/")):
            raise Misuse(f"{text} is a URL that a Path has shortened: give it as a text")
        from chaoskit.runtime.store import SqliteBooks

        return SqliteBooks(Path(text).resolve(), durability, create=create)
    return _opened_at(scheme, text, durability, create=create)


def _opened_at(scheme: str, url: str, durability: Durability, *, create: bool) -> Books:
    """The books of another database, whose module is loaded only here."""
    if scheme not in {"postgresql", "postgres"}:
        raise Misuse(f"a store is a file or a URL postgresql://…, not {scheme}://…")
    from chaoskit.runtime.store_postgres import PostgresBooks

    return PostgresBooks(url, durability, create=create)
