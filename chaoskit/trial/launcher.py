"""The launcher: a small process that starts every attempt, reaps it, and outlives nobody.

It runs as ``python -m chaoskit.trial.launcher FD`` and is the parent of the task. It imports the
standard library only, because a Python task begins as a fork of it (the zygote).

* It adopts orphans, so that the whole tree of a task can be found below it.
* When its supervisor goes, however that ends, it kills what is left and removes the work folder.

Words on the socket, one JSON object a line:

    in   {"do": "hello", "path": [...], "folder": "..."}
         {"do": "load", "file": "...", "name": "scenario"}
             -> {"loaded": ""} or {"loaded": "why not"}
         {"do": "start", "argv": [...] or null, "env": {...}, "cwd": "...", "trace": {...} or null,
          "shift_ns": ...}, with the descriptor of the output -> {"born": pid}, before it does
         anything, and then {"started": pid} or {"failed": "why"}
         {"do": "go"}: let the task go on from where the tracer holds it
         {"do": "view"}: enter a copy-on-write view of the file system
             -> {"view": {label: where}, "uppers": {label: folder}, "store": descriptor,
                 "closed": [where]} or {"view": null, "why": "..."}
         {"do": "renew", "labels": [...]}: make these overlays empty, with what lies within
             -> {"renewed": {label: folder}}
         {"do": "cover", "labels": [...]}: put them in their places -> {"covered": ""} or why not
    out  {"call": ..., "side": ..., "held": ...} of a traced task, see `chaoskit.trace.tracer`
         {"mapped": [path]}, a file that it can change by mere stores
         {"noted": what, "detail": where}, the limits of a trace, before
         {"ended": pid, "status": wait status}, for the task itself, when it is reaped
"""

from __future__ import annotations

import gc
import json
import os
import select
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress

from chaoskit.probe import lines, where
from chaoskit.probe.clock import SHIFT_VARIABLE
from chaoskit.trace import UNMOVED, UNSEEN
from chaoskit.trace import filter as seccomp
from chaoskit.trace.abi import this_abi
from chaoskit.trace.clock import Clock
from chaoskit.trace.naming import Scope
from chaoskit.trace.tracer import Tracer, Wishes
from chaoskit.trial import files
from chaoskit.trial.overlay import Overlays, drop_rights, hindrance
from chaoskit.trial.runners import END, PR_SET_PDEATHSIG, execute, multiply, prctl
from chaoskit.trial.task_modules import Task, load_task, modules_of

_PR_SET_CHILD_SUBREAPER = 36

