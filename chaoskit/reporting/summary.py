"""The summary of a campaign: the one value from which every report is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from chaoskit import __version__
from chaoskit.campaign.options import Options
from chaoskit.campaign.repeating import Repeated
from chaoskit.campaign.shrinking import Shrunken, shrunken_of
from chaoskit.campaign.soaking import soaked_trials
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.explore.clocks import concerning, unmoved
from chaoskit.model.actions import Kill, KillLeader, Late, PowerLoss
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Diagnosis, Finding, Verdict
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import ReplayToken
from chaoskit.reporting.clean import cleaned
from chaoskit.reporting.limits import doubts, not_tested, remarks
from chaoskit.reporting.places import Place, Places
from chaoskit.reporting.soaked import SoakReport, soak_report

FORMAT = 1

REPLAY = "chaoskit replay "
"""What a replay command begins with; its token follows."""

NO_TRIAL = "no trial was run"
"""What is unknown where a task could be judged and nothing was tried."""


class Points(msgspec.Struct, frozen=True):
    """``total`` points were found, ``tested`` were tried, at ``landed`` the kill took place."""

    total: int
    tested: int
    landed: int


class Flaw(NamedTuple):
    """What makes findings the same flaw; ``missing`` is their diagnosis, ``operation`` is empty
    where the flaw is that steps are run again, whichever they are; ``clocks`` is told in a report.
    """

    kind: str
    operation: str
    missing: str
    clocks: str = ""


def flaw_of(finding: Finding | ReportedFinding) -> Flaw:
    """The flaw that ``finding`` shows."""
    operation = finding.operation if finding.kind != "redone_step" else ""
    missing = finding.diagnosis.missing if finding.diagnosis is not None else ""
    clocks = finding.clocks if isinstance(finding, ReportedFinding) else ""
    return Flaw(finding.kind, operation, missing, clocks)


class ReportedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One flaw in one trial.

    ``also``: whom or what else the same flaw concerns in this trial. ``consequences`` are the
    findings that these brought about. ``between``: what the task had
    done before the kill and would have done next. ``code`` is where in its own code that was, with
    ``file``, ``line`` and ``function`` apart; empty for what is not Python. ``repeated``: what
    repeats of the trial showed, as in "FLAKY 3/5 (14 %-95 %)"; empty where there were none.
    ``clocks``: what a clock fault did not advance of the task's own clock; empty: nothing.
    """

    kind: str
    point: str
    schedule: str
    operation: str
    subject: str
    expected: str
    seen: str
    because: str
    diagnosis: Diagnosis | None
    consequences: tuple[str, ...]
    fingerprint: str
    replay: str
    between: str = ""
    code: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    repeated: str = ""
    also: tuple[str, ...] = ()
    clocks: str = ""

    @property
    def concerns(self) -> str:
        """The operation, and whose clocks alone had advanced where that is so: the first line."""
        return concerning(self.operation, self.clocks)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign found, and what it did not look at. The JSON report is this, encoded.

    ``late`` and ``power_cuts`` are the trials in which a request landed late or power was lost,
    ``other_faults`` those of the first wave in which anything but a kill or these took place,
    without the ``services_only``, in which a clock fault did not advance the task's own clock.
    ``kills`` counts the faults that kill the task, ``faults`` all of them: what is done between two
    attempts, such as to move a clock, and stops and pauses, too.
    ``states`` counts the different durable states that the trials among ``copies`` went on from.
    ``flaws`` counts the different flaws that the findings show.
    """

    format: int
    chaoskit: str
    scenario: str
    title: str
    verdict: str
    seed: int
    elapsed_s: float
    mechanisms: tuple[str, ...]
    points: Points
    trials: int
    kills: int
    real_kills: int
    copies: int
    depth: int
    verdicts: dict[str, int]
    ends: dict[str, int]
    effects: int
    findings: tuple[ReportedFinding, ...]
    unknowns: tuple[str, ...]
    not_tested: tuple[str, ...]
    volatile: dict[str, tuple[str, ...]]
    run: str
    remarks: tuple[str, ...] = ()
    late: int = 0
    power_cuts: int = 0
    other_faults: int = 0
    services_only: int = 0
    states: int = 0
    faults: int = 0
    soak: SoakReport | None = None
    shrunk: tuple[Shrunken, ...] = ()
    flaws: int = 0

    @property
    def verdict_in_words(self) -> str:
        """The verdict; of a VALID one also at how many points, where some never came again."""
        points = self.points
        if self.verdict != "VALID" or points.landed >= points.tested:
            return self.verdict
        return f"{self.verdict} at {points.landed} of {points.tested} points seen"

    @property
    def kinds(self) -> set[str]:
        """The kinds of the findings."""
        return {finding.kind for finding in self.findings}


def summarize(store: Store, title: str = "") -> Summary:
    """The summary of a stored campaign, finished or not; its texts are safe to show (`cleaned`)."""
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    survey = store.survey()
    expectation = survey[2] if survey is not None else Expectation(problems=("no survey yet",))
    everything = list(store.trials())
    soak = soak_report(store, options)
    trials = soaked_trials(store) if soak else [t for t in everything if t.wave > 0]
    judged = [t for t in everything if not missed_by_time(t)]
    first = [t for t in trials if t.wave == 1]
    total = int(store.get("points.total") or 0)
    alone = [(t, parse_schedule(t.schedule).alone) for t in first]
    tested = [t for t, fault in alone if fault is not None and fault.action == Kill()]
    points = Points(total, len(tested), sum(t.landed for t in tested))
    landed = [parse_schedule(t.schedule) for t in trials if t.landed]
    if soak is not None:
        points = Points(total, soak.points, soak.points)
    places = Places(survey[0] if survey is not None else None, store.locations())
    repeats = store.repeats()
    others = [t for t in first if t.landed and _is_other(t)]
    services_only = sum(
        "clock:" in t.schedule and bool(clocks_of(store, options, t)) for t in others
    )
    verdict, unknowns = _verdict(expectation, trials, judged, doubts(store, options))
    findings = tuple(
        replace(one, clocks=clocks)
        for t in everything
        for clocks in ((clocks_of(store, options, t),) if t.judgement.roots else ())
        for one in _reported(t, options, places, repeats)
    )
    summary = Summary(
        format=FORMAT,
        chaoskit=__version__,
        scenario=options.target.label,
        title=title or options.target.label,
        verdict=verdict.value,
        seed=options.seed,
        elapsed_s=round(float(store.get("seconds") or 0), 3),
        mechanisms=_mechanisms(options),
        points=points,
        trials=len(trials),
        kills=sum(schedule.kills for schedule in landed),
        faults=sum(schedule.faults for schedule in landed),
        real_kills=sum(t.real for t in trials if t.landed),
        copies=sum(not t.real for t in trials),
        depth=options.depth,
        verdicts=dict(Counter(t.judgement.verdict for t in trials)),
        ends=dict(Counter(t.judgement.end for t in trials)),
        effects=len(expectation.order),
        findings=findings,
        flaws=len(set(map(flaw_of, findings))),
        unknowns=unknowns,
        not_tested=not_tested(
            store, options, expectation, (total, points.tested), sum(map(missed_by_time, trials))
        ),
        remarks=remarks(store, options, trials),
        late=sum(isinstance(f.action, Late) for _, f in alone if f is not None),
        power_cuts=sum(isinstance(f.action, PowerLoss) for _, f in alone if f is not None),
        other_faults=len(others) - services_only,
        services_only=services_only,
        states=len({t.world for t in trials if t.world and not t.real}),
        volatile=expectation.volatile,
        run=str(_relative(store.folder)),
        soak=soak,
        shrunk=shrunken_of(store),
    )
    return cleaned(summary)


def _mechanisms(options: Options) -> tuple[str, ...]:
    used = [m for m in options.mechanisms if m != "times"]
    timed = options.times or options.soak_s is not None or "times" in options.mechanisms
    return (*used, "times") if timed else tuple(used)


def _is_other(trial: StoredTrial) -> bool:
    schedule = parse_schedule(trial.schedule)
    return not schedule.copied and not all(
        isinstance(f.action, Kill | KillLeader) for faults in schedule.attempts for f in faults
    )


def clocks_of(store: Store, options: Options, trial: StoredTrial) -> str:
    """What a trial did not advance of the task's own clock, although a fault asked for it."""
    if not options.resume_after_s and "clock:" not in trial.schedule:
        return ""
    return unmoved(store.history(trial.schedule), options.resume_after_s)


