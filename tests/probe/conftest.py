"""Python tasks in processes of their own, which stop where a test looks at them."""

from __future__ import annotations

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from chaoskit.probe import where

LIBRARY = """
    import os, sys, threading

    def stop():
        os.write(1, b"%d\\n" % threading.get_native_id())  # the test looks from here on
        assert os.read(0, 1)                                # until it says so

    def call_and_stop(function, *arguments):
        function(*arguments)
        stop()

    def traced():
        return sys._getframe().f_trace is not None

    def act(*_):
        return ()

    class Kept(dict):
        __setitem__ = __delitem__ = act

    class Manager:
        __enter__ = __exit__ = act

    class Later:
        def __await__(self):
            yield
"""
"""What is not own code: it lies in a folder named site-packages."""


class Task:
    """One Python process: own code in ``task.py``, and a library it may import."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.where = folder / "where"
        self.process = process

    def stopped(self) -> int:
        """Wait until a thread stands in the library's ``stop``; its id."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the task ended: " + self.ended()[1]
        return int(line)

    def at(self, tid: int) -> tuple[int, str] | None:
        """The line and the function that a thread shows, in ``task.py``."""
        found = where.read(str(self.where), tid)
        assert found is None or found.file == str(self.folder / "task.py")
        return found and (found.line, found.function)

    def go(self) -> None:
        """Let one thread that stands in ``stop`` go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(b".")
        self.process.stdin.flush()

    def stop_by_stop(self, count: int) -> list[tuple[int, str] | None]:
        """What is shown at each of the next ``count`` stops; the process has then ended well."""
        shown = []
        for _ in range(count):
            shown.append(self.at(self.stopped()))
            self.go()
        assert self.ended() == (0, "")
        return shown

    def ended(self) -> tuple[int, str]:
        """Wait for the end; the exit code and what was written to stderr."""
        _, errors = self.process.communicate(timeout=500)
        return self.process.returncode, errors.decode()


class Begin(Protocol):
    """Starts a task."""

    def __call__(
        self,
        source: str,
        *options: str,
        python: str = sys.executable,
        env: Mapping[str, str] | None = None,
    ) -> Task:
        """Run ``source`` with these options of the interpreter and these variables."""


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts tasks whose environment has what a trial would put there; they end with the test."""
    installed = tmp_path / "site-packages"
    begun = []

    def start(
        source: str,
        *options: str,
        python: str = sys.executable,
        env: Mapping[str, str] | None = None,
    ) -> Task:
        installed.mkdir(exist_ok=True)
        (installed / "library.py").write_text(textwrap.dedent(LIBRARY), encoding="utf-8")
        (tmp_path / "task.py").write_text(textwrap.dedent(source), encoding="utf-8")
        (tmp_path / "where").mkdir(exist_ok=True)
        path = os.pathsep.join([where.site_folder(), str(installed)])
        standard = {"PYTHONPATH": path, "CHAOSKIT_WHERE": str(tmp_path / "where")}
        inherited = {"PATH": os.environ["PATH"]}
        process = subprocess.Popen(
            [python, *options, str(tmp_path / "task.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**inherited, **standard, **(env or {})},
            cwd=tmp_path,
        )
        task = Task(tmp_path, process)
        begun.append(process)
        return task

    yield start
    for process in begun:
        process.kill()
        process.communicate()


class Supervisor:
    """The other end of the probe: hears every message, and answers a crossing that is waited at."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.heard: list[str] = []
        self.connections = 0
        self._waits: dict[str, Callable[[], None]] = {}
        self._readers: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def wait_at(self, name: str, then: Callable[[], None]) -> None:
        """At each crossing ``name`` call ``then`` while the task waits."""
        self._waits[name] = then

    def env(self, **more: str) -> dict[str, str]:
        """The variables of a task that this supervisor listens to."""
        waits = ",".join(self._waits)
        return {"CHAOSKIT_PROBE": self.path, "CHAOSKIT_PROBE_WAIT": waits, **more}

    def all(self) -> list[str]:
        """Every crossing, in the order heard, once the task has ended."""
        self.close()
        return self.heard

    def close(self) -> None:
        """Hear what is left."""
        if self._listener.fileno() == -1:
            return
        with socket.socket(socket.AF_UNIX) as last:
            last.bind(self.path + ".end")
            last.connect(self.path)
            self._accepting.join()
        for reader in self._readers:
            reader.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            connection, address = self._listener.accept()
            if address:  # our own, behind all the others
                connection.close()
                return
            self.connections += 1
            reader = threading.Thread(target=self._read, args=(connection,))
            reader.start()
            self._readers.append(reader)

    def _read(self, connection: socket.socket) -> None:
        # A task may end in the middle of anything.
        with connection, connection.makefile("rb") as lines, suppress(ConnectionError):
            for line in lines:
                name = json.loads(line).get("point", "")
                self.heard.append(name)
                if name in self._waits:
                    self._waits[name]()
                    connection.sendall(b"go\n")


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    """What listens on the probe's socket."""
    listening = Supervisor(tmp_path / "probe")
    yield listening
    listening.close()


@pytest.fixture(scope="session")
def pythons() -> dict[tuple[int, ...], str]:
    """Each other Python that this machine has, by its version."""
    found: dict[tuple[int, ...], str] = {}
    names = [f"python{version}" for version in ("2.7", *(f"3.{n}" for n in range(5, 20)))]
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    paths = [path for name in names if (path := shutil.which(name)) is not None]
    for path in [*paths, *glob.glob(f"{root}/versions/*/bin/python")]:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-E", "-c", code], capture_output=True, text=True)
        if done.returncode == 0:
            found.setdefault(tuple(map(int, done.stdout.split("."))), path)
    found.pop(sys.version_info[:2], None)
    return found
