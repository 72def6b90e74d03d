"""The copy-on-write view of the file system in which tasks run."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.events import CallSeen, TraceNoted
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, kill, parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trace import IPC
from chaoskit.trial.ladder import view
from chaoskit.trial.loading import load
from chaoskit.trial.overlay import HOME, Layer, Overlays, drop_rights
from chaoskit.trial.supervisor import Supervisor
from tests.ordinary import as_an_ordinary_user

needs_view = pytest.mark.skipif(not view().works, reason="no view of the file system here")
pytestmark = [pytest.mark.view, needs_view]

NAME = f"chaoskit-test-{os.getpid()}"
PLACES = ("/tmp", "/var/tmp", "/run/lock", "/dev/shm", "/etc")


@pytest.fixture
def typed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the command is typed, with a file in it."""
    (tmp_path / "customers.txt").write_text("ada\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sh(script: str, resume: str = "", **more: object) -> CommandSpec:
    """A shell script, as typed."""
    words = ("sh", "-c", resume) if resume else ()
    spec = CommandSpec(command=("sh", "-c", script), resume=words, typed=True)
    return replace_of(spec, **more)


def replace_of(spec: CommandSpec, **more: object) -> CommandSpec:
    """``spec`` with other parts."""
    import msgspec

    return msgspec.structs.replace(spec, **more)


def ran(spec: CommandSpec, *schedules: str) -> list[History]:
    """The trials of a command, one after the other, by one supervisor."""

    async def go() -> list[History]:
        async with Supervisor(load(Target(command=spec)), 0) as supervisor:
            supervisor.conduct = replace(supervisor.conduct, calls=True)
            return [await supervisor.run(parse_schedule(text)) for text in schedules]

    return asyncio.run(go())


def said(history: History) -> list[str]:
    """What the last attempt printed, by line."""
    return history.last.output_tail.splitlines()


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """What is really there below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return found


def test_nothing_real_is_changed_and_a_resume_finds_what_the_task_wrote(typed_in: Path) -> None:
    """In the folder where it was typed, its home, shared memory and elsewhere; by a real kill."""
    home = typed_in / "home"
    home.mkdir()
    places = [typed_in, home, *(p for p in map(Path, PLACES) if os.access(p, os.W_OK))]
    files = [shlex.quote(str(place / NAME)) for place in places]
    first = "".join(f"echo mine > {file}; " for file in files) + "echo more >> customers.txt; "
    kept = everything(typed_in)
    spec = sh(f"{first} echo last > end; exit 1", f"cat {' '.join(files)} customers.txt; ls end")
    (history,) = ran(spec, "kill@open(end)#1")
    assert said(history)[: len(files) + 2] == ["mine"] * len(files) + ["ada", "more"]
    assert not any((place / NAME).exists() for place in places)
    assert everything(typed_in) == kept


def test_each_trial_begins_in_the_same_world(typed_in: Path) -> None:
    """What one trial leaves in any folder is not there for the next one."""
    spec = sh(f"ls /tmp/{NAME} {NAME} 2>&1 | grep -c 'No such'; touch /tmp/{NAME} {NAME}")
    for history in ran(spec, "none", "none"):
        assert said(history) == ["2"]


def test_the_command_finds_its_own_files_by_relative_paths(typed_in: Path) -> None:
    """As if it were typed here: a file beside it, a module, its own name with a dot."""
    (typed_in / "job.py").write_text("print(open('customers.txt').read(), end='')\n")
    (typed_in / "run.sh").write_text("#!/bin/sh\npwd\n")
    (typed_in / "run.sh").chmod(0o755)
    (module,) = ran(CommandSpec(command=(sys.executable, "-m", "job"), typed=True), "none")
    (script,) = ran(CommandSpec(command=("./run.sh",), typed=True), "none")
    assert said(module) == ["ada"]
    assert said(script) == [str(typed_in)]


def test_an_older_copy_has_what_was_there_before_the_task(typed_in: Path) -> None:
    """A file that the task has written over has its content back, in the work folder too; what the
    task has made is gone.
    """
    state = "$CHAOSKIT_STATE_DIR/own"
    script = (
        f"cat customers.txt; ls . $CHAOSKIT_STATE_DIR; echo bob | tee customers.txt new {state}"
    )
    (history,) = ran(sh(f"{script} >&2"), "- / damage:stale:**/*")
    first, second = (body.output_tail for _, body in history.attempts)
    assert first == second
    assert [body.fault for _, body in history.landed] == ["damage:stale:**/*"]
    assert (typed_in / "customers.txt").read_text() == "ada\n"


def test_a_snapshot_holds_what_was_written_anywhere(typed_in: Path) -> None:
    """A file that was changed, one that was removed, and a new one, each where it lies."""
    (typed_in / "old").write_text("old\n")
    script = (
        f"rm old; echo new >> customers.txt; mkdir -p /tmp/{NAME}/deep; echo a > /tmp/{NAME}/deep/a"
    )
    look = f"cat /tmp/{NAME}/deep/a customers.txt; ls old 2>&1 | grep -c 'No such'"
    fault = kill(parse_schedule(f"kill@open(/tmp/{NAME}/deep/a)#1+after").attempts[0][0].point)

    async def go() -> tuple[History, History]:
        async with Supervisor(load(Target(command=sh(script, look))), 0) as supervisor:
            album = await supervisor.record([fault])
            await supervisor.run(Schedule())  # another world in between
            copied = await supervisor.resume(album[fault], Schedule(((fault,),)))
            return copied, await supervisor.run(Schedule(((fault,),)))

    copied, real = asyncio.run(go())
    assert said(copied) == said(real) == ["ada", "new", "1"]
    assert (typed_in / "old").exists()


def test_calls_are_named_by_where_their_files_lie(
    typed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the command without a folder, in the home by ~, in the work folder, elsewhere whole;
    what is a cache is no point.
    """
    monkeypatch.setenv("HOME", tempfile.mkdtemp(dir="/dev/shm"))
    script = (
        f"echo > here; echo > $HOME/.job; echo > $CHAOSKIT_STATE_DIR/a; echo > /tmp/{NAME}; "
        "mkdir __pycache__; echo > __pycache__/job.pyc; echo > /dev/null"
    )
    (history,) = ran(sh(script), "none")
    Path(os.environ["HOME"]).rmdir()
    calls = {seen.call for _, seen in history.of(CallSeen)}
    opened = {call for call in calls if call.startswith("open(")}
    assert opened == {f"open({name})#1" for name in ("here", "~/.job", "state:a", f"/tmp/{NAME}")}
    assert not any("pycache" in call and "job" in call for call in calls)


def test_the_work_folder_has_one_path(typed_in: Path) -> None:
    """In every run and every worker: what a task stores of it holds for the next one."""
    spec = sh("echo $CHAOSKIT_STATE_DIR; ls -A $CHAOSKIT_STATE_DIR")
    paths = [said(history) for _ in range(2) for history in ran(spec, "none")]
    assert paths == [[f"{HOME}/state"]] * 2


def test_prepare_writes_where_the_task_will_be(tmp_path: Path) -> None:
    """A whole path in a file that prepare= makes is one that the task finds."""
    file = tmp_path / "scenario.py"
    file.write_text(
        "from chaoskit import Scenario\n"
        "def fill(folder, seed):\n"
        "    (folder / 'data').mkdir()\n"
        "    (folder / 'conf').write_text(f'{folder}/data')\n"
        "scenario = Scenario(command=('sh', '-c', 'ls -d $(cat conf); touch $(cat conf)/used; "
        "ls data'), prepare=fill)\n"
    )

    async def go() -> list[History]:
        async with Supervisor(load(Target(scenario=str(file))), 0) as supervisor:
            return [await supervisor.run(Schedule()) for _ in range(2)]

    for history in asyncio.run(go()):
        assert said(history) == [f"{HOME}/state/data", "used"]


def test_a_prepare_that_dies_is_an_error(tmp_path: Path) -> None:
    """Without a word of its own, too: nothing is judged in a world that is half made."""
    file = tmp_path / "scenario.py"
    file.write_text(
        "import os\n"
        "from chaoskit import Scenario\n"
        "scenario = Scenario(command=('true',), prepare=lambda folder, seed: os._exit(3))\n"
    )

    async def go() -> None:
        async with Supervisor(load(Target(scenario=str(file))), 0):
            pass

    with pytest.raises(ScenarioError, match="its process ended with status 3"):
        asyncio.run(go())


def test_what_is_hidden_is_not_found(typed_in: Path) -> None:
    """A folder that a real run has left, by --clean; and a name that is not there is refused."""
    (typed_in / "done").mkdir()
    (typed_in / "done" / "1").touch()
    (history,) = ran(sh("ls done 2>&1 | grep -c 'No such'", clean=("done",)), "none")
    assert said(history) == ["1"]
    assert (typed_in / "done" / "1").exists()
    with pytest.raises(UsageError, match="--clean: there is no"):
        ran(sh("true", clean=("gone",)), "none")


def test_outputs_are_found_wherever_they_lie(typed_in: Path) -> None:
    """By the names that points give to files; through a link to an absolute path, too."""
    job = f"~/{NAME}.d"
    places = ("here", f"{job}/rows", f"/var/tmp/{NAME}.d/rows", "state:rows", "latest")
    script = (
        f"mkdir {job} /var/tmp/{NAME}.d; echo 1 > here; echo 2 > {job}/rows; "
        f"echo 3 > /var/tmp/{NAME}.d/rows; echo 4 > $CHAOSKIT_STATE_DIR/rows; "
        f"ln -s /var/tmp/{NAME}.d/rows latest"
    )
    patterns = ("her*", f"{job}/*", f"/var/tmp/{NAME}*/rows", "state:*", "latest", "/no/such/*")
    (history,) = ran(sh(script, outputs=patterns), "none")
    digests = {
        name: hashlib.sha256(f"{n}\n".encode()).hexdigest() for n, name in enumerate(places, 1)
    }
    assert history.digests == {**digests, "latest": digests[places[2]]}


def test_two_supervisors_do_not_meet(typed_in: Path) -> None:
    """One holds a lock in a folder for temporary files; the other one finds none."""
    (typed_in / "gate").touch()
    spec = sh(f"mkdir /tmp/{NAME}.lock && echo mine")

    async def go() -> list[History]:
        one, two = (Supervisor(load(Target(command=spec)), 0) for _ in range(2))
        async with one, two:
            return list(
                await asyncio.gather(*(s.run(Schedule()) for s in (one, two, one, two)[:2]))
            )

    assert [said(history) for history in asyncio.run(go())] == [["mine"]] * 2


MESSAGES = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
print(libc.msgget(4711, 0o600 | (0o1000 if sys.argv[1] == "make" else 0)) >= 0)
"""


def test_objects_that_are_no_files_outlive_a_kill_and_no_trial(typed_in: Path) -> None:
    """A queue of System V's is there for the resume, not for the next trial, and is noted."""
    (typed_in / "queue.py").write_text(MESSAGES)
    spec = sh(
        f"{sys.executable} queue.py make; echo > end; exit 1", f"{sys.executable} queue.py look"
    )
    killed, plain = ran(spec, "kill@open(end)#1", "none")
    assert said(killed) == ["True"]
    assert [n.what for _, n in killed.of(TraceNoted)] == [IPC]
    (look,) = ran(sh(f"{sys.executable} queue.py look"), "none")
    assert said(look) == ["False"]
    assert plain.attempts


def test_an_ordinary_user_has_a_view_of_the_same_kind() -> None:
    """Nothing real is changed; what he may not write he still may not, also by a fork of a process
    that has the powers of the namespace; others' folders that everybody may write to are his.
    """

    def deed(folder: Path) -> None:
        base = folder / "base"
        (base / "home").mkdir(parents=True)
        overlays = Overlays(str(base))
        if overlays.lends_rights:
            drop_rights()
        written = [folder / "here", Path("/var/tmp", NAME), Path("/tmp", NAME)]
        for file in written:
            file.write_text("a")
        assert subprocess.check_output(["cat", *map(str, written)]) == b"aaa"
        if os.geteuid() != 0:
            with pytest.raises(PermissionError):
                Path("/etc", NAME).write_text("a")
        store = f"/proc/self/fd/{overlays.descriptor}"
        uppers = {layer.at: overlays.upper(layer.label) for layer in overlays.layers}
        assert os.listdir(f"{store}/{uppers['/tmp']}") == [NAME]

    as_an_ordinary_user(deed)
    assert not any(Path(place, NAME).exists() for place in ("/tmp", "/var/tmp", "/etc"))


MOUNTED = """
import errno, sys
from chaoskit.trial.overlay import Overlays
found = Overlays(sys.argv[1])
with open(sys.argv[2]) as file:
    assert file.read() == "mounted", "what is below it is shown"
assert sys.argv[2] in [layer.at for layer in found.closed]
for again in range(2):
    try:
        open(sys.argv[2], "w")
    except OSError as error:
        assert error.errno == errno.EROFS, error
    labels = found.renew([layer.label for layer in found.layers])
    found.cover(labels)
assert len(set(labels)) == len(labels) > 3
with open(sys.argv[2]) as file:
    assert file.read() == "mounted"
print("seen")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file")
def test_a_single_mounted_file_is_seen_and_can_only_be_read(tmp_path: Path) -> None:
    """As a container's /etc/hosts, now and after the view was renewed."""
    above, below = tmp_path / "above", tmp_path / "below"
    above.write_text("mounted")
    below.write_text("")
    base = tmp_path / "base"
    (base / "home").mkdir(parents=True)
    words = [shlex.quote(str(word)) for word in (above, below, sys.executable, MOUNTED, base)]
    script = "mount --bind {0} {1} && exec {2} -c {3} {4} {1}".format(*words)
    ran = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("seen\n", "")


def test_no_two_layers_have_one_name() -> None:
    """Whatever folders are called, and none that the harness's own folders have."""
    places = ("/a/b", "/a+b", "/a:b", "/a,b", "/a%b", "/state", "/services", "/é")
    labels = [Layer(at, "").label for at in places]
    assert len({*labels, "state", "services"}) == len(places) + 2
    assert not any(set(label) & set("/:,\\+") for label in labels)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No folder of ours stays in shared memory, and no mount."""
    yield
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert "chaoskit" not in mounts
