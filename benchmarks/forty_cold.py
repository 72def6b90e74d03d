"""The forty steps as a plain command, for those who start it cold.

    python forty_cold.py [JOURNAL]

It runs the very function of ``scenarios/exact/forty_steps.py``. That file also describes scenarios,
for which it imports chaoskit; a task that is started cold has no use for them, and the baselines
shall not pay for that import, so a name without substance stands in for it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

TASKS = Path(__file__).resolve().parents[1] / "scenarios" / "exact"


class _NoScenario:
    """Takes what a scenario takes, and keeps nothing."""

    def __init__(self, **_: object) -> None:
        pass


def forty_steps() -> Any:
    """The module of the task, loaded without chaoskit."""
    stand_in = ModuleType("chaoskit")
    stand_in.__dict__["Scenario"] = _NoScenario
    sys.modules["chaoskit"] = stand_in
    sys.path.insert(0, str(TASKS))
    return import_module("forty_steps")


def main() -> None:
    """Charge and record every step that is not recorded yet."""
    forty_steps().run(*sys.argv[1:2])


if __name__ == "__main__":
    main()
