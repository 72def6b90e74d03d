"""Which trials a real kill looks at too, so that a wrong copy of the world is met."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.classes import class_of, representatives, unchecked
from chaoskit.model.schedule import Schedule, parse_schedule

CALLS = [f"kill@write({target})#{n}" for target in ("a", "b-1", "b-2") for n in range(1, 13)]
WINDOWS = [f"kill@email.send#{n}.{window}" for n in (1, 2) for window in ("received", "applied")]
TRIALS = [parse_schedule(text) for text in (*CALLS, *WINDOWS, "kill@open(a)#1 / kill@write(a)#2")]

some_trials = st.lists(st.sampled_from(TRIALS), unique=True)


@given(some_trials, st.integers(0, 9))
def test_every_class_has_a_representative(trials: list[Schedule], seed: int) -> None:
    """One at least, and no more than three, all of them among the trials that are run."""
    chosen = representatives(trials, seed)
    assert chosen <= set(trials)
    assert {class_of(t) for t in chosen} == {class_of(t) for t in trials}
    names = [class_of(t) for t in chosen]
    assert all(names.count(name) <= 3 for name in names)


@given(some_trials, st.data())
def test_a_class_that_no_real_kill_looked_at_is_found(
    trials: list[Schedule], data: st.DataObject
) -> None:
    """Exactly those, by one trial each."""
    real = data.draw(st.lists(st.booleans(), min_size=len(trials), max_size=len(trials)))
    chosen = unchecked(zip(trials, real, strict=True))
    looked_at = {class_of(t) for t, was in zip(trials, real, strict=True) if was}
    names = [class_of(t) for t in chosen]
    assert sorted(names) == sorted({class_of(t) for t in trials} - looked_at)


def test_numbers_in_names_make_no_class_of_their_own() -> None:
    """The file's number and the call's are left out; target, window and depth are not."""
    assert class_of(TRIALS[12]) == class_of(TRIALS[24])
    others = {class_of(TRIALS[n]) for n in (0, 12, 36, 37, 40)}
    assert len(others) == 5
