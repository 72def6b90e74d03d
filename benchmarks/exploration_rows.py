"""What the parts of the exploration benchmark have in common: a setting, and a row of its table."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
JOURNALS = {"wal": "WAL", "delete": "DELETE"}

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is measured, and how much of it.

    Args:
        variant: ``wal`` or ``delete``, a scenario of ``scenarios/exact/forty_steps.py``.
        sample: how many trials are run of what takes too long to be run whole.
        jobs: trials at a time, for everybody.
        folder: where everything is stored; removed in the end.
    """

    variant: str
    sample: int
    jobs: int
    folder: Path

    @property
    def scenario(self) -> str:
        """The task as chaoskit takes it."""
        return f"scenarios/exact/forty_steps.py:{self.variant}"

    @property
    def journal(self) -> str:
        """The journal mode of the task, as its function takes it."""
        return JOURNALS[self.variant]

    @property
    def runs(self) -> Path:
        """Where campaigns are stored."""
        return self.folder / "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way to explore the task.

    Args:
        name: the way.
        trials: how many trials the whole exploration takes.
        states: how many different crash states they judge, at most.
        seconds: wall time of the whole exploration; 0 where nothing could be measured.
        measured: how many of the trials were really run; where that is not all of them,
            ``seconds`` is extrapolated.
        found: how many of the measured trials were reported as a duplicate.
        note: what else a reader must know.
        details: further figures, for the JSON.
    """

    name: str
    trials: float = 0
    states: float = 0
    seconds: float = 0
    measured: int = 0
    found: int = 0
    note: str = ""
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether every trial was run."""
        return self.measured == self.trials

    @property
    def rate(self) -> float:
        """Crash states judged per second; 0 where nothing was measured."""
        return self.states / self.seconds if self.seconds else 0.0


def spread(found: Sequence[Item], most: int) -> list[Item]:
    """At most ``most`` of ``found``: one of each of so many stretches of equal length.

    Chance picks the one: the calls of the steps repeat, and an even distance would often hit the
    same call of each step.
    """
    number = min(most, len(found))
    edges = [len(found) * i // number for i in range(number + 1)]
    chance = random.Random("spread")
    return [found[chance.randrange(one, two)] for one, two in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast trials came: from the first to the last of them, so that no start-up counts.

    Args:
        first_s: from the command to the end of the first trial.
        rate: trials per second since then.
    """

    first_s: float
    rate: float

    @classmethod
    def of(cls, began: float, ends: list[float]) -> Pace:
        """The pace of trials that ended at ``ends``."""
        assert len(ends) > 1, "one trial has no pace"
        return cls(min(ends) - began, (len(ends) - 1) / (max(ends) - min(ends)))

    def seconds(self, trials: float) -> float:
        """How long ``trials`` of them take, start-up included."""
        return self.first_s + (trials - 1) / self.rate
