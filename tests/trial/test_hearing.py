"""The order of what a launcher and a task say, where hearing one thing asks for the next."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaoskit.trial.launching import Launching
from chaoskit.trial.reports import Message, Reports


class PlayedLauncher:
    """Stands for the process: the test speaks in its place."""

    pid = 1

    def __init__(self, words: Sequence[str], pass_fds: Sequence[int], **_: object) -> None:
        PlayedLauncher.end = socket.socket(fileno=os.dup(pass_fds[0]))

    end: socket.socket

    @classmethod
    def say(cls, *messages: dict[str, object]) -> None:
        """All of it in one piece."""
        cls.end.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def wait(self, timeout_s: float) -> int:
        """It has ended."""
        return 0


@pytest.fixture
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started: the test holds the launcher's end of the line."""
    monkeypatch.setattr("subprocess.Popen", PlayedLauncher)


@pytest.mark.usefixtures("_played")
def test_calls_are_heard_in_their_order_when_one_of_them_asks_for_more(tmp_path: Path) -> None:
    """A call at which a fault lands has all that was said taken in, in the order of the calls."""

    async def hear() -> list[int]:
        told: list[int] = []

        def traced(message: dict[str, Any]) -> None:
            told.append(message["call"])
            if message["call"] == 1:
                PlayedLauncher.say({"call": 3})
                launching.hear()

        launching = Launching(tmp_path, traced)
        PlayedLauncher.say({"call": 1}, {"call": 2})
        launching.hear()
        launching.close()
        return told

    assert asyncio.run(hear()) == [1, 2, 3]


@pytest.mark.usefixtures("_played")
def test_calls_of_a_dead_attempt_are_not_taken_for_those_of_the_next(tmp_path: Path) -> None:
    """What the launcher says before the next task is born is of the one before; so is the end of a
    process that had the same pid.
    """

    async def hear() -> tuple[list[str], int, bool]:
        told: list[str] = []
        launching = Launching(tmp_path, lambda message: told.append(message["call"]))
        PlayedLauncher.say({"call": "late"}, {"ended": 7, "status": 9})
        starting = asyncio.create_task(launching.start(["true"], {}, str(tmp_path), 0))
        await asyncio.sleep(0)
        PlayedLauncher.say({"call": "later"}, {"born": 7}, {"call": "its own"}, {"started": 7})
        ending, _ = await starting
        assert ending is not None
        over = ending.done()
        launching.close()
        return told, launching.leader, over

    assert asyncio.run(hear()) == (["its own"], 7, False)


@pytest.mark.usefixtures("_played")
def test_an_answer_that_came_during_a_pause_of_this_process_counts(tmp_path: Path) -> None:
    """Who stood still for longer than the launcher may take finds its answer, and no error."""

    async def hear() -> bool:
        loop = asyncio.get_running_loop()
        launching = Launching(tmp_path, lambda _: None)
        starting = asyncio.create_task(launching.start(["true"], {}, str(tmp_path), 0))
        await asyncio.sleep(0)
        PlayedLauncher.say({"born": 7}, {"started": 7})
        told = loop.time
        setattr(loop, "time", lambda: told() + 3600)  # noqa: B010 - a method, in mypy's eyes
        ending, _ = await starting
        launching.close()
        return ending is not None

    assert asyncio.run(hear())


def test_reports_are_heard_in_their_order_when_one_of_them_asks_for_more(tmp_path: Path) -> None:
    """A crossing at which a fault lands has all that was said taken in, in the sender's order."""

    async def hear() -> list[str]:
        heard: list[str] = []

        def hear_one(message: Message) -> bool:
            heard.append(message.point)
            if message.point == "a":
                task.sendall(b'{"point": "c"}\n')
                reports.drain()
                heard.append("all")
            return False

        reports = Reports(tmp_path / "probe", hear_one)
        with socket.socket(socket.AF_UNIX) as task:
            task.connect(str(tmp_path / "probe"))
            task.sendall(b'{"point": "a"}\n{"point": "b"}\n')
            reports.drain()
        reports.close()
        return heard

    assert asyncio.run(hear()) == ["a", "b", "c", "all"]
