"""The PostgreSQL store: the one place that reads and writes runs recorded in a server.

Many processes and hosts may share it. It lives in the schema ``chaoskit`` of a database, which may
be the effects' own. A commit whose acknowledgement is lost is never repeated blindly: the lost
connection is over first (`store_postgres_session`), and each write changes nothing if it finds
that it has landed.

With durability ``full`` a commit is on the server's disk, as far as the server's own settings
(``fsync``) keep that promise. There is no mark beside it: while a store is open, it is noticed when
a server comes back without what it had acknowledged (a standby that lagged took over, an older
copy was restored); an older copy that is restored while nobody has it open is not noticed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from chaoskit.runtime import store_postgres_rows as rows
from chaoskit.runtime.books import Change, Durability, Put, Seen, Timing
from chaoskit.runtime.errors import (
    OlderStore,
    Owned,
    Refused,
    announced,
    not_written,
)
from chaoskit.runtime.owner import Owner
from chaoskit.runtime.records import Pin, RunRecord, StepRecord
from chaoskit.runtime.store_postgres_session import Cursor, Session
from chaoskit.runtime.store_rows import compact, pin, run_record, step_record

T = TypeVar("T")

_NOTHING_ELSE = Change()[2:]


class _Latest(NamedTuple):
    """The record that this process wrote last, as far as it knows."""

    run_id: str
    step: str
    serial: int


class PostgresBooks:
    """A database of runs, open: `chaoskit.runtime.books.Books`. A lock takes turns among threads.

    Args:
        url: ``postgresql://…``, as libpq reads it; what it leaves out comes from libpq's own
            variables and files.
        durability: what a commit survives.
        create: make a new store where there is none.

    Raises: as `chaoskit.runtime.books.open_books`.
    """

    def __init__(self, url: str, durability: Durability = "full", *, create: bool = True) -> None:
        self._lock = RLock()
        self._pid = os.getpid()
        self._commits, self._seconds = 0, 0.0
        self._latest: _Latest | None = None
        self._session = Session(url, durability, create=create)
        self._session.intact = self._refuse_older

    @property
    def place(self) -> str:
        """The URL, without its password."""
        return self._session.place

    @property
    def timing(self) -> Timing:
        """What commits have cost so far."""
        return Timing(self._commits, self._seconds)

    def close(self) -> None:
        """End the connection."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._session.close()

    def unreadable(self, what: str, why: object) -> Refused:
        """The refusal of a record that cannot be read back."""
        return self._session.damaged(f"what it holds of {what} cannot be restored ({why})")

    def find_run(self, run_id: str) -> RunRecord | None:
        """What is recorded of the run, None if nothing is."""
        found = self._rows(rows.FIND_RUN, run_id)
        with self._readable(f"run {run_id!r}"):
            return run_record(found[0]) if found else None

    def runs(self) -> Sequence[RunRecord]:
        """Every run, by id."""
        with self._readable("its runs"):
            return [run_record(row) for row in self._rows(rows.ALL_RUNS)]

    def add_run(self, run: RunRecord) -> bool:
        """Record a new run, its owner and token included; False if there is one of that id."""

        def work(cursor: Cursor) -> bool:
            if _changes(cursor, rows.ADD_RUN, *rows.run_row(run)):
                return True
            found = cursor.execute(rows.FIND_RUN, (run.run_id,)).fetchall()
            return bool(found) and found[0][1] == run.uid

        return self._commit(work)

    def take(self, run: RunRecord, owner: Owner) -> int | None:
        """Make ``owner`` the owner, with the next token, and store ``run``'s tools and options."""
        token, text = run.token + 1, owner.text()

        def work(cursor: Cursor) -> bool:
            told = text, compact(run.options), compact(run.tools)
            if _changes(cursor, rows.TAKE, *told, run.run_id, run.token):
                return True
            found = cursor.execute(rows.FIND_RUN, (run.run_id,)).fetchall()
            return bool(found) and found[0][7:9] == (token, text)

        return token if self._commit(work) else None

    def release(self, run_id: str, token: int, summary: Mapping[str, Any]) -> None:
        """Leave the run without an owner, with these figures; nothing if the token is stale."""
        told = compact(summary), run_id, token
        self._commit(lambda cursor: _changes(cursor, rows.RELEASE, *told))

    def fence(self, run_id: str) -> None:
        """Leave the run without an owner, and with the next token, whoever has it.

        The token is read first: whoever takes the run in between has proof of its own.
        """
        found = self._rows(rows.CONTROL, run_id)
        if found:
            seen = found[0][0]
            self._commit(lambda cursor: _changes(cursor, rows.FENCE, run_id, seen))

    def cancel(self, run_id: str, reason: str | None) -> None:
        """Say why the run is cancelled, or with None that it is not, whoever has it."""
        self._commit(lambda cursor: _changes(cursor, rows.CANCEL, reason, run_id))

    def see(self, run_id: str, step: str) -> Seen:
        """What is recorded of a step and of its run, in one read by primary keys."""
        found = self._rows(rows.SEE, step, run_id)
        if not found:
            raise self.unreadable(f"run {run_id!r}", "its row has gone")
        token, cancelled, compensating, *row = found[0]
        if row[0] is None:
            return Seen(None, token, cancelled, compensating)
        with self._readable(f"step {step!r} of run {run_id!r}"):
            return Seen(step_record(row), token, cancelled, compensating)

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """Every step that is recorded, in the order of its latest record."""
        with self._readable(f"the steps of run {run_id!r}"):
            return [step_record(row) for row in self._rows(rows.STEPS, run_id)]

    def in_doubt(self, run_id: str) -> tuple[str, ...]:
        """The names of the steps of which `StepRecord.in_doubt` is true, sorted."""
        return tuple(name for (name,) in self._rows(rows.IN_DOUBT, run_id))

    def positions(self, run_id: str) -> Mapping[int, str]:
        """The step at each position that is recorded."""
        return dict(self._rows(rows.POSITIONS, run_id))

    def spent(self, run_id: str) -> Mapping[str, float]:
        """What was charged to each budget by all steps, forgotten ones included."""
        total: dict[str, float] = {}
        with self._readable(f"the costs of run {run_id!r}"):
            for (text,) in self._rows(rows.SPENT, run_id):
                for budget, cost in json.loads(text).items():
                    total[budget] = total.get(budget, 0) + cost
        return total

    def pins(self, run_id: str) -> Mapping[str, Pin]:
        """Every pin by name."""
        return {row[0]: pin(row) for row in self._rows(rows.PINS, run_id)}

    def marker_files(self, run_id: str) -> tuple[str, ...]:
        """The effect databases that may hold a marker of the run."""
        return tuple(file for (file,) in self._rows(rows.MARKER_FILES, run_id))

    def commit(self, run_id: str, token: int, change: Change) -> None:
        """Write the whole change in one commit; see `chaoskit.runtime.books.Books.commit`."""
        ends = not change.begins
        if len(change.puts) == 1 and change[2:] == _NOTHING_ELSE:
            put = change.puts[0]
            latest = self._commit(lambda cursor: self._put(cursor, run_id, token, put, ends=ends))
        else:

            def work(cursor: Cursor) -> _Latest | None:
                if not _changes(cursor, rows.STAMP, run_id, token, ends):
                    raise self._why_not(cursor, run_id, token, "", ends=ends)
                return self._write_all(cursor, run_id, token, change)

            latest = self._commit(work, whole=True)
        self._latest = latest or self._latest

    def finish(self, run_id: str, token: int, result: str, summary: Mapping[str, Any]) -> None:
        """Record the end and forget the way there, in one commit: one row stays."""

        def work(cursor: Cursor) -> None:
            if not _changes(cursor, rows.FINISH, result, compact(summary), run_id, token):
                raise self._why_not(cursor, run_id, token, "", ends=False)
            for forget in rows.FORGET_ALL:
                cursor.execute(forget, (run_id,))

        self._latest = None  # its row goes with this commit, whether or not we hear of it
        self._commit(work, whole=True)

    def _put(
        self, cursor: Cursor, run_id: str, token: int, put: Put, *, ends: bool
    ) -> _Latest | None:
        """Write one step, unless this very record has landed before."""
        told = rows.put_row(run_id, put, token, ends=ends)
        written = cursor.execute(rows.PUT, told).fetchone()
        if written is not None:
            return _Latest(run_id, put.step.name, written[0])
        if not self._has_landed(cursor, run_id, token, put):
            raise self._why_not(cursor, run_id, token, put.step.name, ends=ends)
        return None

    def _write_all(self, cursor: Cursor, run_id: str, token: int, change: Change) -> _Latest | None:
        latest = None
        for put in change.puts:
            latest = self._put(cursor, run_id, token, put, ends=not change.begins)
        for step in change.forgets:
            cursor.execute(rows.FORGET, rows.columns(run_id, step, token))
        for one in change.pins:
            cursor.execute(rows.PUT_PIN, (run_id, *one))
        if change.compensates:
            cursor.execute(rows.COMPENSATES, (run_id,))
        if change.loosens is not None:
            cursor.execute(rows.LOOSEN, (run_id, change.loosens))
        if change.marker_file is not None:
            cursor.execute(rows.ADD_MARKER_FILE, (run_id, change.marker_file))
        return latest

    def _has_landed(self, cursor: Cursor, run_id: str, token: int, put: Put) -> bool:
        """Whether the store has exactly this record, by this owner, who still is the owner."""
        ((now, _),) = cursor.execute(rows.CONTROL, (run_id,)).fetchall()
        found = cursor.execute(rows.STEP, (run_id, put.step.name)).fetchall()
        if now != token or not found:
            return False
        with self._readable(f"step {put.step.name!r} of run {run_id!r}"):
            there = step_record(found[0])
        return there.token == token and rows.columns(run_id, there, token) == rows.columns(
            run_id, put.step, token
        )

    def _why_not(
        self, cursor: Cursor, run_id: str, token: int, step: str, *, ends: bool
    ) -> Refused:
        """Why nothing was written: the token, a cancellation, or another record of the step."""
        ((found, cancelled),) = cursor.execute(rows.CONTROL, (run_id,)).fetchall()
        forbids = None if ends else cancelled
        return not_written(self.place, run_id, step, token, found=found, cancelled=forbids)

    def _refuse_older(self, cursor: Cursor) -> None:
        """Raise `OlderStore` if the server has come back without our latest record."""
        if self._latest is None:
            return
        run_id, step, serial = self._latest
        found = cursor.execute(rows.STEP, (run_id, step)).fetchall()
        if not found or found[0][-1] < serial:
            raise announced(
                OlderStore(
                    f"the store {self.place} came back without records that it had acknowledged, "
                    f"step {step!r} of run {run_id!r} for one: a standby that lagged behind took "
                    "over, or an older copy was restored. What they say was done would be done "
                    "again. Put the latest store back; if this one is what you want, and you know "
                    "what happened since, resume"
                )
            )

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError) as error:
            raise self.unreadable(what, error) from error

    def _commit(self, work: Callable[[Cursor], T], *, whole: bool = False) -> T:
        """Do the work of one commit, and take its time."""
        self._refuse_fork()
        with self._lock:
            began = time.perf_counter()
            made = self._session.do(work, whole=whole)
            self._commits += 1
            self._seconds += time.perf_counter() - began
            return made

    def _rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        self._refuse_fork()
        with self._lock:
            return self._session.do(lambda cursor: cursor.execute(sql, parameters).fetchall())

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            raise announced(
                Owned(
                    f"this process is a fork of process {self._pid}, which has the store "
                    f"{self.place} open and owns its run: take steps there, or open another run "
                    "after the fork"
                )
            )


def _changes(cursor: Cursor, sql: str, *parameters: object) -> bool:
    """Run a statement; whether a row was written."""
    return cursor.execute(sql, parameters).rowcount == 1
