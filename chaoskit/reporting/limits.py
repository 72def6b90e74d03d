"""What a campaign's result means, and what a reader might think was covered and was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chaoskit.campaign.baselines import loose_of, lost_of, why_unknown
from chaoskit.campaign.options import Options
from chaoskit.campaign.repeating import REPEATS
from chaoskit.campaign.sharding import left_of
from chaoskit.campaign.soaking import unrepeated
from chaoskit.campaign.store import CLOSED, FURTHER, NO_VIEW, Store, StoredTrial
from chaoskit.checkers.comparison import counted
from chaoskit.explore.clocks import unmoved
from chaoskit.explore.faults import FAULT_KINDS
from chaoskit.explore.plan import MEANING, noted
from chaoskit.model.actions import Late, PowerLoss
from chaoskit.model.behaviours import KINDS as BEHAVIOURS
from chaoskit.model.events import CallSeen
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.reporting import strangers
from chaoskit.trace import FOREIGN, MAPPED, OUTSIDE

SHOWN_MOST = 3

LATE_ONLY = (
    "the task is right as long as a request in flight has landed before it is resumed, and wrong "
    "when one lands later: a look-up cannot see what is still under way. A key that the service "
    "honours, sent with the request, survives both; or wait before looking up, and say "
    "settled= in the scenario that this is relied on"
)
POWER_ONLY = (
    "the task survives a kill, and not a loss of power: what it did not sync was lost. The disks "
    "tried are those that POSIX allows; a file system may forgive some (ext4 does for a rename "
    "over an existing file)"
)


def remarks(store: Store, options: Options, trials: Sequence[StoredTrial]) -> tuple[str, ...]:
    """Sentences that explain the verdict as a whole."""
    return (*strangers.hints(store, options), *_remarks(store, trials))


def _runs(store: Store) -> Sequence[History]:
    """The undisturbed runs."""
    survey = store.survey()
    return survey[:2] if survey else ()


def _done_before(trial: StoredTrial) -> str:
    """The kinds of the faults that came last."""
    attempts = parse_schedule(trial.schedule).attempts
    return " and ".join(dict.fromkeys(fault.kind for fault in attempts[-1])) if attempts else "none"


def _remarks(store: Store, trials: Sequence[StoredTrial]) -> Iterator[str]:
    failed = [parse_schedule(t.schedule) for t in trials if t.judgement.findings]
    faults = [fault for schedule in failed for faults in schedule.attempts for fault in faults]
    ways = {type(fault.action) for fault in faults}
    plain = bool(ways - {Late, PowerLoss})
    if Late in ways and not plain:
        yield LATE_ONLY
    if PowerLoss in ways and not plain:
        yield POWER_ONLY
    refused = Counter(_done_before(t) for t in trials if t.judgement.end == "refused")
    if refused:
        after = ", ".join(f"{number} after {what}" for what, number in sorted(refused.items()))
        yield f"{counted(refused.total(), 'trial')} ended with a refusal: {after}"
    why = store.get("real")
    if why and why != "as asked for":
        yield f"each trial is a real kill from the start, no copy: {why}"


def doubts(store: Store, options: Options) -> tuple[str, ...]:
    """Why what a campaign says is not to be believed, whatever its trials showed."""
    lost = why_unknown(store, options.reached)
    return (*strangers.doubts(store), *((lost,) if lost else ()))


def not_tested(
    store: Store,
    options: Options,
    expectation: Expectation,
    points: tuple[int, int],
    missed: int,
) -> tuple[str, ...]:
    """The limits of a campaign, in sentences.

    Args:
        store: the campaign.
        options: what was asked for.
        expectation: what the survey taught.
        points: how many were found, and tried.
        missed: random moments that came too late.
    """
    return (
        *_of_points(store, options, points, missed),
        *_of_the_trace(store, options),
        *_of_the_task(store, options, expectation),
        *_of_the_campaign(store, options),
    )


def _of_points(
    store: Store, options: Options, points: tuple[int, int], missed: int
) -> Iterator[str]:
    used = set(options.mechanisms) | ({"times"} if options.times or options.soak_s else set())
    yield from (f"{m}: {MEANING[m]}" for m in MEANING if m in used)
    if "calls" not in used:
        yield "moments between two system calls: they were not traced; see chaoskit doctor"
    total, tested = points
    left = left_of(store)
    if options.shard is not None and left.trials:
        yield (
            f"{left.trials} trials of the first wave, and the further kills that follow from them: "
            f"left to the other shards, this is {options.shard} (chaoskit join puts them together)"
        )
    tested += left.points
    if tested < total:
        why = "chosen by --at" if options.only else f"sampled by seed {options.seed}"
        if options.max_points is None and not options.only:
            why = "not reached"
        yield f"{total - tested} of {total} points ({why})"
    yield from _of_further_waves(store, options)
    if lost := [*map(str, lost_of(store))]:
        yield (
            f"{counted(len(lost), 'point')} that some undisturbed runs passed, and no trial: "
            f"{_some(lost)}"
        )
    if loose := len(loose_of(store)):
        yield (
            f"other orders: {counted(loose, 'point')} came in some undisturbed runs only, because "
            "what the task does differs from run to run; this is a sample"
        )
    if missed:
        yield f"{missed} random moments that came after the task's end"
    yield from _of_faults_without_an_occasion(store, options)


def _of_faults_without_an_occasion(store: Store, options: Options) -> Iterator[str]:
    trials = [] if options.soak_s else [t for t in store.trials() if not t.landed]
    trials = [trial for trial in trials if trial.judgement.verdict != "UNKNOWN"]
    if idle := sum("damage:" in trial.schedule for trial in trials):
        yield f"{idle} trials of damage that found no file to damage: they are plain kills"
    if unmet := sum(any(kind in trial.schedule for kind in BEHAVIOURS) for trial in trials):
        yield (
            f"{counted(unmet, 'trial')} of a service's behaviour whose request did not come: only "
            "the other faults took place"
        )
    if early := sum("change:" in trial.schedule for trial in trials):
        yield f"{counted(early, 'change')} before the step of its after=: only the kill took place"


def _of_further_waves(store: Store, options: Options) -> Iterator[str]:
    tried = Counter(trial.wave for trial in store.trials())
    for wave in range(2, options.depth + 1):
        total = int(store.get(FURTHER.format(wave)) or 0)
        if total > tried[wave]:
            yield (
                f"{total - tried[wave]:,} of {total:,} trials with {wave} kills each (sampled by "
                f"seed {options.seed})"
            )


def _of_the_trace(store: Store, options: Options) -> Iterator[str]:
    after_s = options.resume_after_s
    clocks = [t.schedule for t in store.trials() if "clock:" in t.schedule]
    if after_s:
        yield f"resumes that begin sooner than {after_s} s after a kill"
        clocks = [t.schedule for t in store.trials() if "@" in t.schedule][:1]
    if said := [words for s in clocks if (words := unmoved(store.history(s), after_s))]:
        among = "" if after_s else f", in {len(said)} of {counted(len(clocks), 'trial')} of a clock"
        yield f"the program's own clock{among}: {', '.join(dict.fromkeys(said))}"
    runs = _runs(store)
    yield from strangers.limits(store, runs)
    yield from _of_the_view(store, runs)
    if mapped := _some(noted(runs, MAPPED)):
        yield f"stores into mapped files, which are no system calls: {mapped}"
    if any(not body.alone for run in runs for _, body in run.of(CallSeen)):
        yield (
            "other orders in which its threads and processes can take turns: those that were met "
            "are a sample"
        )
    if foreign := _some(noted(runs, FOREIGN)):
        yield f"calls by another architecture's table: {foreign}"


def _of_the_view(store: Store, runs: Sequence[History]) -> Iterator[str]:
    outside = _some(noted(runs, OUTSIDE))
    if why := store.get(NO_VIEW):
        yield (
            f"files outside the work folder: the task runs on the real file system ({why}); what "
            "it writes elsewhere is neither put back nor judged"
            + (f": {outside}; one trial at a time" if outside else "")
        )
    elif outside:
        yield f"changes outside the files of the task: {outside}"
    if closed := (store.get(CLOSED) or "").splitlines():
        yield f"writes to {_some(closed)}: the task can only read there"


def _some(found: Sequence[str]) -> str:
    more = f" and {len(found) - SHOWN_MOST} more" if len(found) > SHOWN_MOST else ""
    return ", ".join(found[:SHOWN_MOST]) + more


def _of_the_task(store: Store, options: Options, expectation: Expectation) -> Iterator[str]:
    for run in _runs(store)[:1]:
        if ignored := run.ignored:
            told = ", ".join(f"{name} ({number})" for name, number in sorted(ignored.items()))
            yield f"effects to ignore, {ignored.total()} in an undisturbed run: {told}"
    if not expectation.ordered and not expectation.steps and expectation.order:
        yield (
            "redone steps: requests overlap, so that a successor proves nothing; report steps "
            "with probe.step"
        )
    elif (
        not expectation.steps
        and any(expectation.order[-1:] == (identity,) for identity, _ in expectation.requests)
        and not expectation.judges_the_last_step
    ):
        yield (
            f"whether the last step, {expectation.order[-1].operation}, is run again once it is "
            "complete: no call is known that records it (--recorded names the file that does; or "
            "report steps with probe.step)"
        )
    elif expectation.digests and not (
        expectation.order or expectation.steps or expectation.file_work
    ):
        yield (
            "whether finished files are written again: no record between them is known, or they "
            "are written at the same time "
            "(--recorded names the files that record what is done; or report steps with probe.step)"
        )
    if options.target.command is None and store.get("forked"):
        yield (
            "another hash seed in the resume: attempts of a Python function are forks of one "
            "process; give it as command= to start each one cold"
        )
    if expectation.freed:
        yield (
            f"rows that an undisturbed run takes and frees again, as locks are: "
            f"{_some([*map(str, expectation.freed)])}; only that the attempt that succeeds frees "
            "what it took (a rule for them in contract= has them judged like other effects)"
        )
    settled = store.get("settled")
    if settled and options.in_flight:
        yield f"late landing of {settled}: the scenario says that it relies on none"
    if within := store.get("resumed_within"):
        yield f"resumes later than {within} after an interruption: declared by resumed_within"


def _of_the_campaign(store: Store, options: Options) -> Iterator[str]:
    finished = store.get("finished")
    if finished is None:
        yield "the rest of an interrupted campaign: the same command goes on with it"
    elif finished.startswith(("the time limit", "the limit")):
        yield f"what was left when {finished}"
    short, failed = unrepeated(store) if options.soak_s is not None else (0, 0)
    if short:
        yield (
            f"steady or flaky: {short} of {counted(failed, 'failed schedule')}, for whose "
            f"{REPEATS} repeats the time of the soak did not last"
        )
    if not options.in_flight:
        yield "requests that land after the resume has begun (--in-flight late:1)"
    elif "windows" not in options.mechanisms:
        yield "requests that land after the resume has begun: that goes with windows"
    if not options.power_loss:
        yield "power loss: SIGKILL keeps what the kernel has (--power-loss)"
    tried = set(options.faults) or {"change"}
    left = [kind for kind in FAULT_KINDS if kind not in tried]
    if left:
        yield f"other faults: {', '.join(left)} (--faults all)"
