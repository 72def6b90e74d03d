"""What is said of a campaign's file that cannot be read or written: why, and what to do."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import msgspec

from chaoskit.model.errors import FormatError, UsageError

UNUSABLE = (sqlite3.Error, msgspec.DecodeError, zlib.error)
"""What is raised where a campaign's file cannot be used."""

_AGAIN = "what was tried so far is stored: give the same command again, and the campaign goes on"
NOT_WRITTEN = ("cannot be written", f"make room there; {_AGAIN}")
"""The same of another file in the campaign's folder, for `chaoskit.model.errors.naming`."""

_FIXES = {
    sqlite3.SQLITE_BUSY: "another program has locked it: try again when that has ended",
    sqlite3.SQLITE_FULL: f"free some space on that disk; {_AGAIN}",
    sqlite3.SQLITE_READONLY: "you may not write to it",
    sqlite3.SQLITE_CANTOPEN: "you may not read it, or a file of it is missing",
    sqlite3.SQLITE_PERM: "you may not read it",
    sqlite3.SQLITE_IOERR: f"the disk failed, or is full; {_AGAIN}",
}
"""By the primary code; any other is damage."""


def as_usage(error: Exception, file: Path, *, writable: bool) -> UsageError:
    """The error to raise in place of one of `UNUSABLE`."""
    fix = _FIXES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if fix is None:
        return FormatError(
            f"{file} is damaged: {error}; remove its folder, and run the campaign anew"
        )
    doing = "written" if writable else "read"
    return UsageError(f"{file} cannot be {doing}: {error}; {fix}")
