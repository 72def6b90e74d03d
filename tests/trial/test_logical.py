"""What states of the files mean: equal for equal rows however they came about, else different."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaoskit.trial.logical import Column, Reader
from chaoskit.trial.snapshots import Camera, Contents, Tree

Value = int | float | str | bytes | None
Rows = Mapping[int, tuple[Value, Value]]
"""By the key, the values of two further columns."""

Do = Callable[[Path], None]

CREATE = "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b)"


def insert(values: str, table: str = "t") -> str:
    """One row."""
    return f"INSERT INTO {table} VALUES {values}"  # noqa: S608 - a test's own words


class States:
    """Folders that are looked at by one reader."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents = Contents()
        self.reader = Reader(self._contents, folder / "reading")
        self._number = 0

    def after(self, *deeds: Do) -> Tree:
        """The state of a new folder after these, the last of which is still at it."""
        self._number += 1
        folder = self._folder / f"state-{self._number}"
        folder.mkdir()
        for deed in deeds:
            deed(folder)
        return self.look(folder)

    def look(self, folder: Path) -> Tree:
        """The state of this folder as it is now."""
        return Camera({"state": folder}, self._contents).take()

    def same(self, one: Tree, other: Tree, masked: Sequence[Column] = ()) -> bool:
        """Whether two states mean the same."""
        return self.reader.digest(one, masked) == self.reader.digest(other, masked)


@pytest.fixture
def states(tmp_path: Path) -> States:
    """Folders in a temporary one."""
    return States(tmp_path)


def sql(*statements: str, name: str = "run.db") -> Do:
    """Execute these in a connection of their own, and close it as a program does."""

    def do(folder: Path) -> None:
        with closing(sqlite3.connect(folder / name, isolation_level=None)) as books:
            for statement in statements:
                books.execute(statement)

    return do


def killed(*statements: str, name: str = "run.db") -> Do:
    """The same by a process that is killed at the end: nothing is closed."""

    def do(folder: Path) -> None:
        child = os.fork()
        if child == 0:
            try:
                books = sqlite3.connect(folder / name, isolation_level=None)
                for statement in statements:
                    books.execute(statement)
            finally:
                os._exit(9)
        os.waitpid(child, 0)

    return do


