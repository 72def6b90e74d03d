"""The runs of a folder: the link to the newest one, and how they keep out of each other's way."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chaoskit.campaign import store
from chaoskit.campaign.folder import LATEST, discard, find_run, open_campaign
from chaoskit.campaign.store import Store
from chaoskit.model.errors import FormatError, UsageError


def test_a_run_that_is_discarded_gives_the_link_back(tmp_path: Path) -> None:
    """The newest of the others is the latest again; of none there is no latest."""
    first, _ = open_campaign(tmp_path, "a", "1111", fresh=True)
    first.close()
    second, _ = open_campaign(tmp_path, "b", "2222", fresh=True)
    assert find_run(tmp_path, LATEST) == second.folder.resolve()
    discard(second)
    assert find_run(tmp_path, LATEST) == first.folder.resolve()
    alone, _ = open_campaign(tmp_path / "other", "a", "1111", fresh=True)
    discard(alone)
    assert not (tmp_path / "other" / LATEST).is_symlink()


def test_latest_is_not_suggested_where_it_is_missing(tmp_path: Path) -> None:
    """The names that are given are those of runs that are there."""
    made, _ = open_campaign(tmp_path, "a", "1111", fresh=True)
    made.close()
    with pytest.raises(UsageError, match=r"nearest: latest$"):
        find_run(tmp_path, "latets")
    (tmp_path / LATEST).unlink()
    with pytest.raises(UsageError, match="unknown run 'latest'; nearest: ") as refused:
        find_run(tmp_path, LATEST)
    assert str(refused.value).endswith(f"nearest: {made.folder.name}")


def test_who_looks_for_its_own_campaign_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of another unfinished campaign is not taken, not even for a moment: it would not be
    gone on with by those who want it just then.
    """
    other, _ = open_campaign(tmp_path, "a", "1111", fresh=True)
    other.close()
    mine, _ = open_campaign(tmp_path, "b", "2222", fresh=True)
    mine.close()
    locked: list[Path] = []
    lock = store._lock

    def locking(folder: Path) -> int:
        locked.append(folder)
        return lock(folder)

    monkeypatch.setattr(store, "_lock", locking)
    again, resumed = open_campaign(tmp_path, "b", "2222", fresh=False)
    again.close()
    assert resumed
    fresh, resumed = open_campaign(tmp_path, "c", "3333", fresh=False)
    fresh.close()
    assert not resumed
    assert locked == [mine.folder, fresh.folder]


def test_a_campaign_has_its_name_once_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads runs meets none that is half made, and makes none: what has no tables is
    refused, and stays as it is.
    """
    met: list[bool] = []
    rename = Path.replace

    def looking(fresh: Path, file: Path) -> Path:
        if file.name == store.FILE:
            met.append((file.parent / store.FILE).exists())
        return rename(fresh, file)

    monkeypatch.setattr(Path, "replace", looking)
    made, _ = open_campaign(tmp_path, "a", "1111", fresh=True)
    assert met == [False]
    with Store(made.folder) as reader:
        assert reader.get("format") == store.FORMAT
    made.close()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / store.FILE).touch()
    with pytest.raises(FormatError, match="is damaged"):
        Store(tmp_path / "half")
    assert (tmp_path / "half" / store.FILE).read_bytes() == b""


def test_a_campaign_that_is_locked_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program that holds the file for itself is named as the reason, and the file stays."""
    monkeypatch.setattr(store, "_BUSY_TIMEOUT_S", 0.0)
    made, _ = open_campaign(tmp_path, "a", "1111", fresh=True)
    made.close()
    with closing(sqlite3.connect(made.folder / store.FILE)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UsageError, match="another program has locked it") as refused:
            Store(made.folder)
        assert not isinstance(refused.value, FormatError)
    with Store(made.folder) as again:
        assert again.get("identity") == "1111"
