"""Tasks of every kind, stopped and killed at their system calls: names, bytes, signals, orphans."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaoskit.model.events import (
    CallSeen,
    RequestReceived,
)
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec
from chaoskit.trace.abi import this_abi
from chaoskit.trial import attempt as attempts
from chaoskit.trial.launching import Launching
from chaoskit.trial.supervisor import Supervisor
from chaoskit.trial.tracing import Traced
from chaoskit.trial.watch import Watch
from tests.trial.traced import (
    NOTHING,
    Files,
    contents,
    files_in,
    python,
    scenario,
    shell,
    state_of,
    traced,
    with_supervisor,
)

TASKS = Path(__file__).parents[1] / "tasks"

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def compiled(folder: Path, source: str, *flags: str) -> str:
    """A C program."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    file = folder / "program.c"
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    done = subprocess.run(
        [compiler, "-w", "-O1", *flags, "-o", str(folder / "program"), str(file), "-lpthread"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"the compiler cannot make this program: {done.stderr[-200:]}")
    return str(folder / "program")


# Names: which calls are seen, and what they are called.

THREADS = """
    import threading
    def work(name):
        with open(f"{name}.txt", "w", buffering=1) as file:
            for n in range(3):
                file.write(f"{n}\\n")
    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    open("end.txt", "w").close()
"""

FORKS = """
    import os
    for name in "ab":
        if os.fork() == 0:
            open(name, "w").write(name)
            if os.fork() == 0:
                open(name, "a").write(name)
                os._exit(0)
            os.wait()
            os._exit(0)
        os.wait()
    open("c", "w").write("c")
"""

SPAWNS = """
    import os, subprocess, sys
    open("a", "w").write("a")
    subprocess.run([sys.executable, "-I", "-S", "-c", "open('b', 'w').write('b')"], check=True)
    subprocess.run("echo c > c; (echo d > d)", shell=True, check=True)
    os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", "echo e > e"])
"""

EXEC_BY_A_THREAD = """
    import os, sys, threading
    open("a", "w").write("a")
    def work():
        open("b", "w").write("b")
        program = "import os; open('c', 'w').write(str(os.getpid()))"
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", program])
    open("pid", "w").write(str(os.getpid()))
    threading.Thread(target=threading.Event().wait).start()
    threading.Thread(target=work).start()
    threading.Event().wait()
"""

SHELL = """
    set -e
    echo one > a
    (echo two > b; echo three >> b)
    echo sub | tee d > /dev/null
    mv a e
    mkdir f
    x=$(echo four > g)
    echo five >> e &
    wait
    rm b
"""

GATHERS = """
    import asyncio
    async def work(name):
        for n in range(2):
            with open(name, "a") as file:
                file.write(str(n))
            await asyncio.sleep(0)
    async def main():
        await asyncio.gather(*map(work, "ab"))
        shell = await asyncio.create_subprocess_exec("sh", "-c", "echo s > s")
        await shell.wait()
        await asyncio.to_thread(lambda: open("t", "w").write("t"))
    asyncio.run(main())
"""

NODE = """
    const fs = require("node:fs");
    const { execFileSync } = require("node:child_process");
    fs.writeFileSync("a", "one");
    fs.appendFileSync("a", "two");
    fs.renameSync("a", "b");
    fs.mkdirSync("d");
    execFileSync("sh", ["-c", "echo c > c"]);
    fs.rmSync("b");
"""


def steps(name: str, writes: int) -> list[str]:
    """A file is made, and written to so many times."""
    return [f"open({name})#1", *(f"write({name})#{n + 1}" for n in range(writes))]


PROGRAMS: dict[str, tuple[CommandSpec, dict[str, list[str]]]] = {
    "threads": (
        python(THREADS),
        {"": [*steps("a.txt", 3), *steps("b.txt", 3), *steps("c.txt", 3), "open(end.txt)#1"]},
    ),
    "forks": (
        python(FORKS),
        {"p1": steps("a", 1), "p1.p1": steps("a", 1), "p2": steps("b", 1), "p2.p1": steps("b", 1)}
        | {"": steps("c", 1)},
    ),
    "spawns": (
        python(SPAWNS),
        {"": steps("a", 1), "p1": steps("b", 1), "p2": steps("c", 1), "p2.p1": steps("d", 1)}
        | {"p3": steps("e", 1)},
    ),
    "exec by a thread": (
        python(EXEC_BY_A_THREAD),
        {"": [*steps("a", 1), *steps("pid", 1), *steps("b", 1), *steps("c", 1)]},
    ),
    "shell": (
        shell(SHELL),
        {
            "": [*steps("a", 1), "unlink(b)#1"],  # bash execs the last command of a script
            "p1": ["open(b)#1", "write(b)#1", "open(b)#2", "write(b)#2"],
            "p3": steps("d", 1),
            "p4": ["rename(a->e)#1"],
            "p5": ["mkdir(f)#1"],
            "p6": steps("g", 1),
            "p7": steps("e", 1),
        },
    ),
    "asyncio": (
        python(GATHERS),
        {
            "": [
                *(f"{c}({name})#{n}" for n in (1, 2) for name in "ab" for c in ("open", "write")),
                *steps("t", 1),
            ],
            "p1": steps("s", 1),
        },
    ),
    "node": (
        CommandSpec(command=("node", "-e", textwrap.dedent(NODE)), resume=NOTHING),
        {
            "": [
                *steps("a", 1),
                *("open(a)#2", "write(a)#2", "rename(a->b)#1", "mkdir(d)#1", "unlink(b)#1"),
            ],
            "p1": steps("c", 1),
        },
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_node if n == "node" else ()) for n in PROGRAMS]
)
def test_every_call_has_the_same_name_in_every_run(name: str) -> None:
    """Of each process all calls are seen, in their order, twice the same; threads take turns."""
    spec, expected = PROGRAMS[name]
    first, second = traced(spec, ["none", "none"])
    assert first.ends == second.ends == ["exit 0"]
    seen = [first.calls, second.calls]
    if name == "threads":  # which of them is first is chance
        seen = [{who: sorted(calls) for who, calls in one.items()} for one in seen]
        expected = {who: sorted(calls) for who, calls in expected.items()}
    assert seen == [expected, expected]
    assert first.notes == []


