"""The reference, made from the code.

The pages are committed, so that a forge shows them, and a test says that they are what this makes.
Not part of the wheel.
"""

from __future__ import annotations

import re
from pathlib import Path

from docs._reference import commands, findings, formats, plugin, scenario

FOLDER = Path(__file__).resolve().parents[1] / "reference"
MADE = "<!-- Made from the code by `make reference`; change it there. -->\n\n"

PAGES = {
    "scenario.md": scenario.page,
    "cli.md": commands.page,
    "pytest.md": plugin.page,
    "formats.md": formats.page,
    "findings.md": findings.page,
}


def pages() -> dict[str, str]:
    """The text of each page, by its file's name."""
    made = {name: "\n".join(page()).strip() for name, page in PAGES.items()}
    return {name: MADE + re.sub(r"\n{3,}", "\n\n", text) + "\n" for name, text in made.items()}


def write() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
