"""The store's file: born whole or not at all, and opened only if it is whole.

A new store is made under another name and renamed into place, so that no crash leaves an empty or
half-made file under the real one. That is why an empty file can be refused as damage instead of
being taken for a new run, which would silently do everything again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from chaoskit.runtime import mark as marks
from chaoskit.runtime.errors import (
    DamagedStore,
    OlderStore,
    Refused,
    StoreUnavailable,
    announced,
)
from chaoskit.runtime.store_rows import SCHEMA

FORMAT = "2"
"""Written by `_create` and asked for at each opening."""
DRAFT_SUFFIX = ".chaoskit-draft"
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
_BUSY_TIMEOUT_S = 30.0
"""As in `store_postgres_session`. Writers take turns by chance, each waiting for the disk."""

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_FIXES = {
    sqlite3.SQLITE_FULL: "the disk is full: make room",
    sqlite3.SQLITE_BUSY: "another program holds it locked: end its transaction",
    sqlite3.SQLITE_LOCKED: "another program holds it locked: end its transaction",
    sqlite3.SQLITE_READONLY: "it cannot be written: give this user the right to write the file "
    "and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: give this user the right to read and write the "
    "file and its folder",
    sqlite3.SQLITE_PERM: "it cannot be opened: give this user the right to read and write it",
    sqlite3.SQLITE_IOERR: "the disk does not read or write it: look at the disk",
    sqlite3.SQLITE_NOMEM: "there is not enough memory: free some",
}


def open_file(path: Path, durability: str, *, create: bool) -> sqlite3.Connection:
    """A connection to the store in ``path``, in autocommit mode, usable from any thread.

    Args:
        path: the file.
        durability: what a commit survives, ``full`` or ``normal``.
        create: make a new store where there is none.

    Raises:
        FileNotFoundError: the folder, or without ``create`` the file, does not exist.
        DamagedStore: the file is there, but it is not a whole store.
        OlderStore: the file has gone, and its mark is still there.
        StoreUnavailable: rights, locks or the disk do not allow it.
        Refused: the store has another format.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist: make it first")
    # The mark first: who makes the store at this moment makes it before its mark.
    if marks.read(path) is not None and not path.exists():
        raise _gone(path)
    if create and not path.exists():
        try:
            _create(path)
        except OSError as error:
            raise unavailable(path, f"it cannot be made ({error}): make the folder writable") from (
                error
            )
        except sqlite3.DatabaseError as error:
            raise problem(error, path) or error from error
    if not path.exists():
        raise FileNotFoundError(f"there is no store of runs at {path}")
    return _open_whole(path, durability)


def problem(error: sqlite3.DatabaseError, path: Path) -> Refused | None:
    """What ``error`` says about the file: that it is damaged, or cannot be used just now."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGE_CODES:
        return damaged(path, str(error))
    if code in _FIXES:
        return unavailable(path, f"{_FIXES[code]} ({error})")
    return None


def unavailable(path: Path, why: str) -> StoreUnavailable:
    """The refusal of a store that cannot be used just now; told to a trial if nobody catches it."""
    return StoreUnavailable(
        f"the store {path} cannot be used: {why}. Nothing that was recorded is lost; the same run "
        "goes on afterwards"
    )


def damaged(path: Path, why: str) -> DamagedStore:
    """The refusal of a file that is not what this runtime wrote."""
    return announced(
        DamagedStore(
            f"the store {path} is damaged: {why}. Restore it from a copy; to start over, and do "
            f"again whatever it recorded, remove it and {marks.mark_of(path).name} yourself"
        )
    )


def address(path: str | os.PathLike[str], mode: str = "rw") -> str:
    """The SQLite URI of a file that must exist: opening it never makes a new one."""
    return f"file:{quote(os.fspath(path))}?mode={mode}"


def refuse_older(path: Path, mark: marks.Mark | None, uid: str, serial: int, boot: str) -> None:
    """Raise `OlderStore` if the mark knows records that the store does not have.

    Args:
        path: the store.
        mark: its mark, read before ``serial`` was: a writer writes the store first.
        uid: the store's own.
        serial: of its latest record.
        boot: the id of the present boot.
    """
    found = marks.lag(mark, uid, serial, boot)
    beside = marks.mark_of(path).name
    if found is marks.Lag.OLDER:
        raise announced(
            OlderStore(
                f"the store {path} is an older copy: {beside} knows of later records. What they "
                "say was done would be done again. Put the latest store back; if this one is what "
                f"you want, and you know what happened since, remove {beside} and resume"
            )
        )
    if found is marks.Lag.OTHER:
        raise announced(
            OlderStore(
                f"the store {path} is not the one that {beside} belongs to: it was replaced. Put "
                f"the other one back; if this one is what you want, remove {beside} and resume"
            )
        )


def _gone(path: Path) -> OlderStore:
    beside = marks.mark_of(path).name
    return announced(
        OlderStore(
            f"the store {path} has gone, while its mark {beside} is still there. What it recorded "
            f"would be done again. Put it back; to start over, remove {beside} and resume"
        )
    )


def _create(path: Path) -> None:
    """Make a whole, empty store under ``path``, unless somebody else does so meanwhile.

    The lock is on the folder, so that it leaves no file behind and ends with its process; without
    it, a slower creator could rename its empty store over one with records. The name is on the
    disk before anything is recorded, so that power loss cannot take a store that has a mark.
    """
    draft = path.with_name(path.name + DRAFT_SUFFIX)
    with _locked(path.parent) as folder:
        if path.exists():
            return
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.executescript(SCHEMA.format(format=FORMAT, uid=os.urandom(16).hex()))
            # Not at the first opening: of two at once that change it SQLite refuses one.
            connection.execute("PRAGMA journal_mode=WAL")
        draft.rename(path)
        if folder is not None:
            os.fsync(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[int | None]:
    """Hold the folder's lock; gives its descriptor, None on systems that have no such lock."""
    try:
        import fcntl
    except ImportError:
        yield None
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        os.close(held)


def _open_whole(path: Path, durability: str) -> sqlite3.Connection:
    if not path.is_file():
        raise damaged(path, "it is not a file")
    if path.stat().st_size == 0:
        raise damaged(path, "it is empty, which no crash of this runtime leaves behind")
    try:
        connection = sqlite3.connect(
            address(path),
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.DatabaseError as error:
        raise problem(error, path) or error from error
    try:
        _check(connection, path)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise problem(error, path) or error from error
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
