"""The store's file: born whole or not at all, and opened only if it is whole.

A new store is made under another name and renamed into place, so that no crash leaves an empty or
half-made file under the real one. That is why an empty file can be refused as damage instead of
being taken for a new run, which would silently do everything again.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from chaoskit.runtime.errors import DamagedStore, Misuse, Refused, announced

Durability = Literal["full", "normal"]
"""full: what is recorded survives power loss. normal: it survives any kill of the process, but
power loss may take the latest records; a commit then does not wait for the disk."""

FORMAT = "1"
"""Written by the schema below and asked for at each opening."""
DRAFT_SUFFIX = ".chaoskit-draft"
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}

_SCHEMA = """
PRAGMA journal_mode=MEMORY;
BEGIN IMMEDIATE;
CREATE TABLE meta (
    name TEXT PRIMARY KEY, value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY, uid TEXT NOT NULL, inputs TEXT NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0, result TEXT
) WITHOUT ROWID;
CREATE TABLE steps (
    run_id TEXT NOT NULL, name TEXT NOT NULL, meant_order TEXT NOT NULL, state TEXT NOT NULL,
    inputs TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL,
    produced TEXT NOT NULL, result TEXT, proof TEXT,
    PRIMARY KEY (run_id, name)
) WITHOUT ROWID;
CREATE TABLE marker_files (
    run_id TEXT NOT NULL, file TEXT NOT NULL, PRIMARY KEY (run_id, file)
) WITHOUT ROWID;
INSERT INTO meta VALUES ('format', '1');
COMMIT;
"""

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def open_file(path: Path, durability: Durability, *, create: bool) -> sqlite3.Connection:
    """A connection to the store in ``path``, in autocommit mode, usable from any thread.

    Args:
        path: the file.
        durability: what a commit survives.
        create: make a new store where there is none.

    Raises:
        FileNotFoundError: the folder, or without ``create`` the file, does not exist.
        DamagedStore: the file is there, but it is not a whole store.
        Refused: the store has another format.
    """
    if durability not in _SYNCHRONOUS:
        raise Misuse(f"durability is 'full' or 'normal', not {durability!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist: make it first")
    if create and not path.exists():
        _create(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no store of runs at {path}")
    return _open_whole(path, durability)


def damage(error: sqlite3.DatabaseError, path: Path) -> DamagedStore | None:
    """What ``error`` says about the file, if it says that the file is damaged."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE_CODES:
        return None
    return damaged(path, str(error))


def damaged(path: Path, why: str) -> DamagedStore:
    """The refusal of a file that is not what this runtime wrote."""
    return announced(
        DamagedStore(
            f"the store {path} is damaged: {why}. Restore it from a copy; to start over, and do "
            "again whatever it recorded, remove it yourself"
        )
    )


def address(path: str | Path) -> str:
    """The SQLite URI of a file that must exist: opening it never makes a new one."""
    return f"file:{quote(os.fspath(path))}?mode=rw"


def _create(path: Path) -> None:
    """Make a whole, empty store under ``path``, unless somebody else does so meanwhile.

    The lock is on the folder, so that it leaves no file behind and ends with its process; without
    it, a slower creator could rename its empty store over one with records.
    """
    draft = path.with_name(path.name + DRAFT_SUFFIX)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not path.exists():
            draft.unlink(missing_ok=True)
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.executescript(_SCHEMA)
            draft.rename(path)
    finally:
        os.close(folder)


def _open_whole(path: Path, durability: Durability) -> sqlite3.Connection:
    if not path.is_file():
        raise damaged(path, "it is not a file")
    if path.stat().st_size == 0:
        raise damaged(path, "it is empty, which no crash of this runtime leaves behind")
    connection = sqlite3.connect(
        address(path), uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        _check(connection, path)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise damage(error, path) or error from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is not a whole store of this format, before anything is done."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "meta" not in tables:
        raise damaged(path, "it is a database, but not a store of runs")
    found = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    if found != (FORMAT,):
        raise announced(
            Refused(
                f"the store {path} has format {found and found[0]}; this version of chaoskit "
                f"reads format {FORMAT}: use the version that wrote it"
            )
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged(path, str(verdict))
