"""``report``, ``show``, ``explain``, ``diff`` and ``export`` as users call them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from chaoskit.campaign.store import Store
from chaoskit.cli.main import main
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.token import Target
from chaoskit.reporting.machine import schema
from chaoskit.reporting.summary import summarize
from tests.campaign.small_task import Care, small_task
from tests.reporting.conftest import SILENT, campaign

ROOT = Path(__file__).resolve().parents[2]
APPLIED = "kill@payments.charge#2.applied"
RECEIVED = "kill@payments.charge#2.received"
CHAOSKIT = (sys.executable, "-m", "chaoskit.cli.main")

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with three stored runs: of a task that calls nobody, of a broken one, and (the
    latest) of the broken one when it is mended.
    """
    folder = tmp_path_factory.mktemp("project")
    runs = folder / "reports" / "runs"
    (folder / "silent.py").write_text(SILENT, encoding="utf-8")
    campaign(Target(scenario=str(folder / "silent.py")), runs).rename(runs / "silent")
    (runs / "latest").unlink()
    every: tuple[tuple[Care, str], ...] = (("none", "broken"), ("keyed", "mended"))
    for care, name in every:
        made = campaign(small_task(folder, care), runs, only=(APPLIED, RECEIVED), fresh=True)
        made.rename(runs / name)
        (runs / "latest").unlink()
        (runs / "latest").symlink_to(name)
    small_task(folder, "none")
    return folder