STATIC = """
    #include <fcntl.h>
    #include <stdio.h>
    #include <unistd.h>
    int main() {
        FILE *file = fopen("a", "w");
        for (int n = 0; n < 2; n++) { fprintf(file, "%d\\n", n); fflush(file); }
        if (fork() == 0) { rename("a", "b"); return 0; }
        wait(0);
        unlink("b");
        return 0;
    }
"""


def test_a_static_binary_is_followed(tmp_path: Path) -> None:
    """Nothing is loaded into a task, so one without a dynamic loader is traced all the same."""
    program = compiled(tmp_path, STATIC, "-static")
    ran, killed = traced(
        CommandSpec(command=(program,), resume=NOTHING), ["none", "kill@p1:rename(a->b)#1"]
    )
    assert ran.calls == {"": [*steps("a", 2), "unlink(b)#1"], "p1": ["rename(a->b)#1"]}
    assert contents(killed.files) == {"a": b"0\n1\n"}


def test_a_thread_that_execs_leaves_the_other_threads_behind() -> None:
    """After an exec by another thread the process goes on under its own name, and can be killed."""
    spec, _ = PROGRAMS["exec by a thread"]
    (ran,) = traced(spec, ["kill@write(c)#1"])
    assert ran.ends == ["killed 9", "exit 0"]
    found = contents(ran.files)
    assert (found["b"], found["c"]) == (b"b", b"")


def test_a_child_that_is_not_yet_its_own_is_held_and_killed() -> None:
    """Between vfork and exec the parent cannot stop: it waits for the child that stands still."""
    spec = python("""
        import os
        actions = [(os.POSIX_SPAWN_OPEN, 1, "out", os.O_CREAT | os.O_WRONLY, 0o600)]
        child = os.posix_spawn("/bin/echo", ["echo", "hello"], {}, file_actions=actions)
        os.waitpid(child, 0)
    """)
    whole, at_open, at_write = traced(spec, ["none", "kill@p1:open(out)#1", "kill@p1:write(out)#1"])
    assert whole.calls == {"p1": steps("out", 1)}
    assert at_open.ends == at_write.ends == ["killed 9", "exit 0"]
    assert contents(at_open.files) == {}
    assert contents(at_write.files) == {"out": b""}


