"""docs/pytest.md is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.mechanisms import traced
from tests.docs.shown import shell, told

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not traced().works, reason="the page shows system calls")
def test_the_page_shows_what_pytest_prints(tmp_path: Path) -> None:
    """Its files saved and its commands typed, in order, in an empty folder."""
    page = (ROOT / "docs" / "pytest.md").read_text(encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # the root is here
    environment = {**shell(), "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    said, problem = told(page, tmp_path, environment)
    assert problem == ""
    assert "VALID    scenarios/bill.py: " in said
