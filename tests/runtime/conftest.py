"""What the tests of the runtime share: a place for a store, and an ear for what a trial hears.

The tests of the modules in `BOTH` are held by either kind of store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from chaoskit import probe
from tests.fake_services.postgres_running import needs_postgres
from tests.runtime.servers import OwnServer

BOTH = {
    "test_runtime_async",
    "test_runtime_control",
    "test_runtime_opening",
    "test_runtime_owner",
    "test_runtime_phases",
    "test_runtime_pins",
    "test_runtime_policy",
    "test_runtime_positions",
    "test_runtime_run",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a store is one test for each kind of it, where it is for both."""
    if "store" in metafunc.fixturenames and metafunc.module.__name__.split(".")[-1] in BOTH:
        kinds = ["sqlite", pytest.param("postgres", marks=needs_postgres)]
        metafunc.parametrize("store", kinds, indirect=True)


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """A PostgreSQL server."""
    server = OwnServer(tmp_path_factory.mktemp("pg"))
    yield server
    server.stop()


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where a store may be made: a path, or a URL."""
    if getattr(request, "param", "sqlite") == "postgres":
        return cast("Path", request.getfixturevalue("databases").empty())
    return tmp_path / "run.db"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Everything that the runtime tells a trial from here on, in order."""
    heard: list[tuple[str, ...]] = []
    monkeypatch.setattr(probe, "point", lambda name: heard.append(("point", name)))
    monkeypatch.setattr(probe, "step", lambda name, phase: heard.append((phase, name)))
    monkeypatch.setattr(probe, "refused", lambda reason: heard.append(("refused", reason)))
    monkeypatch.setattr(
        probe, "unknown_outcome", lambda step, reason: heard.append(("unknown", step, reason))
    )
    return heard
