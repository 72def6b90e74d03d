"""Lines as crossings, heard over a real socket."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.model.points import NAME
from chaoskit.probe import where
from tests.probe.conftest import Begin, Supervisor, Task

PRELUDE = """\
from library import *; kept, manager = Kept(), Manager()
def own():
    return act()
def generate():
    yield act()
generator = generate()
"""


def _lines(supervisor: Supervisor) -> list[str]:
    """What is left of the crossings when ``line/task.py:`` is taken away."""
    heard = supervisor.all()
    assert all(re.fullmatch(NAME, name) for name in heard)
    return [name.removeprefix("line/task.py:") for name in heard]


def test_lines_are_crossings_in_the_order_in_which_they_run(
    begin: Begin, supervisor: Supervisor
) -> None:
    """Each line of own code is reported once each time it runs, those of libraries never."""
    task = begin(
        """
        import library
        def step(n):
            m = n + 1
            return m
        for n in range(2):
            step(n)
        library.traced()
        """,
        env=supervisor.env(CHAOSKIT_LINES="1"),
    )
    assert task.ended() == (0, "")
    assert _lines(supervisor) == [*"236", *"745", "6", *"745", *"68"]


def test_a_line_has_not_run_while_its_crossing_waits(
    begin: Begin, supervisor: Supervisor, tmp_path: Path
) -> None:
    """At a crossing the lines before it have had all their effects and its own has had none."""
    effects = tmp_path / "effects"
    seen: list[bool] = []
    for name in ("line/task.py:3", "line/task.py:4"):
        supervisor.wait_at(name, lambda: seen.append(effects.exists()))
    task = begin(
        f"""
        import os
        os.mkdir({str(effects)!r})
        os.rmdir({str(effects)!r})
        """,
        env=supervisor.env(CHAOSKIT_LINES="1"),
    )
    assert task.ended() == (0, "")
    supervisor.close()
    assert seen == [False, True]


def test_between_two_actions_of_a_line_there_is_a_crossing(
    begin: Begin, supervisor: Supervisor, tmp_path: Path
) -> None:
    """After an effect and before its record there is a crossing, though both are on one line."""
    seen: list[tuple[bool, bool]] = []
    paid, recorded = tmp_path / "paid", tmp_path / "recorded"

    def look() -> None:
        seen.append((paid.exists(), recorded.exists()))

    supervisor.wait_at("line/task.py:3", look)
    supervisor.wait_at("line/task.py:3/2", look)
    supervisor.wait_at("line/task.py:4", look)
    task = begin(
        f"""
        import os
        os.mkdir(os.mkdir({str(paid)!r}) or {str(recorded)!r})
        os.getpid()
        """,
        env=supervisor.env(CHAOSKIT_LINES="1"),
    )
    assert task.ended() == (0, "")
    supervisor.close()
    assert seen == [(False, False), (True, False), (True, True)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("act()", ["7"]),
        ("x = [own, (1, 2), own]", ["7"]),
        ("act(act())", ["7", "7/2"]),
        ("act(*act(act()))", ["7", "7/2", "7/3"]),
        ("kept['key'] = act()", ["7", "7/2"]),
        ("del kept[act()]", ["7", "7/2"]),
        ("with manager: act()", ["7", "7/2", "7/3"]),
        ("act(own())", ["7", "3", "7/2"]),
        ("act(next(generator))", ["7", "5", "7/2"]),
        ("for x in (1, 2): act(x)", ["7", "7", "7"]),
        ("act(\n    act()\n)", ["7", "8", "7"]),
        ("try: own(); raise KeyError\nexcept KeyError: act()", ["7", "3", "8"]),
    ],
)
def test_what_may_act(begin: Begin, supervisor: Supervisor, line: str, expected: list[str]) -> None:
    """A crossing precedes each call, store by key and end of a with that follows another one."""
    task = begin(PRELUDE + line, env=supervisor.env(CHAOSKIT_LINES="1"))
    assert task.ended() == (0, "")
    heard = _lines(supervisor)
    assert heard[heard.index("7") :] == expected


def test_an_await_may_have_acted(begin: Begin, supervisor: Supervisor) -> None:
    """Between what was awaited and what is done with it there is a crossing."""
    task = begin(
        """
        import asyncio
        from library import Later, act
        async def main():
            later = Later()
            act(await later)
            act(await Later())
        asyncio.run(main())
        """,
        env=supervisor.env(CHAOSKIT_LINES="1"),
    )
    assert task.ended() == (0, "")
    assert _lines(supervisor) == [*"2348", "8/2", *"56", "6/1", "7", "7/2"]


def test_at_a_crossing_the_location_is_its_line(
    begin: Begin, supervisor: Supervisor, tmp_path: Path
) -> None:
    """With both watchers on, a task that waits at a crossing is shown at the line of it."""
    shown: list[where.Location | None] = []
    tasks: list[Task] = []

    def look() -> None:
        shown.append(where.read(str(tmp_path / "where"), tasks[0].process.pid))

    supervisor.wait_at("line/task.py:4", look)
    source = "import library\nlibrary.stop()\ndef main():\n    library.act()\nmain()\n"
    tasks.append(begin(source, env=supervisor.env(CHAOSKIT_LINES="1")))
    tasks[0].stopped()
    tasks[0].go()
    assert tasks[0].ended() == (0, "")
    supervisor.close()
    assert shown == [where.Location(str(tmp_path / "task.py"), 4, "main")]


def test_threads_cross_too(begin: Begin, supervisor: Supervisor) -> None:
    """Every line of every thread is reported, on one connection."""
    task = begin(
        """
        import threading
        def work():
            x = 1
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """,
        env=supervisor.env(CHAOSKIT_LINES="1"),
    )
    assert task.ended() == (0, "")
    assert _lines(supervisor).count("4") == 8
    assert supervisor.connections == 1


def test_a_forked_child_crosses_on_its_own_connection(begin: Begin, supervisor: Supervisor) -> None:
    """A forked child's lines are reported too."""
    task = begin(
        """
        import os
        if os.fork() == 0:
            child = True
            os._exit(0)
        os.wait()
        """,
        env=supervisor.env(CHAOSKIT_LINES="1"),
    )
    assert task.ended() == (0, "")
    assert sorted(_lines(supervisor)) == ["2", "3", "4", "5", "6"]
    assert supervisor.connections == 2


