"""The recipe for builds: the script and the action, run as a build runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaoskit.model.findings import Verdict

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "ci" / "chaoskit.sh"
ACTION = ROOT / ".github" / "actions" / "chaoskit" / "action.yml"
CARELESS = """
import os
from urllib.request import Request, urlopen

from chaoskit import Scenario


def main():
    data = b"amount=100&currency=eur&source=tok_visa"
    headers = {"Authorization": "Bearer sk_test_x"}
    with urlopen(Request(os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges", data, headers)) as a:
        a.read()


scenario = Scenario(task=main, services=("payments",), title="charges again when it is resumed")
"""
REPORTS = {"report.html", "report.json", "report.xml", "report.sarif", "report.md", "badge.svg"}
QUICK = ("--mechanisms", "windows", "--in-flight", "landed", "-j", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with one scenario that fails, and a name with a space."""
    (tmp_path / "my shop.py").write_text(CARELESS, encoding="utf-8")
    return tmp_path


def shell(words: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A step of a build."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CHAOS"))}
    return subprocess.run(
        words,
        cwd=folder,
        env={**kept, "CHAOS_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def script(*words: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The script, by a shell that is no more than POSIX where there is one."""
    posix = shutil.which("dash") or "sh"
    return shell([posix, str(SCRIPT), *words, *QUICK], folder, **env)


def test_the_script_keeps_everything_and_ends_with_the_verdict(folder: Path) -> None:
    """Every form of the report, the stored run under one name without a link, a summary appended,
    and the code of the findings.
    """
    summary = folder / "summary.md"
    summary.write_text("before\n")
    done = script("my shop.py", folder=folder, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == Verdict.INVALID.exit_code, done.stderr
    out = folder / "chaoskit-out"
    assert {f.name for f in out.iterdir()} == REPORTS | {"run"}
    assert not any(f.is_symlink() for f in out.rglob("*"))
    assert json.loads((out / "report.json").read_text())["verdict"] == "INVALID"
    assert summary.read_text() == "before\n" + (out / "report.md").read_text()
    again = shell([sys.executable, "-m", "chaoskit.cli.main", "report", str(out / "run")], folder)
    assert again.returncode == 1
    assert "duplicate_effect" in again.stdout


def test_the_script_says_what_is_wrong_and_overwrites_nothing(folder: Path) -> None:
    """Wrong words end with 2 and no run; a folder that is there stays; what pip cannot install
    is a failure of the build, not a finding.
    """
    wrong = script("my shp.py", folder=folder)
    assert wrong.returncode == 2
    assert "there is no file my shp.py" in wrong.stderr
    assert not (folder / "chaoskit-out" / "run").exists()
    (folder / "kept" / "run").mkdir(parents=True)
    there = script("my shop.py", folder=folder, CHAOS_OUT="kept")
    assert there.returncode == 2
    assert "CHAOS_OUT" in there.stderr
    absent = script("my shop.py", folder=folder, CHAOS_INSTALL="./no-such-package")
    assert absent.returncode == 3
    assert "could not install" in absent.stderr


def test_the_script_s_shards_are_joined(folder: Path) -> None:
    """Two jobs, each with its shard and its folder, and a third that joins what they kept."""
    for k in ("1", "2"):
        done = script("my shop.py", folder=folder, CHAOS_SHARD=f"{k}/2", CHAOS_OUT=f"shard-{k}")
        assert done.returncode in {0, 1}, done.stderr
    joined = shell(
        [
            *(sys.executable, "-m", "chaoskit.cli.main", "join", "shard-1/run", "shard-2/run"),
            *("--into", "whole", "--json", "whole.json"),
        ],
        folder,
    )
    assert joined.returncode == 1, joined.stderr
    found = json.loads((folder / "whole.json").read_text())
    assert found["points"] == {"total": 3, "tested": 3, "landed": 3}
    assert not any("shard" in text for text in found["not_tested"])


def test_the_script_is_plain_posix() -> None:
    """A POSIX shell parses it, and no line uses what only bash has."""
    assert subprocess.run(["sh", "-n", str(SCRIPT)], check=False).returncode == 0
    text = SCRIPT.read_text()
    assert not re.search(r"\[\[|\blocal\b|\bfunction\b|<<<|\$'", text)


# The action.


def loaded() -> dict[str, Any]:
    """The action as GitHub reads it."""
    found: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return found


def filled(text: str, known: dict[str, str]) -> str:
    """``text`` with its expressions replaced, all of which must be known."""
    return re.sub(r"\$\{\{ *(.+?) *\}\}", lambda found: known[found[1]], text)


def act(folder: Path, **inputs: str) -> tuple[int, dict[str, str], Path]:
    """The action's own steps, one after the other: code of the last, outputs, job summary."""
    action = loaded()
    temp = folder / "temp"
    temp.mkdir()
    output, summary = temp / "output", temp / "summary"
    known = {f"inputs.{k}": v.get("default", "") for k, v in action["inputs"].items()}
    known |= {f"inputs.{k}": v for k, v in inputs.items()}
    known["github.action_path"] = str(ACTION.parent)
    code = 0
    outputs: dict[str, str] = {}
    for step in action["runs"]["steps"]:
        if "run" not in step:
            continue
        env = {name: filled(value, known) for name, value in step["env"].items()}
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
        # as a runner starts `shell: sh`
        done = shell(["sh", "-e", "-c", step["run"]], folder, RUNNER_TEMP=str(temp), **files, **env)
        code = done.returncode
        outputs |= dict(line.split("=", 1) for line in output.read_text().splitlines())
        known |= {f"steps.{step.get('id')}.outputs.{k}": v for k, v in outputs.items()}
        if code:
            break
    return code, outputs, summary


def test_the_action_runs_keeps_and_fails_by_the_verdict(folder: Path) -> None:
    """Its steps leave a summary and a folder to upload, and only the last one fails."""
    words = " ".join(["'my shop.py'", *QUICK])
    code, outputs, summary = act(folder, arguments=words, install="", python=sys.executable)
    assert code == 1
    assert outputs["code"] == "1"
    out = Path(outputs["folder"])
    assert {f.name for f in out.iterdir()} == REPORTS | {"run"}
    assert summary.read_text() == (out / "report.md").read_text()


def test_nothing_in_an_input_of_the_action_is_run(folder: Path) -> None:
    """Words with $(…), ; and ` are words: they are refused as such, and do nothing."""
    words = "'$(touch owned)' ; `touch owned` > owned"
    code, outputs, _ = act(folder, arguments=words, install="", python=sys.executable)
    assert code == 2
    assert outputs["code"] == "2"
    assert not (folder / "owned").exists()


def test_the_action_s_inputs_are_documented_and_used(folder: Path) -> None:
    """Each input has a description and is used; expressions stand in no script; the upload comes
    before the step that fails; docs/ci.md names each input.
    """
    action = loaded()
    text = ACTION.read_text(encoding="utf-8")
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for name, meant in action["inputs"].items():
        assert meant["description"]
        assert f"inputs.{name}" in text
        assert f"`{name}`" in page
    steps = action["runs"]["steps"]
    assert [step["name"] for step in steps] == ["Run", "Keep", "Judge"]
    assert steps[1]["uses"].startswith("actions/upload-artifact@")
    for step in steps:
        assert "${{" not in step.get("run", "")
    for name in ("CHAOS_INSTALL", "CHAOS_PYTHON", "CHAOS_OUT", "CHAOS_SHARD"):
        assert name in SCRIPT.read_text()
        assert f"`{name}`" in page


def test_the_workflows_of_the_page_are_workflows() -> None:
    """Each YAML example of docs/ci.md parses, and gives the action only inputs that it has."""
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    examples = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.+?)```", page, re.DOTALL)]
    assert examples
    used = 0
    for example in examples:
        for job in example["jobs"].values():
            for step in job["steps"]:
                if "/actions/chaoskit" in step.get("uses", ""):
                    used += 1
                    assert step["with"].keys() <= loaded()["inputs"].keys()
                    assert "arguments" in step["with"]
    assert used >= 2


def test_the_action_installs_its_own_checkout(folder: Path) -> None:
    """No index is asked for a chaoskit: who uses the action has it already."""
    python, asked = folder / "python", folder / "asked.txt"
    python.write_text(
        f'#!/bin/sh\n[ "$2" != pip ] || {{ echo "$*" > {asked}; exit 0; }}\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    code, _, _ = act(folder, arguments="no-such.py", python=str(python))
    assert code == 2
    installed = Path(asked.read_text().split()[-1])
    assert (installed / "pyproject.toml").samefile(ROOT / "pyproject.toml")
