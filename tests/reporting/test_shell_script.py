"""The script that shows a finding by strace alone: when there is one, and that it does."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit import __version__
from chaoskit.campaign.folder import find_run
from chaoskit.campaign.mechanisms import traced
from chaoskit.campaign.store import Store
from chaoskit.cli.main import main
from chaoskit.model.events import AttemptEnded, Body, CallSeen, Event
from chaoskit.model.findings import Finding
from chaoskit.model.history import History
from chaoskit.model.token import CommandSpec, ReplayToken, Target
from chaoskit.reporting.regression import Exhibit
from chaoskit.reporting.shell_script import shell_script, why_none
from chaoskit.reporting.summary import summarize

APPENDS = """if [ ! -e done ]; then
  echo one >> log
  echo two >> log
  echo x > done
fi
cat log
"""
"""It begins again without looking at what is there."""

COUNTS = """import os, sys
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for n in range(4):
    os.write(1, b"to a pipe\\n")
    with open("other", "w") as other:
        other.write(str(n))
    again = os.open("log", os.O_WRONLY | os.O_APPEND)
    os.write(again, f"{n} ".encode())
    os.close(again)
    os.write(log, b"and ")
print(open("log").read())
"""
"""The same file by two descriptors, and writes to others between."""


def run_of(*bodies: Body) -> History:
    """A history of these."""
    return History(tuple(Event(index, index, body) for index, body in enumerate(bodies)))


def seen(call: str, *, alone: bool = True) -> CallSeen:
    """A call of the first attempt."""
    return CallSeen(attempt=1, call=call, alone=alone)


def token(schedule: str = "kill@write(log)#2", **parts: object) -> ReplayToken:
    """Of a trial of a command that runs where it is typed."""
    given = {"command": ("sh", "task.sh"), "typed": True, **parts}
    spec = CommandSpec(**given)  # type: ignore[arg-type]
    return ReplayToken(target=Target(command=spec), seed=0, schedule=schedule)


BASELINE = run_of(*map(seen, ("open(log)#1", "write(log)#1", "write(out)#1", "write(log)#2")))


def test_a_kill_before_a_call_on_an_open_file_has_a_script() -> None:
    """The plain case: one thread, one process, a file that keeps its name."""
    assert why_none(token(), BASELINE) == ""


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ("kill@write(log)#2+after", "one plain kill before"),
        ("kill@p1:write(log)#2", "one plain kill before"),
        ("kill-leader@write(log)#2", "one plain kill before"),
        ("kill@write(log)#2 / kill@write(log)#1", "one plain kill before"),
        ("kill@20ms", "one plain kill before"),
        ("kill@rename(a->log)#1", "would not count rename"),
        ("kill@open(log)#1", "would not count open"),
        ("kill@write(*.tmp)#1", "another name"),
        ("kill@write(/etc/x)#1", "another folder"),
        ("kill@write(log)#3", "does not come to this call"),
    ],
)
def test_other_trials_have_none(schedule: str, says: str) -> None:
    """What strace cannot do, or does not count alike, is said in a line."""
    assert says in why_none(token(schedule), BASELINE)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"services": ("payments",)}, "fake services"),
        ({"typed": False}, "in its folder"),
        ({"clean": ("x",)}, "in its folder"),
        ({"env": {"MAIL_API_KEY": "x"}}, "credentials"),
        ({"command": ("sh", "{state}/x")}, "fills in"),
        ({"env": {"A;B": "x"}}, "fills in"),
    ],
)
def test_other_commands_have_none(parts: dict[str, object], says: str) -> None:
    """What only chaoskit can give them is not in a script."""
    assert says in why_none(token("kill@write(log)#2", **parts), BASELINE)


@pytest.mark.parametrize(
    ("baseline", "says"),
    [
        (None, "is stored"),
        (run_of(seen("write(log)#1"), seen("write(log)#2", alone=False)), "several threads"),
        (run_of(seen("p1:write(log)#1"), seen("write(log)#1")), "several threads"),
        (run_of(seen("write(log)#1"), seen("rename(log->a)#1")), "is renamed"),
    ],
)
def test_a_count_that_may_differ_has_none(baseline: History | None, says: str) -> None:
    """Where the undisturbed run does not show that both count alike, there is no script."""
    assert says in why_none(token(), baseline)


def test_nothing_that_a_task_wrote_is_run(tmp_path: Path) -> None:
    """Words stay words, comments stay in their line, and credentials are blotted out."""
    evil = "x\ntouch evil\r$(touch evil)`touch evil` sk_live_0123456789abcdef0123456789"
    ended = AttemptEnded(attempt=2, how="exit", code=0, seconds=1.0, output_tail=evil)
    finding = Finding(
        kind="diverged_state", operation=evil, subject="s", expected=evil, seen=evil, because="b"
    )
    quoted = token("kill@write(a%27%3Btouch%20evil)#1", command=("true", "';touch evil;'"))
    text = shell_script(Exhibit(token=quoted, finding=finding, history=run_of(ended)), tmp_path)
    assert "sk_live_0123456789" not in text
    script = tmp_path / "reproduce.sh"
    script.write_text(text)
    subprocess.run(["sh", "-n", script], check=True)
    alone = [line for line in text.splitlines() if "touch evil" in line]
    assert all(line.startswith("#") or "'" in line for line in alone)
    shown = text.replace("strace -f", "true -f").replace("cp -a", "true")
    script.write_text(shown)
    subprocess.run(["sh", script], check=False, cwd=tmp_path, capture_output=True)
    assert not (tmp_path / "evil").exists()


def code_of(*words: str) -> object:
    """How a command of chaoskit ends."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