# Equal rows, different histories.

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.binary(max_size=6),
)
ROWS = st.dictionaries(st.integers(1, 9), st.tuples(VALUES, VALUES), max_size=6)
UPKEEP = st.sampled_from(
    ["", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(PASSIVE)", "VACUUM", "detour"]
)


@st.composite
def histories(draw: st.DrawFn, rows: Rows) -> Do:
    """A way to come to these rows: in any order, with detours, by several processes or one."""
    journal = draw(st.sampled_from(["WAL", "DELETE", "PERSIST", "TRUNCATE"]))
    order = draw(st.permutations(sorted(rows)))
    upkeep = draw(st.lists(UPKEEP, min_size=len(order), max_size=len(order)))
    closes = draw(st.booleans())
    page = draw(st.sampled_from([512, 4096]))

    def do(folder: Path) -> None:
        path = folder / "run.db"
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            return
        code = 1
        try:
            books = sqlite3.connect(path, isolation_level=None)
            books.execute(f"PRAGMA page_size = {page}")
            books.execute(f"PRAGMA journal_mode = {journal}")
            books.execute(CREATE)
            for key, also in zip(order, upkeep, strict=True):
                if also == "detour":
                    books.execute("INSERT INTO t VALUES (?, 'wrong', zeroblob(9000))", (key,))
                    books.execute("INSERT INTO t VALUES (?, 1, 1)", (key + 100,))
                    books.execute("DELETE FROM t WHERE k = ?", (key + 100,))
                books.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", (key, *rows[key]))
                if also not in {"", "detour"}:
                    books.execute(also)
            if closes:
                books.close()
            code = 0
        finally:
            os._exit(code)  # with or without the last checkpoint

    return do


@settings(max_examples=30)
@given(st.data(), ROWS)
def test_equal_rows_are_equal_however_they_came_about(data: st.DataObject, rows: Rows) -> None:
    """Order, journal mode, page size, salts, checkpoints, VACUUM, detours and ends do not count."""
    with tempfile.TemporaryDirectory() as folder:
        states = States(Path(folder))
        one, other = (states.after(data.draw(histories(rows))) for _ in range(2))
        assert states.same(one, other)
        assert states.reader.differing_columns(one, other) == set()


@settings(max_examples=30)
@given(st.data(), ROWS)
def test_a_changed_row_is_seen_however_it_came_about(data: st.DataObject, rows: Rows) -> None:
    """Another value (of another type, too), a missing row, a row more: not equal."""
    changed = dict(rows)
    key = data.draw(st.sampled_from(sorted({*rows, 10})))
    if key in rows and data.draw(st.booleans()):
        del changed[key]
    else:
        changed[key] = data.draw(st.tuples(VALUES, VALUES))
    assume(repr(changed.get(key)) != repr(rows.get(key)))
    with tempfile.TemporaryDirectory() as folder:
        states = States(Path(folder))
        one = states.after(data.draw(histories(rows)))
        other = states.after(data.draw(histories(changed)))
        assert not states.same(one, other)


@pytest.mark.parametrize("values", [("1", "1.0"), ("1", "'1'"), ("x'61'", "'a'"), ("''", "NULL")])
def test_values_of_different_types_are_different(states: States, values: tuple[str, str]) -> None:
    """What looks alike when it is printed is not the same to a program."""
    one, other = (states.after(sql(CREATE, insert(f"(1, {v}, 0)"))) for v in values)
    assert not states.same(one, other)


def test_what_was_not_committed_does_not_count(states: States) -> None:
    """A transaction that a kill cut off is what the next program to open the file finds: nothing.

    Neither frames without a commit in a log nor pages that a journal takes back mean anything.
    """
    for journal in ("WAL", "DELETE"):
        begin = (f"PRAGMA journal_mode = {journal}", "PRAGMA cache_size = 1", CREATE)
        big = (
            "WITH RECURSIVE generate(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM generate "
            "WHERE value < 40) INSERT INTO t SELECT value, zeroblob(3000), 0 FROM generate"
        )
        before = states.after(killed(*begin))
        during = states.after(killed(*begin, "BEGIN", big))
        after = states.after(killed(*begin, "BEGIN", big, "COMMIT"))
        suffix = "-wal" if journal == "WAL" else "-journal"
        assert f"state/run.db{suffix}" in during
        assert states.same(before, during)
        assert not states.same(before, after)


def test_looking_changes_nothing(states: States, tmp_path: Path) -> None:
    """A hot journal is rolled back in a copy; the folder stays as it is."""
    deed = killed(CREATE, "PRAGMA cache_size = 1", "BEGIN", "INSERT INTO t VALUES (1, 2, 3)")
    states.after(deed)
    folder = tmp_path / "state-1"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    states.reader.digest(states.look(folder))
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


# What else is in a database.


@pytest.mark.parametrize(
    "more",
    [
        "PRAGMA user_version = 7",
        "PRAGMA application_id = 7",
        "CREATE TABLE u (x)",
        "CREATE UNIQUE INDEX once ON t (a)",
        "CREATE TRIGGER each AFTER INSERT ON t BEGIN DELETE FROM t; END",
        "CREATE VIEW seen AS SELECT a FROM t",
        "ALTER TABLE t ADD COLUMN c",
        "ALTER TABLE t RENAME COLUMN a TO c",
    ],
)
def test_what_is_not_a_row_counts_as_well(states: States, more: str) -> None:
    """A program may keep its place in the head; an index or a trigger decides what it can do."""
    assert not states.same(states.after(sql(CREATE)), states.after(sql(CREATE, more)))


def test_several_databases_in_folders_are_all_read(states: States) -> None:
    """Each with its own log, and names that need quoting."""

    def both(value: int) -> Do:
        def do(folder: Path) -> None:
            (folder / "in").mkdir()
            odd = 'CREATE TABLE "odd "" name" (x)'
            killed("PRAGMA journal_mode = WAL", odd, name="in/one.db")(folder)
            fill = insert(f"({value})", '"odd "" name"')
            killed("PRAGMA journal_mode = WAL", odd, fill, name="other.db")(folder)

        return do

    assert states.same(states.after(both(1)), states.after(both(1)))
    assert not states.same(states.after(both(1)), states.after(both(2)))


# Masks.

T = "state/run.db"


def rows(*values: str) -> Do:
    """A table with these rows."""
    return killed("PRAGMA journal_mode = WAL", CREATE, *map(insert, values))


def test_a_masked_column_hides_its_values_and_no_others(states: States) -> None:
    """What differs in it is not seen; rows, the other columns and the other tables are."""
    one = states.after(rows("(1, 'x', 1)", "(2, 'y', 2)"))
    other = states.after(rows("(1, 'p', 1)", "(2, 'q', 2)"))
    changed = states.after(rows("(1, 'x', 1)", "(2, 'y', 3)"))
    fewer = states.after(rows("(1, 'x', 1)"))
    mask = [(T, "t", "a")]
    assert not states.same(one, other)
    assert states.same(one, other, mask)
    assert not states.same(one, changed, mask)
    assert not states.same(one, fewer, mask)
    assert not states.same(one, other, [(T, "u", "a"), ("state/other.db", "t", "a")])
    assert states.reader.differing_columns(one, other) == {(T, "t", "a")}
    assert states.reader.differing_columns(one, changed) == {(T, "t", "b")}
    assert states.reader.differing_columns(one, fewer) == set()


def test_a_mask_does_not_hide_that_a_value_is_missing(states: States) -> None:
    """A charge's id may be another one; that there is none is something else."""
    one = states.after(rows("(1, 'ch_1', 1)"))
    none = states.after(rows("(1, NULL, 1)"))
    assert not states.same(one, none, [(T, "t", "a")])


# Files that are no databases, or damaged ones.


def write(name: str, content: bytes) -> Do:
    """A file with this content."""

    def do(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return do


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\0", b"SQLite format 3\0" + b"\x10\0\1\1" * 300, b"text"]
)
def test_a_file_that_cannot_be_read_as_a_database_is_its_bytes(
    states: States, content: bytes
) -> None:
    """Empty, cut short or damaged: equal to itself, and to nothing else."""
    one, again = states.after(write("run.db", content)), states.after(write("run.db", content))
    assert states.same(one, again)
    assert not states.same(one, states.after(write("run.db", content + b"x")))
    assert not states.same(one, states.after(write("other.db", content)))
    assert not states.same(one, states.after())


def test_a_damaged_page_is_seen(states: States, tmp_path: Path) -> None:
    """A database of which one page is not what it was does not equal the whole one."""
    fill = [insert(f"({n}, zeroblob(2000), 0)") for n in range(20)]
    whole = states.after(sql(CREATE, *fill))
    states.after(sql(CREATE, *fill))
    file = tmp_path / "state-2" / "run.db"
    content = bytearray(file.read_bytes())
    content[4096 : 2 * 4096] = bytes(range(256)) * 16
    file.write_bytes(content)
    damaged = states.look(file.parent)
    assert not states.same(whole, damaged)
    assert states.same(damaged, states.look(file.parent))


def test_the_log_of_a_database_that_cannot_be_read_counts_by_its_bytes(states: States) -> None:
    """Where a module is missing that a table needs, a change that is in the log alone is seen."""

    def made(value: int) -> Do:
        def do(folder: Path) -> None:
            sql("PRAGMA journal_mode = WAL", CREATE)(folder)
            names = "PRAGMA writable_schema = ON"
            odd = (
                "INSERT INTO sqlite_master VALUES "
                "('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING not_there(x)')"
            )
            sql(names, odd)(folder)
            killed(insert(f"(1, {value}, 0)"))(folder)

        return do

    one, other = states.after(made(1)), states.after(made(2))
    assert one[T].content == other[T].content, "the change is to be in the log alone"
    assert not states.same(one, other)


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_file_that_is_only_called_like_a_log_is_a_file(states: States, suffix: str) -> None:
    """Beside an empty file or none, what ends like a log of SQLite's counts."""
    for base in (lambda folder: None, write("notes", b""), write("notes", b"text")):
        one = states.after(base, write(f"notes{suffix}", b"one"))
        other = states.after(base, write(f"notes{suffix}", b"other"))
        assert not states.same(one, other)


FILES = st.dictionaries(
    st.sampled_from(["a", "b", "in/a", "in/b", "run.db-wal"]), st.binary(max_size=4), max_size=4
)


@settings(max_examples=40)
@given(FILES, FILES)
def test_plain_files_are_equal_by_name_and_bytes(
    one: Mapping[str, bytes], other: Mapping[str, bytes]
) -> None:
    """Nothing but the same files with the same bytes is the same."""
    with tempfile.TemporaryDirectory() as folder:
        states = States(Path(folder))

        def fill(files: Mapping[str, bytes]) -> Do:
            def do(folder: Path) -> None:
                (folder / "in").mkdir()
                for name, content in files.items():
                    (folder / name).write_bytes(content)

            return do

        assert states.same(states.after(fill(one)), states.after(fill(other))) == (one == other)


def test_kinds_of_files_are_told_apart(states: States) -> None:
    """A link, a folder and a file of one name differ, and so do links that lead elsewhere."""
    made = [
        states.after(write("x", b"y")),
        states.after(lambda folder: (folder / "x").symlink_to("y")),
        states.after(lambda folder: (folder / "x").symlink_to("z")),
        states.after(lambda folder: (folder / "x").mkdir()),
        states.after(),
    ]
    assert len({states.reader.digest(tree) for tree in made}) == len(made)