def test_however_much_was_said_is_taken_in_at_once() -> None:
    """A request must not be booked before the calls that came ahead of it: nothing stays behind."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    for end in (ours, theirs):
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
    told: list[dict[str, Any]] = []
    launching = object.__new__(Launching)
    launching._control, launching._buffer, launching._traced = ours, b"", told.append
    launching._hearing = launching._coming = False
    with closing(ours), closing(theirs):
        for number in range(150):
            theirs.sendall(json.dumps({"call": "x" * 1000, "number": number}).encode() + b"\n")
        launching.hear()
    assert [message["number"] for message in told] == list(range(150))


def test_a_call_is_seen_before_what_it_brings_about(tmp_path: Path) -> None:
    """In a history every request comes after the calls by which it was sent."""
    (ran,) = traced(scenario(tmp_path, CHARGES))
    bodies = [event.body for event in ran.history.events]
    sends = 0
    for body in bodies:
        if isinstance(body, CallSeen) and body.call.startswith("sendto(payments)"):
            sends += 1
        elif isinstance(body, RequestReceived):
            assert sends == 2 * body.ordinal  # head and body of each, and not one more
    assert sends == 6


CHARGES = """
import http.client, os, urllib.parse
from chaoskit import Scenario

def main():
    url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    shop = http.client.HTTPConnection(url.hostname, url.port)
    for n in range(1, 4):
        if os.path.exists(f"done-{n}"):
            continue
        shop.request("POST", "/v1/charges", f"amount={n}00&currency=eur&source=tok_visa",
                     {"Authorization": "Bearer sk_test_x",
                      "Content-Type": "application/x-www-form-urlencoded"})
        shop.getresponse().read()
        open(f"done-{n}", "w").close()

scenario = Scenario(task=main, services=("payments",))
"""


# Bytes: what a kill leaves.

STATEMENTS = (
    'f = os.open("a", os.O_CREAT | os.O_WRONLY, 0o600)',
    'os.write(f, b"one\\n")',
    'os.write(f, b"abcdefg" * 1500)',
    'os.pwrite(f, b"x" * 9000, 100)',
    "os.fsync(f)",
    "os.ftruncate(f, 7000)",
    'os.writev(f, [b"y", b"z" * 5000])',
    "os.fchmod(f, 0o640)",
    'os.mkdir("d")',
    'os.rename("a", "d/b")',
    'os.write(f, b"after")',
    'os.link("d/b", "c")',
    'os.symlink("d/b", "l")',
    'os.chmod("d", 0o700)',
    'os.truncate("c", 3)',
    'g = os.open("d/b", os.O_TRUNC | os.O_RDWR)',
    "os.posix_fallocate(g, 0, 4096)",
    'os.unlink("c")',
    'os.unlink("d/b")',
    'os.rmdir("d")',
)
"""Each makes one state-changing call, on files of the folder in which it is run."""


def left_by(folder: Path, statements: Sequence[str]) -> Files:
    """What these statements leave, run to their end in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    program = "\n".join(["import os", f"os.chdir({str(folder)!r})", *statements])
    names: dict[str, object] = {}
    here = Path.cwd()
    try:
        exec(program, names)  # noqa: S102 - our own statements
    finally:
        os.chdir(here)
        for name in "fg":
            if isinstance(names.get(name), int):
                os.close(int(str(names[name])))
    return files_in(folder)


def test_a_kill_leaves_what_the_calls_before_it_have_done(tmp_path: Path) -> None:
    """Before the n-th call: the work of n - 1; after it: that of n; for each of twenty calls."""
    spec = python("import os\n" + "\n".join(STATEMENTS))
    (whole,) = traced(spec)
    points = whole.calls[""]
    assert len(points) == len(STATEMENTS)
    schedules = [f"kill@{point}{side}" for point in points for side in ("", "+after")]
    trials = traced(spec, schedules)
    for number in range(len(STATEMENTS)):
        before, after = trials[2 * number : 2 * number + 2]
        assert before.ends == after.ends == ["killed 9", "exit 0"], points[number]
        assert before.files == left_by(tmp_path / "x", STATEMENTS[:number]), points[number]
        assert after.files == left_by(tmp_path / "x", STATEMENTS[: number + 1]), points[number]