_NOT_OURS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""Signals that a terminal, a CI system or a service manager sends to a whole group."""

_WALL = 0x40000000 if sys.platform == "linux" else 0
"""waitpid: threads that we trace, too."""

_ROUNDS_MAX, _ROUND_S = 2000, 0.002
"""How often, and how long apart, the last processes of a task are looked for."""

_TRACED = b"t"
"""What a child is told before it begins, where somebody follows its calls."""


class Launcher:
    """The loop of the launcher process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._buffer = b""
        self._descriptors: list[int] = []
        self._source = ("", "")
        self._leader = 0
        self._leaders: set[int] = set()
        self._folder = ""
        self._overlays: Overlays | None = None
        self._tracer: Tracer | None = None
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)

    def serve(self) -> Task | None:
        """Serve until the supervisor goes (None), or, in a forked child, return its task."""
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        for number in _NOT_OURS:  # these are the supervisor's to handle; we go when it goes
            signal.signal(number, signal.SIG_IGN)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._wake_read:
                        self._reap()
                        continue
                    lines = self._receive()
                    if lines is None:
                        self._leave()
                        return None
                    for line in lines:
                        task = self._obey(json.loads(line))
                        if task is not None:
                            return task

    def _receive(self) -> list[bytes] | None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 4)
        except ConnectionError:
            return None
        if not data:
            return None
        self._descriptors.extend(descriptors)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return lines

    def _say(self, message: dict[str, object]) -> None:
        with suppress(BrokenPipeError, ConnectionError):
            self._control.sendall(json.dumps(message).encode() + b"\n")

    def _obey(self, message: dict[str, object]) -> Task | None:
        match message["do"]:
            case "hello":
                sys.path[:] = [str(entry) for entry in _list(message["path"])]
                self._folder = str(message["folder"])
            case "view":
                self._enter_view()
            case "renew" | "cover" as verb if self._overlays is not None:
                self._change_view(self._overlays, verb, list(map(str, _list(message["labels"]))))
            case "load":
                self._load(str(message["file"]), str(message["name"]))
            case "start":
                return self._start(message)
            case "go" if self._tracer is not None:
                self._tracer.go()
                self._reap()
        return None

    def _enter_view(self) -> None:
        if why := hindrance(self._folder):
            self._say({"view": None, "why": why})
            return
        self._overlays = found = Overlays(self._folder)
        self._say(
            {
                "view": {layer.label: layer.at for layer in found.layers},
                "uppers": {layer.label: found.upper(layer.label) for layer in found.layers},
                "store": found.descriptor,
                "closed": [layer.at for layer in found.closed],
            }
        )

    def _change_view(self, overlays: Overlays, verb: str, labels: list[str]) -> None:
        try:
            if verb == "renew":
                self._say({"renewed": {n: overlays.upper(n) for n in overlays.renew(labels)}})
            else:
                overlays.cover(labels)
                self._say({"covered": ""})
        except OSError as failed:
            self._say({"covered": f"{failed.strerror} ({failed.filename})"})

    def _load(self, file: str, name: str) -> None:
        try:
            load_task(file, name)
        except Exception:  # noqa: BLE001 - the user's module may raise anything
            self._say({"loaded": traceback.format_exc(limit=-3)})
            return
        self._source = (file, name)
        # What the scenario's own modules make when they are imported (a run id, a random generator)
        # belongs to one process: each attempt imports them again. All the rest stays loaded.
        for own in modules_of(file):
            del sys.modules[own]
        "".encode("idna")  # every connection by host name needs this codec: import it once, here
        gc.collect()
        gc.freeze()  # keep the shared pages shared: a collection in a child would copy them all
        self._say({"loaded": ""})

    def _start(self, message: dict[str, object]) -> Task | None:
        output = self._descriptors.pop(0)
        environment = {str(k): str(v) for k, v in _dict(message["env"]).items()}
        wished, shift_ns = message["trace"], int(str(message["shift_ns"]))
        sys.stdout.flush()
        sys.stderr.flush()
        failure_read, failure_write = os.pipe()
        start_read, start_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(start_write)
            os.close(failure_read)
            traced = os.read(start_read, 1) == _TRACED
            os.close(start_read)
            self._become(output, str(message["cwd"]), environment)
            return self._be(message, failure_write, traced=traced)
        if message["beside"]:
            self._leaders.add(pid)
        else:
            self._leader, self._leaders, self._tracer = pid, {pid}, None
        why = ""
        followed, refused = self._follow(pid, wished, shift_ns)
        if followed:
            os.write(start_write, _TRACED)
        elif refused and not _is_optional(wished):
            os.kill(pid, signal.SIGKILL)
            why = refused
        self._say({"born": pid})
        if refused and wished is not None:
            self._say({"noted": UNSEEN, "detail": refused})
        for descriptor in (output, start_read, failure_write, start_write):
            os.close(descriptor)
        if not why:
            why = self._failure(failure_read)
        os.close(failure_read)
        if why:
            self._leaders.discard(pid)  # nobody waits for the end of what has not begun
        self._say({"failed": why} if why else {"started": pid})
        self._reap()
        return None

    def _be(self, message: dict[str, object], failure: int, *, traced: bool) -> Task:
        """In the child: the task to be; a command takes this process's place."""
        if message["runners"] != 1:
            multiply(int(str(message["runners"])), failure)
        argv = message["argv"]
        if argv is None:
            where.start()
            lines.start()
        shift_ns = int(str(message["shift_ns"]))
        try:
            if traced:
                seccomp.install(_filter_code(message["trace"], shift_ns))
        except OSError as refused:
            if not _is_optional(message["trace"]):
                os.write(failure, str(refused.strerror).encode())
                os._exit(127)
            traced = False
        if shift_ns and not traced:
            os.environ[SHIFT_VARIABLE] = f"{shift_ns / 1e9:.9f}"
            os.write(failure, UNMOVED.encode() + END)
        if argv is not None:
            execute([str(word) for word in _list(argv)], failure)
        os.close(failure)
        return load_task(*self._source, str(message["change"]))

    def _follow(self, pid: int, wished: object, shift_ns: int) -> tuple[bool, str]:
        """Whether the child that waits for it is traced; and why not, where that was wished."""
        if this_abi() is None or (wished is None and not shift_ns):
            return False, ""
        if _is_optional(wished) and not seccomp.works():
            return False, "the kernel has no seccomp filters"
        try:
            self._trace(pid, wished, shift_ns)
        except OSError as refused:
            return False, f"the kernel does not let us trace: {refused.strerror}"
        return True, ""

    def _trace(self, pid: int, wished: object, shift_ns: int) -> None:
        """Begin to trace the child that waits for it: as ``wished``, or for its clock alone."""
        if self._tracer is None:
            abi = this_abi()
            assert abi is not None, "asked before"
            clock = Clock(abi, shift_ns) if shift_ns else None
            scope, wishes = _asked_for(wished)
            self._tracer = Tracer(abi, scope, wishes, self._say, self._ended, clock)
        try:
            self._tracer.adopt(pid)
        except OSError:
            self._tracer = None
            raise

    def _failure(self, pipe: int) -> str:
        """Why the command could not be run; empty once it runs. A traced child wants attention."""
        said = b""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._wake_read:
                        self._reap()
                        continue
                    piece = os.read(pipe, 4096)
                    if not piece:
                        return self._understood(said)
                    said += piece

    def _understood(self, said: bytes) -> str:
        """What runners have said before they began; the first one's failure is enough."""
        words = [word.decode(errors="replace") for word in said.split(END)]
        if UNMOVED in words:
            self._say({"noted": UNMOVED, "detail": ""})
        return next((word for word in words if word not in {"", UNMOVED}), "")

    def _become(self, output: int, cwd: str, environment: dict[str, str]) -> None:
        """In the child: shed everything that is the launcher's."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, *_NOT_OURS):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._control.close()
        self._wake_read.close()
        self._wake_write.close()
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for descriptor in (nothing, output):
            if descriptor > 2:
                os.close(descriptor)
        if self._overlays is not None and self._overlays.lends_rights:
            drop_rights()
        os.makedirs(cwd, exist_ok=True)  # the task may have removed it
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            while self._wake_read.recv(4096):
                pass
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | _WALL)
                if pid == 0:
                    return
                if self._tracer is not None:
                    self._tracer.handle(pid, status)
                else:
                    self._ended(pid, status)

    def _ended(self, pid: int, status: int) -> None:
        if pid not in self._leaders:
            return
        if self._tracer is not None:
            for what, detail in self._tracer.notes():
                self._say({"noted": what, "detail": detail})
        self._say({"ended": pid, "status": status})

    def _bury(self, descendants: Callable[[int], list[int]]) -> None:
        """Kill the tree; of what is traced the end is only known when we take it in."""
        for _ in range(_ROUNDS_MAX):
            alive = descendants(os.getpid())
            if not alive:
                return
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            _reap_all()
            select.select([], [], [], _ROUND_S)

    def _leave(self) -> None:
        """The supervisor has gone: take the task and the work folder along."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # dead children vanish by themselves
        try:
            from chaoskit.trial import process_tree

            self._bury(process_tree.descendants)
            process_tree.kill(os.getpid())
        except ImportError:  # no psutil in this environment: the task's own session must do
            with suppress(ProcessLookupError, PermissionError):
                if self._leader:
                    os.killpg(self._leader, signal.SIGKILL)
        if self._overlays is not None:
            self._overlays.leave()
        elif self._folder:
            with suppress(OSError):
                files.remove(self._folder)


