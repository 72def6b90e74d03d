"""Repeats of one trial: steady or flaky, and replays of findings that do not always show."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.campaign.bench import Bench
from chaoskit.campaign.repeating import (
    REPEATS,
    Repeated,
    Sought,
    in_a_resume,
    like,
    named,
    repeated,
    summed,
)
from chaoskit.campaign.replay import MEANING, replay
from chaoskit.explore.statistics import Repeats
from chaoskit.model.events import AttemptEnded, Event
from chaoskit.model.findings import Diagnosis, Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import ReplayToken
from tests.campaign.small_task import small_task

AT = "kill@payments.charge#2.applied"


def finding(subject: str = "s", missing: str = "order", cause: str = "") -> Finding:
    """A duplicate with what makes it another one."""
    return Finding(
        kind="duplicate_effect",
        operation="payments.charge",
        subject=subject,
        expected="once",
        seen="twice",
        because="b",
        diagnosis=Diagnosis(missing, "e", "m"),
        cause=cause,
    )


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.booleans())
def test_repeats_are_flaky_as_soon_as_one_disagrees(answers: list[bool], first: bool) -> None:
    """Steady is what all repeats and the trial before them agree on, whatever it is."""
    found = summed(answers, first=first)
    assert found == Repeated(first, answers.count(True), len(answers))
    assert found.steady == (len({first, *answers}) == 1)
    assert str(found).startswith("STEADY" if found.steady else "FLAKY")


@given(st.integers(0, 9), st.integers(1, 9), st.booleans())
def test_the_interval_is_that_of_the_repeats_alone(shown: int, more: int, first: bool) -> None:
    """The trial that was chosen for what it showed is not counted: it would be no evidence."""
    times = shown + more
    assert Repeated(first, shown, times).interval == Repeats(shown, times).interval
    assert f"{shown}/{times}" in str(Repeated(first, shown, times))


def test_a_trial_is_repeated_as_often_as_is_asked_for() -> None:
    """Each repeat is awaited and judged by the question that is given."""
    judgements = iter([Judgement("INVALID", (finding("t"),)), Judgement("VALID")] * 2)

    async def once() -> Judgement:
        return next(judgements)

    found = asyncio.run(repeated(once, like(finding()), first=True, times=4))
    assert found == Repeated(first=True, shown=2, times=4)


def ended(attempt: int) -> AttemptEnded:
    """An attempt that ended by itself."""
    return AttemptEnded(attempt=attempt, how="exit", code=0, seconds=1.0)


def trial(*attempts: int) -> History:
    """A history in which attempts end, one after the other."""
    events = tuple(Event(index, index, ended(number)) for index, number in enumerate(attempts))
    return History(events)


@pytest.mark.parametrize(
    ("witness", "attempts", "resumed"),
    [
        ((0,), (1, 2), False),
        ((1,), (1, 2), True),
        ((0, 1), (1, 2), True),
        ((2, 0), (1, 1, 3), True),
        ((), (1, 2), True),
        ((), (1,), False),
    ],
)
def test_a_finding_is_made_in_a_resume_where_its_witnesses_are(
    witness: tuple[int, ...], attempts: tuple[int, ...], resumed: bool
) -> None:
    """The latest of them decides; without any, the trial had a resume or had none."""
    found = msgspec.structs.replace(finding(), witness=witness)
    assert in_a_resume(found, trial(*attempts)) is resumed


@pytest.mark.parametrize("sought_in", [1, 2])
@pytest.mark.parametrize("shown_in", [1, 2])
@pytest.mark.parametrize("missing", ["order", "a key"])
def test_the_same_finding_needs_the_same_part_of_a_resume(
    sought_in: int, shown_in: int, missing: str
) -> None:
    """One that a resume shows is not found again in a first attempt, nor the other way round; and
    never with another diagnosis.
    """
    history = trial(1, 2)
    first = msgspec.structs.replace(finding(), witness=(sought_in - 1,))
    other = msgspec.structs.replace(finding("t", missing), witness=(shown_in - 1,))
    among = Sought.of(first, history).among(Judgement("INVALID", (other,)), history)
    same = sought_in == shown_in and missing == "order"
    assert among == (other if same else None)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (finding("another customer"), True),
        (finding(missing="a key"), False),
        (finding(cause="0badcafe"), False),
    ],
)
def test_the_same_finding_may_have_another_subject(other: Finding, same: bool) -> None:
    """Kind, operation, diagnosis and being a root agree; a fingerprint names a subject as well."""
    judgement = Judgement("INVALID", (other,))
    assert (like(finding())(judgement) is not None) is same
    assert named(other.fingerprint)(judgement) is other
    assert named(finding("s").fingerprint)(judgement) in {None, other}


def test_a_replay_repeats_what_does_not_show_at_once(tmp_path: Path) -> None:
    """A task that is careless in every other resume is FLAKY 3/5 after a careful one, exit 1."""
    target = small_task(tmp_path, "every other time")
    with Bench(target, 0, str(tmp_path)) as bench:
        tried = [bench.trial(parse_schedule(AT)) for _ in range(2)]
    assert [len(t.judgement.findings) for t in tried] == [0, 1]
    token = ReplayToken(
        target=target,
        seed=0,
        schedule=AT,
        fingerprint=tried[1].judgement.findings[0].fingerprint,
    )
    replayed = replay(token, str(tmp_path))
    assert replayed.outcome == "FLAKY"
    assert replayed.repeats == Repeated(first=False, shown=3, times=REPEATS)
    assert str(replayed.repeats).startswith("FLAKY 3/5")
    assert replayed.finding == tried[1].judgement.findings[0]
    assert MEANING["FLAKY"][0] == 1


def test_a_replay_that_shows_it_at_once_is_not_repeated(tmp_path: Path) -> None:
    """REPRODUCED after one trial, and FIXED only when the repeats show nothing either."""
    broken = small_task(tmp_path, "none")
    with Bench(broken, 0, str(tmp_path)) as bench:
        found = bench.trial(parse_schedule(AT)).judgement.findings[0]
    token = ReplayToken(target=broken, seed=0, schedule=AT, fingerprint=found.fingerprint)
    replayed = replay(token, str(tmp_path))
    assert (replayed.outcome, replayed.repeats) == ("REPRODUCED", None)
    small_task(tmp_path, "keyed")
    replayed = replay(token, str(tmp_path))
    assert replayed.outcome == "FIXED"
    assert replayed.repeats == Repeated(first=False, shown=0, times=REPEATS)
