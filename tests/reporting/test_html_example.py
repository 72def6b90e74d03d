"""The published report is what today's code makes of its stored histories."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import pytest

from chaoskit.campaign.store import FILE, Store
from chaoskit.reporting.forms import render
from chaoskit.reporting.summary import summarize

EXAMPLES = Path(__file__).resolve().parents[2] / "reports" / "examples"
PACKED = re.compile(r'(<script type="application/json" id="[a-z0-9-]+">")([A-Za-z0-9+/=]*)(")')


def unpacked(page: str) -> str:
    """``page`` with its data as text: libraries of zlib differ in how well they pack."""

    def plain(found: re.Match[str]) -> str:
        data = zlib.decompress(base64.b64decode(found[2]), -15)
        return found[1] + data.decode() + found[3]

    return PACKED.sub(plain, page)


@pytest.mark.parametrize(
    "folder", [f.parent for f in EXAMPLES.glob(f"*/{FILE}")], ids=lambda f: f.name
)
def test_a_published_report_is_todays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendered again from its store, each byte of the page and of its data is the same."""
    monkeypatch.chdir(EXAMPLES.parents[1])
    with Store(folder) as store:
        made = render("html", summarize(store), store)
    published = (folder / "report.html").read_text(encoding="utf-8")
    assert len(PACKED.findall(published)) > 1
    assert unpacked(made) == unpacked(published), (
        f"render it again: python reports/examples/publish.py {folder.name}"
    )


def test_a_published_report_speaks_of_no_machine() -> None:
    """No absolute path of a home or a workplace is in it, nor in its data."""
    pages = list(EXAMPLES.glob("*/report.html"))
    assert pages
    for page in pages:
        text = unpacked(page.read_text(encoding="utf-8"))
        assert not re.search(r"/(home|root|work|Users|tmp)/\w", text), page
