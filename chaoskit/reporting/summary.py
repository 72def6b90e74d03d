"""The summary of a campaign: the one value from which every report is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from chaoskit import __version__
from chaoskit.campaign.run import Options
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.explore.plan import MEANING
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Diagnosis, Finding, Verdict
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import ReplayToken

FORMAT = 1


class Points(msgspec.Struct, frozen=True):
    """``total`` points were found, ``tested`` were tried, at ``landed`` the kill took place."""

    total: int
    tested: int
    landed: int


class ReportedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of one trial. ``consequences`` are the findings that this one brought about."""

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


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign found, and what it did not look at. The JSON report is this, encoded."""

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
    depth: int
    verdicts: dict[str, int]
    ends: dict[str, int]
    effects: int
    findings: tuple[ReportedFinding, ...]
    unknowns: tuple[str, ...]
    not_tested: tuple[str, ...]
    volatile: dict[str, tuple[str, ...]]
    run: str

    @property
    def kinds(self) -> set[str]:
        """The kinds of the findings."""
        return {finding.kind for finding in self.findings}


def summarize(store: Store, title: str = "") -> Summary:
    """The summary of a stored campaign, finished or not."""
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    survey = store.survey()
    expectation = survey[2] if survey is not None else Expectation(problems=("no survey yet",))
    everything = list(store.trials())
    trials = [t for t in everything if t.wave > 0]
    judged = [t for t in everything if not _missed_by_time(t)]
    first = [t for t in trials if t.wave == 1]
    total = int(store.get("points.total") or 0)
    tested = [t for t in first if not parse_schedule(t.schedule).timed]
    verdict, unknowns = _verdict(expectation, trials, judged)
    return Summary(
        format=FORMAT,
        chaoskit=__version__,
        scenario=options.target.label,
        title=title or options.target.label,
        verdict=verdict.value,
        seed=options.seed,
        elapsed_s=round(float(store.get("seconds") or 0), 3),
        mechanisms=_mechanisms(options),
        points=Points(total, len(tested), sum(t.landed for t in tested)),
        trials=len(trials),
        kills=sum(parse_schedule(t.schedule).kills for t in trials if t.landed),
        real_kills=sum(t.real for t in trials if t.landed),
        depth=options.depth,
        verdicts=dict(Counter(t.judgement.verdict for t in trials)),
        ends=dict(Counter(t.judgement.end for t in trials)),
        effects=len(expectation.order),
        findings=tuple(r for t in everything for r in _reported(t, options)),
        unknowns=unknowns,
        not_tested=_not_tested(store, options, expectation, (total, len(tested)), trials),
        volatile=expectation.volatile,
        run=str(_relative(store.folder)),
    )


def _mechanisms(options: Options) -> tuple[str, ...]:
    used = [m for m in options.mechanisms if m != "times"]
    return (*used, "times") if options.times or "times" in options.mechanisms else tuple(used)


def _missed_by_time(trial: StoredTrial) -> bool:
    """A random moment that came after the task's end says nothing, and is no failure either."""
    return not trial.landed and parse_schedule(trial.schedule).timed


def _verdict(
    expectation: Expectation, trials: Sequence[StoredTrial], judged: Sequence[StoredTrial]
) -> tuple[Verdict, tuple[str, ...]]:
    unknowns = list(expectation.problems)
    if not expectation.problems and not expectation.evidence:
        unknowns.append(
            "the task never called a service and declares no outputs: there is nothing to judge by"
        )
    elif not trials and not expectation.problems:
        unknowns.append("no trial was run")
    elif trials and all(map(_missed_by_time, trials)):
        unknowns.append("no kill landed: every random moment came after the task's end")
    verdicts = [Verdict(t.judgement.verdict) for t in judged]
    unknowns.extend(dict.fromkeys(reason for t in judged for reason in t.judgement.unknowns))
    if unknowns:
        verdicts.append(Verdict.UNKNOWN)
    return Verdict.worst(verdicts), tuple(unknowns)


def _reported(trial: StoredTrial, options: Options) -> list[ReportedFinding]:
    schedule = parse_schedule(trial.schedule)
    last = [fault for faults in schedule.attempts for fault in faults][-1:]
    return [
        ReportedFinding(
            kind=finding.kind,
            point=str(last[0].point) if last else "none",
            schedule=trial.schedule,
            operation=finding.operation,
            subject=finding.subject,
            expected=finding.expected,
            seen=finding.seen,
            because=finding.because,
            diagnosis=finding.diagnosis,
            consequences=_consequences(finding, trial),
            fingerprint=finding.fingerprint,
            replay=replay_command(options, trial.schedule, finding),
        )
        for finding in trial.judgement.roots
    ]


def _consequences(finding: Finding, trial: StoredTrial) -> tuple[str, ...]:
    return tuple(
        f"{f.kind}: {f.expected}, seen {f.seen}"
        for f in trial.judgement.findings
        if f.cause == finding.fingerprint
    )


def replay_command(options: Options, schedule: str, finding: Finding) -> str:
    """The one line that shows ``finding`` again."""
    token = ReplayToken(
        target=options.target,
        seed=options.seed,
        schedule=schedule,
        fingerprint=finding.fingerprint,
    )
    return f"chaoskit replay {token}"


def _not_tested(
    store: Store,
    options: Options,
    expectation: Expectation,
    points: tuple[int, int],
    trials: Sequence[StoredTrial],
) -> tuple[str, ...]:
    """What a reader might think was covered, and was not."""
    total, tested = points
    found = [f"{m}: {MEANING[m]}" for m in MEANING if m in _mechanisms(options)]
    if tested < total:
        why = "chosen by --at" if options.only else f"sampled by seed {options.seed}"
        if options.max_points is None and not options.only:
            why = "not reached"
        found.append(f"{total - tested} of {total} points ({why})")
    odd = int(store.get("points.odd") or 0)
    if odd:
        found.append(f"{odd} points that only one of the two undisturbed runs passed")
    if not expectation.ordered and not expectation.steps and expectation.order:
        found.append(
            "redone steps: requests overlap, so that a successor proves nothing; report steps "
            "with probe.step"
        )
    if options.target.command is None and store.get("forked"):
        found.append(
            "another hash seed in the resume: attempts of a Python function are forks of one "
            "process; give it as command= to start each one cold"
        )
    missed = sum(map(_missed_by_time, trials))
    if missed:
        found.append(f"{missed} random moments that came after the task's end")
    finished = store.get("finished")
    if finished is None:
        found.append("the rest of an interrupted campaign: the same command goes on with it")
    elif finished.startswith("the time limit"):
        found.append(f"what was left when {finished}")
    found.append("power loss (SIGKILL keeps what the kernel has), several resumers at once")
    return tuple(found)


def _relative(folder: Path) -> Path:
    try:
        return folder.resolve().relative_to(Path.cwd())
    except ValueError:
        return folder
