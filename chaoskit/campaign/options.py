"""What a campaign is asked to do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from chaoskit.explore.plan import Mechanism
from chaoskit.model.actions import LATE, Late, Lateness
from chaoskit.model.declared import Declared
from chaoskit.model.token import Target

DEFAULT_RUNS = Path("reports/runs")

NO_FAULTS = "none"
"""As the one kind of ``faults``: not even the scenario's own changes."""


class Shard(msgspec.Struct, frozen=True):
    """The ``number``-th of ``of`` parts of a campaign, counted from 1; as text 1/3."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign does. All but ``jobs``, ``runs`` and ``work_root`` decide its identity.

    ``max_points`` bounds what is tried of each kind of fault in each wave; ``max_trials`` bounds
    all trials together: the wave that would go beyond it is sampled by the seed and is the last.
    ``resume_after_s``: after each kill all clocks advance by that much.
    ``expect``: what an undisturbed run must do, besides what the scenario says of that.
    ``reached``: so many per cent of the points that hold state must come again in a trial.
    """

    target: Target
    seed: int = 0
    mechanisms: tuple[Mechanism, ...] = ("windows", "crossings")
    in_flight: tuple[Lateness, ...] = ("late:1",)
    max_points: int | None = None
    max_time_s: float | None = None
    max_trials: int | None = None
    times: int = 0
    depth: int = 1
    snapshots: bool = True
    reached: int = 100
    skip_sleeps: bool = False
    resume_after_s: int = 0
    power_loss: bool = False
    faults: tuple[str, ...] = ()
    kill: Literal["tree", "leader", "both"] = "tree"
    timeout_s: float | None = None
    soak_s: float | None = None
    only: tuple[str, ...] = ()
    expect: tuple[Declared, ...] = ()
    shard: Shard | None = None
    fresh: bool = False
    jobs: int = 1
    runs: str = str(DEFAULT_RUNS)
    work_root: str = ""

    @property
    def late(self) -> tuple[Late, ...]:
        """How late requests land that are in flight at a kill."""
        return tuple(LATE[way] for way in self.in_flight)
