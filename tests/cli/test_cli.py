"""The command line as users call it: exit codes, errors that name the fix, replay, reports."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from chaoskit.model.token import parse_token

ROOT = Path(__file__).resolve().parents[2]


class Shell:
    """Runs chaoskit in a folder of its own that holds a copy of the scenarios."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "scenarios", folder / "scenarios")

    def __call__(self, *words: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        done = subprocess.run(
            [sys.executable, "-m", "chaoskit.cli.main", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **(env or {})},
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """chaoskit in a new folder."""
    return Shell(tmp_path)


def test_a_program_is_named_as_one_would_start_it(shell: Shell) -> None:
    """A relative path is found from where the command was given, and so is one in its replay."""
    script = shell.folder / "job.sh"
    script.write_text("#!/bin/sh\n[ -e a ] || cat > a </dev/null\necho x >> out.log\n")
    script.chmod(0o755)
    words = ("--outputs", "out.log", "--json", "out.json", "--", "./job.sh")
    code, out, err = shell("run", "--mechanisms", "calls", "--max-points", "8", *words)
    assert code == 1, out + err
    (found, *_) = json.loads((shell.folder / "out.json").read_text())["findings"]
    assert found["kind"] == "diverged_state"
    token = found["replay"].split()[-1]
    command = parse_token(token).target.command
    assert command is not None
    assert command.command == ("./job.sh",)
    code, out, err = shell("replay", token)
    assert (code, "REPRODUCED" in out) == (1, True), out + err


def test_a_resume_command_that_does_not_exist_is_no_fault_of_the_task(shell: Shell) -> None:
    """It ends with 2 and the program's name, not with a finding."""
    words = ("--outputs", "*", "--resume", "./no-such.sh on", "--max-points", "2")
    code, out, err = shell("run", *words, "--", "touch", "a")
    assert (code, "cannot be resumed: ./no-such.sh: No such file" in err) == (2, True), out + err


BROKEN = "scenarios/broken/record_after_effect.py"
TRUE = ("--", "true")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run"], 2, "give a SCENARIO"),
        (["runn"], 2, "nearest: run"),
        (["run", "scenarios/broken/fresh_kee.py"], 2, "scenarios/broken/fresh_key.py"),
        (["run", "scenarios/broken/fresh_key.py:scenari"], 2, "nearest: scenario"),
        (["run", BROKEN, "--at", "payments.charge#99.applied"], 2, "payments.charge#9.applied"),
        (["run", BROKEN, "--at", "payments.charge"], 2, "not a point"),
        (["run", BROKEN, "--mechanisms", "window"], 2, "windows"),
        (["run", BROKEN, "--services", "email"], 2, "--services goes with a command"),
        (["run", BROKEN, "-j", "0"], 2, "at least 1"),
        (["run", BROKEN, "--depth", "4"], 2, "the depth is 1, 2 or 3"),
        (["run", BROKEN, "--frobnicate"], 2, "No such option"),
        (["run", "--services", "paiments", "--", "true"], 2, "payments"),
        (["run", "--services", "payments", "--", "no-such-program"], 2, "no-such-program"),
        (["run", "--contract", "email.send=once", "--", "true"], 2, "exactly-once"),
        (["run", "--behaviour", "lose@x", "--", "true"], 2, "not a behaviour"),
        (
            ["run", "--services", "email", "--behaviour", "lose-reply@email.sent#1", "--", "true"],
            2,
            "send",
        ),
        (["run", "--", "true"], 4, "nothing to judge by"),
        (["replay", "ck1-garbage"], 2, "damaged or cut short"),
        (["report", "nope"], 2, "unknown run"),
        (["judge", "nope"], 2, "unknown run"),
        (["serve", "payments", "--port", "payments=x"], 2, "SERVICE=PORT"),
        (["serve", "payments", "--port", "payment=1"], 2, "nearest: payments"),
        (["serve", "payments", "--port", "payments=99999"], 2, "99999 is no port"),
        (["serve", "payments:eu", "--port", "payments=1"], 2, "nearest: eu"),
        (["run", BROKEN, "--key-lifetime", "payments=1h"], 2, "--key-lifetime goes with a command"),
        (
            ["run", "--resumed-within", "72h", "--resume-after", "7d", *TRUE],
            2,
            "--resume-after 7d is longer than the task is declared to be resumed within: 72h",
        ),
        (["run", "--resume", 'a "b', "--", "true"], 2, "No closing quotation"),
        (["run", "--prepare", 'a "b', "--", "true"], 2, "--prepare 'a \"b' is no command line"),
        (["run", "--prepare", "sh -c 'echo no; exit 3'", *TRUE], 2, "status 3; its last words: no"),
        (["run", "--success", "0,256", *TRUE], 2, "exit codes from 0 to 255, as in 0,101"),
        (["run", "--success", "ok", *TRUE], 2, "exit codes from 0 to 255"),
        (["run", "--attempts", "0", *TRUE], 2, "0 is not in the range x>=1"),
        (["run", BROKEN, "--attempts", "2"], 2, "--attempts goes with a command"),
        (["run", "--services", "./sms.py:create", *TRUE], 2, "sms.py with a service; nearest"),
        (["run", BROKEN, "--json", "scenarios"], 2, "is a folder"),
        (["run", BROKEN, "--runs", "/proc/x"], 2, "/proc/x cannot be made"),
        (["run", BROKEN, "--timeout", "nan"], 2, "finite"),
        (
            ["run", "--services", "payments", "--contract", "paymnts.charge=at-most-once", *TRUE],
            2,
            "payments.charge",
        ),
    ],
)  # fmt: skip
def test_wrong_words_end_with_2_and_name_the_fix(
    shell: Shell, words: list[str], code: int, says: str
) -> None:
    """Unknown names give the nearest valid ones; nothing to judge by is 4, never a pass."""
    found, out, err = shell(*words)
    assert (found, says in re.sub(r"\s+", " ", out + err)) == (code, True), out + err


