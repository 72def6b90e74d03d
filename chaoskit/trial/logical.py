"""What a state of the files means: the rows of a SQLite database, the bytes of everything else.

Two runs that have done the same never have the same bytes in a write-ahead log (its salt is drawn
anew), so states of different runs are compared by what a program would read in them: the rows, the
schema, and the two numbers that a program may keep in a database's head. A database that cannot be
read is compared by its bytes and those of its logs.
"""

from __future__ import annotations

import hashlib
import sqlite3
import stat
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from chaoskit.trial.snapshots import Contents, Entry, Tree

_MAGIC = b"SQLite format 3\0"
_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_JOURNALS = ("-wal", "-shm", "-journal", "-mark")
"""What stands beside a database and says nothing that is not in it; the last one is that of the
reference runtime, which holds the number of the latest record."""
_HEAD, _SCHEMA = "sqlite_head", "sqlite_schema"
"""How the rest of a database is called among its tables; none of its own begins like this."""
_NUMBERS = ("user_version", "application_id")

Column = tuple[str, str, str]
"""File, table and name of a column."""

Rows = Mapping[str, Mapping[str, tuple[tuple[str, ...], list[tuple[object, ...]]]]]
"""By file and table: the names of the columns, and the rows in the order of the key."""


class Reader:
    """Reads states of the files; opens databases in copies of their own in ``folder``."""

    def __init__(self, contents: Contents, folder: Path) -> None:
        self._contents = contents
        self._folder = folder
        self._known: dict[tuple[bytes, ...], Mapping[str, object] | None] = {}

    def digest(self, tree: Tree, masked: Iterable[Column] = ()) -> bytes:
        """Equal for states that mean the same, but for the values in the ``masked`` columns.

        Whether there is a value in one still counts: what is not there may be made up for later.
        """
        hidden = frozenset(masked)
        digest = hashlib.blake2b(digest_size=16)
        for name, entry in tree.items():
            if self._is_read_with_another(name, tree):
                continue
            digest.update(repr((name, stat.S_IFMT(entry.mode))).encode())
            tables = self._tables(name, tree)
            if tables is None:
                digest.update(entry.content)
                continue
            for table, (columns, rows) in sorted(tables.items()):
                shown = [(name, table, column) not in hidden for column in columns]
                digest.update(repr((table, columns)).encode())
                digest.update(repr([_shown(row, shown) for row in rows]).encode())
        return digest.digest()

    def differing_columns(self, one: Tree, other: Tree) -> set[Column]:
        """The columns whose values differ in two states with as many rows in each table."""
        found: set[Column] = set()
        for name in one:
            first, second = self._tables(name, one), self._tables(name, other)
            if first is None or second is None:
                continue
            for table, (columns, rows) in first.items():
                others = second.get(table, ((), []))[1]
                if len(rows) != len(others):
                    continue
                found.update(
                    (name, table, column)
                    for i, column in enumerate(columns)
                    if [row[i] for row in rows] != [row[i] for row in others]
                )
        return found

    def _is_read_with_another(self, name: str, tree: Tree) -> bool:
        """Whether the file is a log or an index that was read together with its database."""
        base = next((name.removesuffix(s) for s in _JOURNALS if name.endswith(s)), None)
        return base is not None and self._tables(base, tree) is not None

    def _is_database(self, entry: Entry) -> bool:
        if not stat.S_ISREG(entry.mode):
            return False
        content = self._contents[entry.content]
        return not content or content.startswith(_MAGIC)

    def _is_log(self, entry: Entry | None) -> bool:
        if entry is None or not stat.S_ISREG(entry.mode):
            return False
        return self._contents[entry.content].startswith(_LOG_MAGIC)

    def _tables(
        self, name: str, tree: Tree
    ) -> Mapping[str, tuple[tuple[str, ...], list[tuple[object, ...]]]] | None:
        """Every table of a database as the next program to open it would find it."""
        entry = tree.get(name)
        if entry is None or not self._is_database(entry):
            return None
        if not self._contents[entry.content] and not self._is_log(tree.get(f"{name}-wal")):
            return None  # an empty file is just that
        parts = {s: tree[name + s].content for s in ("", "-wal", "-journal") if name + s in tree}
        key = tuple(parts.get(s, b"") for s in ("", "-wal", "-journal"))
        if key not in self._known:
            if len(self._known) > 4096:
                self._known.clear()
            self._known[key] = self._read(parts)
        return self._known[key]  # type: ignore[return-value]

    def _read(self, parts: Mapping[str, bytes]) -> Mapping[str, object] | None:
        self._folder.mkdir(exist_ok=True)
        for old in self._folder.iterdir():
            old.unlink()
        for suffix, content in parts.items():
            (self._folder / f"db{suffix}").write_bytes(self._contents[content])
        try:
            with closing(sqlite3.connect(self._folder / "db", isolation_level=None)) as books:
                tables = {table: _rows(books, table) for table in _table_names(books)}
                return tables | {_HEAD: _numbers(books), _SCHEMA: _made_by(books)}
        except sqlite3.Error:
            return None  # damaged, or made with what we lack: compared by its bytes


def _table_names(books: sqlite3.Connection) -> list[str]:
    found = books.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [str(row[0]) for row in found]


def _numbers(books: sqlite3.Connection) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    return _NUMBERS, [tuple(books.execute(f"PRAGMA {n}").fetchone()[0] for n in _NUMBERS)]


def _made_by(books: sqlite3.Connection) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    cursor = books.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")
    return ("type", "name", "sql"), cursor.fetchall()


def _shown(row: tuple[object, ...], shown: list[bool]) -> list[object]:
    """A row, with nothing but whether there is a value in the columns that are not shown."""
    return [value if seen else (value is None,) for value, seen in zip(row, shown, strict=True)]


def _rows(
    books: sqlite3.Connection, table: str
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    quoted = '"' + table.replace('"', '""') + '"'
    cursor = books.execute(f"SELECT * FROM {quoted}")  # noqa: S608 - a quoted name
    columns = tuple(str(column[0]) for column in cursor.description)
    return columns, cursor.fetchall()
