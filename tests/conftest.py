"""What every test shares: hypothesis without deadlines (busy machines), repeatable in CI."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # as in a shell's background job: what tests start would not hear Ctrl-C either
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


MEETS_ITS_TEST = ("campaign", "cli", "plugin", "probe", "runtime", "trace", "trial")
"""Folders of tests whose tasks meet the test at named pipes and files of the real file system."""


@pytest.fixture(autouse=True)
def without_view(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of most tests of the engine run on the real file system; tests of the view ask for it
    by the mark ``view``.
    """
    folder = request.path.relative_to(ROOT).parts[1]
    if folder in MEETS_ITS_TEST and request.node.get_closest_marker("view") is None:
        monkeypatch.setenv("CHAOSKIT_VIEW", "off")


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return ROOT
