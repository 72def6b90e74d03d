"""The command line in a bad world: it says what is wrong and what to do, and loses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaoskit.campaign.store import FILE
from chaoskit.model.errors import UsageError
from chaoskit.reporting.files import check_file, check_folder, write_text
from chaoskit.trial.runners import _hint
from tests.campaign.small_task import small_task
from tests.reporting.conftest import campaign

APPLIED = "kill@payments.charge#2.applied"
CHAOSKIT = f"'{sys.executable}' -m chaoskit.cli.main"
RUN = "--outputs a --max-points 2 -j 1 -q"

Shell = Callable[[str], tuple[int, str, str]]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one stored run, which is INVALID."""
    folder = tmp_path_factory.mktemp("stored")
    campaign(small_task(folder, "none"), folder / "reports" / "runs", only=(APPLIED,))
    return folder


def shell_in(folder: Path) -> Shell:
    """Runs a line in ``folder``; ``CK`` in it is chaoskit. Exit code, output and errors."""

    def call(line: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["bash", "-c", line.replace("CK", CHAOSKIT)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.fixture
def shell(stored: Path) -> Shell:
    """A shell beside the stored run."""
    return shell_in(stored)


@pytest.fixture
def fresh(tmp_path: Path) -> Shell:
    """A shell in a folder with a script."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho x > a\n", encoding="utf-8")
    script.chmod(0o755)
    return shell_in(tmp_path)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("--html job.sh/r.html", "job.sh/r.html cannot be written: Not a directory"),
        ("--json .", ". is a folder: name a file in it"),
        (f"--badge {'x' * 300}", "cannot be written: File name too long"),
        ("--runs job.sh", "job.sh is a file: name a folder"),
        ("--work-dir job.sh", "job.sh is a file: name a folder"),
        ("--runs /proc/x", "/proc/x cannot be made"),
        ("--sarif /proc/x.sarif", "/proc cannot be written to"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(
    fresh: Shell, tmp_path: Path, given: str, says: str
) -> None:
    """With 2 and the place, and nothing is left beside the script."""
    code, out, err = fresh(f"CK run {RUN} {given} -- ./job.sh")
    assert (code, out) == (2, "")
    assert says in err
    left = {path.relative_to(tmp_path) for path in tmp_path.rglob("*")}
    assert left <= {Path("job.sh"), Path("reports"), Path("reports/runs")}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_an_ordinary_user_may_not_write_is_refused(tmp_path: Path) -> None:
    """A folder and a file without the permission, and a folder that is to be made in there."""
    closed, file = tmp_path / "closed", tmp_path / "file"
    closed.mkdir(mode=0o555)
    file.touch(mode=0o444)
    for path in (closed / "r", closed / "new" / "r", file):
        with pytest.raises(UsageError, match="Permission denied"):
            check_file(path)
    with pytest.raises(UsageError, match="Permission denied"):
        check_folder(closed)


def test_looking_at_a_place_leaves_it_as_it_is(tmp_path: Path) -> None:
    """A file keeps what is in it, and one that is not there is not made; nor is one behind a
    link, or a reader of a pipe disturbed.
    """
    kept, link, pipe = tmp_path / "kept", tmp_path / "link", tmp_path / "pipe"
    kept.write_text("old", encoding="utf-8")
    link.symlink_to("target")
    os.mkfifo(pipe)
    before = sorted(tmp_path.iterdir())
    for path in (kept, link, pipe, tmp_path / "new"):
        check_file(path)
    assert kept.read_text(encoding="utf-8") == "old"
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """What is there is written over, unless it must be new; a failure in the middle leaves none."""
    file = tmp_path / "a" / "r.txt"
    write_text(file, "long and old")
    write_text(file, "ü")
    assert file.read_text(encoding="utf-8") == "ü"
    with pytest.raises(UsageError, match="File exists"):
        write_text(file, "x", new=True)
    assert file.read_text(encoding="utf-8") == "ü"
    with pytest.raises(UsageError, match="free some space there"):
        write_text(Path("/dev/full"), "x")


def test_a_report_that_cannot_be_written_is_made_later(shell: Shell, stored: Path) -> None:
    """The other forms are written, the report is shown, and the message has the command; no half
    of a file stays.
    """
    line = "ulimit -f 60; CK report --html r.html --json /dev/full --badge ok.svg"
    code, out, err = shell(line)
    assert code == 2
    assert out.startswith("INVALID")
    assert "r.html cannot be written: File too large; allow larger files (ulimit -f)" in err
    assert "/dev/full cannot be written: No space left on device; free some space" in err
    (run,) = (f for f in (stored / "reports" / "runs").iterdir() if not f.is_symlink())
    assert f"chaoskit report reports/runs/{run.name} --html FILE" in err
    assert not (stored / "r.html").exists()
    assert (stored / "ok.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("CK report | true; exit ${PIPESTATUS[0]}", 1),
        ("CK report --json - | head -c 1 >&2; exit ${PIPESTATUS[0]}", 1),
        ("CK report >&-", 1),
        ("CK report <&- >&- 2>&-", 1),
        ("CK report nope 2>/dev/full", 2),
        ("CK report >/dev/full", 2),
        ("CK report --json - >/dev/full", 2),
        ("PYTHONIOENCODING=ascii CK report", 1),
        ("COLUMNS=1 CK report", 1),
    ],
)
def test_a_lost_stream_changes_no_verdict(shell: Shell, line: str, code: int) -> None:
    """Nobody has to read to the end; where the disk is full nothing can be told, which is no
    verdict.
    """
    found, _, err = shell(line)
    assert found == code, err
    if ">/dev/full" in line and "2>" not in line:
        assert "standard output cannot be written: No space left on device" in err


def test_a_campaign_goes_on_without_a_reader(fresh: Shell, tmp_path: Path) -> None:
    """Also with no standard output at all: its forms are written, its code is the verdict's."""
    ends = "exit ${PIPESTATUS[0]}"
    for number, end in enumerate((f"| head -1 >/dev/null; {ends}", "2>&- >&- <&-")):
        code, _, err = fresh(f"CK run {RUN[:-3]} --json {number}.json -- ./job.sh {end}")
        assert code in {0, 1}, err
        assert (tmp_path / f"{number}.json").is_file()


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        ("#!/bin/sh\n", 0o644, "it is not executable: chmod +x"),
        ("echo x\n", 0o755, "a script needs a first line that names its interpreter"),
        ("#!/no/such/sh -e\n", 0o755, "its first line names the interpreter '/no/such/sh'"),
        ("#!/bin/sh\r\necho\r\n", 0o755, r"the interpreter '/bin/sh\r'"),
        (None, 0o755, "it is a folder"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(
    tmp_path: Path, text: str | None, mode: int, says: str
) -> None:
    """The reason is in the file, and so is the fix."""
    program = tmp_path / "other"
    if text is None:
        program.mkdir()
    else:
        program.write_text(text, encoding="utf-8", newline="")
        program.chmod(mode)
    with pytest.raises(OSError, match="Errno") as refused:
        os.execv(str(program), [str(program)])  # noqa: S606 - it is what is tried
    assert says in _hint(str(program), refused.value)


def test_a_task_that_cannot_be_started_is_refused_with_the_reason(
    fresh: Shell, tmp_path: Path
) -> None:
    """With 2, and what to type."""
    (tmp_path / "job.sh").chmod(0o644)
    code, _, err = fresh(f"CK run {RUN} -- ./job.sh")
    assert code == 2
    assert f"Permission denied (it is not executable: chmod +x {tmp_path}/job.sh)" in err


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise SystemExit(0)", "cannot be imported: SystemExit: 0"),
        ("import no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("scenario = Scenario(command=('true',), inputs=lambda seed: 1 / 0)", "s.py:2"),
        ("scenario = Scenario(command=('true',), prepare=lambda folder: 0)", "prepare= of the"),
    ],
)
def test_a_scenario_that_fails_is_the_user_s(
    fresh: Shell, tmp_path: Path, body: str, says: str
) -> None:
    """With 2 and the reason; one that ends the process with 0 is not VALID."""
    (tmp_path / "s.py").write_text(f"from chaoskit import Scenario\n{body}\n", encoding="utf-8")
    code, _, err = fresh("CK run s.py -j 1")
    assert (code, says in err) == (2, True), err


def test_a_damaged_run_is_named_with_a_fix(stored: Path, tmp_path: Path) -> None:
    """Whatever in its file is damaged, and whichever command meets that."""
    (run,) = (f for f in (stored / "reports" / "runs").iterdir() if not f.is_symlink())
    whole = (run / FILE).read_bytes()
    middle = len(whole) // 2
    shell = shell_in(tmp_path)
    for name, content in {
        "cut": whole[:middle],
        "middle": whole[:8192] + bytes(middle) + whole[8192 + middle :],
        "nothing": b"",
        "noise": b"no database" * 1000,
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_bytes(content)
        code, _, err = shell(f"CK report {name}")
        assert code == 2, (name, err)
        assert f"{name}/{FILE} is damaged" in err
        assert "remove its folder, and run the campaign anew" in err


def test_a_disk_that_is_full_during_a_campaign_loses_nothing(fresh: Shell) -> None:
    """The message says that the campaign goes on; and it does, once there is room."""
    code, _, err = fresh(f"ulimit -f 70; CK run {RUN} -- ./job.sh")
    assert (code, "the campaign goes on" in err) == (2, True), err
    code, out, err = fresh(f"CK run {RUN[:-3]} -- ./job.sh")
    assert code in {0, 1}, err
    assert "going on with" in out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("mkdir gone; cd gone; rmdir ../gone; CK list", "the present folder cannot be used"),
        ("CK run $'j\\xff.sh'", r"j\udcff.sh is not UTF-8"),
    ],
)
def test_what_nothing_works_without_is_said(fresh: Shell, line: str, says: str) -> None:
    """A present folder, and words that are text."""
    code, _, err = fresh(line)
    assert (code, says in err) == (2, True), err
