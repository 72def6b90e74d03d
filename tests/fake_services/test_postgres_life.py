"""The life of a private PostgreSQL server: found, started, stopped, and never left behind."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.hosting import Misbehaving, Patient, Restorable, ServiceSettings
from chaoskit.trial.services import create_services
from fake_services.postgres.server import find_binaries
from fake_services.postgres.service import PostgresService
from tests.fake_services.postgres_running import Notes, Running, needs_postgres

pytestmark = needs_postgres


def test_it_is_the_database_by_another_name() -> None:
    """The entry point ``postgres`` gives the service ``database``; both at once make no sense."""
    (service,) = create_services(["postgres"])
    assert service.name == "database"
    assert isinstance(service, Patient)
    assert isinstance(service, Misbehaving)
    assert not isinstance(service, Restorable)
    with pytest.raises(UsageError, match="both the service database"):
        create_services(["database", "postgres"])


def test_nothing_is_left_when_it_is_stopped(tmp_path: Path) -> None:
    """No process and no file."""
    running = Running(tmp_path / "db", "")
    server = running.service.server
    assert server is not None
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
    running.connect()
    running.stop()
    assert not [process for process in processes if process.is_running()]
    assert list((tmp_path / "db").iterdir()) == []


KILLED = """
import asyncio, sys, time
from pathlib import Path
from chaoskit.model.hosting import ServiceSettings
from fake_services.postgres.service import PostgresService
from tests.fake_services.postgres_running import Notes

async def main():
    service = PostgresService()
    await service.start(Notes(), ServiceSettings(Path(sys.argv[1])))
    print(service.server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes of others by pidfd")
def test_the_server_does_not_outlive_us(tmp_path: Path) -> None:
    """When who started it is killed, it and all its processes end."""
    words = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        server = psutil.Process(int(owner.stdout.readline()))
        server_end = os.pidfd_open(server.pid)
        ends = [server_end, *map(_end_of, server.children())]
        owner.kill()
    for end in filter(None, ends):
        assert select.select([end], [], [], 300)[0]
        os.close(end)


def _end_of(process: psutil.Process) -> int | None:
    """A descriptor that tells when it ends; None: it was that of a closed connection, and has."""
    try:
        return os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None


def test_a_missing_server_is_named_with_its_package(tmp_path: Path) -> None:
    """As is a variable that leads nowhere."""
    with pytest.raises(UsageError, match=r"CHAOSKIT_PG_BIN=.*no initdb and postgres"):
        find_binaries({"CHAOSKIT_PG_BIN": str(tmp_path)})
    for name in ("initdb", "postgres"):
        (tmp_path / name).touch()
    assert find_binaries({"CHAOSKIT_PG_BIN": str(tmp_path)}) == tmp_path


def test_tables_that_the_server_refuses_are_the_scenario_s_fault(tmp_path: Path) -> None:
    """The message is the server's, and the server is gone."""

    async def go() -> None:
        service = PostgresService()
        with pytest.raises(ScenarioError, match=r"tables cannot be created.*syntax error"):
            await service.start(Notes(), ServiceSettings(tmp_path, 0, {"tables": "CREATE TABEL a"}))
        assert service.server is None

    asyncio.run(go())
    assert list(tmp_path.iterdir()) == []
