"""Checkers of other packages: found by their entry points, judged by, never believed blindly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoskit.checkers.check import judge
from chaoskit.checkers.own import own_checkers
from chaoskit.model.findings import Judgement
from tests.checkers.builder import Story, charge, expecting, judged

ADA, BOB = charge("ada"), charge("bob")

MODULE = """
from chaoskit.model.findings import Diagnosis, Finding

MEND = Diagnosis("what", "why", "how")


def finding(**words):
    words = {"kind": "too_dear", "operation": "payments.charge", "subject": "sum", **words}
    return Finding(expected="little", seen="much", because="of this", **words)


def agrees(history, expectation):
    return ()


def finds(history, expectation):
    yield finding(witness=(history.effects[0][0],), diagnosis=MEND)


def raises(history, expectation):
    yield finding()
    raise KeyError("amount")


def talks(history, expectation):
    return ["too dear"]


def shouts(history, expectation):
    return [finding(kind="Too Dear!")]


def invents(history, expectation):
    return [finding(witness=(10_000,))]


number = 7
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path with a module of checkers; `install` names some of them."""
    (tmp_path / "strange_checkers.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    own_checkers.cache_clear()
    yield tmp_path
    own_checkers.cache_clear()


def install(folder: Path, *targets: str) -> Judgement:
    """How an undisturbed trial is judged when the entry points name these checkers."""
    home = folder / "strange-1.dist-info"
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1\n")
    lines = [f"own{number} = {target}" for number, target in enumerate(targets)]
    (home / "entry_points.txt").write_text("\n".join(["[chaoskit.checkers]", *lines]) + "\n")
    story = Story().starts().does(ADA, BOB).ends()
    return judge(story.history, expecting(ADA, BOB), story.schedule)


def test_what_it_finds_is_a_finding_with_its_own_diagnosis(installed: Path) -> None:
    """A finding of an installed checker makes the trial INVALID, and its diagnosis stays."""
    judgement = install(installed, "strange_checkers:finds", "strange_checkers:agrees")
    assert judgement.verdict == "INVALID"
    (finding,) = judgement.findings
    assert finding.kind == "too_dear"
    assert finding.diagnosis is not None
    assert finding.diagnosis.mend == "how"


def test_one_that_agrees_changes_nothing(installed: Path) -> None:
    """A checker without findings leaves the judgement as it is without it."""
    judgement = install(installed, "strange_checkers:agrees")
    assert judgement == judged(Story().starts().does(ADA, BOB).ends(), expecting(ADA, BOB))
    assert judgement.verdict == "VALID"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("strange_checkers:raises", "KeyError: 'amount'"),
        ("strange_checkers:talks", "TypeError: it gave 'too dear', not a Finding"),
        ("strange_checkers:shouts", "'Too Dear!' is no kind"),
        ("strange_checkers:invents", "the witness of too_dear is not among the events"),
        ("strange_checkers:number", "strange_checkers:number is no function"),
        ("strange_checkers:gone", "strange_checkers:gone cannot be loaded"),
        ("no_such_module:checker", "No module named 'no_such_module'"),
    ],
)
def test_one_that_fails_makes_the_trial_unknown(installed: Path, target: str, why: str) -> None:
    """Whatever is wrong with a checker, the trial is UNKNOWN, and it is named with the reason."""
    judgement = install(installed, "strange_checkers:agrees", target)
    assert judgement.verdict == "UNKNOWN"
    assert judgement.findings == ()
    (unknown,) = judgement.unknowns
    assert unknown.startswith("the checker own1 failed: ")
    assert why in unknown
