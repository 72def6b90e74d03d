"""Where a task is, read by another process while the task stands still in a system call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.probe import where
from tests.probe.conftest import Begin


def test_a_line_that_stands_in_a_system_call_is_shown(begin: Begin) -> None:
    """While a thread is blocked in a read, its file holds the line that made the read."""
    task = begin(
        """
        import os, sys, threading

        def main():
            tid = threading.get_native_id()
            os.write(1, b"%d\\n" % tid), os.read(0, 1)

        main()
        """
    )
    assert task.stop_by_stop(1) == [(6, "main")]


def test_a_call_into_a_library_is_shown_as_the_line_that_makes_it(begin: Begin) -> None:
    """Frames that are not own code never show, however deep they are."""
    task = begin(
        """
        import library

        class Step:
            def run(self):
                library.stop()
                library.call_and_stop(library.call_and_stop, int)

        Step().run()
        library.stop()
        """
    )
    assert task.stop_by_stop(4) == [
        (6, "Step.run"),
        (7, "Step.run"),
        (7, "Step.run"),
        (10, "<module>"),
    ]


ENTRY = """#!/usr/bin/env python3
import re
import sys
from prog.__main__ import main
if __name__ == '__main__':
    sys.argv[0] = re.sub('x', '', sys.argv[0])
    sys.exit(main())
"""
"""As pip writes it."""


@pytest.mark.parametrize("started", ["as a module", "by its entry script"])
def test_an_installed_program_is_own_code(begin: Begin, tmp_path: Path, started: str) -> None:
    """Whoever runs a program that was installed sees its lines, and none of its libraries'."""
    package = tmp_path / "site-packages" / "prog"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "work.py").write_text("import library\n\ndef work():\n    library.stop()\n")
    main = "from prog import work\n\ndef main():\n    work.work()\n    work.library.stop()\n"
    (package / "__main__.py").write_text(main + "\nif __name__ == '__main__':\n    main()\n")
    script = tmp_path / "prog"
    script.write_text(ENTRY)
    task = begin("", *(("-m", "prog") if started == "as a module" else (str(script),)))
    shown = []
    for _ in range(2):
        shown.append(where.read(str(task.where), task.stopped()))
        task.go()
    assert task.ended() == (0, "")
    inside, outside = str(package / "work.py"), str(package / "__main__.py")
    assert shown == [(inside, 4, "work"), (outside, 5, "main")]


def test_after_a_return_the_caller_is_shown_again(begin: Begin) -> None:
    """When own code returns, what goes on is its own caller's line, through library frames too."""
    task = begin(
        """
        import library

        def inner():
            library.stop()
            return 1

        def outer():
            inner(), library.stop()
            library.call_and_stop(inner)

        outer()
        """
    )
    assert task.stop_by_stop(4) == [(5, "inner"), (9, "outer"), (5, "inner"), (10, "outer")]


def test_a_lambda_is_own_code(begin: Begin) -> None:
    """A lambda's line is shown while it runs, and its caller's after it."""
    task = begin(
        """
        import library

        library.call_and_stop(
            lambda:
                library.stop()
        )
        """
    )
    inside, after = task.stop_by_stop(2)
    assert inside == (6, "<lambda>")
    assert after == (4, "<module>")


def test_an_exception_leaves_the_frame_that_handles_it(begin: Begin) -> None:
    """After an exception the line of its handler is shown, or of the call that swallowed it."""
    task = begin(
        """
        import contextlib
        import library

        def fail():
            raise KeyError

        def main():
            try:
                fail()
            except KeyError:
                library.stop()
            finally:
                library.stop()
            with contextlib.suppress(KeyError):
                fail()
            library.stop()

        main()
        """
    )
    assert task.stop_by_stop(3) == [(12, "main"), (14, "main"), (17, "main")]


def test_a_generator_is_left_and_entered_again(begin: Begin) -> None:
    """A generator shows its line while it runs and its consumer's while it is suspended."""
    task = begin(
        """
        import library

        def numbers():
            try:
                library.stop(); yield 1; library.stop()
            finally:
                library.stop()

        def main():
            steps = numbers()
            next(steps), library.stop()
            next(steps, None), library.stop()
            again = numbers()
            next(again), again.close(), library.stop()

        main()
        """
    )
    assert task.stop_by_stop(8) == [
        (6, "numbers"),
        (12, "main"),
        (6, "numbers"),
        (8, "numbers"),
        (13, "main"),
        (6, "numbers"),
        (8, "numbers"),
        (15, "main"),
    ]


