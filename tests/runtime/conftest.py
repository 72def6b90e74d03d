"""What the tests of the runtime share: a folder for a store, and an ear for what a trial hears."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit import probe


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "run.db"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Everything that the runtime tells a trial from here on, in order."""
    heard: list[tuple[str, ...]] = []
    monkeypatch.setattr(probe, "point", lambda name: heard.append(("point", name)))
    monkeypatch.setattr(probe, "step", lambda name, phase: heard.append((phase, name)))
    monkeypatch.setattr(probe, "refused", lambda reason: heard.append(("refused", reason)))
    monkeypatch.setattr(
        probe, "unknown_outcome", lambda step, reason: heard.append(("unknown", step, reason))
    )
    return heard