@pytest.mark.parametrize("cut", [1, 4096, 5000, 8999])
@pytest.mark.parametrize("call", ["write", "pwrite"])
def test_a_write_that_is_cut_short_leaves_its_first_bytes(call: str, cut: int) -> None:
    """Of a write of 9000 bytes exactly the first k are there, and nothing that comes after it."""
    text = "bytes(range(250)) * 36"
    last = {"write": f"os.write(f, {text})", "pwrite": f"os.pwrite(f, {text}, 70)"}[call]
    spec = python(f"""
        import os
        f = os.open("a", os.O_CREAT | os.O_RDWR)
        os.write(f, b"." * 9500)
        os.lseek(f, 70, 0)
        {last}
        open("late", "w")
    """)
    number = 2 if call == "write" else 1
    (ran,) = traced(spec, [f"kill@{call}(a)#{number}+short:{cut}"])
    assert ran.ends == ["killed 9", "exit 0"]
    expected = b"." * 70 + (bytes(range(250)) * 36)[:cut]
    assert contents(ran.files) == {"a": expected + b"." * (9500 - 70 - cut)}


@pytest.mark.parametrize(
    "point",
    ["write(a)#1+short:20", "write(a)#1+short:0", "writev(a)#1+short:10", "open(a)#1+short:5"],
)
def test_what_cannot_be_cut_is_made_whole(point: str) -> None:
    """A cut beyond the end of a write, or in a call that counts no bytes, does not land."""
    spec = python("""
        import os
        f = os.open("a", os.O_CREAT | os.O_WRONLY, 0o600)
        assert os.write(f, b"0123456789") == 10
        assert os.writev(f, [b"abcde", b"fghij"]) == 10
    """)
    (ran,) = traced(spec, [f"kill@{point}"])
    assert ran.ends == ["exit 0"], ran.output
    assert ran.files == {"a": (stat.S_IFREG | 0o600, b"0123456789abcdefghij")}
    assert not ran.history.landed


CHARGE_IN_ONE_PIECE = """
import os, socket, urllib.parse
from chaoskit import Scenario

def main():
    if os.path.exists("sent"):
        return
    url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    body = b"amount=500&currency=eur&source=tok_visa&description=" + b"x" * 20000
    head = (b"POST /v1/charges HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer sk_test_x\\r\\n"
            b"Content-Type: application/x-www-form-urlencoded\\r\\n"
            b"Content-Length: %d\\r\\n\\r\\n" % len(body))
    shop = socket.create_connection((url.hostname, url.port))
    open("sent", "w").close()
    shop.send(head + body)
    shop.recv(65536)

scenario = Scenario(task=main, services=("payments",))
"""


