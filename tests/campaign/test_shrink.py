"""Shrinking by real trials: what is left is small, exact, and replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.bench import Bench
from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.shrinking import (
    Asked,
    Began,
    Effort,
    Ended,
    Known,
    Step,
    put_shrunken,
    shrink,
    shrunken,
    worth_shrinking,
)
from chaoskit.campaign.store import Store
from chaoskit.explore.plan import Mechanism
from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec, ReplayToken, Target
from chaoskit.reporting.summary import summarize
from chaoskit.trial.loading import load
from tests.campaign.small_task import NAMES, Care, small_task

TWO = "kill@payments.charge#3.applied / kill@1ms"
"""The second kill comes as the resume begins, and adds nothing."""


def token_of(target: Target, schedule: str, work: Path) -> ReplayToken:
    """The token of what one trial shows."""
    with Bench(target, 0, str(work)) as bench:
        findings = bench.trial(parse_schedule(schedule)).judgement.findings
    print_ = findings[0].fingerprint if findings else "0badcafe"
    return ReplayToken(target=target, seed=0, schedule=schedule, fingerprint=print_)


def ended(steps: list[Step]) -> Ended:
    """The last step."""
    assert isinstance(steps[-1], Ended)
    return steps[-1]


@pytest.mark.parametrize("mechanisms", [(), ("windows",)])
def test_two_kills_and_a_time_shrink_to_one_exact_kill_of_one_item(
    tmp_path: Path, mechanisms: tuple[Mechanism, ...]
) -> None:
    """What is left is one kill at an exact point with one item of the input, and it REPRODUCES."""
    token = token_of(small_task(tmp_path, "none"), TWO, tmp_path)
    effort = Effort(mechanisms=mechanisms, work_root=str(tmp_path))
    steps = list(shrink(token, effort=effort))
    last = ended(steps)
    schedule = parse_schedule(last.token.schedule)
    assert (schedule.faults, schedule.timed, last.token.take) == (1, False, 1)
    assert (last.began, last.cut_off, last.items) == (True, False, len(NAMES))
    assert last.replayed.outcome == "REPRODUCED"
    assert replay(last.token, str(tmp_path)).outcome == "REPRODUCED"
    if mechanisms:
        assert last.token.schedule == "kill@payments.charge#1.applied"


def test_each_step_says_what_was_tried(tmp_path: Path) -> None:
    """The first step tells what is looked for; those that show it get smaller one after another."""
    token = token_of(small_task(tmp_path, "none"), TWO, tmp_path)
    steps = list(shrink(token, effort=Effort(mechanisms=("windows",), work_root=str(tmp_path))))
    began, asked = steps[0], [step for step in steps if isinstance(step, Asked)]
    assert isinstance(began, Began)
    assert (str(began.schedule), began.same) == (TWO, True)
    assert began.finding.kind == "duplicate_effect"
    assert [step.trials for step in asked] == list(range(2, len(asked) + 2))
    assert ended(steps).trials == len(asked) + 1
    smaller = [step.candidate for step in asked if step.shows]
    assert ended(steps).token.schedule == str(smaller[-1].schedule)


def test_a_finding_that_is_gone_cannot_be_shrunk(tmp_path: Path) -> None:
    """Where no trial shows anything the token stays as it is, and the outcome is its replay's."""
    token = token_of(small_task(tmp_path, "keyed"), "kill@payments.charge#3.applied", tmp_path)
    (last,) = shrink(token, effort=Effort(work_root=str(tmp_path)))
    assert isinstance(last, Ended)
    assert (last.began, last.token, last.replayed.outcome) == (False, token, "FIXED")


def test_a_bound_on_trials_is_kept_and_said(tmp_path: Path) -> None:
    """After as many candidates as were allowed it ends, and says so."""
    token = token_of(small_task(tmp_path, "none"), TWO, tmp_path)
    steps = list(shrink(token, effort=Effort(most=1, work_root=str(tmp_path))))
    assert sum(isinstance(step, Asked) for step in steps) == 1
    assert ended(steps).cut_off
    assert ended(steps).token.schedule == "kill@payments.charge#3.applied"


# What of a campaign is shrunk.


def campaign(tmp_path: Path, care: Care, **options: object) -> Path:
    """The folder of a campaign on a small task."""
    target = small_task(tmp_path, care)
    chosen = Options(target=target, runs=str(tmp_path / "runs"), **options)  # type: ignore[arg-type]
    return next(event for event in run(chosen) if isinstance(event, Finished)).folder


