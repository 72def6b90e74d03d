"""The rows of an SQLite store: its tables, its statements, and values as columns.

Every write of a step is one statement that checks the owner's token and, where a step begins,
that the run is not cancelled; each goes by primary key, so that a step costs the same whether it
is the first or the forty-thousandth.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chaoskit.runtime.books import Put
from chaoskit.runtime.fingerprint import fingerprint
from chaoskit.runtime.records import Order, Pin, Proof, RunRecord, State, StepRecord

SCHEMA = """
PRAGMA journal_mode=MEMORY;
BEGIN IMMEDIATE;
CREATE TABLE meta (
    name TEXT PRIMARY KEY, value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY, uid TEXT NOT NULL, inputs TEXT NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0, result TEXT,
    options TEXT NOT NULL, tools TEXT NOT NULL,
    token INTEGER NOT NULL, owner TEXT, cancelled TEXT,
    compensating INTEGER NOT NULL DEFAULT 0, summary TEXT NOT NULL DEFAULT '{{}}',
    serial INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE steps (
    run_id TEXT NOT NULL, name TEXT NOT NULL, meant_order TEXT NOT NULL, state TEXT NOT NULL,
    inputs TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL,
    produced TEXT, result TEXT, proof TEXT, policy TEXT NOT NULL, generation INTEGER NOT NULL,
    ended INTEGER NOT NULL, failures INTEGER NOT NULL, begun_at REAL, position INTEGER,
    costs TEXT, undoable INTEGER NOT NULL, seconds REAL, token INTEGER NOT NULL,
    serial INTEGER NOT NULL,
    PRIMARY KEY (run_id, name)
) WITHOUT ROWID;
CREATE TABLE pins (
    run_id TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, value TEXT,
    PRIMARY KEY (run_id, name)
) WITHOUT ROWID;
CREATE TABLE marker_files (
    run_id TEXT NOT NULL, file TEXT NOT NULL, PRIMARY KEY (run_id, file)
) WITHOUT ROWID;
INSERT INTO meta VALUES ('format', '{format}'), ('uid', '{uid}');
COMMIT;
"""

_RUN_COLUMNS = (
    "run_id, uid, inputs, finished, result, options, tools, token, owner, cancelled, "
    "compensating, summary"
)
_STEP_COLUMNS = (
    "name, meant_order, state, inputs, key, attempt, produced, result, proof, policy, generation, "
    "ended, failures, begun_at, position, costs, undoable, seconds, token, serial"
)
_IN_STEPS = ", ".join(f"s.{column}" for column in _STEP_COLUMNS.split(", "))
_SET = ", ".join(
    f"{column} = excluded.{column}" for column in _STEP_COLUMNS.split(", ") if column != "name"
)

STORE_UID = "SELECT value FROM meta WHERE name = 'uid'"
LATEST_SERIAL = """
SELECT max(serial) FROM
(SELECT max(serial) AS serial FROM runs UNION ALL SELECT max(serial) FROM steps)
"""
FIND_RUN = f"SELECT {_RUN_COLUMNS} FROM runs WHERE run_id = ?"  # noqa: S608 - our own columns
ALL_RUNS = f"SELECT {_RUN_COLUMNS} FROM runs ORDER BY run_id"  # noqa: S608 - our own columns
ADD_RUN = """
INSERT OR IGNORE INTO runs (run_id, uid, inputs, options, tools, token, owner, serial)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
TAKE = """
UPDATE runs SET token = token + 1, owner = ?, options = ?, tools = ?, serial = max(serial, ?)
WHERE run_id = ? AND token = ? AND finished = 0
"""
RELEASE = """
UPDATE runs SET owner = NULL, summary = ?, serial = max(serial, ?) WHERE run_id = ? AND token = ?
"""
FENCE = "UPDATE runs SET owner = NULL, token = token + 1, serial = max(serial, ?) WHERE run_id = ?"
CANCEL = "UPDATE runs SET cancelled = ?, serial = max(serial, ?) WHERE run_id = ?"
FINISH = """
UPDATE runs SET finished = 1, owner = NULL, result = ?, summary = ?, serial = max(serial, ?)
WHERE run_id = ? AND token = ? AND cancelled IS NULL
"""
STAMP = """
UPDATE runs SET serial = max(serial, ?) WHERE run_id = ? AND token = ? AND (? OR cancelled IS NULL)
"""
COMPENSATES = "UPDATE runs SET compensating = 1 WHERE run_id = ?"
CONTROL = "SELECT token, cancelled, compensating FROM runs WHERE run_id = ?"

SEE = f"""
SELECT r.token, r.cancelled, r.compensating, {_IN_STEPS}
FROM runs r LEFT JOIN steps s ON s.run_id = r.run_id AND s.name = ? WHERE r.run_id = ?
"""  # noqa: S608 - our own columns
STEPS = f"SELECT {_STEP_COLUMNS} FROM steps WHERE run_id = ? ORDER BY serial"  # noqa: S608
PUT = f"""
INSERT INTO steps (run_id, {_STEP_COLUMNS})
SELECT {", ".join("?" * (_STEP_COLUMNS.count(",") + 2))}
FROM runs WHERE run_id = ? AND token = ? AND (? OR cancelled IS NULL)
ON CONFLICT (run_id, name) DO UPDATE SET {_SET} WHERE state <> 'done' AND attempt = ?
"""  # noqa: S608 - our own columns
FORGET = f"""
INSERT INTO steps (run_id, {_STEP_COLUMNS})
VALUES ({", ".join("?" * (_STEP_COLUMNS.count(",") + 2))})
ON CONFLICT (run_id, name) DO UPDATE SET {_SET} WHERE state = 'done'
"""  # noqa: S608 - our own columns
LOOSEN = "UPDATE steps SET position = NULL WHERE run_id = ? AND position >= ?"
IN_DOUBT = """
SELECT name FROM steps
WHERE run_id = ? AND state = 'begun' AND meant_order IN ('intent-first', 'atomic') ORDER BY name
"""
POSITIONS = "SELECT position, name FROM steps WHERE run_id = ? AND position IS NOT NULL"
SPENT = "SELECT costs FROM steps WHERE run_id = ? AND costs IS NOT NULL"
PINS = "SELECT name, digest, value FROM pins WHERE run_id = ?"
PUT_PIN = "INSERT OR REPLACE INTO pins (run_id, name, digest, value) VALUES (?, ?, ?, ?)"
MARKER_FILES = "SELECT file FROM marker_files WHERE run_id = ? ORDER BY file"
ADD_MARKER_FILE = "INSERT OR IGNORE INTO marker_files (run_id, file) VALUES (?, ?)"
FORGET_ALL = tuple(
    f"DELETE FROM {table} WHERE run_id = ?"  # noqa: S608 - our own tables
    for table in ("steps", "pins", "marker_files")
)

compact = json.JSONEncoder(separators=(",", ":")).encode


def run_record(row: Sequence[Any]) -> RunRecord:
    """A row of ``runs`` as a value; raises ValueError or TypeError if it cannot be read."""
    (
        name,
        uid,
        inputs,
        finished,
        result,
        options,
        tools,
        token,
        owner,
        cancelled,
        back,
        summary,
    ) = row
    return RunRecord(
        run_id=name,
        uid=uid,
        inputs=json.loads(inputs),
        finished=bool(finished),
        result=result,
        options=json.loads(options),
        tools=json.loads(tools),
        token=token,
        owner=owner,
        cancelled=cancelled,
        compensating=bool(back),
        summary=json.loads(summary),
    )


def step_record(row: Sequence[Any]) -> StepRecord:
    """A row of ``steps`` as a value; raises ValueError or TypeError if it cannot be read."""
    name, order, state, inputs, key, attempt, produced, result, proof, *rest = row
    policy, generation, ended, failures, begun_at, position, costs, undoable, *last = rest
    return StepRecord(
        name,
        Order(order),
        State(state),
        json.loads(inputs),
        key,
        attempt,
        tuple(json.loads(produced)) if produced else (),
        result,
        proof and Proof(proof),
        policy,
        generation,
        ended,
        failures,
        begun_at,
        position,
        json.loads(costs) if costs else {},
        bool(undoable),
        *last,
    )


_NO_INPUTS = fingerprint(None)
_NO_INPUTS_TEXT = compact(_NO_INPUTS)


def step_row(run_id: str, step: StepRecord, token: int, serial: int) -> tuple[object, ...]:
    """A step as the columns of `PUT`, up to the conditions."""
    return (
        run_id,
        step.name,
        step.order.value,
        step.state.value,
        _NO_INPUTS_TEXT if step.inputs == _NO_INPUTS else compact(step.inputs),
        step.key,
        step.attempt,
        compact(step.produced) if step.produced else None,
        step.result,
        step.proof and step.proof.value,
        step.policy,
        step.generation,
        step.ended,
        step.failures,
        step.begun_at,
        step.position,
        compact(step.costs) if step.costs else None,
        step.undoable,
        step.seconds,
        token,
        serial,
    )


def put_row(run_id: str, put: Put, token: int, serial: int, *, ends: bool) -> tuple[object, ...]:
    """The parameters of `PUT`; ``ends``: it begins nothing, and a cancelled run may do it."""
    return (*step_row(run_id, put.step, token, serial), run_id, token, ends, put.expected)


def pin(row: Sequence[Any]) -> Pin:
    """A row of ``pins`` as a value."""
    return Pin(*row)
