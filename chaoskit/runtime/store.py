"""The SQLite store: the one place that reads and writes what is recorded of runs.

Each write is one commit, followed by one write of the mark beside the file (`mark`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from chaoskit.runtime import mark as marks
from chaoskit.runtime import store_rows as rows
from chaoskit.runtime.books import Change, Durability, Seen, Timing
from chaoskit.runtime.errors import (
    Owned,
    Refused,
    StoreUnavailable,
    announced,
    not_written,
)
from chaoskit.runtime.owner import Owner, boot_id
from chaoskit.runtime.records import Pin, RunRecord, StepRecord
from chaoskit.runtime.store_file import damaged, open_file, problem, refuse_older

_NOTHING_ELSE = Change()[2:]


class SqliteBooks:
    """A file of runs, open: `chaoskit.runtime.books.Books`. A lock takes turns among threads."""

    def __init__(self, path: Path, durability: Durability = "full", *, create: bool = True) -> None:
        self.path = path
        self._lock = RLock()
        self._pid = os.getpid()
        self._commits, self._seconds = 0, 0.0
        self._landed = False
        mark = marks.read(path) if path.parent.is_dir() else None
        self._connection = open_file(path, durability, create=create)
        try:
            ((uid,),) = self._rows(rows.STORE_UID, ())
            ((latest,),) = self._rows(rows.LATEST_SERIAL, ())
            self._serial = latest or 0
            boot = boot_id()
            refuse_older(path, mark, uid, self._serial, boot)
            self._pen = marks.Pen(path, uid, boot, durability)
        except BaseException:
            self._connection.close()
            raise

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    @property
    def timing(self) -> Timing:
        """What commits have cost so far."""
        return Timing(self._commits, self._seconds)

    def close(self) -> None:
        """Give the file back; once nobody has it open only the mark is beside it."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._pen.close()
            self._connection.close()

    def unreadable(self, what: str, why: object) -> Refused:
        """The refusal of a record that cannot be read back."""
        return damaged(self.path, f"what it holds of {what} cannot be restored ({why})")

    def find_run(self, run_id: str) -> RunRecord | None:
        """What is recorded of the run, None if nothing is."""
        found = self._rows(rows.FIND_RUN, (run_id,))
        with self._readable(f"run {run_id!r}"):
            return rows.run_record(found[0]) if found else None

    def runs(self) -> Sequence[RunRecord]:
        """Every run, by id."""
        with self._readable("its runs"):
            return [rows.run_record(row) for row in self._rows(rows.ALL_RUNS, ())]

    def add_run(self, run: RunRecord) -> bool:
        """Record a new run, its owner and token included; False if there is one of that id."""
        compact = rows.compact
        told = compact(run.inputs), compact(run.options), compact(run.tools)
        with self._commit() as serial:
            return self._write(
                rows.ADD_RUN, (run.run_id, run.uid, *told, run.token, run.owner, serial)
            )

    def take(self, run: RunRecord, owner: Owner) -> int | None:
        """Make ``owner`` the owner, with the next token, and store ``run``'s tools and options."""
        told = owner.text(), rows.compact(run.options), rows.compact(run.tools)
        with self._commit() as serial:
            landed = self._write(rows.TAKE, (*told, serial, run.run_id, run.token))
        return run.token + 1 if landed else None

    def release(self, run_id: str, token: int, summary: Mapping[str, Any]) -> None:
        """Leave the run without an owner, with these figures; nothing if the token is stale."""
        with self._commit() as serial:
            self._write(rows.RELEASE, (rows.compact(summary), serial, run_id, token))

    def fence(self, run_id: str) -> None:
        """Leave the run without an owner, and with the next token, whoever has it."""
        with self._commit() as serial:
            self._write(rows.FENCE, (serial, run_id))

    def cancel(self, run_id: str, reason: str | None) -> None:
        """Say why the run is cancelled, or with None that it is not, whoever has it."""
        with self._commit() as serial:
            self._write(rows.CANCEL, (reason, serial, run_id))

    def see(self, run_id: str, step: str) -> Seen:
        """What is recorded of a step and of its run, in one read by primary keys."""
        found = self._rows(rows.SEE, (step, run_id))
        if not found:
            raise self.unreadable(f"run {run_id!r}", "its row has gone")
        token, cancelled, compensating, *row = found[0]
        if row[0] is None:
            return Seen(None, token, cancelled, bool(compensating))
        with self._readable(f"step {step!r} of run {run_id!r}"):
            return Seen(rows.step_record(row), token, cancelled, bool(compensating))

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """Every step that is recorded, in the order of its latest record."""
        with self._readable(f"the steps of run {run_id!r}"):
            return [rows.step_record(row) for row in self._rows(rows.STEPS, (run_id,))]

    def in_doubt(self, run_id: str) -> tuple[str, ...]:
        """The names of the steps of which `StepRecord.in_doubt` is true, sorted."""
        return tuple(name for (name,) in self._rows(rows.IN_DOUBT, (run_id,)))

    def positions(self, run_id: str) -> Mapping[int, str]:
        """The step at each position that is recorded."""
        return dict(self._rows(rows.POSITIONS, (run_id,)))

    def spent(self, run_id: str) -> Mapping[str, float]:
        """What was charged to each budget by all steps, forgotten ones included."""
        total: dict[str, float] = {}
        with self._readable(f"the costs of run {run_id!r}"):
            for (text,) in self._rows(rows.SPENT, (run_id,)):
                for budget, cost in json.loads(text).items():
                    total[budget] = total.get(budget, 0) + cost
        return total

    def pins(self, run_id: str) -> Mapping[str, Pin]:
        """Every pin by name."""
        return {row[0]: rows.pin(row) for row in self._rows(rows.PINS, (run_id,))}

    def marker_files(self, run_id: str) -> tuple[str, ...]:
        """The effect databases that may hold a marker of the run."""
        return tuple(file for (file,) in self._rows(rows.MARKER_FILES, (run_id,)))

    def commit(self, run_id: str, token: int, change: Change) -> None:
        """Write the whole change in one commit; see `chaoskit.runtime.books.Books.commit`."""
        if len(change.puts) == 1 and change[2:] == _NOTHING_ELSE:
            self._put_alone(run_id, token, change)
            return
        ends = not change.begins
        with self._commit() as serial, self._transaction():
            self._serial += len(change.puts) + len(change.forgets)  # the stamp is the latest
            if not self._write(rows.STAMP, (self._serial, run_id, token, ends)):
                raise self._why_not(run_id, token, "", ends=ends)
            self._write_all(run_id, token, change, serial)

    def finish(self, run_id: str, token: int, result: str, summary: Mapping[str, Any]) -> None:
        """Record the end and forget the way there, in one commit: one row stays."""
        with self._commit() as serial, self._transaction():
            told = result, rows.compact(summary), serial
            if not self._write(rows.FINISH, (*told, run_id, token)):
                raise self._why_not(run_id, token, "", ends=False)
            for forget in rows.FORGET_ALL:
                self._write(forget, (run_id,))

    def _write_all(self, run_id: str, token: int, change: Change, serial: int) -> None:
        ends = not change.begins
        for number, put in enumerate(change.puts, serial):
            row = rows.put_row(run_id, put, token, number, ends=ends)
            if not self._write(rows.PUT, row):
                raise self._why_not(run_id, token, put.step.name, ends=ends)
        for number, step in enumerate(change.forgets, serial + len(change.puts)):
            self._write(rows.FORGET, rows.step_row(run_id, step, token, number))
        for pin in change.pins:
            self._write(rows.PUT_PIN, (run_id, *pin))
        if change.compensates:
            self._write(rows.COMPENSATES, (run_id,))
        if change.loosens is not None:
            self._write(rows.LOOSEN, (run_id, change.loosens))
        if change.marker_file is not None:
            self._write(rows.ADD_MARKER_FILE, (run_id, change.marker_file))

    def _why_not(self, run_id: str, token: int, step: str, *, ends: bool) -> Refused:
        """Why nothing was written: the token, a cancellation, or another record of the step."""
        ((found, cancelled, _),) = self._rows(rows.CONTROL, (run_id,))
        forbids = None if ends else cancelled
        return not_written(self.place, run_id, step, token, found=found, cancelled=forbids)

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError) as error:
            raise self.unreadable(what, error) from error

    def _next_serial(self) -> int:
        """Grows with every record, also those of other processes: microseconds, or one more."""
        self._serial = max(self._serial + 1, time.time_ns() // 1000)
        return self._serial

    @contextmanager
    def _commit(self) -> Iterator[int]:
        """Around one commit: gives its serial, takes its time, and writes the mark if it landed."""
        self._refuse_fork()
        with self._lock:
            began = time.perf_counter()
            self._landed = False
            yield self._next_serial()
            if self._landed:
                self._pen.write(self._serial)
            self._commits += 1
            self._seconds += time.perf_counter() - began

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._write("BEGIN IMMEDIATE", ())
        try:
            yield
            self._write("COMMIT", ())
        finally:
            if self._connection.in_transaction:
                with suppress(StoreUnavailable):  # what brought us here is the one to tell
                    self._write("ROLLBACK", ())

    def _rows(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        self._refuse_fork()
        with self._lock:
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.DatabaseError as error:
                raise problem(error, self.path) or error from error

    def _write(self, sql: str, parameters: Sequence[object]) -> bool:
        """Whether a row was written; the caller holds the lock."""
        try:
            landed = self._connection.execute(sql, parameters).rowcount == 1
        except sqlite3.DatabaseError as error:
            raise problem(error, self.path) or error from error
        self._landed |= landed
        return landed

    def _put_alone(self, run_id: str, token: int, change: Change) -> None:
        """The usual commit, one statement; the same as the general way, without its wrappings."""
        self._refuse_fork()
        (put,) = change.puts
        ends = not change.begins
        with self._lock:
            began = time.perf_counter()
            serial = self._next_serial()
            if not self._write(rows.PUT, rows.put_row(run_id, put, token, serial, ends=ends)):
                raise self._why_not(run_id, token, put.step.name, ends=ends)
            self._pen.write(serial)
            self._commits += 1
            self._seconds += time.perf_counter() - began

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            raise announced(
                Owned(
                    f"this process is a fork of process {self._pid}, which has the store "
                    f"{self.path} open and owns its run: take steps there, or open another run "
                    "after the fork"
                )
            )