def test_coroutines_are_shown_when_they_run(begin: Begin) -> None:
    """A coroutine's line is shown each time it goes on, across awaits, tasks and cancellation."""
    task = begin(
        """
        import asyncio
        import library

        async def step(n):
            library.stop(); await asyncio.sleep(0); library.stop()

        async def main():
            await step(1)
            await asyncio.gather(step(2), step(3))
            waiting = asyncio.create_task(forever())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            asyncio.get_running_loop().call_soon(library.stop)
            await asyncio.sleep(0)
            library.stop()

        async def forever():
            try:
                await asyncio.sleep(3600)
            finally:
                library.stop()

        asyncio.run(main())
        """
    )
    assert task.stop_by_stop(9) == [
        *[(6, "step")] * 6,
        (23, "forever"),
        (25, "<module>"),  # a callback of the loop's own runs below the line that runs the loop
        (17, "main"),
    ]


def test_threads_show_themselves_each_in_its_own_file(begin: Begin) -> None:
    """Two threads that stand still at the same time are read at their own lines."""
    task = begin(
        """
        import threading, library

        def work():
            library.stop()

        thread = threading.Thread(target=work)
        thread.start(); library.stop(); thread.join()
        """
    )
    tids = {task.stopped(), task.stopped()}
    assert task.process.pid in tids
    assert {task.at(tid) for tid in tids} == {(5, "work"), (8, "<module>")}
    assert task.at(task.process.pid) == (8, "<module>")
    task.go()
    task.go()
    assert task.ended() == (0, "")


def test_a_forked_child_shows_itself(begin: Begin) -> None:
    """A forked child has a file of its own from its first moment, and leaves its parent's alone."""
    task = begin(
        """
        import os, library

        def main():
            if not os.fork(): library.stop(); work(); os._exit(0)
            os.wait(), library.stop()

        def work():
            library.stop()

        main()
        """
    )
    assert task.stop_by_stop(3) == [(5, "main"), (9, "work"), (6, "main")]
    assert len(list(task.where.iterdir())) == 2


def test_a_process_that_a_task_starts_shows_itself(begin: Begin) -> None:
    """A Python that the task runs as a command is watched too, for it inherits the variables."""
    task = begin(
        """
        import subprocess, sys
        if sys.argv[1:]:
            import library
            library.stop()
        else:
            subprocess.run([sys.executable, __file__, "child"], check=True)
        """
    )
    child = task.stopped()
    assert child != task.process.pid
    assert task.at(child) == (5, "<module>")
    assert task.at(task.process.pid) == (7, "<module>")
    task.go()
    assert task.ended() == (0, "")


def test_a_kill_leaves_the_last_line_behind(begin: Begin) -> None:
    """What a killed process showed last can still be read when it has gone."""
    task = begin("import library\nlibrary.stop()\n")
    tid = task.stopped()
    task.process.kill()
    task.process.wait()
    assert task.at(tid) == (2, "<module>")


def test_other_code_gets_no_events(begin: Begin) -> None:
    """A library's frame is not traced below a traced one, so that it runs at its usual speed."""
    task = begin(
        """
        import sys, library
        def main():
            assert sys._getframe().f_trace is not None
            assert not library.traced()
            library.stop()
        main()
        """
    )
    assert task.stop_by_stop(1) == [(6, "main")]


def test_many_threads_leave_nothing_behind(begin: Begin) -> None:
    """A thread that ended gives its file to the next: descriptors and files do not grow."""
    task = begin(
        """
        import os, threading, library

        def work():
            return 1

        def many():
            for _ in range(300):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()

        many()
        before = len(os.listdir("/proc/self/fd"))
        many()
        assert len(os.listdir("/proc/self/fd")) == before
        library.stop()
        """
    )
    task.stopped()
    assert len(list(task.where.iterdir())) < 10
    task.go()
    assert task.ended() == (0, "")


def test_a_task_that_closes_every_descriptor_is_still_shown(begin: Begin) -> None:
    """A daemon's closerange neither stops the showing nor lets it close a file of the task's."""
    task = begin(
        """
        import os, threading, library

        def work():
            return 1

        os.closerange(3, 1000)
        files = [open("/dev/null") for _ in range(20)]
        thread = threading.Thread(target=work)
        thread.start(); thread.join()
        if os.fork() == 0:
            [os.fstat(file.fileno()) for file in files]
            library.stop()
            os._exit(0)
        assert os.wait()[1] == 0
        [os.fstat(file.fileno()) for file in files]
        library.stop()
        """
    )
    assert task.stop_by_stop(2) == [(13, "<module>"), (17, "<module>")]


