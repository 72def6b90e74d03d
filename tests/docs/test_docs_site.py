"""The site: built without a warning, complete, and alone."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
_LOADING = {
    "audio": "src", "embed": "src", "iframe": "src", "img": "src", "link": "href",
    "object": "data", "script": "src", "source": "src", "track": "src", "video": "src",
}  # fmt: skip
"""What a browser loads without being asked."""


class _Page(HTMLParser):
    """What a page loads, what it links to, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what stands in a tag."""
        given = {name: value or "" for name, value in attrs}
        if tag in _LOADING and _LOADING[tag] in given:
            self.loads.append(given[_LOADING[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "id" in given:
            self.anchors.add(given["id"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    words = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(folder / "trees"), "-c", "docs"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words, ".", str(folder / "html")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[Path, _Page]:
    """Every page of the site."""
    return {p: _Page(p.read_text(encoding="utf-8")) for p in sorted(site.rglob("*.html"))}


def test_every_page_of_the_folder_is_part_of_the_site(site: Path) -> None:
    """Each page of docs/ has become one of the site; one outside the navigation is a warning."""
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT).with_suffix(".html")).is_file(), page


def test_the_site_loads_nothing_from_elsewhere(site: Path, parsed: dict[Path, _Page]) -> None:
    """Scripts, styles, fonts, pictures and the search index are files of the site itself."""
    for page, found in parsed.items():
        for target in found.loads:
            if target.startswith("data:"):
                continue
            parts = urlsplit(target)
            assert not parts.scheme, f"{page}: {target}"
            assert not parts.netloc, f"{page}: {target}"
            assert (page.parent / unquote(parts.path)).exists(), f"{page}: {target}"
    for style in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", style.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", text), style
    assert (site / "searchindex.js").is_file()


def test_links_of_the_site_lead_somewhere(parsed: dict[Path, _Page]) -> None:
    """Every link within the site names a file of it, and an anchor that is there."""
    wrong = []
    for page, found in parsed.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not file.exists():
                wrong.append(f"{page.name}: {link}: no such file")
            elif file in parsed and parts.fragment:
                there = unquote(parts.fragment) in parsed[file].anchors
                wrong += [] if there else [f"{page.name}: {link}: no such anchor"]
    assert not wrong, "\n".join(wrong)
