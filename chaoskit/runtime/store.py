"""The store's rows: the one place that reads and writes what is recorded of runs.

Each write is one commit of its own, and each touches one row by its primary key, so that a step
costs the same whether it is the first or the forty-thousandth.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from chaoskit.runtime.errors import Refused, announced
from chaoskit.runtime.records import Order, Proof, RunRecord, State, StepRecord
from chaoskit.runtime.store_file import Durability, damage, damaged, open_file

_FIND_RUN = "SELECT run_id, uid, inputs, finished, result FROM runs WHERE run_id = ?"
_ADD_RUN = "INSERT OR IGNORE INTO runs (run_id, uid, inputs) VALUES (?, ?, ?)"
_FINISH_RUN = "UPDATE runs SET finished = 1, result = ? WHERE run_id = ?"
_FIND_STEP = """
SELECT name, meant_order, state, inputs, key, attempt, produced, result, proof
FROM steps WHERE run_id = ? AND name = ?
"""
_PUT_STEP = """
INSERT INTO steps (run_id, name, meant_order, state, inputs, key, attempt, produced, result, proof)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, name) DO UPDATE SET
    meant_order = excluded.meant_order, state = excluded.state, attempt = excluded.attempt,
    produced = excluded.produced, result = excluded.result, proof = excluded.proof
WHERE state <> 'done' AND attempt = ?
"""
_IN_DOUBT = "SELECT name FROM steps WHERE run_id = ? AND state = 'begun' ORDER BY name"
_FORGET_STEPS = "DELETE FROM steps WHERE run_id = ?"
_MARKER_FILES = "SELECT file FROM marker_files WHERE run_id = ? ORDER BY file"
_ADD_MARKER_FILE = "INSERT OR IGNORE INTO marker_files (run_id, file) VALUES (?, ?)"
_FORGET_MARKER_FILES = "DELETE FROM marker_files WHERE run_id = ?"

_compact = json.JSONEncoder(separators=(",", ":")).encode


class Store:
    """A file of runs, open. Every method may be called from any thread; a lock takes turns.

    A connection must not cross a fork: a child process opens the file for itself.
    """

    def __init__(self, path: Path, durability: Durability = "full", *, create: bool = True) -> None:
        self.path = path
        self._lock = RLock()
        self._connection = open_file(path, durability, create=create)

    def close(self) -> None:
        """Give the file back; once nobody has it open it is a single file again."""
        with self._lock:
            self._connection.close()

    def find_run(self, run_id: str) -> RunRecord | None:
        """What is recorded of the run, None if nothing is."""
        rows = self._rows(_FIND_RUN, (run_id,))
        if not rows:
            return None
        with self._readable(f"run {run_id!r}"):
            name, uid, inputs, finished, result = rows[0]
            return RunRecord(
                run_id=name,
                uid=uid,
                inputs=json.loads(inputs),
                finished=bool(finished),
                result=result,
            )

    def add_run(self, run: RunRecord) -> None:
        """Record that the run exists; one that is recorded already stays as it is."""
        self._write(_ADD_RUN, (run.run_id, run.uid, _compact(run.inputs)))

    def find_step(self, run_id: str, name: str) -> StepRecord | None:
        """What is recorded of the step, None if nothing is."""
        rows = self._rows(_FIND_STEP, (run_id, name))
        if not rows:
            return None
        with self._readable(f"step {name!r} of run {run_id!r}"):
            return _step_record(rows[0])

    def put_step(self, run_id: str, step: StepRecord, *, expected_attempt: int) -> None:
        """Record ``step`` in place of what was read before, in one commit.

        Args:
            run_id: whose step.
            step: the whole of the new record.
            expected_attempt: the attempt that was read before; 0 if there was no record.

        Raises:
            Refused: meanwhile somebody else recorded something of this step.
        """
        landed = self._write(_PUT_STEP, (run_id, *_step_row(step), expected_attempt))
        if landed != 1:
            raise announced(
                Refused(
                    f"step {step.name!r} of run {run_id!r} was recorded by another process "
                    "meanwhile: let one process at a time work on a run"
                )
            )

    def in_doubt(self, run_id: str) -> tuple[str, ...]:
        """The names of the steps that were begun and neither completed nor settled."""
        return tuple(name for (name,) in self._rows(_IN_DOUBT, (run_id,)))

    def marker_files(self, run_id: str) -> tuple[str, ...]:
        """The effect databases that may hold a marker of the run."""
        return tuple(file for (file,) in self._rows(_MARKER_FILES, (run_id,)))

    def add_marker_file(self, run_id: str, file: str) -> None:
        """Record, before a first marker is written to ``file``, that it may hold one."""
        self._write(_ADD_MARKER_FILE, (run_id, file))

    def finish_run(self, run_id: str, result: str) -> None:
        """Record the end and forget the way there, in one commit: one row stays."""
        with self._transaction():
            self._write(_FINISH_RUN, (result, run_id))
            self._write(_FORGET_STEPS, (run_id,))
            self._write(_FORGET_MARKER_FILES, (run_id,))

    def unreadable(self, what: str, why: object) -> Refused:
        """The refusal of a record that cannot be read back."""
        return damaged(self.path, f"what it holds of {what} cannot be restored ({why})")

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError) as error:
            raise self.unreadable(what, error) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._write("BEGIN IMMEDIATE", ())
            try:
                yield
                self._write("COMMIT", ())
            finally:
                if self._connection.in_transaction:
                    self._write("ROLLBACK", ())

    def _rows(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        with self._lock, self._whole():
            return self._connection.execute(sql, parameters).fetchall()

    def _write(self, sql: str, parameters: Sequence[object]) -> int:
        with self._lock, self._whole():
            return self._connection.execute(sql, parameters).rowcount

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if found := damage(error, self.path):
                raise found from error
            raise


def _step_record(row: Sequence[Any]) -> StepRecord:
    name, order, state, inputs, key, attempt, produced, result, proof = row
    return StepRecord(
        name=name,
        order=Order(order),
        state=State(state),
        inputs=json.loads(inputs),
        key=key,
        attempt=attempt,
        produced=tuple(json.loads(produced)),
        result=result,
        proof=proof and Proof(proof),
    )


def _step_row(step: StepRecord) -> tuple[object, ...]:
    return (
        step.name,
        step.order.value,
        step.state.value,
        _compact(step.inputs),
        step.key,
        step.attempt,
        _compact(step.produced),
        step.result,
        step.proof and step.proof.value,
    )
