"""A private PostgreSQL server: made in a folder, started, and gone when we are.

It listens on a Unix socket in its folder only; `fake_services.postgres.proxy` is how others reach
it. It never waits for a disk (``fsync`` is off): a killed task loses nothing by that, since the
server goes on running, and power loss is not tried on it. PostgreSQL refuses to run as root, so
for root it runs as ``postgres`` or ``nobody``. Where there is /proc it is told its folder by a
descriptor, so that neither closed folders above nor the length of a path stand in its way.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from chaoskit.model.errors import UsageError

USER = "task"
"""The role that owns everything; it needs no password. It is not called as the schema of the books:
PostgreSQL would look for tables there first (its setting ``search_path``)."""

BINARIES_VARIABLE = "CHAOSKIT_PG_BIN"

_READY = b"ready to accept connections"
_PORT = 5432
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_OTHERS = ("postgres", "nobody")
_LINES_KEPT = 20
_STOP_TIMEOUT_S = 10.0

_SETTINGS = {
    "autovacuum": "off",
    "dynamic_shared_memory_type": "mmap",  # in its own folder: nothing is left elsewhere
    "fsync": "off",
    "full_page_writes": "off",
    "jit": "off",
    "listen_addresses": "",
    "log_min_messages": "log",
    "max_wal_senders": "0",
    "shared_buffers": "16MB",
    "wal_level": "minimal",
}


def find_binaries(environment: Mapping[str, str]) -> Path:
    """The folder with ``initdb`` and ``postgres``.

    Looked for in the variable `BINARIES_VARIABLE`, on the PATH, and where Debian puts them, the
    newest version first.

    Raises:
        UsageError: they are not there; the message names the package.
    """
    chosen = environment.get(BINARIES_VARIABLE)
    found = shutil.which("postgres", path=environment.get("PATH"))
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    places = [Path(chosen)] if chosen else [*([Path(found).parent] if found else []), *debian]
    for place in places:
        if all((place / name).exists() for name in ("initdb", "postgres")):
            return place
    if chosen:
        raise UsageError(f"{BINARIES_VARIABLE}={chosen}: there is no initdb and postgres")
    raise UsageError(
        "the service postgres needs a PostgreSQL server: install the package postgresql (Debian), "
        f"or set {BINARIES_VARIABLE} to the folder with initdb and postgres"
    )


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", folder.parent.name))


class Server:
    """See the module. ``start`` it, and ``stop`` it whatever happens."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._binaries = find_binaries(environment)
        self._folder = folder
        self._place = str(folder)
        self._descriptor = -1
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._said: deque[bytes] = deque(maxlen=_LINES_KEPT)

    async def start(self) -> None:
        """Make the folder's database cluster, and run the server until it takes connections.

        Raises:
            UsageError: it does not start; the message is the server's.
        """
        self._folder.mkdir(mode=0o700)
        self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        self._place = _place(self._folder, self._descriptor)
        who = _somebody()
        if who is not None:
            os.chown(self._folder, who.pw_uid, who.pw_gid)
        words = ["-D", self._place, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C"]
        made = await self._run(who, "initdb", *words, "--no-sync", stdout=subprocess.PIPE)
        said, _ = await made.communicate()
        if made.returncode != 0:
            raise UsageError(f"postgres: initdb failed: {said.decode(errors='replace').strip()}")
        settings = {**_SETTINGS, "unix_socket_directories": self._place}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._process = await self._run(who, "postgres", "-D", self._place, *words)
        ready = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(ready))
        if not await ready:
            await self.stop()
            said = b"\n".join(self._said)
            raise UsageError(
                f"postgres: the server does not start: {said.decode(errors='replace')}"
            )

    @property
    def socket(self) -> str:
        """The path of its Unix socket, for this process."""
        return f"{self._place}/.s.PGSQL.{_PORT}"

    @property
    def pid(self) -> int | None:
        """The server's first process, while it runs."""
        return None if self._process is None else self._process.pid

    async def _run(
        self, who: pwd.struct_passwd | None, name: str, *words: str, stdout: int | None = None
    ) -> asyncio.subprocess.Process:
        parent = os.getpid()

        def die_with_us() -> None:
            if _LIBC is not None:
                # SIGQUIT makes the server end at once and take its children along.
                _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGQUIT), 0, 0, 0)
                if os.getppid() != parent:
                    os._exit(1)

        return await asyncio.create_subprocess_exec(
            str(self._binaries / name),
            *words,
            stdin=subprocess.DEVNULL,
            stdout=stdout or subprocess.DEVNULL,
            stderr=subprocess.STDOUT if stdout else subprocess.PIPE,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd="/",
            pass_fds=(self._descriptor,),
            start_new_session=True,  # what a terminal sends to all of us is not meant for it
            preexec_fn=die_with_us,
            user=None if who is None else who.pw_uid,
            group=None if who is None else who.pw_gid,
            extra_groups=None if who is None else (),
        )

    async def _read(self, ready: asyncio.Future[bool]) -> None:
        """Read what the server says, so that it never waits for a reader."""
        process = self._process
        assert process is not None
        assert process.stderr is not None
        async for line in process.stderr:
            self._said.append(line.strip())
            if _READY in line and not ready.done():
                ready.set_result(True)
        if not ready.done():
            ready.set_result(False)

    async def stop(self) -> None:
        """End it, and every process of it; the folder is gone when this returns."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                async with asyncio.timeout(_STOP_TIMEOUT_S):
                    await self._process.wait()
            except TimeoutError:
                os.killpg(self._process.pid, signal.SIGKILL)
                await self._process.wait()
        if self._reading is not None:
            await self._reading  # its pipe ends when the last of its processes has
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._process, self._reading, self._descriptor = None, None, -1
        shutil.rmtree(self._folder, ignore_errors=True)


def _place(folder: Path, descriptor: int) -> str:
    """How we and the server call its folder."""
    short = Path(f"/proc/self/fd/{descriptor}")
    return str(short if short.exists() else folder)


def _somebody() -> pwd.struct_passwd | None:
    """Whom the server runs as; None: as we do.

    Raises:
        UsageError: we are root, and there is nobody else.
    """
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in _OTHERS:
        if name in known:
            return known[name]
    raise UsageError(f"postgres does not run as root, and there is no user {' or '.join(_OTHERS)}")