def test_a_request_that_is_cut_short_never_takes_effect(tmp_path: Path) -> None:
    """Whatever part of it was sent, up to all but one byte, no service sees a request."""
    target = scenario(tmp_path, CHARGE_IN_ONE_PIECE)
    (whole,) = traced(target)
    (size,) = [seen.bytes for _, seen in whole.history.of(CallSeen) if "sendto" in seen.call]
    cuts = [1, 100, 4096, size // 2, size - 1]
    schedules = [f"kill@sendto(payments)#1+short:{cut}" for cut in cuts]
    for ran in traced(target, schedules):
        assert ran.ends == ["killed 9", "exit 0"]
        assert not ran.history.requests
        assert not ran.history.effects
    (after,) = traced(target, ["kill@sendto(payments)#1+after"])
    assert len(after.history.effects) == 1


def test_nothing_of_a_task_moves_while_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a stop of one thread every other thread and process of the task stands still, too."""
    busy = """
        import os, threading
        def work(name):
            file = os.open(name, os.O_CREAT | os.O_RDWR)
            while not os.path.exists("end"):
                os.pwrite(file, os.urandom(8), 0)
        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(3)]
        for thread in threads:
            thread.start()
        for n in range(2):
            if os.fork() == 0:
                work(f"p{n}")
                os._exit(0)
        for n in range(20):
            os.mkdir(f"d{n}")
        open("end", "w").close()
        for thread in threads:
            thread.join()
    """
    looks: list[tuple[set[str], bool]] = []
    called = Watch.called

    def look(watch: Watch, stop: Traced, *, tell: bool) -> bool:
        if stop.held:
            launcher = psutil.Process(holder[0]._stage.launching.pid)
            states = [_states(process) for process in launcher.children(recursive=True)]
            before = state_of(holder[0])
            looks.append((set().union(*states), before == state_of(holder[0])))
        return called(watch, stop, tell=tell)

    holder: list[Supervisor] = []
    monkeypatch.setattr(Watch, "called", look)
    schedules = [parse_schedule(f"kill@mkdir(d{n})#1") for n in range(0, 20, 5)]

    async def then(supervisor: Supervisor) -> None:
        holder.append(supervisor)
        supervisor.conduct = replace(supervisor.conduct, calls=False)
        for schedule in schedules:
            await supervisor.run(schedule)

    with_supervisor(python(busy), then)
    assert len(looks) == len(schedules)
    for states, same in looks:
        assert states == {"t"}
        assert same


def _states(process: psutil.Process) -> set[str]:
    """The states of all threads of a process, in the letters of /proc."""
    found = set()
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        found.add((thread / "stat").read_text("ascii").rpartition(") ")[2][0])
    return found


# Programs that use what the tracer uses.


def test_a_main_thread_may_end_before_the_others(tmp_path: Path) -> None:
    """A process whose first thread is gone is held and killed like any other."""
    program = compiled(
        tmp_path,
        """
        #include <fcntl.h>
        #include <pthread.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static void *work(void *nothing) {
            char name[40]; char state = 0;
            while (state != 'Z') {  /* until the main thread has ended */
                sprintf(name, "/proc/self/task/%d/stat", getpid());
                int stat = open(name, O_RDONLY);
                char text[200] = {0};
                read(stat, text, 199);
                close(stat);
                state = strrchr(text, ')')[2];
            }
            int file = open("a", O_CREAT | O_WRONLY, 0644);
            for (int n = 0; n < 3; n++) write(file, "x", 1);
            _exit(0);
        }
        int main() {
            pthread_t thread;
            pthread_create(&thread, 0, work, 0);
            syscall(SYS_exit, 0);
        }
        """.replace(
            "#include <unistd.h>", "#include <unistd.h>\n#include <stdio.h>\n#include <string.h>"
        ),
    )
    ran, killed = traced(
        CommandSpec(command=(program,), resume=NOTHING), ["none", "kill@write(a)#2"]
    )
    assert ran.calls == {"": steps("a", 3)}
    assert killed.ends == ["killed 9", "exit 0"]
    assert contents(killed.files) == {"a": b"x"}


STOPS = """
    import os, signal
    child = os.fork()
    if child == 0:
        open("a", "w").write("a")
        os.kill(os.getpid(), signal.SIGSTOP)
        open("b", "w").write("b")
        os._exit(7)
    _, status = os.waitpid(child, os.WUNTRACED)
    print(os.WIFSTOPPED(status), os.WSTOPSIG(status) == signal.SIGSTOP, os.path.exists("b"))
    os.kill(child, signal.SIGCONT)
    _, status = os.waitpid(child, os.WCONTINUED)
    print(os.WIFCONTINUED(status) or os.waitstatus_to_exitcode(status))
    if os.WIFCONTINUED(status):
        _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), os.path.exists("b"))
"""


def test_stopping_and_continuing_work_as_without_a_tracer() -> None:
    """A child that stops itself is seen to stop, stays so until it is continued, and goes on."""
    (ran,) = traced(python(STOPS))
    assert ran.ends == ["exit 0"], ran.output
    first, second, third = ran.output.splitlines()
    assert (first, third) == ("True True False", "7 True")
    assert second in {"True", "7"}  # it may have ended before it was asked
    assert ran.calls == {"p1": [*steps("a", 1), *steps("b", 1)]}


def test_a_kill_lands_where_another_process_is_stopped() -> None:
    """A task of which one process was stopped by another is held and killed as a whole."""
    spec = python("""
        import os, signal
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        os.waitpid(child, os.WUNTRACED)
        open("a", "w").write("a")
        open("b", "w").write("b")
    """)
    (ran,) = traced(spec, ["kill@write(b)#1"])
    assert ran.ends == ["killed 9", "exit 0"]
    assert contents(ran.files) == {"a": b"a", "b": b""}


def test_alarms_and_handlers_work_and_add_no_calls() -> None:
    """A task that is interrupted all the time makes the same calls as one that is not."""
    spec = python("""
        import os, signal
        seen = []
        def again(*_):  # a clock that ticks by itself may leave a slow machine no time in between
            seen.append(1)
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
        signal.signal(signal.SIGALRM, again)
        again()
        file = os.open("a", os.O_CREAT | os.O_WRONLY)
        for n in range(300):
            os.write(file, b"x" * 100)
        while len(seen) < 5:
            signal.pause()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, lambda *_: open("term", "w").close())
        os.kill(os.getpid(), signal.SIGTERM)
        signal.raise_signal(signal.SIGUSR1)
    """)
    ran, killed = traced(spec, ["none", "kill@write(a)#200"])
    assert ran.ends == [f"signal {signal.SIGUSR1:d}", "exit 0"]
    assert ran.calls == {"": [*steps("a", 300), "open(term)#1"]}
    assert contents(killed.files) == {"a": b"x" * 100 * 199}


def test_sleeps_are_skipped_where_that_is_asked_for() -> None:
    """A task that would sleep for an hour ends, and its calls are the same ones."""
    programs = (
        python("import time; open('a', 'w').write('a'); time.sleep(3600); open('b', 'w').close()"),
        shell("echo a > a; sleep 3600; : > b"),
    )
    for spec in programs:
        (ran,) = traced(spec, skip_sleeps=True)
        assert ran.ends == ["exit 0"]
        assert ran.calls == {"": [*steps("a", 1), "open(b)#1"]}


FILTERS = """
    import ctypes, os, struct
    libc = ctypes.CDLL(None, use_errno=True)
    MKDIR = {"x86_64": 83, "aarch64": 34}[os.uname().machine]
    code = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, MKDIR,
                       0x06, 0, 0, 0x00050000 | 13, 0x06, 0, 0, 0x7FFF0000)
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
    open("a", "w").write("a")
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
    try:
        os.mkdir("d") if MKDIR == 83 else os.mkdir("d", dir_fd=os.open(".", 0))
    except PermissionError:
        print("refused")
    open("b", "w").write("b")
