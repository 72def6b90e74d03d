"""What concerns one person happened in the order of undisturbed runs, or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.ordering import out_of_order_effect
from tests.checkers.builder import Story, expecting, judged, mail, row, teaches, undisturbed

ONE, TWO, THREE = (mail("ada", f"state {n}") for n in (1, 2, 3))
OTHER = mail("bob", "state 1")
WANTED = expecting(ONE, OTHER, TWO, THREE)


def after_a_kill(*effects: object) -> Story:
    """The first of Ada's mails, a kill, and a resume that does ``effects``."""
    story = Story().starts().does(ONE).killed("email.send#1.answered").starts()
    return story.does(*effects).ends()  # type: ignore[arg-type]


def test_the_order_of_undisturbed_runs_is_accepted() -> None:
    """A resume that goes on in order shows nothing."""
    assert not list(out_of_order_effect(after_a_kill(OTHER, TWO, THREE).history, WANTED))


def test_an_earlier_effect_after_a_later_one_is_found() -> None:
    """Ada hears of state 2 after state 3: that finding and no other."""
    story = after_a_kill(OTHER, THREE, TWO)
    judgement = judged(story, WANTED)
    [found] = judgement.findings
    assert (found.kind, found.subject) == ("out_of_order_effect", "text=state 2|to=ada")
    assert [story.history.events[i].body.effect for i in found.witness] == [THREE, TWO]  # type: ignore[union-attr]
    assert found.diagnosis is not None
    assert "WORLD-6" in found.diagnosis.missing


def test_the_order_between_two_people_is_nobodys_business() -> None:
    """Bob's mail may come whenever it wants: only one person's own order is promised."""
    assert not list(out_of_order_effect(after_a_kill(TWO, THREE, OTHER).history, WANTED))


def test_a_repeat_is_not_out_of_order() -> None:
    """An effect that happened once more is a duplicate, and has no place in the order."""
    story = after_a_kill(OTHER, TWO, ONE, THREE)
    assert not list(out_of_order_effect(story.history, WANTED))


def test_two_identical_effects_have_two_places() -> None:
    """A reminder that is sent twice on purpose may stand before and after another mail."""
    wanted = expecting(ONE, TWO, ONE)
    assert not list(out_of_order_effect(undisturbed(ONE, TWO, ONE).history, wanted))
    assert list(out_of_order_effect(undisturbed(ONE, ONE, TWO).history, wanted))


def test_where_undisturbed_runs_have_no_fixed_order_nothing_is_said() -> None:
    """What may come in any order cannot come in the wrong one."""
    free = teaches(undisturbed(ONE, TWO, THREE), ordered=False)
    assert not list(out_of_order_effect(undisturbed(THREE, TWO, ONE).history, free))


def test_rows_have_no_place_among_requests() -> None:
    """A database's books are read when an attempt is over: their order says nothing."""
    wanted = teaches(Story().starts().books(row("ada"), row("bob")).ends())
    assert not list(
        out_of_order_effect(Story().starts().books(row("bob"), row("ada")).ends().history, wanted)
    )


@given(st.permutations(range(5)))
def test_any_other_order_of_one_person_is_found(order: list[int]) -> None:
    """The order of undisturbed runs is the only one that shows nothing."""
    mails = [mail("ada", f"state {n}") for n in range(5)]
    story = undisturbed(*(mails[n] for n in order))
    found = list(out_of_order_effect(story.history, expecting(*mails)))
    assert bool(found) == (order != sorted(order))
