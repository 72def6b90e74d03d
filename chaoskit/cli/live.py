"""A campaign as it runs: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from chaoskit.campaign.events import (
    CampaignEvent,
    Finished,
    RepeatsStarted,
    SnapshotsGivenUp,
    SoakStarted,
    Started,
    Surveyed,
    Surveying,
    TrialDone,
    WaveStarted,
)

_LINE_EVERY_S = 10.0


class Live:
    """Shows events of a campaign. Use as a context manager."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._bar = self._make_bar() if console.is_terminal and not quiet else None
        self._task: TaskID | None = None
        self._verdicts: Counter[str] = Counter()
        self._total = 0
        self._soaking = False
        self._spent_s = 0.0
        self._done = self._before = 0
        self._began = self._said = time.monotonic()

    def _make_bar(self) -> Progress:
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def follow(self, events: Iterator[CampaignEvent]) -> Finished | None:
        """Show every event; the last one is returned."""
        for event in events:
            self._show(event)
            if isinstance(event, Finished):
                return event
        return None

    def _show(self, event: CampaignEvent) -> None:
        match event:
            case WaveStarted():
                self._wave(event)
            case SoakStarted():
                self._soak(event)
            case TrialDone():
                self._trial(event.trial.judgement.verdict)
            case Finished():
                pass
            case _:
                if isinstance(event, SnapshotsGivenUp):
                    self._begin_again()
                if line := _line(event):
                    self._say(line)

    def _begin_again(self) -> None:
        """The bar of what was given up goes, and what its trials said."""
        self._verdicts.clear()
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None

    def _wave(self, wave: WaveStarted) -> None:
        self._total, self._done = wave.total, wave.known
        self._before = wave.known
        self._began = time.monotonic()
        what = "trials" if wave.kills == 1 else f"trials with {wave.kills} kills each"
        if self._bar is not None:
            self._task = self._bar.add_task(what, total=wave.total, completed=wave.known, rate="")
        else:
            self._say(f"{wave.total} {what}")

    def _soak(self, soak: SoakStarted) -> None:
        """A soak's bar counts seconds: how many trials they will hold is not known."""
        self._total, self._done, self._spent_s = int(soak.seconds), soak.trials, soak.spent_s
        self._before = soak.trials
        self._soaking = True
        self._began = time.monotonic()
        if self._bar is not None:
            self._task = self._bar.add_task(
                "soak, seconds", total=self._total, completed=int(soak.spent_s), rate=""
            )
        else:
            self._say(f"random schedules for {soak.seconds - soak.spent_s:.0f} s")

    def _trial(self, verdict: str) -> None:
        self._verdicts[verdict] += 1
        self._done += 1
        now = time.monotonic()
        rate = (self._done - self._before) / max(now - self._began, 1e-6)
        words = f"{rate:.1f}/s" + "".join(
            f", {number} {name}" for name, number in self._verdicts.items() if name != "VALID"
        )
        passed_s = int(self._spent_s + now - self._began)
        if self._bar is not None and self._task is not None:
            completed = passed_s if self._soaking else self._done
            self._bar.update(self._task, completed=completed, rate=words)
        elif now - self._said > _LINE_EVERY_S:
            self._said = now
            of = "" if self._soaking else f" of {self._total}"
            when = f" in {passed_s} of {self._total} s" if self._soaking else ""
            self._say(f"{self._done}{of} trials{when}, {words}")

    def _say(self, line: str) -> None:
        if not self._quiet:
            self._console.print(f"  {line}", style="dim")


def _line(event: Started | Surveying | Surveyed | SnapshotsGivenUp | RepeatsStarted) -> str:
    """What is said of an event that is told in a line, if anything."""
    match event:
        case Started():
            if not event.resumed:
                return ""
            return f"going on with {event.folder}: {event.trials} trials are there"
        case Surveying():
            return (
                f"two undisturbed runs, {event.seconds:.0f} s so far "
                "(--timeout SECONDS ends one that does not end by itself)"
            )
        case Surveyed():
            return (
                f"surveyed twice: {len(event.expectation.order)} effects, {event.points} points, "
                f"{event.expectation.seconds:.2f} s a run"
            )
        case SnapshotsGivenUp():
            return f"{event.why}: starting again, each trial a real kill"
        case RepeatsStarted():
            return f"{event.schedules} failed schedules, {event.times} times more each"