"""


def test_a_task_may_filter_its_own_calls() -> None:
    """A filter of the task's works as it does alone, and its calls are still seen."""
    ran, killed = traced(python(FILTERS), ["none", "kill@write(b)#1"])
    assert (ran.ends, ran.output.split()) == (["exit 0"], ["refused"])
    assert ran.calls == {"": [*steps("a", 1), *steps("b", 1)]}
    assert contents(killed.files) == {"a": b"a", "b": b""}


def test_a_task_that_would_trace_is_refused_by_the_system() -> None:
    """Nobody can be traced twice: the task gets the error that a second debugger gets."""
    spec = python("""
        import ctypes, errno, os
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.ptrace(0, 0, 0, 0), errno.errorcode[ctypes.get_errno()])
        child = os.fork()
        if child == 0:
            os.read(0, 1)
            os._exit(0)
        print(libc.ptrace(0x4206, child, 0, 0), errno.errorcode[ctypes.get_errno()])
        os.waitpid(child, 0)
        open("a", "w").write("a")
    """)
    (ran,) = traced(spec)
    assert ran.ends == ["exit 0"]
    assert ran.output.split() == ["-1", "EPERM", "-1", "EPERM"]
    assert ran.calls == {"": steps("a", 1)}


# What limits a claim is noted.


def test_files_that_change_without_calls_are_noted() -> None:
    """A shared, writable mapping of a file is named; a private or a read-only one is not."""
    spec = python("""
        import mmap, os
        file = os.open("m", os.O_CREAT | os.O_RDWR)
        os.truncate("m", 4096)
        mmap.mmap(file, 4096, mmap.MAP_PRIVATE)[0:1] = b"x"
        mmap.mmap(file, 4096, mmap.MAP_SHARED, mmap.PROT_READ)[0:1]
    """)
    (ran,) = traced(spec)
    assert (ran.ends, ran.notes) == (["exit 0"], [])
    spec = python("""
        import mmap, os
        file = os.open("m", os.O_CREAT | os.O_RDWR)
        os.truncate("m", 4096)
        mmap.mmap(file, 4096)[0:1] = b"x"
    """)
    (ran,) = traced(spec)
    assert (ran.ends, ran.notes) == (["exit 0"], [("mapped", "m")])


def test_calls_by_another_table_are_noted(tmp_path: Path) -> None:
    """A program that makes a call of 32-bit Linux is noted, with the number of the call."""
    if os.uname().machine != "x86_64":
        pytest.skip("int 0x80 is x86's")
    source = 'int main() { long n = 20; __asm__ volatile("int $0x80" : "+a"(n)); return n < 0; }'
    program = compiled(tmp_path, source)
    (ran,) = traced(CommandSpec(command=(program,), resume=NOTHING))
    if ran.ends != ["exit 0"]:
        pytest.skip("this kernel has no 32-bit calls")
    assert ran.notes == [("foreign", "20")]


