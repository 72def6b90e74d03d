"""The how-to pages do what they say: a task in another language, an own service, an own checker."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from chaoskit.campaign.mechanisms import traced
from tests.docs.shown import shell, told
from tests.marks import rare

ROOT = Path(__file__).resolve().parents[2]
HOWTO = ROOT / "docs" / "howto"

PIP = """#!/bin/sh
set -e
"{python}" -m hatchling build -t wheel -d "{site}/wheels" > "{site}/log" 2>&1
"{python}" -m zipfile -e "{site}"/wheels/*.whl "{site}"
"""
"""What ``pip install .`` does, without asking an index for what is here already: the wheel is built
by its own build system, and unpacked where Python looks for packages."""


def reader(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """An empty folder, and the environment of a reader in it."""
    site, programs, folder = (tmp_path / name for name in ("site", "bin", "here"))
    for made in (site, programs, folder):
        made.mkdir()
    pip = programs / "pip"
    pip.write_text(PIP.format(python=sys.executable, site=site))
    pip.chmod(0o755)
    found = shell()
    found["PATH"] = f"{programs}{os.pathsep}{found['PATH']}"
    found["PYTHONPATH"] = f"{site}{os.pathsep}{ROOT}"
    return folder, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "needs"),
    [rare("another-language", "node"), rare("own-service", "curl"), ("own-checker", "curl")],
)
def test_a_how_to_prints_what_its_page_shows(name: str, needs: str, tmp_path: Path) -> None:
    """Its files, changes and commands work in an empty folder, in their order."""
    if shutil.which(needs) is None:
        pytest.skip(f"{needs} is not installed")
    if name == "own-checker" and not traced().works:
        pytest.skip("system calls cannot be traced here")
    folder, environment = reader(tmp_path)
    text = (HOWTO / f"{name}.md").read_text(encoding="utf-8")
    *_, problem = told(text, folder, environment)
    assert not problem, problem