def test_help_says_how_commands_end(shell: Shell) -> None:
    """The exit codes are documented where they are looked for."""
    for words in (["--help"], ["run", "--help"]):
        code, out, _ = shell(*words)
        assert code == 0
        assert "0 valid, 1 findings, 2 usage" in re.sub(r"\s+", " ", out)


def test_a_failure_is_replayed_by_its_own_command_and_then_fixed(shell: Shell) -> None:
    """The printed line shows the same finding; once the task is mended, it says FIXED."""
    code, out, _ = shell("run", BROKEN, "--max-points", "6", "--json", "out.json")
    assert code == 1
    report = json.loads((shell.folder / "out.json").read_text())
    finding = report["findings"][0]
    assert finding["replay"] in out.splitlines()  # alone on its line, to be copied whole
    assert finding["replay"].startswith("chaoskit replay ck1-")
    words = finding["replay"].split()[1:]
    code, out, _ = shell(*words)
    assert code == 1
    assert "REPRODUCED" in out
    assert finding["because"] in re.sub(r"\s+", " ", out)
    file = shell.folder / BROKEN
    source = file.read_text()
    file.write_text(
        source.replace("charge(buyers[number])", 'charge(buyers[number], key=f"k{number}")')
    )
    code, out, _ = shell(*words)
    assert (code, "FIXED" in out) == (0, True), out
    file.write_text(source.replace("services.charge(buyers[number])", "pass"))
    code, out, _ = shell(*words)
    assert (code, "UNKNOWN" in out) == (4, True), out


