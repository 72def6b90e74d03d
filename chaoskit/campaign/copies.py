"""Whether trials may go on from copies of the world, and of which copies a real kill has to see."""

from __future__ import annotations

from collections.abc import Sequence

from chaoskit.campaign.batches import Batch
from chaoskit.campaign.mechanisms import traced
from chaoskit.campaign.meetings import may_note
from chaoskit.campaign.options import Options
from chaoskit.campaign.store import NO_VIEW, REFUTED, Store
from chaoskit.explore.classes import unchecked
from chaoskit.explore.plan import noted
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.trace import ALLOWED, IPC, OUTSIDE, RING

_LIMITS = {
    OUTSIDE: "the task changes what is not restored",
    IPC: "the task makes what is no file and outlives it",
    ALLOWED: "the task reaches what is not restored",
    RING: "the task makes calls by io_uring, which are not seen",
}


def why_no_snapshots(store: Store, options: Options, expectation: Expectation) -> str:
    """Why snapshots are not used, whatever the task was seen to do; empty: they are."""
    refuted = store.get(REFUTED) or ""
    watched = not store.get(NO_VIEW) or "calls" in options.mechanisms
    reasons = (
        (not options.snapshots, "as asked for"),
        (bool(refuted), refuted),
        (store.get("restorable") != "yes", "a service cannot go back to a saved world"),
        (not traced().works, "the task's clock cannot be put back to the time of a copy"),
        (not expectation.ordered, "requests overlap, or come in another order each time"),
        (bool(expectation.early), "requests are sent before the one ahead is answered"),
        (not watched, "changes of files elsewhere are seen by the task's system calls only"),
    )
    return next((why for holds, why in reasons if holds), "")


def why_not_restored(baselines: Sequence[History]) -> str:
    """What a task was seen to change or to reach that a snapshot does not hold; empty: nothing."""
    for what, why in _LIMITS.items():
        if found := noted(baselines, what):
            return f"{why}: {', '.join(found[:3])}"
    return ""


def why_no_longer(history: bytes) -> str:
    """The same of a trial, by its encoded history: a task may do so only when it resumes."""
    return why_not_restored([History.decode(history)]) if may_note(history, _LIMITS) else ""


def not_looked_at(store: Store, number: int) -> Batch:
    """One trial of each class of which no real kill has looked at a copy that was right."""
    right = [
        (parse_schedule(t.schedule), t)
        for t in store.trials()
        if t.wave == number and t.judgement.verdict == "VALID" and t.world
    ]
    places = {schedule: trial.position for schedule, trial in right}
    chosen = unchecked((schedule, trial.real) for schedule, trial in right)
    return [(places[schedule], schedule) for schedule in chosen]
