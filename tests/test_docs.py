"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.token import Target
from chaoskit.trial.loading import load

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md")]


def test_every_module_has_its_sentence() -> None:
    """docs/whats-here.md names every module of the two packages, and none that is gone."""
    named = set(re.findall(r"- `([\w/]+\.py)`: \S", (ROOT / "docs/whats-here.md").read_text()))
    there = {
        str(f.relative_to(ROOT))
        for package in ("chaoskit", "fake_services")
        for f in (ROOT / package).rglob("*.py")
        if f != ROOT / "chaoskit" / "__init__.py"
    }
    assert named == there


def test_the_glossary_has_every_finding_with_its_meaning() -> None:
    """The table of findings equals the one in the code."""
    text = (ROOT / "docs/glossary.md").read_text()
    assert dict(re.findall(r"\| `(\w+)` \| (.+?) \|", text)) == FINDING_KINDS


def test_the_table_of_scenarios_says_what_they_show() -> None:
    """scenarios/README.md lists every scenario, the broken ones with the findings they declare."""
    rows = dict(
        re.findall(
            r"\| `(\w+/\w+\.py)` \| .+? \| (.+?) \|", (ROOT / "scenarios/README.md").read_text()
        )
    )
    files = {f"{f.parent.name}/{f.name}": f for f in (ROOT / "scenarios").glob("*/[!_]*.py")}
    assert rows.keys() == files.keys()
    for name, file in files.items():
        expected = set(load(Target(scenario=str(file))).scenario.finds)
        assert set(re.findall(r"`(\w+)`", rows[name])) & FINDING_KINDS.keys() == expected, name


def test_no_page_or_module_speaks_of_one_machine() -> None:
    """No absolute path of a home or a workplace stands in what is published."""
    for file in [*PAGES, *(ROOT / "chaoskit").rglob("*.py"), *(ROOT / "scenarios").rglob("*.py")]:
        assert not re.search(r"/(home|root|work|Users)/\w", file.read_text()), file
