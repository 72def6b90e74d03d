"""The sitecustomize of a watched command: it starts the watching and is otherwise not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.probe import where
from tests.probe.conftest import Begin, Supervisor

STOP = "import library\nlibrary.stop()\n"


def _environment(*path: Path, **more: str) -> dict[str, str]:
    folders = [where.site_folder(), *map(str, path)]
    return {"PYTHONPATH": os.pathsep.join(folders), "PATH": os.environ["PATH"], **more}


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_an_interpreter_that_ignores_it_runs_as_ever(
    begin: Begin, tmp_path: Path, option: str
) -> None:
    """Options that switch sitecustomize or PYTHONPATH off leave a task as it is."""
    path = f"import sys; sys.path.append({str(tmp_path / 'site-packages')!r})\n"
    task = begin(path + STOP, option)
    assert task.stop_by_stop(1) == [None]


def test_the_next_sitecustomize_runs_too(begin: Begin, tmp_path: Path) -> None:
    """The sitecustomize that ours hides is executed once, under its own name."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    code = "import builtins\nbuiltins.ran = getattr(builtins, 'ran', 0) + 1\nmine = __file__\n"
    (hidden / "sitecustomize.py").write_text(code)
    path = os.pathsep.join([where.site_folder(), str(tmp_path / "site-packages"), str(hidden)])
    source = (
        f"import sitecustomize\nassert (ran, sitecustomize.mine[:-17]) == (1, {str(hidden)!r})\n"
    )
    task = begin(source + STOP, env={"PYTHONPATH": path})
    assert task.stop_by_stop(1) == [(4, "<module>")]


@pytest.mark.parametrize("broken", ["raise ValueError('theirs')", "import no_such_module", "1 +"])
def test_the_next_sitecustomize_fails_as_it_would_alone(tmp_path: Path, broken: str) -> None:
    """What the hidden sitecustomize raises is reported by the interpreter as without ours."""
    (tmp_path / "sitecustomize.py").write_text(broken)
    ends = [
        subprocess.run(
            [sys.executable, "-c", "print('task')"],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": os.pathsep.join(path), "CHAOSKIT_WHERE": str(tmp_path)},
        )
        for path in ([where.site_folder(), str(tmp_path)], [str(tmp_path)])
    ]
    assert ends[0].returncode == ends[1].returncode == 0
    assert ends[0].stdout == ends[1].stdout == "task\n"
    assert ends[0].stderr.splitlines()[-1] == ends[1].stderr.splitlines()[-1]


def test_nothing_of_it_is_left_to_see(tmp_path: Path) -> None:
    """The task finds the modules and the path that it would find without: no chaoskit of ours."""
    code = (
        "import sys; print(*sys.path); print('sitecustomize' in sys.modules); "
        "print([n for n in sys.modules if n.startswith('chaoskit')])"
    )
    seen = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env=env
        ).stdout
        for env in (
            _environment(tmp_path, CHAOSKIT_WHERE=str(tmp_path)),
            _environment(tmp_path),
            {"PYTHONPATH": str(tmp_path)},
        )
    ]
    assert seen[0] == seen[1] == seen[2]
    assert b"[]" in seen[0]


def test_a_task_may_use_a_chaoskit_of_its_own(begin: Begin, supervisor: Supervisor) -> None:
    """Lines and the task's own crossings come on one connection, in the order they were passed."""
    root = str(Path(where.__file__).parents[2])
    task = begin(
        f"""
        import sys
        sys.path.append({root!r})
        from chaoskit import probe
        probe.point("own.1")
        probe.point("own.2")
        """,
        env=supervisor.env(CHAOSKIT_LINES="1"),
    )
    assert task.ended() == (0, "")
    assert supervisor.all() == [
        "line/task.py:2",
        "line/task.py:3",
        "line/task.py:4",
        "line/task.py:5",
        "own.1",
        "line/task.py:6",
        "own.2",
    ]
    assert supervisor.connections == 1


def test_a_task_may_be_called_chaoskit(begin: Begin, tmp_path: Path) -> None:
    """Another package of that name is the one which the task imports."""
    other = tmp_path / "site-packages" / "chaoskit.py"
    other.parent.mkdir()
    other.write_text("mine = True\n")
    task = begin("import chaoskit\nassert chaoskit.mine\n" + STOP)
    assert task.stop_by_stop(1) == [(4, "<module>")]


def test_trouble_at_the_start_is_silent(begin: Begin, tmp_path: Path) -> None:
    """A start that fails, here for want of a standard module, is not noticed by the task."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "mmap.py").write_text("raise RuntimeError('not here')\n")
    path = os.pathsep.join([where.site_folder(), str(broken), str(tmp_path / "site-packages")])
    task = begin(STOP, env={"PYTHONPATH": path})
    assert task.stop_by_stop(1) == [None]


def test_a_working_folder_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    """A task whose working folder was removed runs as it would, from a relative name or not."""
    task = tmp_path / "task.py"
    task.write_text("import os\nexec(compile('x = 1', 'relative.py', 'exec'))\nprint(x)\n")
    gone = tmp_path / "gone"
    gone.mkdir()
    words = [sys.executable, str(task)]
    code = f"import os; os.rmdir(os.getcwd()); os.execv({words[0]!r}, {words!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=gone,
        env=_environment(CHAOSKIT_WHERE=str(tmp_path)),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_older_and_newer_pythons(
    begin: Begin, pythons: dict[tuple[int, ...], str], tmp_path: Path
) -> None:
    """From 3.8 on another interpreter is watched as well; an older one runs as if it were not."""
    for version, python in pythons.items():
        if version < (3, 8):
            code = "import os, sys; sys.stdout.write('task')"
            done = subprocess.run(
                [python, "-c", code],
                capture_output=True,
                env=_environment(CHAOSKIT_WHERE=str(tmp_path), CHAOSKIT_LINES="1"),
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, b"task", b""), version
        else:
            task = begin("import library\ndef main():\n    library.stop()\nmain()\n", python=python)
            assert task.stop_by_stop(1) == [(3, "main")], version