def test_the_json_report_has_what_it_promises(shell: Shell) -> None:
    """Verdict, seed, time, mechanisms, points, trials, and findings with point and replay."""
    few = ("--max-points", "5", "--mechanisms", "windows", "--in-flight", "landed")
    shell("run", BROKEN, *few, "--seed", "3", "--json", "deep/er/out.json")
    report = json.loads((shell.folder / "deep/er/out.json").read_text())
    assert report["verdict"] == "INVALID"
    assert report["seed"] == 3
    assert report["elapsed_s"] > 0
    assert report["mechanisms"] == ["windows"]
    assert report["points"] == {"total": 36, "tested": 5, "landed": 5}
    assert report["trials"] == 5
    assert {"kind", "point", "replay", "because"} <= set(report["findings"][0])


def test_the_junit_report_counts_as_the_json_does(shell: Shell) -> None:
    """One case per trial (and the control), a failure for each finding."""
    shell("run", BROKEN, "--max-points", "9", "--json", "out.json", "--junit", "out.xml")
    report = json.loads((shell.folder / "out.json").read_text())
    suite = ET.parse(shell.folder / "out.xml").getroot().find("testsuite")  # noqa: S314
    assert suite is not None
    assert suite.get("tests") == str(report["trials"] + 1)
    failed = {f["schedule"] for f in report["findings"]}
    assert suite.get("failures") == str(len(failed))
    names = {
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    }
    assert names == failed


def test_report_and_judge_run_nothing_and_say_the_same(shell: Shell) -> None:
    """A stored run is shown and judged again after its scenario has gone."""
    code, out, _ = shell("run", BROKEN, "--max-points", "5", "-q")
    shutil.rmtree(shell.folder / "scenarios")
    code_report, out_report, _ = shell("report")
    code_judge, out_judge, _ = shell("judge", "latest")
    assert code == code_report == code_judge == 1
    assert "duplicate_effect" in out_report
    assert out.split("INVALID", 1)[1] == out_report.split("INVALID", 1)[1]
    assert "0 judgements changed" in out_judge


def test_duplicates_are_named_by_customer(shell: Shell) -> None:
    """The report says who was charged twice, how much, and by which attempts."""
    code, out, _ = shell("run", BROKEN, "--at", "payments.charge#1.applied", "-q")
    assert code == 1
    text = re.sub(r"\s+", " ", out)
    assert re.search(r"charge of [\d.]+ EUR to .+?: once; seen twice", text)
    assert "attempts 1 and 2 each did it" in text
    assert "order: the record is written after the effect" in text


def test_a_command_is_judged_without_a_scenario_file(shell: Shell) -> None:
    """An unmodified program with its own resume command, by placeholders only."""
    script = ROOT / "tests" / "tasks" / "task.sh"
    code, out, _ = shell(
        "run", "--services", "payments", "--resume", f"bash {script} {{payments.url}}",
        "--", "bash", str(script), "{payments.url}",
    )  # fmt: skip
    assert (code, "VALID" in out) == (0, True), out
    code, out, _ = shell(
        "run", "--services", "payments", "--", "bash", str(script), "{payments.url}", "naive"
    )
    assert code == 1
    replay = next(line for line in out.splitlines() if line.startswith("chaoskit replay"))
    code, out, _ = shell(*replay.split()[1:])
    assert (code, "REPRODUCED" in out) == (1, True)


SEED = """
import os, sqlite3
books = sqlite3.connect(os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///"))
with books:
    books.execute("CREATE TABLE locks (beat TEXT)")
    books.execute("INSERT INTO locks VALUES ('')")
    books.execute("CREATE TABLE queue (name TEXT)")
    books.executemany("INSERT INTO queue VALUES (?)", [("ada",), ("bob",)])
"""
SHOP = """
from fake_services.host import HttpService
from fake_services.jobs.core import JobsCore


def create():
    return HttpService(JobsCore())
"""
TAKES = """
import os, sqlite3, sys, uuid
from urllib.request import Request, urlopen
books = sqlite3.connect(os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///"))
for (name,) in books.execute("SELECT name FROM queue").fetchall():
    with books:
        books.execute("UPDATE locks SET beat = ?", (uuid.uuid4().hex,))
    asked = Request(sys.argv[1] + "/jobs", f'{{"name": "{name}"}}'.encode())
    urlopen(asked).read()
    with books:
        books.execute("DELETE FROM queue WHERE name = ?", (name,))
sys.exit(101)
"""


