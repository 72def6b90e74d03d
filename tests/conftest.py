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


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return ROOT
