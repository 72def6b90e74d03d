"""The rows of a PostgreSQL store: its tables and its statements; values are columns as in SQLite.

Every write of a step is one statement, which holds the run's row against a change of owner
(``FOR SHARE``) until it is committed. Without that, a reader of an older snapshot could write with
a token that is not the run's any more.
"""

from __future__ import annotations

from chaoskit.runtime.books import Put
from chaoskit.runtime.records import RunRecord, StepRecord
from chaoskit.runtime.store_rows import compact, step_row

FORMAT = "1"
"""Written by `CREATE` and asked for at each opening."""

TABLES = ("meta", "runs", "steps", "pins", "marker_files")

CREATE = f"""
CREATE SCHEMA IF NOT EXISTS chaoskit;
CREATE SEQUENCE chaoskit.serials;
CREATE TABLE chaoskit.meta (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);
CREATE TABLE chaoskit.runs (
    run_id text COLLATE "C" PRIMARY KEY, uid text NOT NULL, inputs text NOT NULL,
    finished boolean NOT NULL DEFAULT false, result text,
    options text NOT NULL, tools text NOT NULL,
    token bigint NOT NULL, owner text, cancelled text,
    compensating boolean NOT NULL DEFAULT false, summary text NOT NULL DEFAULT '{{}}',
    serial bigint NOT NULL
);
CREATE TABLE chaoskit.steps (
    run_id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    meant_order text NOT NULL, state text NOT NULL, inputs text NOT NULL, key text NOT NULL,
    attempt integer NOT NULL, produced text, result text, proof text, policy text NOT NULL,
    generation integer NOT NULL, ended integer NOT NULL, failures integer NOT NULL,
    begun_at double precision, position integer, costs text, undoable boolean NOT NULL,
    seconds double precision, token bigint NOT NULL, serial bigint NOT NULL,
    PRIMARY KEY (run_id, name)
);
CREATE TABLE chaoskit.pins (
    run_id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, digest text NOT NULL,
    value text, PRIMARY KEY (run_id, name)
);
CREATE TABLE chaoskit.marker_files (
    run_id text COLLATE "C" NOT NULL, file text COLLATE "C" NOT NULL, PRIMARY KEY (run_id, file)
);
INSERT INTO chaoskit.meta VALUES ('format', '{FORMAT}'), ('uid', '%(uid)s');
"""  # noqa: S608 - our own numbers

EXISTS = """
SELECT EXISTS (
    SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'chaoskit' AND relname = 'meta'
)
"""
"""Read from the catalogue's rows: ``to_regclass`` may answer from what a session remembers."""
THERE = """
SELECT tablename::text FROM pg_tables WHERE schemaname = 'chaoskit'
"""
META = "SELECT name, value FROM chaoskit.meta"

_RUN_COLUMNS = (
    "run_id, uid, inputs, finished, result, options, tools, token, owner, cancelled, "
    "compensating, summary"
)
_STEP_TYPES = {
    "name": "text",
    "meant_order": "text",
    "state": "text",
    "inputs": "text",
    "key": "text",
    "attempt": "integer",
    "produced": "text",
    "result": "text",
    "proof": "text",
    "policy": "text",
    "generation": "integer",
    "ended": "integer",
    "failures": "integer",
    "begun_at": "double precision",
    "position": "integer",
    "costs": "text",
    "undoable": "boolean",
    "seconds": "double precision",
    "token": "bigint",
}
_STEP_COLUMNS = ", ".join([*_STEP_TYPES, "serial"])
_IN_STEPS = ", ".join(f"s.{column}" for column in [*_STEP_TYPES, "serial"])
_VALUES = ", ".join(["%s::text", *(f"%s::{kind}" for kind in _STEP_TYPES.values())])
_SET = ", ".join(
    f"{column} = excluded.{column}" for column in [*_STEP_TYPES, "serial"] if column != "name"
)

