"""``chaoskit explain`` of the cases that reports name."""

from __future__ import annotations

import pytest

from chaoskit.cli.main import main
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.reporting.explanations import explanation


def explained(word: str, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Exit code and everything that is said, with single spaces."""
    with pytest.raises(SystemExit) as ended:
        main(["explain", word])
    said = capsys.readouterr()
    return ended.value.code, " ".join((said.out + said.err).split())


def test_a_case_is_explained_by_its_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind that lists the case is named, and explained as it is by its own name."""
    for case in {case for kind in FINDING_KINDS for case in explanation(kind).cases}:
        code, said = explained(case.lower(), capsys)
        assert code == 0
        for kind in FINDING_KINDS:
            listed = case in explanation(kind).cases
            assert (" ".join(explanation(kind).how.split()) in said) is listed, (case, kind)


def test_an_unknown_case_gives_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, with cases that are there."""
    code, said = explained("DUP-22", capsys)
    assert (code, "unknown case 'DUP-22'; nearest: DUP-2" in said) == (2, True), said