def test_a_handler_in_the_middle_of_a_crossing_does_not_block(
    begin: Begin, supervisor: Supervisor
) -> None:
    """Own code that runs while its thread is reporting already is not reported, and runs."""
    tasks: list[Task] = []

    def interrupt() -> None:
        tasks[0].process.send_signal(signal.SIGUSR1)
        tasks[0].stopped()  # the handler has run, and the crossing is not answered yet

    supervisor.wait_at("own", interrupt)
    root = str(Path(where.__file__).parents[2])
    source = f"""
        import os, signal, sys
        sys.path.append({root!r})
        from chaoskit import probe
        def handler(*_):
            os.write(1, b"1\\n")
        signal.signal(signal.SIGUSR1, handler)
        import library
        library.stop()
        probe.point("own")
        """
    tasks.append(begin(source, env=supervisor.env(CHAOSKIT_LINES="1")))
    tasks[0].stopped()
    tasks[0].go()
    assert tasks[0].process.wait(500) == 0
    assert _lines(supervisor) == [*"2345789", "10", "own"]


def test_what_a_handler_raises_reaches_the_task(begin: Begin, supervisor: Supervisor) -> None:
    """An exception from a signal handler during a report is the task's to handle, not swallowed."""
    tasks: list[Task] = []

    def interrupt() -> None:
        tasks[0].process.send_signal(signal.SIGALRM)
        tasks[0].stopped()

    supervisor.wait_at("line/task.py:9", interrupt)
    source = """
        import os, signal, library
        def handler(*_):
            os.write(1, b"1\\n")
            raise TimeoutError
        signal.signal(signal.SIGALRM, handler)
        library.stop()
        try:
            library.act()
            os._exit(3)
        except TimeoutError:
            pass
        """
    tasks.append(begin(source, env=supervisor.env(CHAOSKIT_LINES="1")))
    tasks[0].stopped()
    tasks[0].go()
    assert tasks[0].process.wait(500) == 0


@pytest.mark.parametrize("present", [True, False])
def test_without_a_supervisor_the_task_runs_on(
    begin: Begin, tmp_path: Path, *, present: bool
) -> None:
    """A supervisor that goes away, or never was, costs the crossings and nothing else."""
    path = str(tmp_path / "probe")
    task_environment = {"CHAOSKIT_PROBE": path, "CHAOSKIT_LINES": "1"}
    with socket.socket(socket.AF_UNIX) as listener:
        if present:
            listener.bind(path)
            listener.listen()
        task = begin("import library\nlibrary.stop()\nx = 1\ny = 2\n", env=task_environment)
        task.stopped()
        if present:
            listener.accept()[0].close()
    task.go()
    assert task.ended() == (0, "")


@pytest.mark.parametrize(("lines", "probe"), [("", True), ("0", True), ("1", False)])
def test_nobody_asked(begin: Begin, supervisor: Supervisor, lines: str, *, probe: bool) -> None:
    """Without its variable, or without a trial, no line is traced."""
    environment = supervisor.env(CHAOSKIT_LINES=lines, CHAOSKIT_WHERE="")
    if not probe:
        environment["CHAOSKIT_PROBE"] = ""
    task = begin("import sys\nassert sys.gettrace() is None\n", env=environment)
    assert task.ended() == (0, "")
    assert supervisor.all() == []


def test_any_file_name_makes_a_valid_name(supervisor: Supervisor, tmp_path: Path) -> None:
    """Characters that a crossing's name may not have become underscores."""
    (tmp_path / "späte löhne:1.py").write_text("pass\n")
    environment = supervisor.env(CHAOSKIT_LINES="1", PYTHONPATH=where.site_folder())
    subprocess.run([sys.executable, "späte löhne:1.py"], check=True, cwd=tmp_path, env=environment)
    assert supervisor.all() == ["line/sp_te_l_hne_1.py:1"]


def test_other_pythons_cross_the_same_lines(
    begin: Begin, pythons: dict[tuple[int, ...], str], tmp_path: Path
) -> None:
    """From 3.10 on another interpreter reports the same crossings; an older one none."""
    for version, python in pythons.items():
        listening = Supervisor(tmp_path / "probe{}.{}".format(*version))
        environment = listening.env(CHAOSKIT_LINES="1")
        source = PRELUDE + "act(next(generator), own())\nact(act(), kept.update(a=own()))\n"
        task = begin(source, env=environment, python=python)
        assert task.process.wait(500) == 0
        if version < (3, 10):
            assert listening.all() == []
        else:
            before = ["1", "1/2", "2", "4", "6"]
            expected = [*before, "7", "5", "7/2", "3", "7/3", "8", "8/2", "3", "8/3", "8/4"]
            assert _lines(listening) == expected, version