def missed_by_time(trial: StoredTrial) -> bool:
    """A random moment that came after the task's end says nothing, and is no failure either."""
    return not trial.landed and parse_schedule(trial.schedule).timed


def _verdict(
    expectation: Expectation,
    trials: Sequence[StoredTrial],
    judged: Sequence[StoredTrial],
    doubts: Sequence[str],
) -> tuple[Verdict, tuple[str, ...]]:
    unknowns = [*expectation.problems, *doubts]
    if not expectation.problems and not expectation.evidence:
        unknowns.append(
            "the task never called a service and declares no outputs: there is nothing to judge by"
        )
    elif not trials and not expectation.problems:
        unknowns.append(NO_TRIAL)
    elif trials and all(map(missed_by_time, trials)):
        unknowns.append("no kill landed: every random moment came after the task's end")
    verdicts = [Verdict(t.judgement.verdict) for t in judged]
    unknowns.extend(dict.fromkeys(reason for t in judged for reason in t.judgement.unknowns))
    if unknowns:
        verdicts.append(Verdict.UNKNOWN)
    return Verdict.worst(verdicts), tuple(unknowns)


def _reported(
    trial: StoredTrial, options: Options, places: Places, repeats: Mapping[str, Repeated]
) -> list[ReportedFinding]:
    schedule = parse_schedule(trial.schedule)
    last = [fault for faults in schedule.attempts for fault in faults][-1:]
    place = places.of(last[0]) if last and len(schedule.attempts) == 1 else Place("", "")
    flaws: dict[Flaw, list[Finding]] = {}
    for root in trial.judgement.roots:
        flaws.setdefault(flaw_of(root), []).append(root)
    return [
        ReportedFinding(
            kind=finding.kind,
            point=str(last[0] if last[0].is_prelude else last[0].point) if last else "none",
            schedule=trial.schedule,
            operation=finding.operation,
            subject=finding.subject,
            expected=finding.expected,
            seen=finding.seen,
            because=finding.because,
            diagnosis=finding.diagnosis,
            consequences=_consequences([finding, *others], trial),
            fingerprint=finding.fingerprint,
            replay=replay_command(options, trial.schedule, finding),
            between=place.between,
            code=place.code,
            file=place.file,
            line=place.line,
            function=place.function,
            repeated=str(repeats.get(trial.schedule, "")),
            also=tuple(f"{other.expected}, seen {other.seen}" for other in others),
        )
        for finding, *others in flaws.values()
    ]


def _consequences(findings: Sequence[Finding], trial: StoredTrial) -> tuple[str, ...]:
    causes = {finding.fingerprint for finding in findings}
    return tuple(
        f"{f.kind}: {f.expected}, seen {f.seen}"
        for f in trial.judgement.findings
        if f.cause in causes
    )


def replay_command(options: Options, schedule: str, finding: Finding) -> str:
    """The one line that shows ``finding`` again."""
    token = ReplayToken(
        target=options.target,
        seed=options.seed,
        schedule=schedule,
        fingerprint=finding.fingerprint,
        resume_after_s=options.resume_after_s,
    )
    return f"{REPLAY}{token}"


def _relative(folder: Path) -> Path:
    try:
        return folder.resolve().relative_to(Path.cwd())
    except ValueError:
        return folder
