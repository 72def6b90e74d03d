"""The supervisor's end of the launcher: start an attempt, learn of its end, kill its tree."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaoskit.model.errors import HarnessError, ScenarioError
from chaoskit.trial import process_tree

_LOAD_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 120.0
_GOODBYE_TIMEOUT_S = 120.0


class Launching:
    """A launcher process and the conversation with it; one attempt at a time.

    ``traced`` hears what the tracer says of a traced attempt; where the task is held there, it
    stays so until `go`. ``leader`` is the pid of the attempt's first process.
    """

    def __init__(self, folder: Path, traced: Callable[[dict[str, Any]], None]) -> None:
        self._traced = traced
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._control = ours
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "chaoskit.trial.launcher", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # what a terminal sends to our group must not reach it
            env=_importable(os.environ),
        )
        theirs.close()
        self._buffer = b""
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._endings: dict[int, asyncio.Future[int]] = {}
        self._statuses: dict[int, int] = {}
        self._stopping: asyncio.TimerHandle | None = None
        self._second = 0
        self._beside = self._hearing = False
        self._coming = False
        self.leader = 0
        self._leader_ended = False
        asyncio.get_running_loop().add_reader(ours, self.hear)
        self._say({"do": "hello", "path": sys.path, "folder": str(folder)})

    @property
    def pid(self) -> int:
        """The root below which every process of an attempt is found."""
        return self._process.pid

    async def enter_view(self) -> dict[str, Any]:
        """Let the launcher, and all that it starts, see the file system copy-on-write.

        Returns:
            What the launcher says of it, see there.
        """
        self._say({"do": "view"})
        return await self._answer(_ANSWER_TIMEOUT_S, "making the view of the file system")

    async def renew(self, labels: Sequence[str]) -> dict[str, str]:
        """Make overlays empty; the upper folder of each that was taken away for that, by label.

        Raises:
            HarnessError: it cannot be done.
        """
        self._say({"do": "renew", "labels": list(labels)})
        answer = await self._answer(_ANSWER_TIMEOUT_S, "emptying the view of the file system")
        if "renewed" not in answer:
            raise HarnessError(f"the view of the file system is lost: {answer['covered']}")
        return dict(answer["renewed"])

    async def cover(self, labels: Sequence[str]) -> None:
        """Put overlays back that `renew` took away.

        Raises:
            HarnessError: it cannot be done.
        """
        self._say({"do": "cover", "labels": list(labels)})
        answer = await self._answer(_ANSWER_TIMEOUT_S, "mounting the view of the file system")
        if answer["covered"]:
            raise HarnessError(f"the view of the file system is lost: {answer['covered']}")

    async def load(self, file: Path, name: str) -> None:
        """Preload a Python task: the scenario ``name`` in ``file``.

        Raises:
            ScenarioError: the file cannot be imported, or has no such task.
        """
        self._say({"do": "load", "file": str(file), "name": name})
        answer = await self._answer(_LOAD_TIMEOUT_S, f"importing {file}")
        if answer["loaded"]:
            raise ScenarioError(f"{file} cannot be imported:\n{answer['loaded']}")

    async def start(  # noqa: PLR0913 - all that one life of the task depends on
        self,
        argv: Sequence[str] | None,
        env: Mapping[str, str],
        cwd: str,
        output: int,
        trace: Mapping[str, object] | None = None,
        *,
        change: str = "",
        runners: int = 1,
        beside: bool = False,
        shift_ns: int = 0,
    ) -> tuple[asyncio.Future[int] | None, str]:
        """Start the preloaded task (``argv`` None) or a command, traced where ``trace`` says how.

        Args:
            argv: the command; None for the preloaded task.
            env: its whole environment.
            cwd: its working directory.
            output: the descriptor for what it writes.
            trace: how it is traced; None: not at all.
            change: the name of the scenario's change whose task it is; empty for the scenario's.
            runners: so many processes, let go at the same moment.
            beside: the one before is still there; of this one no points are traced.
            shift_ns: by how much its clock is ahead of the machine's.

        Returns:
            A future of the wait status, or None with the reason why it could not be started.
        """
        message = {
            "do": "start",
            "argv": list(argv) if argv is not None else None,
            "env": dict(env),
            "cwd": cwd,
            "trace": trace,
            "change": change,
            "runners": runners,
            "beside": beside,
            "shift_ns": shift_ns,
        }
        self._beside, self._coming = beside, not beside
        self._say(message, output)
        answer = await self._answer(_ANSWER_TIMEOUT_S, "starting the task")
        if "failed" in answer:
            self._statuses.clear()
            return None, str(answer["failed"])
        pid = int(answer["started"])
        ending = asyncio.get_running_loop().create_future()
        if pid in self._statuses:
            ending.set_result(self._statuses.pop(pid))
        else:
            self._endings[pid] = ending
        return ending, ""

    def go(self) -> None:
        """Let a traced task go on from where it is held."""
        self._say({"do": "go"})

    def kill_leader(self) -> None:
        """SIGKILL the first process of the attempt alone; it is dead when this returns."""
        process_tree.kill_alone(self.leader)

    def ask_to_stop(self, number: int, grace_s: float) -> None:
        """Send the first process of the attempt a signal; kill what is left after ``grace_s``."""
        with suppress(ProcessLookupError):
            os.kill(self.leader, number)
        loop = asyncio.get_running_loop()
        self._stopping = loop.call_later(grace_s, self.kill)

    def stop_no_more(self) -> None:
        """The attempt is over: nothing is left to be killed later."""
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None

    def kill_beside(self) -> None:
        """SIGKILL the second runner, with all below it."""
        process_tree.kill(self._second)
        with suppress(ProcessLookupError):
            os.kill(self._second, signal.SIGKILL)

    @property
    def leader_lives(self) -> bool:
        """Whether the first process of the attempt has not ended yet."""
        self.hear()
        return not self._leader_ended

    @property
    def alive(self) -> bool:
        """Whether any process of the attempt is there."""
        return bool(process_tree.descendants(self.pid))

    def freeze(self) -> None:
        """Hold every process of the attempt still."""
        process_tree.freeze(self.pid)

    def thaw(self) -> None:
        """Let every process of the attempt go on."""
        process_tree.thaw(self.pid)

    def kill(self) -> None:
        """SIGKILL every process of the attempt; they are dead when this returns."""
        process_tree.kill(self.pid)

    async def leftovers(self, grace_s: float) -> list[str]:
        """Processes that outlive the task by more than ``grace_s``; by their command lines.

        The services go on answering meanwhile: a child may be about to end, waiting for one.
        """
        return await asyncio.to_thread(process_tree.await_end, self.pid, grace_s)

    def close(self) -> None:
        """Kill what is left and end the launcher; it removes the work folder."""
        with suppress(ValueError):
            asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        try:
            self._process.wait(_GOODBYE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _say(self, message: dict[str, Any], *descriptors: int) -> None:
        data = json.dumps(message).encode() + b"\n"
        self._control.setblocking(True)
        try:
            if descriptors:
                sent = socket.send_fds(self._control, [data], list(descriptors))
                data = data[sent:]
            self._control.sendall(data)
        except OSError as gone:
            raise HarnessError("the launcher process has gone") from gone
        finally:
            self._control.setblocking(False)

    def hear(self) -> None:
        """Take in all that the launcher has said so far, in its order."""
        if self._hearing:  # what one message brought about asks for the next ones
            return
        self._hearing = True
        try:
            while self._hear_some():
                pass
        finally:
            self._hearing = False

    def _hear_some(self) -> bool:
        """Take in a piece of it; whether there may be more."""
        try:
            data = self._control.recv(1 << 16)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._control)
            self._answers.put_nowait({"lost": True})
            for ending in self._endings.values():
                if not ending.done():
                    ending.set_exception(HarnessError("the launcher process has gone"))
            return False
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take_in(json.loads(line))
        return True

    def _take_in(self, message: dict[str, Any]) -> None:
        if message.keys() & {"call", "noted", "mapped"}:
            if not self._coming:  # else it is of the attempt before, whose processes are dead
                self._traced(message)
        elif "born" in message:
            self._born(int(message["born"]))
        elif "ended" in message:
            self._over(int(message["ended"]), int(message["status"]))
        else:
            self._answers.put_nowait(message)

    def _born(self, pid: int) -> None:
        """It has done nothing yet: whatever it does, we know which process it is."""
        self._coming = False
        self._statuses.pop(pid, None)  # of one before it that had this pid
        if self._beside:
            self._second = pid
        else:
            self.leader, self._leader_ended = pid, False

    def _over(self, pid: int, status: int) -> None:
        self._leader_ended |= pid == self.leader
        ending = self._endings.pop(pid, None)
        if ending is None:
            self._statuses[pid] = status  # its start is still to be heard of
        elif not ending.done():
            ending.set_result(status)

    async def _answer(self, timeout_s: float, doing: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._answers.get()
        except TimeoutError:
            if self._answers.empty():
                raise HarnessError(f"{doing} took longer than {timeout_s:.0f} s") from None
            answer = self._answers.get_nowait()  # it came while this process stood still
        if "lost" in answer:
            raise HarnessError(f"the launcher process ended while {doing}")
        return answer


def _importable(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with our own import path, so that the launcher finds chaoskit."""
    home = str(Path(__file__).resolve().parents[2])
    path = [home, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environment, "PYTHONPATH": os.pathsep.join(path)}