@pytest.mark.parametrize(
    ("program", "text", "ordinal", "wrong"),
    [
        ("sh", APPENDS, 2, "one\none\ntwo\n"),
        (sys.executable, COUNTS, 6, "0 and 1 and 2 " + "0 and 1 and 2 and 3 and "),
    ],
)
def test_the_script_shows_the_same_wrong_end(
    program: str,
    text: str,
    ordinal: int,
    wrong: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Killed by strace at the same call and resumed, the program leaves the same wrong file."""
    if not traced().works or shutil.which("strace") is None:
        pytest.skip("system calls cannot be traced here, or strace is missing")
    project = tmp_path / "it's here"
    project.mkdir()
    monkeypatch.chdir(project)
    (project / "task").write_text(text)
    words = ["--mechanisms", "calls", "--outputs", "log", "--at", f"kill@write(log)#{ordinal}"]
    assert code_of("run", *words, "--", program, "task") == 1
    with Store(find_run(project / "reports" / "runs", "latest")) as store:
        (finding,) = summarize(store).findings
    assert code_of("export", finding.fingerprint, "--out", "made") == 0
    (script,) = (project / "made").glob("reproduce_*.sh")
    assert script.name in capfd.readouterr().out
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert wrong in done.stdout
    (left,) = tmp_path.glob("tmp.*/home/log")
    assert left.read_text() == wrong
    assert not (project / "log").exists()
    head = script.read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert f"# script task, sha256 {digest}\n" in head
    assert f"# chaoskit {__version__}, " in head
    assert f"# the resume's last words: {wrong.splitlines()[-1].rstrip()}\n" in head


def test_a_script_that_meets_another_program_says_so(tmp_path: Path) -> None:
    """Where the call is not reached, nothing is claimed: it ends with 2."""
    if shutil.which("strace") is None or not traced().works:
        pytest.skip("system calls cannot be traced here, or strace is missing")
    finding = Finding(
        kind="diverged_state", operation="o", subject="s", expected="e", seen="s", because="b"
    )
    never = token("kill@write(log)#1", command=("true",))
    script = tmp_path / "reproduce.sh"
    exhibit = Exhibit(token=never, finding=finding, history=run_of())
    text = shell_script(exhibit, tmp_path).replace("cp -a", "true")
    script.write_text(text)
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "was not killed" in done.stderr) == (2, True)
