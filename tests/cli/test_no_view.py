"""Machines on which there is no view of the file system: what is done, and what is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.trial.ladder import tracing

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.view,
    pytest.mark.skipif(not tracing().works, reason="calls cannot be traced here"),
]

JOB = """
STATE=${STATE:-$HOME/.job}
mkdir -p "$STATE" 2>/dev/null
for n in 1 2; do
  [ -e "$STATE/done-$n" ] && continue
  echo "row $n" >> "$CHAOSKIT_STATE_DIR/out.csv"
  : > "$STATE/done-$n"
done
"""


def run(folder: Path, what: str, *words: str) -> str:
    """The report of a campaign where the kernel denies ``what``."""
    (folder / "job.sh").write_text(JOB, encoding="utf-8")
    denied = [sys.executable, str(ROOT / "tests" / "denied.py"), what]
    command = [*denied, sys.executable, "-m", "chaoskit.cli.main", "run", "-q", "-j", "2"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*command, "--outputs", "out.csv", *words, "--", "sh", str(folder / "job.sh")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "HOME": str(folder), "COLUMNS": "500"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize("what", ["unshare", "mount"])
def test_without_a_view_the_home_is_in_the_work_folder(tmp_path: Path, what: str) -> None:
    """State in the home is put back and judged all the same; the real home stays as it is."""
    told = run(tmp_path, what)
    assert told.splitlines()[1].startswith("INVALID")
    assert "the task runs on the real file system (Operation not permitted" in told
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept <= {"job.sh", "reports"}


def test_without_a_view_who_writes_elsewhere_is_run_alone_by_real_kills(tmp_path: Path) -> None:
    """What is left there spoils the next run: the verdict is not VALID, and the files are named."""
    there = tmp_path / "elsewhere"
    told = run(tmp_path, "unshare", "--env", f"STATE={there}")
    assert not told.splitlines()[1].startswith("VALID")
    assert str(there) in told
