"""The link to the newest run, and what is said where it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.store import LATEST, find_run, open_campaign
from chaoskit.model.errors import UsageError


def test_a_run_that_is_discarded_gives_the_link_back(tmp_path: Path) -> None:
    """The newest of the others is the latest again; of none there is no latest."""
    first, _ = open_campaign(tmp_path, "a", "1111", fresh=True)
    first.close()
    second, _ = open_campaign(tmp_path, "b", "2222", fresh=True)
    assert find_run(tmp_path, LATEST) == second.folder.resolve()
    second.discard()
    assert find_run(tmp_path, LATEST) == first.folder.resolve()
    alone, _ = open_campaign(tmp_path / "other", "a", "1111", fresh=True)
    alone.discard()
    assert not (tmp_path / "other" / LATEST).is_symlink()


def test_latest_is_not_suggested_where_it_is_missing(tmp_path: Path) -> None:
    """The names that are given are those of runs that are there."""
    store, _ = open_campaign(tmp_path, "a", "1111", fresh=True)
    store.close()
    with pytest.raises(UsageError, match=r"nearest: latest$"):
        find_run(tmp_path, "latets")
    (tmp_path / LATEST).unlink()
    with pytest.raises(UsageError, match="unknown run 'latest'; nearest: ") as refused:
        find_run(tmp_path, LATEST)
    assert str(refused.value).endswith(f"nearest: {store.folder.name}")
