"""``chaoskit init``: what it writes runs as it is, and nothing is overwritten."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.cli.starting import ADDRESSES, Starter, literal, scenario_text
from chaoskit.model.token import Target
from chaoskit.trial.loading import load
from chaoskit.trial.services import create_services, service_names

ROOT = Path(__file__).resolve().parents[2]
TASK = """#!/bin/sh
set -e
for n in 1 2; do
  if [ ! -e "done-$n" ]; then
    curl -sS --fail -u sk_test_x: -H "Idempotency-Key: order-$n" "$1/v1/charges" \\
      -d amount=100 -d currency=eur -d source=tok_visa > /dev/null
    : > "done-$n"
  fi
done
"""
QUICK = ("--mechanisms", "windows", "-j", "1", "-q")


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A Python module's command line in ``folder``."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


def init(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``chaoskit init`` in ``folder``."""
    return run("chaoskit.cli.main", "init", *words, folder=folder)


def is_tidy(folder: Path) -> None:
    """What was written passes ruff, with its default settings and with many of its rules."""
    rules = "E,F,W,I,D,UP,B,SIM,RET,PT,C4,PIE,ERA,RUF,TRY,PL,ARG,N"
    for words in (
        ("check", "--isolated", "."),
        ("check", "--isolated", "--select", rules, "--ignore", "D203,D213,ARG005", "."),
        ("format", "--isolated", "--check", "."),
    ):
        done = run("ruff", *words, folder=folder)
        assert done.returncode == 0, done.stdout


def test_the_example_runs_and_its_marked_line_is_what_makes_it_right(tmp_path: Path) -> None:
    """VALID as written, by the command and by pytest; a duplicate without the line that says so."""
    done = init(folder=tmp_path)
    assert done.returncode == 0, done.stderr
    commands = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [command[0] for command in commands] == ["chaoskit", "pytest"]
    is_tidy(tmp_path)
    assert run("chaoskit.cli.main", *commands[0][1:], *QUICK, folder=tmp_path).returncode == 0
    tested = run(*commands[1], "--chaos-points=4", folder=tmp_path)
    assert tested.returncode == 0, tested.stdout
    file = tmp_path / commands[0][2]
    lines = file.read_text().splitlines(keepends=True)
    kept = [line for line in lines if "is the same charge" not in line]
    assert len(kept) == len(lines) - 1
    file.write_text("".join(kept))
    careless = run("chaoskit.cli.main", *commands[0][1:], *QUICK, folder=tmp_path)
    assert careless.returncode == 1
    assert "duplicate_effect" in careless.stdout


@pytest.mark.exhaustive
def test_a_command_s_scenario_runs_from_anywhere(tmp_path: Path) -> None:
    """Written to another folder, run from a third one: the command's own file is found."""
    (tmp_path / "bill it.sh").write_text(TASK)
    words = ("--services", "payments", "--", "sh", "bill it.sh", "{payments.url}")
    done = init("project", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "chaoskit run project/scenarios/bill_it.py" in done.stdout
    is_tidy(tmp_path / "project")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    scenario = str(tmp_path / "project" / "scenarios" / "bill_it.py")
    ran = run("chaoskit.cli.main", "run", scenario, *QUICK, folder=elsewhere)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 of 6 points" in ran.stdout
    tested = run("pytest", "project/tests", "--chaos-points=2", folder=tmp_path)
    assert tested.returncode == 0, tested.stdout


def test_a_command_without_services_is_judged_by_its_files(tmp_path: Path) -> None:
    """The scenario names outputs, and its run has a verdict."""
    (tmp_path / "make.sh").write_text("#!/bin/sh\necho 1 > new && mv new made\n")
    assert init("--", "sh", "make.sh", folder=tmp_path).returncode == 0
    is_tidy(tmp_path)
    ran = run("chaoskit.cli.main", "run", "scenarios/make.py", "-q", "-j", "1", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """If one of the two files is there, neither is written, and the message names the way out."""
    (tmp_path / "tests").mkdir()
    mine = tmp_path / "tests" / "test_example_survives.py"
    mine.write_text("mine\n")
    done = init(folder=tmp_path)
    assert done.returncode == 2
    assert "--name" in done.stderr
    assert mine.read_text() == "mine\n"
    assert not (tmp_path / "scenarios").exists()
    assert init("--name", "other", folder=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--services", "paiments", "--", "true"], "payments"),
        (["--services", "payments"], "after --"),
        (["--"], "no command"),
        (["--name", "a b", "--", "true"], "letters, digits"),
        (["--env", "API_BASE", "--", "true"], "NAME=VALUE"),
        (["--env", "A=1"], "after --"),
        (["--", "no-such-program"], "no program 'no-such-program'"),
        (["--resume", "'", "--", "true"], "no command line"),
        (["file", "--", "true"], "cannot be written"),
    ],
)
def test_wrong_words_name_the_fix_and_write_nothing(
    tmp_path: Path, words: list[str], says: str
) -> None:
    """Exit code 2, one sentence, and no file."""
    (tmp_path / "file").touch()
    done = init(*words, folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert [f.name for f in tmp_path.iterdir()] == ["file"]


ENV = st.dictionaries(st.text(min_size=1, max_size=9), st.text(max_size=40), max_size=3)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4), st.booleans(), ENV)
def test_any_words_come_back_as_they_were(
    words: list[str], resumes: bool, env: dict[str, str]
) -> None:
    """Whatever a command's words and variables are, the scenario is Python in which they stand."""
    again = tuple(words) if resumes else ()
    starter = Starter("x", tuple(words), again, ("payments",), tuple(env.items()))
    tree = ast.parse(scenario_text(starter))
    (call,) = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given_ = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert given_["command"] == tuple(words)
    assert given_.get("resume", ()) == again
    assert given_["env"] == env
    assert all(ast.literal_eval(literal(word)) == word for word in words)


@pytest.mark.parametrize("services", [(), *((name,) for name in sorted(ADDRESSES))])
def test_each_service_s_scenario_loads_and_is_tidy(
    tmp_path: Path, services: tuple[str, ...]
) -> None:
    """With each service that is installed, and with long words and a resume."""
    assert set(ADDRESSES) == set(service_names())
    long = ("program", "--with", "a" * 60, 'quo"ted', "it's")
    file = tmp_path / "starter.py"
    file.write_text(scenario_text(Starter("starter", long, ("program", "again"), services)))
    is_tidy(tmp_path)
    loaded = load(Target(scenario=str(file))).scenario
    assert tuple(loaded.command) == long
    assert tuple(loaded.resume) == ("program", "again")
    assert tuple(loaded.services) == services


def test_the_file_of_a_service_is_found_from_the_scenario(tmp_path: Path) -> None:
    """It is named from here, and written relative to the scenario's folder."""
    (tmp_path / "sms.py").write_text(
        "from fake_services.host import HttpService\nfrom fake_services.jobs.core import JobsCore\n"
        "def create():\n    return HttpService(JobsCore())\n"
    )
    done = init("x", "--services", "./sms.py:create", "--name", "a", "--", "true", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = load(Target(scenario=str(tmp_path / "x" / "scenarios" / "a.py")))
    assert loaded.scenario.services == ("../../sms.py:create",)
    assert [one.name for one in create_services(loaded.scenario.services, loaded.here)] == ["jobs"]
    done = init("--services", "sns.py", "--", "true", folder=tmp_path)
    assert (done.returncode, "there is no file sns.py with a service" in done.stderr) == (2, True)