# The leader alone.

ORPHAN = """
    import os, sys
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(writing)
        os.read(reading, 1)  # until the leader is gone
        open("orphan", "w").write("went on")
        {then}
        os._exit(0)
    os.close(reading)
    open("a", "w").write("a")
    os.write(writing, b"x")
"""


def test_a_child_goes_on_where_only_the_leader_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does its work to the end; what it did is there, and it is no leftover if it ends."""
    monkeypatch.setattr(attempts, "ORPHANS_GRACE_S", 300.0)
    (ran,) = traced(python(ORPHAN.format(then="")), ["kill-leader@write(a)#1"])
    assert ran.ends == ["killed 9", "exit 0"]
    assert contents(ran.files) == {"a": b"", "orphan": b"went on"}
    assert ran.history.attempts[0][1].leftovers == ()


def test_a_child_that_lives_on_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that does not end is named after a while, and is not there in the next attempt."""
    monkeypatch.setattr(attempts, "ORPHANS_GRACE_S", 0.05)
    spec = python(ORPHAN.format(then="import signal; signal.pause()"))
    (ran,) = traced(spec, ["kill-leader@write(a)#1"])
    assert ran.ends == ["killed 9", "exit 0"]
    (left,) = ran.history.attempts[0][1].leftovers
    assert left.startswith(sys.executable)


def test_what_a_child_does_after_the_leader_belongs_to_that_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge by an orphan is booked in the attempt whose leader was killed."""
    monkeypatch.setattr(attempts, "ORPHANS_GRACE_S", 300.0)
    target = scenario(
        tmp_path,
        CHARGES.replace("def main():", "def charge():").replace(
            'scenario = Scenario(task=main, services=("payments",))', ""
        )
        + """
def main():
    if os.path.exists("begun"):
        return
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(writing)
        os.read(reading, 1)
        charge()
        os._exit(0)
    open("begun", "w").close()
    open("never", "w").close()

scenario = Scenario(task=main, services=("payments",))
""",
    )
    (ran,) = traced(target, ["kill-leader@open(never)#1"])
    assert ran.ends == ["killed 9", "exit 0"]
    assert [body.attempt for _, body in ran.history.effects] == [1, 1, 1]
    assert "never" not in ran.files


# Requests that land late.

LOOKS_UP = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "scenarios" / "exact")!r})
from forty_steps import _scenario
looks_up = _scenario("looks up", care="look up", steps=3)
keyed = _scenario("with a key", care="key", steps=3)
"""


def charges(history: History) -> list[tuple[int, str]]:
    """Attempt and amount of each charge, in the order in which they were booked."""
    return [(b.attempt, dict(b.effect.fields)["amount"]) for _, b in history.effects]


@pytest.mark.parametrize(
    ("name", "late", "booked"),
    [
        ("looks_up", "late:1", [(1, "1001"), (1, "1002"), (2, "1002"), (2, "1003")]),
        ("looks_up", "late:2", [(1, "1001"), (2, "1002"), (1, "1002"), (2, "1003")]),
        ("looks_up", "late:end", [(1, "1001"), (2, "1002"), (2, "1003"), (1, "1002")]),
        ("keyed", "late:1", [(1, "1001"), (1, "1002"), (2, "1003")]),
        ("keyed", "late:2", [(1, "1001"), (2, "1002"), (2, "1003")]),
        ("keyed", "late:end", [(1, "1001"), (2, "1002"), (2, "1003")]),
    ],
)
def test_a_late_request_lands_when_it_should(
    tmp_path: Path, name: str, late: str, booked: list[tuple[int, str]]
) -> None:
    """After so many further requests, or at the very end: twice for who looks up, once by a key."""
    (ran,) = traced(scenario(tmp_path, LOOKS_UP, name), [f"{late}@payments.charge#2.received"])
    history = ran.history
    assert [body.fault for _, body in history.landed] == [f"{late}@payments.charge#2.received"]
    assert charges(history) == booked
    landings = [
        i for i, b in history.effects if (b.attempt, dict(b.effect.fields)["amount"]) == (1, "1002")
    ]
    if not landings:
        return
    (landing,) = landings
    before = [b for i, b in history.requests if b.attempt == 2 and i < landing]
    assert len(before) == {"late:1": 1, "late:2": 2, "late:end": 3}[late]
    if late == "late:end":
        assert landing > history.attempts[-1][0]
