"""An older copy of the store, a store that has gone, and a store that cannot be used just now."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.runtime import (
    Effect,
    OlderStore,
    Run,
    StoreUnavailable,
    mark,
    open_run,
    operating,
)
from chaoskit.runtime.mark import Lag, Mark, lag, parse_mark, read

Told = list[tuple[str, ...]]
TEXT = st.text(alphabet="0123456789abcdef-", min_size=1, max_size=36)
MARKS = st.builds(
    Mark,
    uid=st.text(alphabet="0123456789abcdef", min_size=32, max_size=32),
    boot=st.just("") | st.uuids().map(str),
    durability=st.sampled_from(["full", "normal"]),
    serial=st.integers(0, 10**18),
)


def never(effect: Effect) -> object:
    """A call that must not be made."""
    raise AssertionError(f"{effect.step} was called again")


def steps(store: Path, *names: str) -> None:
    """Take these steps in one attempt."""
    with open_run(store, inputs=None) as run:
        for name in names:
            run.step(name, lambda _: 1, keyed=True)


@given(MARKS)
def test_a_mark_survives_its_bytes(written: Mark) -> None:
    """A mark is always as long, and reads back as it was."""
    assert len(written.data()) == mark.LENGTH
    assert parse_mark(written.data()) == written


@given(MARKS, st.integers(0, mark.LENGTH - 1), st.integers(1, 255))
def test_a_damaged_mark_is_no_mark(written: Mark, at: int, flip: int) -> None:
    """No byte can be changed unnoticed, but for the blanks at the end."""
    data = bytearray(written.data())
    data[at] ^= flip
    assert parse_mark(bytes(data)) in {None, written}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (None, Lag.NONE),
        (Mark("u", "b", "full", 10), Lag.NONE),
        (Mark("u", "b", "full", 9), Lag.NONE),
        (Mark("u", "b", "full", 11), Lag.OLDER),
        (Mark("u", "old boot", "full", 11), Lag.OLDER),
        (Mark("u", "b", "normal", 11), Lag.OLDER),
        (Mark("u", "old boot", "normal", 11), Lag.POWER),
        (Mark("other", "b", "full", 1), Lag.OTHER),
    ],
)
def test_a_store_may_only_be_behind_where_power_loss_may_put_it(
    written: Mark | None, found: Lag
) -> None:
    """With durability normal a reboot may take records; nothing else may."""
    assert lag(written, "u", 10, "b") is found


@settings(deadline=None, max_examples=20)
@given(kinds=st.lists(st.booleans(), max_size=8))
def test_the_mark_is_never_ahead(
    kinds: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After each write, of whichever process, the mark holds a serial that the store holds too."""
    store = tmp_path_factory.mktemp("mark") / "run.db"

    def check() -> None:
        written = read(store)
        assert written is not None
        with closing(sqlite3.connect(store)) as connection:
            ((latest,),) = connection.execute(
                "SELECT max(serial) FROM (SELECT serial FROM runs UNION SELECT serial FROM steps)"
            )
        assert written.serial == latest

    with open_run(store, inputs=None, durability="normal") as run:
        for index, outside in enumerate(kinds):
            if outside:
                operating.cancel(store, "default", "a while")
                check()
                operating.uncancel(store, "default")
            run.step(f"s/{index}", lambda _: 1)
            check()
        run.finish()
        check()


def test_an_older_copy_is_refused(store: Path, told: Told) -> None:
    """A copy from before the latest records is noticed before anything is done again."""
    steps(store, "a")
    copy = store.with_name("copy.db")
    shutil.copy(store, copy)
    steps(store, "a", "b")
    latest = store.read_bytes()
    shutil.copy(copy, store)
    for path in store.parent.glob("run.db-[ws]*"):
        path.unlink()
    with pytest.raises(
        OlderStore, match=r"is an older copy: run\.db-mark knows of later"
    ) as caught:
        open_run(store, inputs=None)
    assert told[-1] == ("refused", str(caught.value))
    store.write_bytes(latest)
    with open_run(store, inputs=None) as run:
        assert run.step("a", never) == run.step("b", never) == 1


def test_a_person_may_keep_the_older_copy(store: Path) -> None:
    """The message says how: without the mark the store is taken as it is."""
    steps(store, "a")
    old = store.read_bytes()
    steps(store, "a", "b")
    store.write_bytes(old)
    with pytest.raises(OlderStore, match=r"remove run\.db-mark and resume"):
        open_run(store, inputs=None)
    mark.mark_of(store).unlink()
    with open_run(store, inputs=None) as run:
        assert run.step("a", never) == 1


def test_a_log_that_was_thrown_away_is_noticed(store: Path) -> None:
    """Whoever removes the write-ahead log of a killed task removes records."""
    run = open_run(store, inputs=None)
    run.step("a", lambda _: 1)
    killed = store.with_name("killed.db")
    shutil.copy(store, killed)
    shutil.copy(mark.mark_of(store), mark.mark_of(killed))
    run.close()
    with pytest.raises(OlderStore, match="older copy"):
        open_run(killed, inputs=None)


