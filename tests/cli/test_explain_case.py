"""``chaoskit explain`` of the cases that reports name."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.cli.main import main
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.reporting.explanations import explanation

BROKEN = Path(__file__).resolve().parents[2] / "scenarios" / "broken" / "record_after_effect.py"


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


def test_a_point_and_a_schedule_of_the_latest_run_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As reports print them; of another one the nearest are named."""
    monkeypatch.chdir(tmp_path)
    point = "payments.charge#2.applied"
    with pytest.raises(SystemExit):
        main(["run", str(BROKEN), "-q", "--at", point])
    capsys.readouterr()
    for word in (point, f"kill@{point}"):
        code, said = explained(word, capsys)
        assert (code, f"where kill@{point}" in said) == (0, True), said
    code, said = explained("payments.charge#3.applied", capsys)
    assert (code, f"nearest: kill@{point}" in said or point in said) == (2, True), said


def test_an_unknown_case_gives_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, with cases that are there."""
    code, said = explained("DUP-22", capsys)
    assert (code, "unknown case 'DUP-22'; nearest: DUP-2" in said) == (2, True), said
