"""From a finding to a regression test, which is red until the task is mended and then green."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from chaoskit import __version__
from chaoskit.campaign.mechanisms import best, traced
from chaoskit.campaign.replay import recheck
from chaoskit.campaign.store import Store
from chaoskit.model.events import AttemptEnded, Body, Event, FaultLanded
from chaoskit.model.findings import Diagnosis, Finding
from chaoskit.model.history import History
from chaoskit.model.token import CommandSpec, ReplayToken, Target, parse_token
from chaoskit.reporting.regression import Exhibit, bug_report, pytest_file, without_paths
from chaoskit.reporting.summary import REPLAY, summarize
from chaoskit.reporting.timeline import minimal, table, told
from tests.campaign.small_task import small_task
from tests.reporting.conftest import campaign

ROOT = Path(__file__).resolve().parents[2]
APPLIED = "kill@payments.charge#2.applied"


def exhibit_of(folder: Path) -> Exhibit:
    """The first finding of a stored campaign."""
    with Store(folder) as store:
        first = summarize(store).findings[0]
        trial = next(t for t in store.trials() if t.judgement.roots)
        return Exhibit(
            token=parse_token(first.replay.removeprefix(REPLAY)),
            finding=trial.judgement.roots[0],
            history=store.history(trial.schedule),
            between=first.between,
            code=first.code,
        )


def pytest_of(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the tests in ``folder`` in a pytest of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_exported_test_is_red_until_the_task_is_mended(tmp_path: Path) -> None:
    """It fails with the finding in its message; fixed, the same file passes."""
    made = campaign(small_task(tmp_path, "none"), tmp_path / "runs", only=(APPLIED,))
    tests = tmp_path / "tests" / "chaos"
    tests.mkdir(parents=True)
    text = pytest_file(exhibit_of(made), tests)
    (tests / "test_kept.py").write_text(text, encoding="utf-8")
    assert 'HERE / "../../small_task.py"' in text
    red = pytest_of(tests)
    assert red.returncode == 1, red.stdout
    assert "REPRODUCED, the same finding; duplicate_effect of payments.charge" in red.stdout
    small_task(tmp_path, "keyed")
    green = pytest_of(tests)
    assert green.returncode == 0, green.stdout


@pytest.mark.skipif(not traced().works, reason="system calls cannot be traced here")
@pytest.mark.parametrize(
    ("lines", "outcomes"),
    [
        ("echo x >> out", {"REPRODUCED", "CHANGED"}),
        ("echo x > .t; mv .t out", {"FIXED"}),
        ("echo x > .t; cat .t >> out; rm .t", {"REPRODUCED", "CHANGED"}),
        ("touch log; cat log >> out; echo x > log", {"REPRODUCED", "CHANGED"}),
        ("true", {"UNKNOWN"}),
    ],
    ids=["as-it-was", "renamed", "other-point", "other-fault", "nothing"],
)
def test_where_a_point_has_gone_all_others_decide(
    tmp_path: Path, lines: str, outcomes: set[str]
) -> None:
    """A fix may do away with the point of the kill. The exported test is green then if no kill at
    the points that are there shows anything, and red if one does or if there is none.
    """
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    script.chmod(0o755)
    spec = CommandSpec(command=(str(script),), outputs=("out",))
    shown = Finding(
        kind="diverged_state", operation="out", subject="out", expected="", seen="", because=""
    )
    token = ReplayToken(
        target=Target(command=spec),
        seed=0,
        schedule="kill@write(out)#1+after",
        fingerprint=shown.fingerprint,
    )
    assert recheck(token).outcome in outcomes


def test_the_bug_report_tells_the_shortest_story_without_paths(tmp_path: Path) -> None:
    """Expected and seen, the command that shows it, the fault between its two charges, the
    diagnosis; no folder of this machine and no token.
    """
    made = campaign(small_task(tmp_path, "none"), tmp_path / "runs", only=(APPLIED,))
    report = bug_report(exhibit_of(made))
    assert str(tmp_path) not in report
    assert str(Path.home()) not in report or len(Path.home().parts) < 2
    assert "ck1-" not in report
    assert f"With chaoskit {__version__}; `pip install .` in a clone" in report
    assert f"chaoskit run …/small_task.py --at {APPLIED!r} --seed 0" in report.replace('"', "'")
    story = report[report.index("## What happened") :]
    first = story.index("did charge of 1.00 EUR")
    fault = story.index(f"FAULT {APPLIED}")
    second = story.index("did charge of 1.00 EUR", fault)
    assert first < fault < second
    assert story.count("did charge") == 2, "the charges of others are left out"
    assert "- **to mend**" in report


FINDING = Finding(
    kind="duplicate_effect",
    operation="payments.charge",
    subject="x",
    expected="charge: once",
    seen="twice",
    because='quotes """ and \\ of /home/ada/secret-project/task.py',
    diagnosis=Diagnosis("order", "read from /srv/app/state.json", "a key"),
)


def exhibit(target: Target, finding: Finding = FINDING) -> Exhibit:
    """One of a literal history."""
    bodies: tuple[Body, ...] = (
        FaultLanded(1, "kill@1ms"),
        AttemptEnded(attempt=1, how="exit", code=0, seconds=1.0),
    )
    history = History(tuple(Event(index, 0, body) for index, body in enumerate(bodies)))
    token = ReplayToken(target=target, seed=4, schedule="kill@1ms", take=2)
    return Exhibit(token=token, finding=finding, history=history)