def test_a_store_that_has_gone_is_not_made_anew(store: Path, told: Told) -> None:
    """Where a mark is there was a store: to start over is a person's decision."""
    steps(store, "a")
    store.unlink()
    with pytest.raises(OlderStore, match=r"has gone, while its mark run\.db-mark is still there"):
        open_run(store, inputs=None)
    assert told[-1][0] == "refused"
    assert not store.exists()
    mark.mark_of(store).unlink()
    steps(store, "a")


def test_a_store_that_is_being_made_has_not_gone(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sees that there is none, just before another one makes it and its mark, opens that."""
    exists = Path.exists

    def meanwhile(path: Path) -> bool:
        found = exists(path)
        if path == store and not found:
            monkeypatch.setattr(Path, "exists", exists)
            steps(store, "a")
        return found

    monkeypatch.setattr(Path, "exists", meanwhile)
    with open_run(store, inputs=None) as run:
        assert run.step("a", never) == 1


def test_another_store_in_its_place_is_refused(store: Path) -> None:
    """A store that was swapped for another one is not that run."""
    steps(store, "a")
    other = store.with_name("other.db")
    steps(other, "x")
    shutil.copy(other, store)
    with pytest.raises(OlderStore, match="it was replaced"):
        open_run(store, inputs=None)


@pytest.mark.parametrize("left", [b"", b"\0" * mark.LENGTH, b"chaoskit-mark torn", None])
def test_a_torn_mark_is_written_anew(store: Path, left: bytes | None) -> None:
    """What a loss of power makes of a mark that was never synced keeps nobody from resuming."""
    steps(store, "a")
    path = mark.mark_of(store)
    path.unlink() if left is None else path.write_bytes(left)
    with open_run(store, inputs=None) as run:
        assert run.step("a", never) == 1
    assert read(store) is not None


def test_a_mark_that_cannot_be_written_stops_nothing(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind is legal: a run goes on without its mark, and the store is as good as ever."""

    def fail(*_: object) -> int:
        raise OSError

    with open_run(store, inputs=None) as run:
        before = mark.mark_of(store).read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", fail)
            run.step("a", lambda _: 1)
        assert mark.mark_of(store).read_bytes() == before
    with open_run(store, inputs=None) as run:
        assert run.step("a", never) == 1


@contextmanager
def full_disk(path: Path, room: int) -> Iterator[None]:
    """No file of this process may grow past what the store's log has now, plus ``room`` bytes.

    The kernel answers as on a full disk (the write fails), without a disk to fill.
    """
    log = path.with_name(path.name + "-wal")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_loses_nothing_and_the_run_goes_on(store: Path, told: Told) -> None:
    """A completion that found no room is kept, and written when the step is taken again."""
    calls: list[str] = []

    def pay(effect: Effect) -> str:
        calls.append(effect.key)
        return "paid"

    with open_run(store, inputs=None) as run:
        run.step("first", lambda _: 1)

        def pay_as_the_disk_fills(effect: Effect) -> str:
            limit.__enter__()
            return pay(effect)

        limit = full_disk(store, 0)
        try:
            with pytest.raises(StoreUnavailable, match="cannot be used: the disk") as caught:
                run.step("pay", pay_as_the_disk_fills)
        finally:
            limit.__exit__(None, None, None)
        assert "Nothing that was recorded is lost" in str(caught.value)
        assert run.step("pay", pay) == "paid"
        assert run.step("next", lambda _: 2) == 2
    assert len(calls) == 1
    assert not [said for said in told if said[0] == "refused"]
    with open_run(store, inputs=None) as run:
        assert [run.step(n, never) for n in ("first", "pay", "next")] == [1, "paid", 2]


def test_a_full_disk_before_the_intent_calls_nothing(store: Path, told: Told) -> None:
    """Without room for the intent there is no effect, and the error names the fix."""
    with pytest.raises(StoreUnavailable), open_run(store, inputs=None) as run, full_disk(store, 0):
        run.step("pay", never)
    assert told[-1][0] == "refused"


def _locked(run: Run, store: Path) -> None:
    connection = run._books._connection  # type: ignore[attr-defined]
    connection.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="another program holds it locked"):
            run.step("pay", never)
        other.execute("ROLLBACK")


def test_a_locked_store_is_an_error_that_names_the_fix(store: Path) -> None:
    """While somebody holds the file nothing is done; afterwards the same run goes on."""
    with open_run(store, inputs=None) as run:
        _locked(run, store)
        assert run.step("pay", lambda _: 1) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user to drop its rights to")
def test_a_store_without_rights_is_an_error_that_names_the_fix(store: Path) -> None:
    """A user who may not write the store is told so, and nothing is called."""
    steps(store, "a")
    store.chmod(0o444)
    for folder in (store.parent, *store.parents[:4]):
        if "pytest" in str(folder):
            folder.chmod(0o755)
    os.seteuid(65534)
    try:
        with pytest.raises(StoreUnavailable, match="give this user the right"):
            open_run(store, inputs=None)
    finally:
        os.seteuid(0)
    steps(store, "a")