def test_a_task_with_a_trace_function_keeps_it(begin: Begin) -> None:
    """A debugger or a coverage tool that the task sets is the one that runs."""
    task = begin(
        """
        import sys, library
        seen = []
        def tracer(frame, event, arg):
            seen.append(event)
        sys.settrace(tracer)
        def work(): pass
        work()
        sys.settrace(None)
        assert seen == ["call"], seen
        library.stop()
        """
    )
    task.stopped()
    task.go()
    assert task.ended() == (0, "")


def test_where_it_cannot_write_the_task_runs_on(begin: Begin, tmp_path: Path) -> None:
    """A folder that is not there costs the location and nothing else."""
    task = begin(
        "import library\nlibrary.stop()\n", env={"CHAOSKIT_WHERE": str(tmp_path / "no" / "folder")}
    )
    assert task.stop_by_stop(1) == [None]


def test_a_running_process_may_start_it(begin: Begin, tmp_path: Path) -> None:
    """start() in a fork of a process that ran before shows what it enters from then on."""
    root = str(Path(where.__file__).parents[2])
    task = begin(
        """
        import os, library
        from chaoskit.probe import lines, where

        def main():
            library.stop()

        if os.fork() == 0:
            assert where.start() and where.start() and not lines.start()
            main()
            os._exit(0)
        assert os.wait()[1] == 0
        main()
        """,
        env={"PYTHONPATH": os.pathsep.join([root, str(tmp_path / "site-packages")])},
    )
    assert task.stop_by_stop(2) == [(6, "main"), None]


def test_nothing_is_loaded_when_nobody_asks(tmp_path: Path) -> None:
    """Without its variable start() does nothing: no trace function, no file, no thread hook."""
    code = (
        "import sys, threading; from chaoskit.probe import lines, where; "
        "print(where.start(), lines.start(), sys.gettrace(), threading._trace_hook)"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CHAOSKIT_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": str(Path(where.__file__).parents[2])},
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["False", "False", "None", "None"], done.stderr


def test_it_is_light(tmp_path: Path) -> None:
    """A command that is watched loads threading, mmap and what these need, and no package."""
    code = "import sys; print(*sys.modules)"
    loaded = []
    for watched in ({}, {"CHAOSKIT_WHERE": str(tmp_path)}):
        environment = {"PYTHONPATH": where.site_folder(), **watched}
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        loaded.append(set(done.stdout.split()))
    light = {"atexit", "threading", "mmap", "functools", "collections", "types", "operator"}
    light |= {"itertools", "keyword", "reprlib", "__future__"}
    assert {name for name in loaded[1] - loaded[0] if not name.startswith("_")} <= light


@pytest.mark.parametrize("name", ["a:b.py", "späte Löhne.py", "two\nlines.py", "\udcff.py"])
def test_any_name_of_a_file_is_shown(tmp_path: Path, name: str) -> None:
    """A file's name may hold a colon, a newline (shown as ?) or bytes that are not UTF-8."""
    (tmp_path / name).write_text("import os\nos._exit(0)\n")
    process = subprocess.Popen(
        [sys.executable, name],
        cwd=tmp_path,
        env={"PYTHONPATH": where.site_folder(), "CHAOSKIT_WHERE": str(tmp_path)},
    )
    assert process.wait() == 0
    expected = str(tmp_path / name).replace("\n", "?")
    assert where.read(str(tmp_path), process.pid) == where.Location(expected, 2, "<module>")


def test_a_long_path_loses_its_beginning(tmp_path: Path) -> None:
    """A location that does not fit keeps its end: the line and the function are right."""
    folder = tmp_path
    for _ in range(5):
        folder /= "x" * 240
    folder.mkdir(parents=True)
    (folder / "task.py").write_text("import os\nos._exit(0)\n")
    process = subprocess.Popen(
        [sys.executable, "task.py"],
        cwd=folder,
        env={"PYTHONPATH": where.site_folder(), "CHAOSKIT_WHERE": str(tmp_path)},
    )
    assert process.wait() == 0
    found = where.read(str(tmp_path), process.pid)
    assert found is not None
    assert found[1:] == (2, "<module>")
    assert found.file.startswith("...xxx") and found.file.endswith("xxx/task.py")


@pytest.mark.parametrize("content", [b"", bytes(1024), b"task.py:1:f", b"task.py\n", b"a:b:c\n"])
def test_what_is_no_location_reads_as_none(tmp_path: Path, content: bytes) -> None:
    """A file that is missing, empty or half written is no location."""
    (tmp_path / "7").write_bytes(content)
    assert where.read(str(tmp_path), 7) is None
    assert where.read(str(tmp_path), 8) is None
