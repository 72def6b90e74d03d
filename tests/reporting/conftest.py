"""Four small campaigns, run once: right, broken, one that proves nothing, and a soak."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.model.token import Target
from tests.campaign.small_task import small_task

SILENT = """
from chaoskit import Scenario

scenario = Scenario(task=lambda: None, services=("payments",), title="calls nobody")
"""


def campaign(target: Target, folder: Path, **asked: object) -> Path:
    """The folder of a finished campaign by windows alone."""
    settings: dict[str, object] = {
        "mechanisms": ("windows",),
        "in_flight": (),
        "runs": str(folder),
        **asked,
    }
    events = run(Options(target=target, **settings))  # type: ignore[arg-type]
    return [event for event in events if isinstance(event, Finished)][-1].folder


@pytest.fixture(scope="session")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The folders of the campaigns: valid, invalid, unknown, soak."""
    root = tmp_path_factory.mktemp("campaigns")
    folders = {name: root / name for name in ("keyed", "none", "silent")}
    for folder in folders.values():
        folder.mkdir()
    (folders["silent"] / "silent.py").write_text(SILENT, encoding="utf-8")
    broken = small_task(folders["none"], "none")
    return {
        "valid": campaign(small_task(folders["keyed"], "keyed"), root / "runs"),
        "invalid": campaign(broken, root / "runs"),
        "unknown": campaign(Target(scenario=str(folders["silent"] / "silent.py")), root / "runs"),
        "soak": campaign(broken, root / "soaks", soak_s=3600.0, max_points=8, depth=2, seed=3),
    }
