"""The time of a soak is shared by its trials and their repeats; these tests turn the clock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from chaoskit.campaign import jobs
from chaoskit.campaign.events import RepeatsStarted
from chaoskit.campaign.folder import find_run
from chaoskit.campaign.options import Options
from chaoskit.campaign.pacing import Pace, Reserve
from chaoskit.campaign.repeating import REPEATS
from chaoskit.campaign.run import run
from chaoskit.campaign.soaking import (
    REPEATED_MOST,
    Soak,
    Soaking,
    failed_trials,
    soak_of,
    unrepeated,
)
from chaoskit.campaign.store import SOAKED_S, Store
from chaoskit.explore.plan import sweep
from chaoskit.reporting.summary import summarize
from tests.campaign.small_task import Care, small_task


@dataclass
class Turned:
    """A clock, and workers that run each job at once and turn it by ``trial_s``."""

    trial_s: float = 1.0
    now: float = 0.0

    def __call__(self) -> float:
        """The seconds."""
        return self.now

    def submit(self, job: jobs.Job) -> Future[bytes]:
        """Run it in this process."""
        future: Future[bytes] = Future()
        future.set_result(jobs.perform(jobs.encoded(job)))
        self.now += self.trial_s
        return future


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    """What a test starts in this process ends with it."""
    yield
    jobs.close_session()


def surveyed(tmp_path: Path, care: Care) -> tuple[Store, Options]:
    """The store of a soak of which the survey is made, and no trial."""
    options = Options(
        target=small_task(tmp_path, care),
        soak_s=3600.0,
        max_points=0,
        depth=1,
        mechanisms=("windows",),
        runs=str(tmp_path / "runs"),
    )
    for event in run(options):
        assert not isinstance(event, RepeatsStarted)
    return Store(find_run(Path(options.runs), "latest"), writable=True), options


def soaked(store: Store, options: Options, seconds: float, clock: Turned) -> tuple[Soak, Soaking]:
    """A soak of so many seconds by that clock, its trials done."""
    survey = store.survey()
    assert survey is not None
    known, _ = sweep(survey[:2], options.mechanisms)
    asked = replace(soak_of(options, survey[0], known), seconds=seconds, most=None)
    soaking = Soaking(store, jobs.settings_of(options), clock.submit, clock)
    for _ in soaking.trials(asked):
        pass
    return asked, soaking


def test_the_time_of_a_soak_holds_its_repeats(tmp_path: Path) -> None:
    """What failed is repeated, and trials and repeats together end when they were asked to."""
    store, options = surveyed(tmp_path, "none")
    clock = Turned()
    with store:
        asked, soaking = soaked(store, options, 40.0, clock)
        drawn = len(list(store.soaked()))
        assert 0 < drawn < 40
        assert failed_trials(store, REPEATED_MOST)
        list(soaking.repeats(asked))
        repeated = sum(one.times for one in store.repeats().values())
        assert repeated > 0
        assert 40.0 - REPEATS <= soaking.seconds <= 40.0
        assert float(store.get(SOAKED_S) or 0) == soaking.seconds
        assert soaking.seconds == drawn + repeated


def test_a_soak_in_which_nothing_fails_keeps_nothing_back(tmp_path: Path) -> None:
    """All of its time goes to trials."""
    store, options = surveyed(tmp_path, "keyed")
    clock = Turned()
    with store:
        asked, soaking = soaked(store, options, 12.0, clock)
        assert (len(list(store.soaked())), soaking.seconds) == (12, 12.0)
        assert not list(soaking.repeats(asked))


def test_at_the_end_of_its_time_no_repeat_begins_and_the_report_says_so(tmp_path: Path) -> None:
    """Repeats that turn out dearer than trials are left out, and counted under not tested."""
    store, options = surveyed(tmp_path, "none")
    clock = Turned()
    with store:
        asked, soaking = soaked(store, options, 40.0, clock)
        clock.trial_s = 6.0
        list(soaking.repeats(asked))
        short, failed = unrepeated(store)
        assert 0 < short <= failed
        assert soaking.seconds <= 40.0 + asked.ahead * clock.trial_s
        said = [line for line in summarize(store).not_tested if line.startswith("steady or flaky")]
        assert len(said) == 1
        assert f": {short} of {failed} failed schedule" in said[0]
        assert all(0 < one.times <= REPEATS for one in store.repeats().values())


def test_where_the_time_is_over_there_are_no_repeats(tmp_path: Path) -> None:
    """A clock that has run on since the last trial leaves none; nor does a stop."""
    store, options = surveyed(tmp_path, "none")
    clock = Turned()
    with store:
        asked, soaking = soaked(store, options, 30.0, clock)
        assert not list(soaking.repeats(asked, lambda: True))
        clock.now = 30.0
        assert not list(soaking.repeats(asked))
        assert not store.repeats()


# The parts.


def test_the_time_is_divided_among_trials_by_how_long_each_took() -> None:
    """However many run at once, what trials cost is what went by; a slow one costs more."""
    clock = Turned()
    pace = Pace(clock, guess_s=7.0)
    assert (pace.mean_s, pace.under_way_s) == (7.0, 0.0)
    slow, quick = pace.begun(), pace.begun()
    assert pace.under_way_s == 14.0
    clock.now = 2.0
    assert pace.ended(quick) == 2.0
    assert (pace.mean_s, pace.under_way_s) == (2.0, 2.0)
    clock.now = 10.0
    assert pace.ended(slow) == pytest.approx(10.0 * 10 / 12)
    assert (pace.mean_s, pace.under_way_s) == (5.0, 0.0)


@pytest.mark.parametrize(
    ("costs", "seconds"),
    [
        ([], 0.0),
        ([2.0], 10.0),
        ([None], 15.0),
        ([2.0, 4.0, 1.0], 30.0),
        ([100.0], 50.0),
    ],
)
def test_for_repeats_is_kept_what_they_will_take(costs: list[float | None], seconds: float) -> None:
    """Five times what failed trials cost, of the two dearest here, and half of the time at most."""
    reserve = Reserve(Pace(Turned(), guess_s=3.0), 100.0, most=2, times=5)
    for number, cost in enumerate(costs):
        reserve.failed(f"kill@x#{number + 1}", cost)
    assert reserve.seconds == seconds


def test_a_schedule_that_fails_twice_is_kept_for_once() -> None:
    """It is repeated once, too."""
    reserve = Reserve(Pace(Turned()), 100.0, most=9, times=5)
    for cost in (1.0, 2.0):
        reserve.failed("kill@x#1", cost)
    assert reserve.seconds == 10.0
