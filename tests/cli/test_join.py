"""``chaoskit run --shard`` and ``chaoskit join`` as users type them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.small_task import small_task

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--mechanisms", "windows", "--in-flight", "landed", "-j", "1", "-q")


def chaoskit(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in ``folder``."""
    return subprocess.run(
        [sys.executable, "-m", "chaoskit.cli.main", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.exhaustive
def test_shards_are_run_joined_and_read_as_one(tmp_path: Path) -> None:
    """Two shards by their names, joined; then report and show read the new folder, and a token of
    it is replayed.
    """
    task = small_task(tmp_path, "none", inputs=["ada", "bob"]).scenario
    for shard in ("1/2", "2/2"):
        done = chaoskit("run", task, "--shard", shard, *QUICK, folder=tmp_path)
        assert done.returncode in {0, 1}, done.stderr
        assert re.search(rf"left to\s+the other shards, this is {shard}", done.stdout)
    runs = tmp_path / "reports" / "runs"
    names = sorted(f.name for f in runs.iterdir() if not f.is_symlink())
    joined = chaoskit("join", *names, "--into", "reports/runs/whole", folder=tmp_path)
    assert joined.returncode == 1, joined.stderr
    assert "killed at 6 of 6 points" in joined.stdout
    assert "other shards" not in joined.stdout
    report = chaoskit("report", "whole", folder=tmp_path)
    assert report.stdout == joined.stdout
    assert "payments.charge#2.applied" in chaoskit("show", "whole", folder=tmp_path).stdout
    tokens = re.findall(r"chaoskit replay (ck1-\S+)", report.stdout)
    assert "REPRODUCED" in chaoskit("replay", tokens[0], folder=tmp_path).stdout
    again = chaoskit("join", *names, "--into", "reports/runs/whole", folder=tmp_path)
    assert again.returncode == 2
    assert "is there already" in again.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "small_task.py", "--shard", "3/2"], "as in 1/3"),
        (["run", "small_task.py", "--shard", "1/2", "--soak", "5s"], "a soak is not divided"),
        (["run", "small_task.py", "--shard", "1/2", "--times", "5"], "--seed"),
        (["run", "small_task.py", "--shard", "9/9", *QUICK], "use at most"),
        (["join", "nope", "--into", "whole"], "unknown run"),
        (["join", "--into", "whole"], "Missing argument"),
        (["join", "nope"], "--into"),
    ],
)
def test_wrong_words_name_the_fix(tmp_path: Path, words: list[str], says: str) -> None:
    """Exit code 2, one sentence, and no run is left behind."""
    small_task(tmp_path, "keyed", inputs=["ada"])
    done = chaoskit(*words, folder=tmp_path)
    assert done.returncode == 2, done.stdout
    assert says in done.stderr
    assert not list(tmp_path.glob("reports/runs/*/"))
    assert not (tmp_path / "whole").exists()
