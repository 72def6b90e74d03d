"""The tutorial does what it says: its commands are run, and what they print is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.mechanisms import traced
from tests.docs.shown import pages, shell, told

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not traced().works, reason="system calls cannot be traced here")
def test_the_tutorial_prints_what_its_pages_show(tmp_path: Path) -> None:
    """Each chapter's files, changes and commands work in an empty folder, in their order."""
    said = ""
    for page in pages(TUTORIAL):
        said, problem = told(page.read_text(encoding="utf-8"), tmp_path, shell(), said)
        assert not problem, f"{page.name}: {problem}"


def test_the_tutorial_lists_its_chapters() -> None:
    """Its first page links to each chapter, in order."""
    text = (TUTORIAL / "index.md").read_text(encoding="utf-8")
    places = [text.find(f"]({page.name})") for page in pages(TUTORIAL)]
    assert len(places) == 8
    assert -1 not in places
    assert places == sorted(places)