def test_a_replay_line_carries_how_a_command_is_run(shell: Shell) -> None:
    """What prepares it, what is ignored, its codes and its service: the same line shows the same
    finding, and the report says what was ignored.
    """
    for name, text in (("seed.py", SEED), ("shop.py", SHOP), ("take.py", TAKES)):
        (shell.folder / name).write_text(text)
    words = ("--services", "database,./shop.py", "--prepare", f"{sys.executable} seed.py")
    ways = ("--ignore", "database.locks.*", "--success", "101", "--attempts", "2")
    code, out, err = shell(
        "run", *words, *ways, "--at", "jobs.submit#1.applied",
        "--", sys.executable, "take.py", "{jobs.url}",
        env={"CHAOSKIT_VIEW": ""},
    )  # fmt: skip
    assert code == 1, out + err
    assert "duplicate_effect jobs.submit" in re.sub(r"\s+", " ", out)
    assert "effects to ignore, 1 in an undisturbed run: database.locks.update (1)" in re.sub(
        r"\s+", " ", out
    )
    replay = next(line for line in out.splitlines() if line.startswith("chaoskit replay"))
    code, out, err = shell(*replay.split()[1:], env={"CHAOSKIT_VIEW": ""})
    assert (code, "REPRODUCED" in out) == (1, True), out + err


def test_list_names_every_scenario(shell: Shell) -> None:
    """The list holds every scenario file with its sentence."""
    code, out, _ = shell("list")
    assert code == 0
    for file in (ROOT / "scenarios").rglob("[!_]*.py"):
        assert file.stem in out


def test_output_is_plain_where_it_is_no_terminal(shell: Shell) -> None:
    """No escape sequences in a pipe."""
    _, out, err = shell("run", BROKEN, "--max-points", "3")
    assert "\x1b" not in out + err


def test_two_services_of_a_kind_run_alone() -> None:
    """Each has its own address, under its own name."""
    words = ["serve", "payments:eu", "payments:us"]
    process = subprocess.Popen(
        [sys.executable, "-m", "chaoskit.cli.main", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        told = [process.stdout.readline().partition("=") for _ in range(2)]
        assert [name for name, _, _ in told] == [f"export CHAOSKIT_{n}_URL" for n in ("EU", "US")]
        assert told[0][2] != told[1][2]
    finally:
        process.terminate()
        process.wait()


def test_a_port_that_is_taken_is_said() -> None:
    """serve ends with 2, naming the port and the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words in (
            ["chaoskit.cli.main", "serve", "payments", "--port", f"payments={port}"],
            ["fake_services", "payments", "--payments-port", str(port)],
        ):
            done = subprocess.run(
                [sys.executable, "-m", *words], capture_output=True, text=True, check=False
            )
            assert done.returncode == 2
            assert f"port {port}" in done.stderr
            assert "choose another" in done.stderr


@pytest.mark.parametrize("module", ["fake_services", "chaoskit.cli.main"])
def test_services_run_alone(module: str) -> None:
    """The addresses are printed first, and each effect as a line of JSON."""
    words = ["serve", "payments"] if module == "chaoskit.cli.main" else ["payments"]
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"export CHAOSKIT_PAYMENTS_URL=(http://127\.0\.0\.1:\d+)\n", line)
        assert found, line
        subprocess.run(
            [
                "curl",
                "-sS",
                "--fail",
                "-u",
                "sk_test_x:",
                f"{found[1]}/v1/charges",
                "-d",
                "amount=4200",
                "-d",
                "currency=eur",
                "-d",
                "source=tok_visa",
            ],
            check=True,
            capture_output=True,
        )
        effect = json.loads(process.stdout.readline())
        assert effect["what"] == "charge of 42.00 EUR"
    finally:
        process.terminate()
        assert process.wait(300) == 0
