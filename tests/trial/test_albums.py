"""An album as bytes: another worker goes on from it as the one that recorded it would."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.explore.plan import sweep
from chaoskit.model.schedule import Schedule, kill
from chaoskit.trace.abi import this_abi
from chaoskit.trial import albums
from chaoskit.trial.snapshots import Album
from chaoskit.trial.supervisor import Supervisor
from tests.trial.test_snapshots_of_calls import CHARGES, plain
from tests.trial.traced import scenario, with_supervisor

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)


def recorded(folder: Path, name: str) -> tuple[bytes, Album, dict[str, dict[int, list[str]]]]:
    """An album as bytes, as it was, and what its own worker sees when it goes on from it."""
    data: list[bytes | None] = []
    album: Album = {}
    seen: dict[str, dict[int, list[str]]] = {}

    async def then(supervisor: Supervisor) -> None:
        points, _ = sweep(*await supervisor.survey(), ("calls", "windows"))
        album.update(await supervisor.record([kill(point) for point in points]))
        assert supervisor.recorded is not None
        data.append(albums.written(album, supervisor.recorded, None, supervisor.world.contents))
        for fault, snapshot in list(album.items())[::3]:
            history = await supervisor.resume(snapshot, Schedule(((fault,),)))
            seen[str(fault)] = plain(history)

    with_supervisor(scenario(folder, CHARGES, name), then)
    assert data[0] is not None
    return data[0], album, seen


@pytest.mark.parametrize("name", ["in_files", "in_a_table"])
def test_another_worker_sees_the_same_from_the_same_worlds(tmp_path: Path, name: str) -> None:
    """Every snapshot has its world, its files and its events; resumes show the same history."""
    data, album, seen = recorded(tmp_path, name)

    async def then(supervisor: Supervisor) -> None:
        read = albums.read(data, None, supervisor.world.contents)
        assert list(read) == list(album)
        for fault, snapshot in read.items():
            assert snapshot.world == album[fault].world
            assert dict(snapshot.tree) == dict(album[fault].tree)
            assert snapshot.events == album[fault].events
            assert next(snapshot.numbers) == next(album[fault].numbers)
        again = albums.read(data, None, supervisor.world.contents)
        for fault, snapshot in list(again.items())[::3]:
            history = await supervisor.resume(snapshot, Schedule(((fault,),)))
            assert plain(history) == seen[str(fault)], str(fault)

    with_supervisor(scenario(tmp_path, CHARGES, name), then)


def test_what_is_too_large_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More contents than the bound: each worker looks for itself."""
    monkeypatch.setattr(albums, "BYTES_MAX", 100)

    async def then(supervisor: Supervisor) -> None:
        points, _ = sweep(*await supervisor.survey(), ("calls",))
        album = await supervisor.record([kill(point) for point in points])
        assert supervisor.recorded is not None
        contents = supervisor.world.contents
        assert albums.written(album, supervisor.recorded, None, contents) is None

    with_supervisor(scenario(tmp_path, CHARGES, "in_files"), then)
