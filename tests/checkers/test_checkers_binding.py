"""What belongs to one effect, done to another: told from values that nobody ever had."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.binding import wrong_binding
from chaoskit.checkers.effects import lost_effect, wrong_inputs
from tests.checkers.builder import Story, expecting, judged, mail, undisturbed

ADA, BOB, EVE = mail("ada", "for ada"), mail("bob", "for bob"), mail("eve", "for eve")
WANTED = expecting(ADA, BOB, EVE)


def resumed(*effects: object) -> Story:
    """The first mail, a kill, and a resume that does ``effects``."""
    story = Story().starts().does(ADA).killed("email.send#1.answered").starts()
    return story.does(*effects).ends()  # type: ignore[arg-type]


def test_the_right_content_for_everybody_is_accepted() -> None:
    """A resume that binds each result to its own step shows nothing."""
    assert not list(wrong_binding(resumed(BOB, EVE).history, WANTED))


def test_swapped_contents_are_wrong_bindings_and_nothing_else() -> None:
    """Bob's text to Eve and Eve's to Bob: two wrong bindings, no loss, no wrong values."""
    story = resumed(mail("bob", "for eve"), mail("eve", "for bob"))
    judgement = judged(story, WANTED)
    assert [f.kind for f in judgement.findings] == ["wrong_binding"] * 2
    assert judgement.findings[0].because == (
        "attempt 2 did it; it is 'mail to bob' with the text of 'mail to eve'"
    )
    assert judgement.findings[0].diagnosis is not None
    assert "INPUT-3" in judgement.findings[0].diagnosis.missing


def test_a_value_that_nobody_has_is_a_wrong_input() -> None:
    """A text of no expected mail is not bound wrongly: it is wrong."""
    story = resumed(mail("bob", "for None"), EVE)
    assert not list(wrong_binding(story.history, WANTED))
    assert len(list(wrong_inputs(story.history, WANTED))) == 1


def test_values_of_three_effects_are_a_wrong_input() -> None:
    """A mixture of more than two is no binding to one other step."""
    three = [mail(n, f"for {n}", subject=f"to {n}") for n in ("ada", "bob", "eve")]
    story = Story().starts().does(mail("ada", "for bob", subject="to eve")).ends()
    assert not list(wrong_binding(story.history, expecting(*three)))
    assert list(wrong_inputs(story.history, expecting(*three)))


def test_who_got_nothing_is_lost_all_the_same() -> None:
    """Contents that moved by one: the last one never got any, and that is a loss of its own."""
    story = resumed(mail("bob", "for eve"))
    assert [f.subject for f in wrong_binding(story.history, WANTED)] == ["text=for eve|to=bob"]
    losses = list(
        lost_effect(Story().starts().does(mail("ada", "for bob"), EVE).ends().history, WANTED)
    )
    assert [f.subject for f in losses] == ["text=for bob|to=bob"]


PEOPLE = st.lists(st.sampled_from("abcdef"), min_size=2, unique=True)


@given(PEOPLE, st.randoms(use_true_random=False))
def test_every_way_to_deal_contents_wrongly_is_named_so(people: list[str], random: object) -> None:
    """Whoever gets another one's text is a wrong binding, whoever gets their own is not."""
    texts = list(people)
    random.shuffle(texts)  # type: ignore[attr-defined]
    wanted = expecting(*(mail(p, f"for {p}") for p in people))
    dealt = undisturbed(*(mail(p, f"for {t}") for p, t in zip(people, texts, strict=True)))
    moved = [p for p, t in zip(people, texts, strict=True) if p != t]
    judgement = judged(dealt, wanted)
    assert [f.kind for f in judgement.findings] == ["wrong_binding"] * len(moved)
