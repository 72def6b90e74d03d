"""A clock fault that cannot advance the task's own clock says so, and counts as no more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from chaoskit.campaign.options import Options
from chaoskit.campaign.store import Store
from chaoskit.explore.clocks import SERVICES_ONLY, unmoved
from chaoskit.model.events import Body, Event, FaultLanded, TraceNoted
from chaoskit.model.history import History
from chaoskit.pytest_plugin.extent import extent_of
from chaoskit.reporting import junit, markdown
from chaoskit.reporting.summary import summarize
from chaoskit.trace import UNMOVED
from chaoskit.trace.abi import this_abi
from tests.trial.faulty import scenario

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(this_abi() is None, reason="programs are not traced here")

Denied = Callable[..., str]


@pytest.fixture
def denied(tmp_path: Path) -> Denied:
    """Run chaoskit where nothing can be traced, over a task that relies on its key alone."""
    (tmp_path / "keyed.py").write_text(scenario("charge(1, key='k')"), encoding="utf-8")

    def run(*words: str) -> str:
        command = [sys.executable, str(ROOT / "tests" / "denied.py"), "ptrace"]
        done = subprocess.run(
            [*command, sys.executable, "-m", "chaoskit.cli.main", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "500"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stdout, done.stderr
        return done.stdout

    return run


def test_it_says_so_in_its_first_line_and_is_not_counted_with_the_others(
    denied: Denied, tmp_path: Path
) -> None:
    """Each form of the report, the trial and its replay say so; the counts have it apart."""
    told = denied("run", "-q", "-j", "1", "--faults", "clock", "keyed.py")
    first = f"duplicate_effect  payments.charge, {SERVICES_ONLY}, in"
    assert [line.strip().startswith(first) for line in told.splitlines()].count(True) == 1
    assert "2 trials of the services' clocks alone" in told
    assert "of other faults" not in told
    assert f"the program's own clock, in 2 of 2 trials of a clock: {SERVICES_ONLY}" in told
    (folder,) = (tmp_path / "reports" / "runs").glob("*-keyed-*")
    with Store(folder) as store:
        summary = summarize(store)
        assert (summary.other_faults, summary.services_only) == (0, 2)
        assert f"`payments.charge, {SERVICES_ONLY}`" in markdown.render(summary)
        assert f"payments.charge, {SERVICES_ONLY}: " in junit.render(summary, store)
        options = msgspec.json.decode(store.get("options") or "", type=Options)
        landed = extent_of(store, options, summary).landed
        assert landed
        assert not any("clock:" in schedule for schedule in landed)
    trial = summary.findings[0].schedule
    assert denied("show", "latest", trial).startswith(f"INVALID  {trial}, {SERVICES_ONLY}")
    replayed = denied("replay", summary.findings[0].replay.split()[-1])
    assert f"REPRODUCED  the same finding, {SERVICES_ONLY}" in replayed


def test_a_clock_after_each_kill_says_so_too(denied: Denied) -> None:
    """``--resume-after`` advances the same clocks."""
    told = denied("run", "-q", "-j", "1", "--resume-after", "2d", "keyed.py")
    assert f"duplicate_effect  payments.charge, {SERVICES_ONLY}, in" in told
    assert f"the program's own clock: {SERVICES_ONLY}" in told


def _history(*notes: TraceNoted, fault: str = "clock:+7d") -> History:
    bodies: tuple[Body, ...] = (FaultLanded(2, fault), *notes)
    return History(tuple(Event(index, index, body) for index, body in enumerate(bodies)))


def test_what_did_not_advance_is_read_off_the_history() -> None:
    """All programs or one; nothing where no fault advanced a clock, or where all of them went."""
    assert unmoved(_history(TraceNoted(2, UNMOVED))) == SERVICES_ONLY
    assert unmoved(_history(TraceNoted(2, UNMOVED, "sudo"))) == "the clock of sudo did not advance"
    assert not unmoved(_history())
    copied = _history(TraceNoted(2, UNMOVED, "sudo"), fault="kill@here#1")
    assert not unmoved(copied)
    assert unmoved(copied, 60)
