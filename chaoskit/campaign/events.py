"""What a campaign tells while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaoskit.campaign.store import StoredTrial
from chaoskit.model.expectation import Expectation


@dataclass(frozen=True, slots=True)
class Started:
    """A campaign was opened, or (``resumed``) goes on with ``trials`` finished ones."""

    folder: Path
    title: str
    resumed: bool
    trials: int


@dataclass(frozen=True, slots=True)
class Surveying:
    """The undisturbed runs have not ended after so many ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The undisturbed runs are done."""

    expectation: Expectation
    points: int


@dataclass(frozen=True, slots=True)
class WaveStarted:
    """``total`` schedules with ``kills`` kills each are to be run, ``known`` of which are."""

    kills: int
    total: int
    known: int


@dataclass(frozen=True, slots=True)
class SnapshotsGivenUp:
    """Real kills refuted a snapshot (``why``): the trials begin again, each by a real kill."""

    why: str


@dataclass(frozen=True, slots=True)
class SoakStarted:
    """A soak of ``seconds`` begins, or goes on after ``spent_s`` and ``trials`` trials."""

    seconds: float
    spent_s: float
    trials: int


@dataclass(frozen=True, slots=True)
class RepeatsStarted:
    """``schedules`` failed schedules are to be run ``times`` more times each."""

    schedules: int
    times: int


@dataclass(frozen=True, slots=True)
class TrialDone:
    """One trial is over and stored."""

    trial: StoredTrial


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left to do, or (``why``) the campaign stops here."""

    folder: Path
    seconds: float
    why: str = ""


CampaignEvent = (
    Started
    | Surveying
    | Surveyed
    | WaveStarted
    | SnapshotsGivenUp
    | SoakStarted
    | TrialDone
    | RepeatsStarted
    | Finished
)