def test_only_what_a_sweep_does_not_meet_in_order_is_worth_it(tmp_path: Path) -> None:
    """A single exact kill is left alone unless everything is asked for; two kills are not."""
    single = "kill@payments.charge#1.applied"
    with Store(campaign(tmp_path, "none", only=(single, TWO))) as store:
        assert not worth_shrinking(store)
        ((token, known),) = worth_shrinking(store, everything=True)
        assert (token.schedule, token.fingerprint) == (single, known.finding.fingerprint)
    with Store(campaign(tmp_path, "none", only=(TWO,))) as store:
        ((token, known),) = worth_shrinking(store)
        assert token.schedule == TWO


def test_a_stored_trial_is_where_shrinking_begins(tmp_path: Path) -> None:
    """It is not run again first; what is left is stored, and is in the summary."""
    folder = campaign(tmp_path, "none", only=(TWO,))
    with Store(folder, writable=True) as store:
        ((token, known),) = worth_shrinking(store)
        effort = Effort(mechanisms=("windows",), work_root=str(tmp_path))
        steps = list(shrink(token, known, effort))
        assert isinstance(steps[1], Asked)
        assert steps[1].trials == 1
        put_shrunken(store, [shrunken(token, known, ended(steps))])
        (one,) = summarize(store).shrunk
    assert (one.schedule, one.smallest) == (TWO, "kill@payments.charge#1.applied")
    assert (one.take, one.items, one.outcome) == (1, len(NAMES), "REPRODUCED")
    assert one.replay == f"chaoskit replay {ended(steps).token}"


def test_a_time_becomes_the_exact_point_near_which_it_landed(tmp_path: Path) -> None:
    """Also where the timed trial itself would not show it again: its history is enough."""
    target = small_task(tmp_path, "none")
    with Bench(target, 0, str(tmp_path)) as bench:
        tried = bench.trial(parse_schedule("kill@payments.charge#3.applied"))
    timed = b"kill@86400000ms"
    history = History.decode(
        tried.history.encode().replace(b"kill@payments.charge#3.applied", timed)
    )
    (finding,) = tried.judgement.findings
    token = ReplayToken(
        target=target, seed=0, schedule=timed.decode(), fingerprint=finding.fingerprint
    )
    effort = Effort(mechanisms=("windows",), work_root=str(tmp_path))
    steps = list(shrink(token, Known(history, finding), effort))
    shown = [
        str(step.candidate.schedule) for step in steps if isinstance(step, Asked) and step.shows
    ]
    assert shown[0] == "kill@payments.charge#3.applied"
    last = ended(steps)
    assert (last.token.schedule, last.token.take) == ("kill@payments.charge#1.applied", 1)
    assert last.replayed.outcome == "REPRODUCED"


# The leading items of the inputs.


def test_only_the_leading_items_reach_the_task(tmp_path: Path) -> None:
    """With take the survey and the trials are those of a shorter list; without it, of all of it."""
    target = small_task(tmp_path, "keyed")
    with Bench(target, 0, str(tmp_path)) as bench:
        effects = {take: len(bench.survey(take).expectation.order) for take in (None, 0, 2, 99)}
        assert effects == {None: len(NAMES), 0: 0, 2: 2, 99: len(NAMES)}
        assert bench.surveys == 4
        assert bench.trial(parse_schedule("none"), 2).judgement.verdict == "VALID"


@pytest.mark.parametrize(
    ("inputs", "take", "says"),
    [({"a": 1}, 1, "has a dict as inputs"), (NAMES, -1, "no first -1 items")],
)
def test_what_has_no_leading_items_is_refused(
    tmp_path: Path, inputs: object, take: int, says: str
) -> None:
    """Only a list can be cut, and not to less than nothing; the message says what is there."""
    with pytest.raises(ScenarioError, match=says):
        load(small_task(tmp_path, "keyed", inputs), take).inputs(0)


def test_a_scenario_without_inputs_cannot_be_cut(tmp_path: Path) -> None:
    """A replay of a token with take on such a scenario is a usage error, not a finding."""
    target = Target(command=CommandSpec(command=("true",)))
    token = ReplayToken(target=target, seed=0, schedule="none", take=1)
    with pytest.raises(UsageError, match="has no inputs"):
        replay(token, str(tmp_path))
