"""``--resume-after``: the task is resumed so long after each kill, by all clocks."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from chaoskit.campaign.options import Options
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.cli.main import main
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import Target, parse_token
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from chaoskit.trial.supervisor import Resumed, Supervisor
from tests.campaign.small_task import small_task
from tests.trial.faulty import ends, said, scenario
from tests.trial.traced import with_supervisor

needs_tracing = pytest.mark.skipif(this_abi() is None, reason="programs are not traced here")

TWO_DAYS_S, DAY_S, HOUR_S = 2 * 86400, 86400, 3600
"""Payments remembers a key for one day."""


def campaign(target: Target, tmp_path: Path, **options: object) -> tuple[Path, Summary]:
    """Run it; where it is stored, and what came of it."""
    chosen = Options(target=target, runs=str(tmp_path / "runs"), **options)  # type: ignore[arg-type]
    *_, last = run(chosen, Inline())
    with Store(last.folder) as store:  # type: ignore[union-attr]
        return store.folder, summarize(store)


@needs_tracing
@pytest.mark.parametrize("snapshots", [True, False])
def test_a_resume_two_days_later_finds_what_one_at_once_does_not(
    tmp_path: Path, *, snapshots: bool
) -> None:
    """A key is forgotten by then: two charges, from copies and by real kills; an hour later it is
    known. The replay token holds the time, and without it there is nothing to see.
    """
    target = small_task(tmp_path, "keyed")
    found = {}
    for after_s in (0, HOUR_S, TWO_DAYS_S):
        _, found[after_s] = campaign(target, tmp_path, snapshots=snapshots, resume_after_s=after_s)
    assert {s: summary.verdict for s, summary in found.items()} == {
        0: "VALID",
        HOUR_S: "VALID",
        TWO_DAYS_S: "INVALID",
    }
    (finding,) = found[TWO_DAYS_S].findings[:1]
    assert finding.kind == "duplicate_effect"
    token = parse_token(finding.replay.split()[-1])
    assert token.resume_after_s == TWO_DAYS_S
    assert replay(token).outcome == "REPRODUCED"
    assert replay(msgspec.structs.replace(token, resume_after_s=0), repeats=0).outcome == "FIXED"
    assert any("sooner than 172800 s" in limit for limit in found[TWO_DAYS_S].not_tested)


TOLD = """
say(time.time())
charge(1, key="k")
probe.point("charged")
sys.exit(3 if first("failed") else 0)
"""


@needs_tracing
def test_each_kill_advances_the_clocks_once(tmp_path: Path) -> None:
    """By a real kill and from copies, also from one that was made in a resume; an attempt that ends
    by itself and is tried again advances nothing.
    """
    file = tmp_path / "told.py"
    file.write_text(scenario(TOLD), encoding="utf-8")
    once = parse_schedule("kill@charged#1")
    twice = parse_schedule("kill@charged#1 / kill@charged#1")

    async def then(supervisor: Supervisor) -> None:
        supervisor.conduct = replace(supervisor.conduct, calls=False, resume_after_s=DAY_S)
        first, second = once.attempts[0][0], twice.attempts[1][0]
        album = await supervisor.record([first])
        further = await supervisor.record([second], Resumed(album[first], once))
        for schedule, copy in ((once, album[first]), (twice, further[second])):
            kills = len(schedule.attempts)
            for resume in (supervisor.run, lambda s, c=copy: supervisor.resume(c, s)):
                before = time.time()
                history = await resume(schedule)
                after = time.time()
                assert ends(history)[kills:] == [f"{kills + 1} exit 3", f"{kills + 2} exit 0"]
                for attempt in (kills + 1, kills + 2):
                    ahead = float(said(history, attempt)[0]) - kills * DAY_S
                    # a copy's time goes on from when it was made, which was before
                    assert before - 300 <= ahead <= after

    with_supervisor(Target(scenario=str(file)), then)


@pytest.mark.parametrize("text", ["5", "5 m", "-5m", "5w", "0s", "1.5h", "99999999d"])
def test_what_is_no_time_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is run; the message says how one is written."""
    target = small_task(tmp_path, "keyed")
    with pytest.raises(SystemExit) as ended:
        main(["run", target.scenario, "--resume-after", text])
    assert ended.value.code == 2
    assert re.search(r"5m, 1h|100 years", capsys.readouterr().err)
