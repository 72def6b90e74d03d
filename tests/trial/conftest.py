"""Running single trials of small tasks that the test itself writes."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor

RunTask = Callable[..., list[History]]


@pytest.fixture
def run_task(tmp_path: Path) -> RunTask:
    """Run a scenario file's source (or a `CommandSpec`) once for each schedule."""

    def run(
        what: str | CommandSpec, schedules: Sequence[str], timeout_s: float = 300.0
    ) -> list[History]:
        if isinstance(what, str):
            file = tmp_path / f"scenario_{abs(hash(what))}.py"
            file.write_text(textwrap.dedent(what), encoding="utf-8")
            target = Target(scenario=str(file))
        else:
            target = Target(command=what)
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        histories = asyncio.run(_run(target, schedules, timeout_s, work))
        assert not list(work.iterdir()), "a work folder was left behind"
        return histories

    return run


async def _run(
    target: Target, schedules: Sequence[str], timeout_s: float, work: Path
) -> list[History]:
    async with Supervisor(load(target), seed=0, work_root=work) as supervisor:
        supervisor.conduct = replace(supervisor.conduct, timeout_s=timeout_s)
        return [await supervisor.run(parse_schedule(text)) for text in schedules]