def _reap_all() -> None:
    """Take the status of every child and traced thread that has ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG | _WALL)[0]:
            pass


def _is_optional(wished: object) -> bool:
    """Whether an attempt may begin although it is not traced."""
    return wished is None or bool(_dict(wished)["optional"])


def _asked_for(wished: object) -> tuple[Scope, Wishes]:
    """What counts in a trace, and what for; None: nothing does."""
    if wished is None:
        return Scope({}, {}), Wishes()
    words = _dict(wished)
    scope = Scope(
        {str(k): str(v) for k, v in _dict(words["folders"]).items()},
        {int(str(k)): str(v) for k, v in _dict(words["ports"]).items()},
        tuple(map(str, _list(words["quiet"]))),
        tuple(map(str, _list(words["varying"]))),
        tuple(map(str, _list(words["allowed"]))),
    )
    wishes = Wishes(
        hold=frozenset(map(str, _list(words["hold"]))),
        exits=bool(words["exits"]),
        tell=bool(words["tell"]),
    )
    return scope, wishes


def _filter_code(wished: object, shift_ns: int) -> bytes:
    abi = this_abi()
    assert abi is not None, "only what is traced is filtered"
    words = {} if wished is None else _dict(wished)
    return seccomp.program(
        abi,
        changes=wished is not None,
        light=not (words.get("hold") or words.get("exits") or words.get("tell")),
        skip_sleeps=bool(words.get("skip_sleeps")),
        clock=bool(shift_ns),
    )


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _dict(value: object) -> dict[object, object]:
    assert isinstance(value, dict)
    return value


def _run(task: Task) -> None:
    """The task's whole life; the process then ends as any Python program does."""
    result = task()
    if isinstance(result, Coroutine):
        import asyncio

        asyncio.run(result)


def main() -> None:
    """Serve the supervisor whose socket is the descriptor named on the command line."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    task = Launcher(control).serve()
    if task is not None:
        sys.argv = ["task"]
        _run(task)


if __name__ == "__main__":
    main()
