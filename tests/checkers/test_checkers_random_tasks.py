"""Random tasks, killed anywhere and resumed well or badly: the checkers see exactly what is wrong.

The oracle knows how the history was made and counts by itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.comparison import subject
from chaoskit.checkers.effects import lost_effect
from chaoskit.model.effects import Effect
from chaoskit.model.findings import Judgement
from chaoskit.model.points import WINDOWS, Window
from tests.checkers.builder import Story, charge, expecting, judged, mail

Resume = Literal["continues", "repeats", "skips"]

EFFECTS = [*(charge(who) for who in ("ada", "bob", "eve", "kim")), mail("ada"), mail("bob")]

SLIPS = {"lost_effect", "false_success"}
AGAIN = {"redone_step", "silent_restart"}


@dataclass(frozen=True)
class Interrupted:
    """A task that does ``effects`` in order, is killed at a window of the one at ``at`` and begins
    again at ``begins``.
    """

    effects: tuple[Effect, ...]
    at: int
    window: Window
    begins: int

    @property
    def booked(self) -> int:
        """How many effects the first attempt had."""
        return self.at + (self.window != "received")

    @property
    def happened(self) -> tuple[Effect, ...]:
        """What the world has seen in the end, if no service dedupes."""
        return self.effects[: self.booked] + self.effects[self.begins :]

    def story(self, *, dedupes: bool = False, claims: bool = True) -> Story:
        """The task, told. A service that ``dedupes`` books each of the task's steps once; a task
        that ``claims`` success says so in the end, and otherwise refuses.
        """
        cut = self.effects[self.at]
        story = Story().starts().does(*self.effects[: self.at])
        if self.window == "received":
            story.asks(cut)
        elif self.window == "applied":
            story.applies(cut)
        else:
            story.does(cut)
        ordinal = [e.operation for e in self.effects[: self.at + 1]].count(cut.operation)
        story.killed(f"{cut.operation}#{ordinal}.{self.window}").starts()
        for number, effect in enumerate(self.effects[self.begins :], self.begins):
            if dedupes and number < self.booked:
                story.repeats(effect)
            else:
                story.does(effect)
        return story.ends() if claims else story.states("refused", "no").ends(1)


@st.composite
def interrupted(draw: st.DrawFn, *resumes: Resume) -> Interrupted:
    """Any task, any point, and a resume that begins where it should, before, or after."""
    some = st.lists(st.sampled_from(EFFECTS), min_size=1, max_size=10)
    effects = tuple(draw(some))
    at = draw(st.integers(0, len(effects) - 1))
    window = draw(st.sampled_from(WINDOWS))
    right = at + (window != "received")
    begins = {
        "continues": st.just(right),
        "repeats": st.integers(0, right),
        "skips": st.integers(right, len(effects)),
    }[draw(st.sampled_from(resumes))]
    return Interrupted(effects, at, window, draw(begins))


def told(judgement: Judgement, *kinds: str) -> Counter[tuple[str, str]]:
    """How often each operation and subject is named by findings of these kinds."""
    return Counter((f.operation, f.subject) for f in judgement.findings if f.kind in kinds)


def names(effects: Counter[Effect]) -> Counter[tuple[str, str]]:
    """Each effect once, as findings name it."""
    identify = expecting().identify
    return Counter({(e.operation, subject(identify(e))): 1 for e in effects if effects[e] > 0})


@given(interrupted("continues"))
def test_a_task_that_continues_correctly_is_valid(task: Interrupted) -> None:
    """Whatever it does and wherever it is killed, there is nothing to find."""
    judgement = judged(task.story(), expecting(*task.effects))
    assert judgement == Judgement("VALID", (), (), "completed")


@given(interrupted("continues", "repeats", "skips"))
def test_duplicates_are_exactly_what_happened_too_often(task: Interrupted) -> None:
    """Each effect that the world has more often than the task has it, and no other."""
    judgement = judged(task.story(), expecting(*task.effects))
    extra = Counter(task.happened) - Counter(task.effects)
    assert told(judgement, "duplicate_effect") == names(extra)
    assert sum(len(f.witness) for f in judgement.findings if f.kind == "duplicate_effect") == sum(
        Counter(task.happened)[effect] for effect in extra
    )


@given(interrupted("continues", "repeats", "skips"))
def test_losses_are_exactly_what_happened_too_rarely(task: Interrupted) -> None:
    """Each effect that the world has less often than the task has it; the ones at the end, after
    which nothing was done, are told as one false success, if the task has more than one effect.
    """
    judgement = judged(task.story(), expecting(*task.effects))
    missing = Counter(task.effects) - Counter(task.happened)
    last = max((i for i, e in enumerate(task.effects) if e in task.happened), default=-1)
    tail = Counter(task.effects[last + 1 :] if len(task.effects) > 1 else ())
    assert told(judgement, "lost_effect") == names(
        Counter({effect: n for effect, n in missing.items() if effect not in tail})
    )
    assert told(judgement, "false_success").total() == (1 if tail else 0)
    assert all(name in names(tail) for name in told(judgement, "false_success"))


@given(interrupted("skips"))
def test_without_a_claim_of_success_nothing_is_lost(task: Interrupted) -> None:
    """The same history is no loss as soon as the last attempt says that it failed."""
    failed = task.story(claims=False)
    assert not list(lost_effect(failed.history, expecting(*task.effects)))


@given(interrupted("continues", "repeats", "skips"))
def test_the_verdict_is_invalid_where_and_only_where_something_is_wrong(task: Interrupted) -> None:
    """The world differs from the task, or a complete step ran again; no other kind is ever told."""
    judgement = judged(task.story(), expecting(*task.effects))
    wrong = Counter(task.happened) != Counter(task.effects) or task.begins < task.at
    assert judgement.verdict == ("INVALID" if wrong else "VALID")
    assert {f.kind for f in judgement.findings} <= {"duplicate_effect", *SLIPS, *AGAIN}


@given(interrupted("continues", "repeats"))
def test_a_service_that_dedupes_hides_no_redo(task: Interrupted) -> None:
    """No effect is doubled, and each complete step that is asked for again is told all the same:
    complete are those before the one at which the kill came.
    """
    judgement = judged(task.story(dedupes=True), expecting(*task.effects))
    assert not told(judgement, "duplicate_effect", *SLIPS)
    assert judgement.verdict == ("INVALID" if task.begins < task.at else "VALID")


@given(interrupted("continues", "repeats"))
def test_a_redo_from_the_first_step_on_is_a_restart_and_any_other_is_not(task: Interrupted) -> None:
    """The redone steps are named one by one, or as one restart."""
    judgement = judged(task.story(dedupes=True), expecting(*task.effects))
    again = Counter(task.effects[task.begins : task.at])
    restart = bool(again) and task.begins == 0
    assert told(judgement, "silent_restart").total() == restart
    redone = {name for _, name in told(judgement, "redone_step")}
    assert redone == (set() if restart else {name for _, name in names(again)})


@given(interrupted("repeats"))
def test_every_duplicate_of_a_restart_has_the_restart_as_its_cause(task: Interrupted) -> None:
    """One fault with its consequences is one root."""
    judgement = judged(task.story(), expecting(*task.effects))
    if task.begins < task.at:
        assert {f.kind for f in judgement.roots} <= AGAIN
    else:
        assert {f.kind for f in judgement.roots} <= {"duplicate_effect"}
