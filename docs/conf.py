"""Sphinx's settings: the site is made of the same pages that a forge shows.

The root of the sources is the repository, so that a link from one page to another, wherever that
lies, is right in both. `make docs` builds it; a warning is an error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from chaoskit import __version__  # noqa: E402 - from this clone, whatever else is installed

project = "chaoskit"
author = "The chaoskit developers"
copyright = "the chaoskit developers"  # noqa: A001 - the name that Sphinx reads
release = version = __version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/**/*.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "*/README.md",
    "reports/examples/README.md",
    "benchmarks/RESULTS.md",
]
"""All but the README, which says on one page what the site says on many."""

exclude_patterns = [".*", "build", "dist", "reports/runs", "tests"]
suppress_warnings = ["misc.highlighting_failure"]
"""Code with an ellipsis in it is shown as it is."""

nitpicky = True

myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4
"""The anchors of headings are those of a forge, down to this level."""

smartquotes = False
"""An option has two hyphens."""

html_theme = "furo"
html_title = f"chaoskit {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_additional_pages = {"index": "front.html"}
templates_path = ["_site"]
html_theme_options: dict[str, object] = {"top_of_page_buttons": []}

NAVIGATION = {
    "Start": ("first-ten-minutes", "starting"),
    "Tutorial": ("tutorial/index",),
    "How to": (
        "running",
        "howto/another-language",
        "howto/own-service",
        "howto/own-checker",
        "serve",
        "pytest",
        "engines",
        "../engines/README",
        "ci",
        "reports",
        "../reports/README",
        "../reports/examples/README",
        "soak",
    ),
    "Reference": (
        "reference/scenario",
        "reference/cli",
        "reference/pytest",
        "reference/formats",
        "reference/findings",
        "points",
        "faults",
        "behaviours",
        "glossary",
    ),
    "Explanation": (
        "what-chaoskit-judges",
        "what-green-means",
        "power-loss",
        "runtime",
        "runtime-postgres",
        "../scenarios/README",
        "../benchmarks/RESULTS",
    ),
    "Developers": (
        "../CONTRIBUTING",
        "../ARCHITECTURE",
        "whats-here",
        "../CHANGELOG",
    ),
}
"""The pages in their order, relative to `docs`."""


CHAPTERS = tuple(page.stem for page in sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md")))
"""The tutorial's, which are fewer than ten."""


def setup(app: Sphinx) -> None:
    """Add the navigation to pages as they are read: a forge would show it as code."""
    app.connect("source-read", _with_navigation)


def _with_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        source[0] += "".join(_listed(pages, title) for title, pages in NAVIGATION.items())
    elif page == "docs/tutorial/index":
        source[0] += _listed(CHAPTERS)


def _listed(pages: tuple[str, ...], title: str = "") -> str:
    options = f":hidden:\n:caption: {title}\n" if title else ":hidden:\n"
    names = "\n".join(pages)
    return f"\n```{{toctree}}\n{options}\n{names}\n```\n"
