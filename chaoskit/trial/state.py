"""What lives as long as one trial: its events, requests in flight, what its disk has kept."""

from __future__ import annotations

from chaoskit.model.events import EffectApplied, RecordsFound
from chaoskit.model.hosting import Service
from chaoskit.trial.conduct import Conduct
from chaoskit.trial.in_flight import InFlight, LateRequest
from chaoskit.trial.power import Durable
from chaoskit.trial.recorder import Log, Recorder
from chaoskit.trial.stage import Stage


class TrialState:
    """The state that the attempts of one trial share.

    Attributes:
        stage: the worker's folders, launcher and services.
        conduct: how attempts are run.
        recorder: the events so far.
        number: of the next request.
        in_flight: requests whose sender died before they arrived.
        durable: what a disk would have kept by now; None where no fault loses power.
        attempts: how many attempts there were, one beside another one included.
    """

    def __init__(
        self,
        stage: Stage,
        conduct: Conduct,
        *,
        loses_power: bool = False,
        before: Log | None = None,
        number: int = 1,
    ) -> None:
        """With ``before`` it goes on after those events, and ``number`` is the next request's."""
        self.stage = stage
        self.conduct = conduct
        self.recorder = Recorder(before)
        self.number = number
        self.in_flight = InFlight(self._land)
        self.durable = Durable(stage.workspace.state) if loses_power else None
        self.attempts = 0

    def next_number(self) -> int:
        """The number of a request that has just come."""
        number, self.number = self.number, self.number + 1
        return number

    @property
    def services(self) -> list[Service]:
        """The services of the trial."""
        return self.stage.services

    def collect(self, attempt: int) -> None:
        """Book the effects that no request told of."""
        for service in self.services:
            for effect in service.collect():
                self.recorder.add(EffectApplied(attempt=attempt, effect=effect))

    def find_records(self, attempt: int) -> None:
        """Book which files that record completed steps an attempt has left, if the scenario names
        any.
        """
        if self.stage.scenario.recorded:
            self.recorder.add(RecordsFound(attempt, self.stage.records()))

    def all_lands(self) -> None:
        """Let everything arrive, or be carried out, that is still under way."""
        self.in_flight.end()
        self.stage.end()

    def disk_changed_unseen(self) -> None:
        """What is in the work folder counts as kept: nobody saw how it came there."""
        if self.durable is not None:
            self.durable = Durable(self.stage.workspace.state)

    def _land(self, late: LateRequest) -> None:
        """A request that was in flight when its sender died arrives now."""
        for effect in late.land():
            self.recorder.add(
                EffectApplied(attempt=late.attempt, effect=effect, request=late.number)
            )