FIND_RUN = f"SELECT {_RUN_COLUMNS} FROM runs WHERE run_id = %s"  # noqa: S608 - our own columns
ALL_RUNS = f"SELECT {_RUN_COLUMNS} FROM runs ORDER BY run_id"  # noqa: S608 - our own columns
ADD_RUN = """
INSERT INTO runs (run_id, uid, inputs, options, tools, token, owner, serial)
VALUES (%s, %s, %s, %s, %s, %s, %s, nextval('serials')) ON CONFLICT DO NOTHING
"""
TAKE = """
UPDATE runs SET token = token + 1, owner = %s, options = %s, tools = %s, serial = nextval('serials')
WHERE run_id = %s AND token = %s AND NOT finished
"""
RELEASE = """
UPDATE runs SET owner = NULL, summary = %s, serial = nextval('serials')
WHERE run_id = %s AND token = %s
"""
FENCE = """
UPDATE runs SET owner = NULL, token = token + 1, serial = nextval('serials')
WHERE run_id = %s AND token = %s
"""
CANCEL = "UPDATE runs SET cancelled = %s, serial = nextval('serials') WHERE run_id = %s"
FINISH = """
UPDATE runs SET finished = true, owner = NULL, result = %s, summary = %s,
    serial = nextval('serials')
WHERE run_id = %s AND token = %s AND cancelled IS NULL
"""
STAMP = """
UPDATE runs SET serial = nextval('serials')
WHERE run_id = %s AND token = %s AND (%s OR cancelled IS NULL)
"""
COMPENSATES = "UPDATE runs SET compensating = true WHERE run_id = %s"
CONTROL = "SELECT token, cancelled FROM runs WHERE run_id = %s"

SEE = f"""
SELECT r.token, r.cancelled, r.compensating, {_IN_STEPS}
FROM runs r LEFT JOIN steps s ON s.run_id = r.run_id AND s.name = %s WHERE r.run_id = %s
"""  # noqa: S608 - our own columns
STEP = f"SELECT {_STEP_COLUMNS} FROM steps WHERE run_id = %s AND name = %s"  # noqa: S608
STEPS = f"SELECT {_STEP_COLUMNS} FROM steps WHERE run_id = %s ORDER BY serial"  # noqa: S608
PUT = f"""
INSERT INTO steps (run_id, {_STEP_COLUMNS}) SELECT {_VALUES}, nextval('serials')
FROM runs WHERE run_id = %s AND token = %s AND (%s OR cancelled IS NULL) FOR SHARE
ON CONFLICT (run_id, name) DO UPDATE SET {_SET} WHERE steps.state <> 'done' AND steps.attempt = %s
RETURNING serial
"""  # noqa: S608 - our own columns
FORGET = f"""
INSERT INTO steps (run_id, {_STEP_COLUMNS}) VALUES ({_VALUES}, nextval('serials'))
ON CONFLICT (run_id, name) DO UPDATE SET {_SET} WHERE steps.state = 'done'
"""  # noqa: S608 - our own columns
LOOSEN = "UPDATE steps SET position = NULL WHERE run_id = %s AND position >= %s"
IN_DOUBT = """
SELECT name FROM steps
WHERE run_id = %s AND state = 'begun' AND meant_order IN ('intent-first', 'atomic') ORDER BY name
"""
POSITIONS = "SELECT position, name FROM steps WHERE run_id = %s AND position IS NOT NULL"
SPENT = "SELECT costs FROM steps WHERE run_id = %s AND costs IS NOT NULL"
PINS = "SELECT name, digest, value FROM pins WHERE run_id = %s"
PUT_PIN = """
INSERT INTO pins (run_id, name, digest, value) VALUES (%s, %s, %s, %s)
ON CONFLICT (run_id, name) DO UPDATE SET digest = excluded.digest, value = excluded.value
"""
MARKER_FILES = "SELECT file FROM marker_files WHERE run_id = %s ORDER BY file"
ADD_MARKER_FILE = """
INSERT INTO marker_files (run_id, file) VALUES (%s, %s) ON CONFLICT DO NOTHING
"""
FORGET_ALL = tuple(
    f"DELETE FROM {table} WHERE run_id = %s"  # noqa: S608 - our own tables
    for table in ("steps", "pins", "marker_files")
)


def run_row(run: RunRecord) -> tuple[object, ...]:
    """A new run as the parameters of `ADD_RUN`."""
    told = compact(run.inputs), compact(run.options), compact(run.tools)
    return (run.run_id, run.uid, *told, run.token, run.owner)


def columns(run_id: str, step: StepRecord, token: int) -> tuple[object, ...]:
    """A step as the columns of `PUT` and `FORGET`; the database counts the serial."""
    return step_row(run_id, step, token, 0)[:-1]


def put_row(run_id: str, put: Put, token: int, *, ends: bool) -> tuple[object, ...]:
    """The parameters of `PUT`; ``ends``: it begins nothing, and a cancelled run may do it."""
    return (*columns(run_id, put.step, token), run_id, token, ends, put.expected)