def test_credentials_of_a_command_are_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their variable's name, or under a name of ours; the project's files are found from the
    test, programs by their name; the report has neither.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.js").touch()
    spec = CommandSpec(
        command=(
            "node",
            str(tmp_path / "task.js"),
            "task.js",
            "--key=sk_live_4eC39HqLyjWDarjtT1zdp7dc",
            "{state}",
        ),
        resume=("./task.js", "--resume"),
        env={"MAIL_API_KEY": "hunter2", "MODE": "fast", "PYTHONPATH": str(tmp_path)},
        services=("payments",),
    )
    made = exhibit(Target(command=spec))
    text = pytest_file(made, tmp_path / "tests")
    assert "4eC39" not in text + bug_report(made)
    assert "hunter2" not in text + bug_report(made)
    monkeypatch.setenv("MAIL_API_KEY", "k")
    monkeypatch.setenv("CHAOSKIT_SECRET_1", "s")
    asked: list[ReplayToken] = []
    scope: dict[str, Any] = {"__file__": str(tmp_path / "tests" / "test_x.py"), "asked": asked}
    body = text.replace("replayed = recheck(token)", "asked.append(token); return")
    exec(compile(body, "test_x.py", "exec"), scope)  # noqa: S102 - it is the test's subject
    scope["test_no_duplicate_effect_of_payments_charge_" + FINDING.fingerprint]()
    (token,) = asked
    command = token.target.command
    assert command is not None
    assert command.command == ("node", str(tmp_path / "task.js"), "task.js", "s", "{state}")
    assert command.resume == (str(tmp_path / "task.js"), "--resume")
    assert command.env == {"MAIL_API_KEY": "k", "MODE": "fast", "PYTHONPATH": str(tmp_path)}
    assert (command.services, token.seed, token.take) == (("payments",), 4, 2)
    assert "The first 2 items are enough" in bug_report(made)


def test_the_python_of_a_virtual_environment_stays_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a link, and behind it there are none of the packages: the exported test is red while
    the task is broken, and green once it is fixed. Any words of a command are kept.
    """
    monkeypatch.chdir(tmp_path)
    python, odd = Path(".venv") / "bin" / "python", "ü 'a' \"b\" {state} $HOME"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], check=True)
    (packages,) = (tmp_path / ".venv" / "lib").glob("python*/site-packages")
    (packages / "only_there.py").write_text("NAME = 'out'\n")
    script = tmp_path / "job.py"
    script.write_text("from only_there import NAME\nopen(NAME, 'a').write('x')\n")
    spec = CommandSpec(command=(str(python), str(script), odd), outputs=("out",))
    made = campaign(
        Target(command=spec),
        tmp_path / "runs",
        mechanisms=best(),
        only=("kill@write(out)#1+after",),
    )
    tests = tmp_path / "tests ü"
    tests.mkdir()
    text = pytest_file(exhibit_of(made), tests)
    (tests / "test_kept.py").write_text(text, encoding="utf-8")
    assert 'abspath(HERE / "../.venv/bin/python")' in text
    red = pytest_of(tests)
    assert "REPRODUCED, the same finding; diverged_state" in red.stdout
    script.write_text("from only_there import NAME\nopen(NAME, 'w').write('x')\n")
    green = pytest_of(tests)
    assert green.returncode == 0, green.stdout


def test_a_finding_cannot_break_out_of_the_test_or_leave_paths_in_the_report() -> None:
    """Quotes and backslashes stay in the docstring; folders become an ellipsis."""
    made = exhibit(Target(scenario="task.py:other"))
    text = pytest_file(made, Path())
    compile(text, "test_x.py", "exec")
    assert "+ ':other'" in text.replace('"', "'")
    report = bug_report(made)
    assert "secret-project" not in report
    assert "…/task.py" in report
    assert "/srv/app" not in report


def test_every_part_of_a_command_is_in_the_exported_test() -> None:
    """Its target is the same value again, whatever was asked for."""
    spec = CommandSpec(
        command=("job",),
        resume=("job", "--resume"),
        control=("job", "--whole"),
        env={"A": "b"},
        services=("payments:eu",),
        outputs=("out",),
        contract={"eu.charge": "at-most-once"},
        behaviours=("down:1@eu.charge#1",),
        tables="CREATE TABLE a (b)",
        allow=("127.0.0.1:9",),
        timeout_s=3.0,
        typed=True,
        clean=("old",),
        key_lifetime={"payments": "72h"},
        resumed_within="48h",
    )
    assert all(getattr(spec, f.name) != f.default for f in fields(CommandSpec))
    text = pytest_file(exhibit(Target(command=spec)), Path())
    written = text[text.index("target=") + len("target=") : text.index("        seed=")]
    made = eval(written.strip().rstrip(","), globals())  # noqa: S307 - our own text
    assert made == Target(command=spec)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in /srv/app/jobs/task.py:3", "in …/task.py:3"),
        ("file:///srv/app/x", "…/x"),
        ("at http://127.0.0.1:8/v1/charges", "at http://127.0.0.1:8/v1/charges"),
        ("POST /v1/charges", "POST /v1/charges"),
        ("scenarios/shop.py", "scenarios/shop.py"),
        ("C:\\Users\\ada\\x.py", "…/x.py"),
        ("'/a/b/c'", "'…/c'"),
    ],
)
def test_paths_are_known_by_their_shape(text: str, shown: str) -> None:
    """Absolute ones lose their folders; addresses and relative ones are kept."""
    assert without_paths(text) == shown


def test_a_minimal_story_has_its_frame() -> None:
    """Faults and ends are told even where the finding has no witness."""
    made = exhibit(Target(scenario="task.py"))
    kept = minimal(made.history, made.finding)
    assert kept == frozenset({0, 1})
    assert table(list(told(made.history, kept)))[0].endswith("chaoskit  FAULT kill@1ms")