@pytest.fixture
def shell(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Shell:
    """chaoskit in that project, in this process: exit code, standard output, standard error."""

    def call(*words: str, columns: int = 100, **env: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        for name, value in {"COLUMNS": str(columns), "NO_COLOR": "1", **env}.items():
            monkeypatch.setenv(name, value)
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        said = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return call


@pytest.fixture
def process(folder: Path) -> Shell:
    """The same in a process of its own."""

    def call(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [*CHAOSKIT, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    return call


def words_of(text: str) -> str:
    """``text`` with single spaces."""
    return re.sub(r"\s+", " ", text)


def fingerprint(folder: Path) -> str:
    """Of the broken run's finding."""
    with Store(folder / "reports" / "runs" / "broken") as store:
        return summarize(store).findings[0].fingerprint


def test_all_forms_are_written_by_one_command(shell: Shell, folder: Path, tmp_path: Path) -> None:
    """Each to its file, while the report is shown; the exit code is the verdict's."""
    names = {"json": "r.json", "junit": "r.xml", "sarif": "r.sarif", "markdown": "r.md"}
    names["badge"] = "r.svg"
    given = [word for name, file in names.items() for word in (f"--{name}", str(tmp_path / file))]
    code, out, err = shell("report", "broken", *given)
    assert (code, err) == (1, "")
    assert out.startswith("INVALID")
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "INVALID"
    assert json.loads((tmp_path / "r.sarif").read_text())["version"] == "2.1.0"
    assert ET.parse(tmp_path / "r.xml").getroot().tag == "testsuites"  # noqa: S314 - our own
    assert (tmp_path / "r.md").read_text().startswith("## chaoskit: INVALID")
    assert (tmp_path / "r.svg").read_text().startswith("<svg")
    assert shell("report", "mended", "-h")[0] == 0


def test_a_form_on_standard_output_stands_there_alone(shell: Shell) -> None:
    """The report for people goes to standard error then, so that a pipe gets the form only."""
    code, out, err = shell("report", "broken", "--json", "-")
    assert code == 1
    assert json.loads(out)["verdict"] == "INVALID"
    assert err.startswith("INVALID")


@pytest.mark.exhaustive
def test_run_writes_the_same_forms(process: Shell, tmp_path: Path) -> None:
    """With the options of report; to standard output the form alone, its progress beside it."""
    few = ("--at", RECEIVED, "--mechanisms", "windows", "--in-flight", "landed")
    runs = ("--runs", str(tmp_path / "runs"), "--sarif", str(tmp_path / "a" / "r.sarif"))
    code, out, err = process("run", "small_task.py", *few, *runs, "--markdown", "-")
    assert code == 0
    assert out.startswith("## chaoskit: VALID")
    assert "VALID" in err
    assert json.loads((tmp_path / "a" / "r.sarif").read_text())["runs"][0]["results"] == []


def test_the_schema_is_printed(shell: Shell) -> None:
    """As it is published, without a run."""
    assert shell("report", "--schema") == (0, schema(), "")


def test_a_pipe_that_closes_early_loses_no_form(folder: Path, tmp_path: Path) -> None:
    """Nobody has to read the report for them to be written."""
    command = f"{' '.join(CHAOSKIT)} report broken --json {tmp_path / 'r.json'} | true"
    subprocess.run(command, shell=True, cwd=folder, check=False, capture_output=True)
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "INVALID"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["report", "brokn"], "nearest: broken"),
        (["report", "--json", "-", "--sarif", "-"], "--json and --sarif both go to standard"),
        (["report", "--json", "x", "--junit", "x"], "both go to x: name a file"),
        (["report", "--sarif", "reports"], "reports is a folder"),
        (["show", "broken", "99"], "this run has trials 1 to 3"),
        (["show", "broken", "payments.charge#2.aplied"], APPLIED),
        (["show", "mended", APPLIED, "--minimal"], "show --failed"),
        (["show", "nope"], "nearest: "),
        (["explain", "duplicate"], "nearest: duplicate_effect"),
        (["explain", "ffffffff"], "unknown finding of"),
        (["diff", "broken", "--at", "payments.charge#9.applied"], RECEIVED),
        (["diff", "brokn"], "nearest: broken"),
        (["diff"], "Missing argument"),
        (["export", "ck1-garbage"], "damaged or cut short"),
        (["export", "nonsense"], "not a replay token"),
        (["export", "ffffffff"], "unknown finding of the latest run"),
        (["export", "ck1-x", "--out", "small_task.py"], "is a file"),
    ],
)  # fmt: skip
def test_wrong_words_end_with_2_and_name_the_fix(shell: Shell, words: list[str], says: str) -> None:
    """The nearest valid names, or what to do instead."""
    code, out, err = shell(*words)
    assert (code, says in words_of(out + err)) == (2, True), out + err


def test_show_lists_trials_and_tells_one(shell: Shell) -> None:
    """By number, by schedule or by its point; the fault, and both charges that show the finding."""
    code, out, _ = shell("show", "broken")
    assert code == 0
    assert re.search(rf"INVALID +{re.escape(APPLIED)} +duplicate_effect", out)
    number = next(line.split()[0] for line in out.splitlines() if APPLIED in line)
    told = shell("show", "broken", number)[1]
    assert told == shell("show", "broken", APPLIED)[1]
    assert told == shell("show", "broken", "payments.charge#2.applied")[1]
    assert told.index("attempt 1 starts") < told.index(f"FAULT {APPLIED}")
    assert told.index(f"FAULT {APPLIED}") < told.index("attempt 2 resumes")
    assert len(re.findall(r"^! .*did charge of 1.00 EUR", told, re.MULTILINE)) == 2
    shortest = shell("show", "broken", number, "--minimal")[1]
    assert len(shortest) < len(told)
    assert len(re.findall(r"^! ", shortest, re.MULTILINE)) == 2
    failed = shell("show", "broken", "--failed")[1]
    assert RECEIVED not in failed
    assert "1 trials that are not VALID of 3" in failed


def test_explain_says_what_how_and_how_to_mend(shell: Shell, folder: Path) -> None:
    """Of every kind; of a finding by the first digits of its fingerprint, with its own place."""
    for kind, meaning in FINDING_KINDS.items():
        code, out, _ = shell("explain", kind)
        assert code == 0
        assert meaning[1:] in words_of(out)
        assert "to mend" in out
    code, out, _ = shell("explain", fingerprint(folder)[:6], "--run", "broken")
    assert code == 0
    assert APPLIED in out
    assert "chaoskit replay ck1-" in out
    assert "cases" in out
    code, out, _ = shell("explain")
    assert all(kind in out for kind in FINDING_KINDS)


def test_diff_says_fixed_new_and_where_trials_part(shell: Shell) -> None:
    """Exit 0 where nothing is new, 1 where something is, 4 where nobody can tell."""
    code, out, _ = shell("diff", "broken")
    assert code == 0
    assert "fixed duplicate_effect payments.charge" in words_of(out)
    assert f"{APPLIED} was INVALID, is VALID" in words_of(out)
    assert re.search(r"before +attempt 2: payments did charge of 1\.00 EUR", out)
    code, out, _ = shell("diff", "mended", "broken")
    assert code == 1
    assert "new duplicate_effect payments.charge" in words_of(out)
    code, out, _ = shell("diff", "mended", "silent")
    assert (code, "the later run proves nothing" in words_of(out)) == (4, True)
    code, out, _ = shell("diff", "broken", "broken", "--at", "payments.charge#2.applied")
    assert code == 0
    assert "the two trials do not part" in out
    assert "remains duplicate_effect" in words_of(out)


def test_export_writes_two_files_and_spares_what_is_there(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    """From a stored trial by its token; a second time only when forced."""
    with Store(folder / "reports" / "runs" / "broken") as store:
        command = summarize(store).findings[0].replay
    token = command.split()[-1]
    code, out, _ = shell("export", token, "--out", str(tmp_path))
    assert code == 0, out
    name = f"duplicate_effect_{fingerprint(folder)}"
    test, report = tmp_path / f"test_chaos_{name}.py", tmp_path / f"bug_{name}.md"
    assert f"pytest {test}" in out
    compile(test.read_text(), str(test), "exec")
    assert str(folder) not in report.read_text()
    code, _, err = shell("export", token, "--out", str(tmp_path))
    assert (code, "give --force" in err) == (2, True)
    assert shell("export", token, "--out", str(tmp_path), "--force")[0] == 0


def test_export_runs_what_is_not_stored(process: Shell, folder: Path, tmp_path: Path) -> None:
    """The trial is run again; where it shows nothing there is nothing to export, exit 4."""
    with Store(folder / "reports" / "runs" / "broken") as store:
        command = summarize(store).findings[0].replay
    nowhere = ("--runs", str(tmp_path / "none"), "--out", str(tmp_path))
    code, out, _ = process("export", command, *nowhere)
    assert code == 0, out
    assert len(list(tmp_path.glob("*.py"))) == 1
    small_task(folder, "keyed")
    try:
        code, out, _ = process("export", command, *nowhere)
    finally:
        small_task(folder, "none")
    assert (code, "nothing to export" in out) == (4, True)


@pytest.mark.parametrize(
    "words",
    [
        ("report", "broken"),
        ("show", "broken"),
        ("show", "broken", "2"),
        ("diff", "broken"),
        ("explain",),
        ("explain", "stuck"),
    ],
)
def test_narrow_terminals_show_everything(shell: Shell, words: tuple[str, ...]) -> None:
    """At 40 columns no line is longer, but for a command that is copied whole."""
    _, out, _ = shell(*words, columns=40)
    long = [line for line in out.splitlines() if len(line) > 40]
    assert not [line for line in long if not line.startswith("chaoskit replay ck1-")]
    wide = shell(*words, columns=200)[1]
    squeezed = re.sub(r"\s", "", out)
    for word in ("duplicate_effect", "payments.charge"):
        assert (word in wide) == (word in squeezed)


@pytest.mark.parametrize("colour", [True, False])
def test_colours_are_for_terminals_that_want_them(folder: Path, *, colour: bool) -> None:
    """On a terminal the verdict is coloured, and with NO_COLOR it is not."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    env |= {"TERM": "xterm-256color", "COLUMNS": "100"} | ({} if colour else {"NO_COLOR": "1"})
    process = subprocess.Popen(
        [*CHAOSKIT, "show", "broken"], cwd=folder, env=env, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # how Linux says that the other side has gone
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait() == 0
    assert (re.search(rb"\x1b\[[0-9;]*3[1-6]m", said) is not None) == colour


@pytest.mark.parametrize("command", ["report", "show", "diff", "export", "explain"])
def test_help_has_examples_and_exit_codes(shell: Shell, command: str) -> None:
    """Lines that can be copied, and how the command ends."""
    code, out, _ = shell(command, "--help", columns=80)
    assert code == 0
    assert re.search(rf"^ +chaoskit {command}( |$)", out, re.MULTILINE)
    assert "Exit codes: 0" in out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("chaoskit re", {"replay", "report"}),
        ("chaoskit report --s", {"--sarif", "--schema"}),
        ("chaoskit report b", {"broken"}),
        ("chaoskit diff broken l", {"latest"}),
        ("chaoskit explain di", {"diverged_state"}),
        ("chaoskit explain no-such-kind", set()),
    ],
)
def test_shells_complete_commands_options_runs_and_kinds(
    shell: Shell, words: str, wanted: set[str]
) -> None:
    """As click's completion asks for it."""
    number = str(len(words.split()) - 1)
    code, out, err = shell(COMP_WORDS=words, COMP_CWORD=number, _CHAOSKIT_COMPLETE="bash_complete")
    assert (code, err) == (0, "")
    assert {line.partition(",")[2] for line in out.splitlines()} - {""} == wanted


def test_a_hostile_word_is_shown_as_text(shell: Shell) -> None:
    """An error that quotes what was pasted has no escape sequence in it."""
    code, _, err = shell("report", "\x1b[31mred\x07")
    assert code == 2
    assert "\x1b" not in err
    assert "\x07" not in err
    assert "x1b[31mred" in err
