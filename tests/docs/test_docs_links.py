"""Links between pages: every file and every heading that one names is there. No network."""

from __future__ import annotations

import re
import string
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(
    r"(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE
)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2`*~* *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)? *$", re.MULTILINE)
_ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def _pages() -> list[Path]:
    """Every page that is, or is about to be, part of the project."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [ROOT / name for name in done.stdout.splitlines()]
    return [page for page in found or ROOT.rglob("*.md") if page.is_file()]


PAGES = _pages()


def slug(heading: str) -> str:
    """The anchor of a heading, as forges make it: small letters, hyphens for spaces, no marks."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return text.replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Every anchor of a page; a heading that comes again has a number after it."""
    text = page.read_text(encoding="utf-8")
    met: Counter[str] = Counter()
    found = set(_ANCHOR.findall(text))
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        name = slug(heading)
        found.add(f"{name}-{met[name]}" if met[name] else name)
        met[name] += 1
    return frozenset(found)


def problems(page: Path) -> list[str]:
    """What is wrong with the links of a page."""
    text = _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
    wrong = []
    for found in _LINK.finditer(text):
        target = found[1] or found[2]
        if _ELSEWHERE.match(target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if name.startswith("/") or not file.exists():
            wrong.append(f"{target}: there is no such file")
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file.resolve())):
            wrong.append(f"{target}: there is no such heading")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of every page names a file that is there, and a heading in it."""
    assert problems(page) == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    """A missing file, a missing heading and an absolute path are reported, code is not."""
    (tmp_path / "other.md").write_text("# What's `new` here?\n\n# Twice\n\n# Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md#whats-new-here) [b](other.md#twice-1) [c](#here) [d](https://x.y/z)\n"
        "[e](gone.md) [f](other.md#gone) [g](/other.md) `[h](gone.md)`\n\n```\n[i](gone.md)\n```\n"
    )
    assert problems(page) == [
        "gone.md: there is no such file",
        "other.md#gone: there is no such heading",
        "/other.md: there is no such file",
    ]


@given(st.lists(st.text(string.ascii_letters + string.digits, min_size=1), min_size=1))
def test_an_anchor_is_its_words_with_hyphens(words: list[str]) -> None:
    """Plain words become their small letters with hyphens between, and no mark changes that."""
    assert slug(" ".join(words)) == "-".join(words).lower()
    assert slug(f"`{' '.join(words)}`: (?)").rstrip("-") == "-".join(words).lower()
