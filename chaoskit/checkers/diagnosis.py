"""Which gap in the checkpoint explains a finding, with the evidence in the history.

The codes in brackets are those of the cases in scenarios/README.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from chaoskit.checkers.blocked import blocked, words_of_all
from chaoskit.checkers.comparison import compare, times
from chaoskit.checkers.losses import COARSE_KEY, HALF_REPLACED, lost, success_without_its_end
from chaoskit.checkers.older import OlderCopies
from chaoskit.checkers.redos import RECORD_IGNORED, run_again, started_over
from chaoskit.model.effects import Effect
from chaoskit.model.events import EffectApplied
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Diagnosis, Finding
from chaoskit.model.history import History

ORDER = "order: the record is written after the effect, not atomically with it"
IDS = "external effect ids: resume cannot ask the service whether it happened"
INPUTS = "the step's inputs and outputs are not in the checkpoint"
FRESH_KEY = "idempotency key made anew by each attempt (KEY-1)"
KEY_OF_A_CALL = "idempotency key made for each call, not for the step: one attempt made several"
FORGOTTEN_KEY = "the service did not honour an idempotency key that it was given (KEY-3)"
RETRY = "a retry: no answer is taken for 'not done'"
REPEATS = "one attempt does it more than once"
QUEUED_AGAIN = "the work was queued again: queueing it and noting that are two writes"
IN_FLIGHT = "a request in flight at the kill is taken for one that never was (DUP-2)"
BINDING = "results are kept by the order of their arrival, not by their step (INPUT-3)"
LATE_RETRY = "a rescued effect is not asked whether it is still wanted (WORLD-6)"
UNVERIFIED = "resume does not verify the state that the next step depends on (class WORLD)"
CANCEL_LOST = "the cancel is not durable, or resume does not look at it (CTRL-1)"
TOO_STRICT = "resume asks for more to be unchanged than the next step depends on (CODE-3)"
UNFENCED = "a runner does not ask whether it still owns the run (TWO-4)"
UNDISTURBED = "nothing of the checkpoint: the task does so without any fault"

_WITHOUT_A_FAULT = frozenset(
    {RETRY, REPEATS, FORGOTTEN_KEY, KEY_OF_A_CALL, COARSE_KEY, HALF_REPLACED}
)
"""What explains a trial in which nothing happened to the task but its services' behaviours."""

_THERE_ALREADY_WORDS = re.compile(
    r"\b(relation|table|index|column|schema|view|sequence|type) .{1,200} already exists|"
    r"duplicate key value violates|UNIQUE constraint failed|Duplicate entry '.+' for key",
    re.IGNORECASE,
)
"""What PostgreSQL, SQLite and MySQL say to a statement that makes what is there already."""


UNSYNCED_LOSS = Diagnosis(
    "a record that was written and not made durable (class TORN)",
    "power was lost after the effect, and the disk had not kept what the task had written of it",
    "call fsync on the file before the effect, and after a rename or a creation on its folder too; "
    "with SQLite in WAL mode use synchronous=FULL, with a rollback journal synchronous=EXTRA",
)

OLDER_COPY = Diagnosis(
    "what tells of an effect that no record holds: its key, or a look that needs no record",
    "the effect happened after the older copy of the files was made that the task went on from",
    "derive an idempotency key from the run and the step; or look each effect up before it is "
    "made, not only where a record says that it had begun",
)

LATE_LANDING = Diagnosis(
    IN_FLIGHT,
    "the request was under way when the task was killed, and landed after the resume had asked "
    "about it",
    "send a key that the service honours; a look-up alone cannot see what is still under way",
)


def diagnose(finding: Finding, history: History, expectation: Expectation) -> Diagnosis | None:
    """The explanation of ``finding``; None where the history does not show one."""
    rule = _RULES.get(finding.kind)
    if rule is None:
        return None
    found = rule(finding, history, expectation)
    if found is None or history.landed or found.missing in _WITHOUT_A_FAULT:
        return found
    return Diagnosis(
        UNDISTURBED,
        f"no fault landed in this trial; {finding.because}",
        "mend what the task does when nothing interrupts it; its resume has no part in this",
    )


def _duplicate(finding: Finding, history: History, expectation: Expectation) -> Diagnosis:
    bodies = [history.events[index].body for index in finding.witness]
    effects = [body for body in bodies if isinstance(body, EffectApplied)]
    keys = [body.effect.key for body in effects]
    twice = [key for key, number in Counter(keys).items() if key and number > 1]
    if twice:
        return Diagnosis(
            FORGOTTEN_KEY,
            f"both requests carried the key {twice[0]}",
            "do not rely on a key alone where the service may forget it: look the effect up first",
        )
    keyed = bool(effects) and all(keys)
    if len({body.attempt for body in effects}) == 1:
        return _by_other_keys(effects) if keyed else _by_one_attempt(effects, history)
    by_fault = _by_the_fault(history)
    if keyed and not (
        by_fault is UNSYNCED_LOSS
        and expectation.identify(effects[0].effect) in expectation.unsynced
    ):
        return _by_other_keys(effects)
    if effects and not OlderCopies.of(history).holds(finding.witness[0], effects[-1].attempt):
        return OLDER_COPY
    return by_fault or _by_the_order(finding, effects, history)


def _by_the_order(
    finding: Finding, effects: Sequence[EffectApplied], history: History
) -> Diagnosis:
    """What explains a repeat by another attempt, by the step that was running."""
    step = _step_at(history, finding.witness[0]) if finding.witness else ""
    if step and _recorded(history, step, effects[0].attempt if effects else 1):
        return Diagnosis(
            RECORD_IGNORED,
            f"step {step} was complete and recorded, and was run again all the same",
            "read the record of each completed step before running it",
        )
    if step:
        return Diagnosis(
            ORDER,
            f"step {step} had begun, and its completion was not recorded when the kill came",
            "store the intent with an idempotency key first, and send that key with the effect; "
            "or look the effect up before doing it again",
        )
    return Diagnosis(
        ORDER,
        "the effect was booked by the service before the kill, and the resume did not know of it"
        if _killed_between(finding, history)
        else "the effect was booked by the service, and another attempt did not know of it",
        "give the service an idempotency key that is stored before the effect, or look the effect "
        "up before doing it again",
    )


def _by_one_attempt(effects: Sequence[EffectApplied], history: History) -> Diagnosis:
    """What explains a repeat that one attempt alone made, without a key."""
    attempt = effects[0].attempt
    if (unanswered := _sent_without_an_answer(effects, history)) is not None:
        return Diagnosis(
            RETRY,
            f"attempt {attempt} sent request {unanswered[1]} although it had no good answer to "
            f"request {unanswered[0]}, which was carried out all the same",
            "before it is tried again, look the effect up; or send the same idempotency key with "
            "each try",
        )
    evidence = f"attempt {attempt} did it {times(len(effects))}; no other attempt did"
    if attempt == 1 or not history.kills:
        return Diagnosis(
            REPEATS,
            evidence,
            "find what calls it again within one attempt (a loop, a list that names it twice), and "
            "do it once; a key for the step makes the second request harmless",
        )
    return Diagnosis(
        QUEUED_AGAIN,
        evidence,
        "queue the work and note that it is queued in one write (one transaction, or a file that "
        "is written beside and renamed); or give each item an id, and do none twice",
    )


def _sent_without_an_answer(
    effects: Sequence[EffectApplied], history: History
) -> tuple[int, int] | None:
    """Two requests of which the sender made the second without a good answer to the first."""
    asked = {body.request: index for index, body in history.requests}
    requests = sorted(
        (body.request for body in effects if body.request in asked), key=lambda n: asked[n]
    )
    for first, second in pairwise(requests):
        reply = history.replies.get(first)
        if reply is None or not reply[1].good or reply[0] > asked[second]:
            return first, second
    return None


def _killed_between(finding: Finding, history: History) -> bool:
    """Whether the task was killed after the first of the effects and before the last."""
    places = finding.witness
    return bool(places) and any(
        places[0] < index < places[-1] for index, body in history.attempts if body.how == "killed"
    )


def _by_other_keys(effects: Sequence[EffectApplied]) -> Diagnosis:
    """What explains a repeat under another key: a new attempt, or another call of the same one."""
    attempts = {body.attempt for body in effects}
    if len(attempts) > 1:
        return Diagnosis(
            FRESH_KEY,
            f"the same effect was asked for with {len(effects)} different keys",
            "derive the key from the run and the step, store it before the effect, and send the "
            "stored one again",
        )
    return Diagnosis(
        KEY_OF_A_CALL,
        f"attempt {attempts.pop()} did it {times(len(effects))}, each time with another key; no "
        "other attempt did",
        "find what calls it again within one attempt (a retry, a loop, a list that names it "
        "twice), and make the key once for the step, outside of that",
    )


def _stuck(finding: Finding, history: History, expectation: Expectation) -> Diagnosis | None:
    """A change that the database refuses to make a second time, as every attempt says; or what
    else blocks each of them.
    """
    said = words_of_all(finding, history)
    if history.stated_end is None and said and all(map(_THERE_ALREADY_WORDS.search, said)):
        return Diagnosis(
            ORDER,
            f"the resume made a change that was there already: {said[-1]}",
            "write the change and the record of it in one transaction; or let it do nothing where "
            "it is there already (IF NOT EXISTS, ON CONFLICT DO NOTHING)",
        )
    return blocked(finding, history)


def _wrong_inputs(finding: Finding, history: History, expectation: Expectation) -> Diagnosis:
    shown = (history.events[index].body for index in finding.witness)
    strange = next((body.effect for body in shown if isinstance(body, EffectApplied)), None)
    if strange is not None:
        before = _expected(history, expectation).get((strange.operation, strange.ref), ())
        if again := next(filter(None, (_made_again(effect, strange) for effect in before)), ""):
            return Diagnosis(
                ORDER,
                f"the change was made a second time, on its own result: {again}",
                "write the change and the record of it in one transaction; or store the value that "
                "is wanted before, instead of changing whatever is there",
            )
    return Diagnosis(
        INPUTS,
        finding.because,
        "store each step's inputs and its result, and use the stored ones on resume",
    )


@lru_cache(maxsize=1)
def _expected(
    history: History, expectation: Expectation
) -> Mapping[tuple[str, str], Sequence[Effect]]:
    """The expected effects that have happened, by operation and the service's own id.

    The last result is kept, as in `compare`: a trial may have thousands of findings.
    """
    found: dict[tuple[str, str], list[Effect]] = {}
    for identity, seen in compare(history, expectation).seen.items():
        if identity in expectation.counts:
            effect = seen[0][1].effect
            found.setdefault((effect.operation, effect.ref), []).append(effect)
    return found


def _made_again(first: Effect, second: Effect) -> str:
    """What two updates of one row did to it, each by as much ("balance 10, 15, 20"); empty: they
    did something else.
    """
    before, between, after = _was(first), _was(second), dict(second.fields)
    if (
        not between
        or before.keys() != between.keys()
        or not between.items() <= dict(first.fields).items()
    ):
        return ""
    steps = {name: (before[name], between[name], after[name]) for name in between}
    if not all(_by_as_much(*values) for values in steps.values()):
        return ""
    return "; ".join(f"{name} {', '.join(values)}" for name, values in steps.items())


def _was(effect: Effect) -> dict[str, str]:
    """Of the columns that an update changed, what they were."""
    mark = "was."
    return {n.removeprefix(mark): value for n, value in effect.fields if n.startswith(mark)}


def _by_as_much(one: str, two: str, three: str) -> bool:
    """Whether the step from ``two`` to ``three`` is that from ``one`` to ``two``: a sum that is
    added, or a text.
    """
    try:
        return (added := Decimal(two) - Decimal(one)) != 0 and Decimal(three) - Decimal(
            two
        ) == added
    except ArithmeticError:  # no number, or one without bounds
        more = two.removeprefix(one)
        return one + more == two != one and two + more == three


def _by_the_fault(history: History) -> Diagnosis | None:
    """What explains a repeat by the sort of fault alone."""
    faults = [body.fault for _, body in history.landed]
    if any(fault.startswith("power:") for fault in faults):
        return UNSYNCED_LOSS
    if any(fault.startswith("late:") for fault in faults):
        return LATE_LANDING
    return None


def _step_at(history: History, index: int) -> str:
    """The step whose body was running at event ``index``, as far as the task reported it."""
    running = ""
    for at, body in history.steps:
        if at > index:
            break
        running = body.step if body.phase == "started" else ""
    return running


def _recorded(history: History, step: str, attempt: int) -> bool:
    return any(
        body.step == step and body.attempt == attempt and body.phase == "recorded"
        for _, body in history.steps
    )


def _fixed(missing: str, mend: str) -> Callable[[Finding, History, Expectation], Diagnosis]:
    def rule(finding: Finding, history: History, expectation: Expectation) -> Diagnosis:
        return Diagnosis(missing, finding.because, mend)

    return rule


_RULES: dict[str, Callable[[Finding, History, Expectation], Diagnosis | None]] = {
    "duplicate_effect": _duplicate,
    "lost_effect": lost,
    "stuck": _stuck,
    "redone_step": run_again,
    "silent_restart": started_over,
    "false_success": success_without_its_end,
    "wrong_inputs": _wrong_inputs,
    "wrong_binding": _fixed(
        BINDING, "keep each result under the name of its step and its inputs, and look it up there"
    ),
    "out_of_order_effect": _fixed(
        LATE_RETRY,
        "finish what was interrupted before anything later, or drop it where a later one has gone "
        "out",
    ),
    "stale_world": _fixed(
        UNVERIFIED,
        "keep what the step depends on with the record, compare it at resume, and refuse or plan "
        "anew where it differs",
    ),
    "resurrected": _fixed(
        CANCEL_LOST, "store the cancel as a state of the run, and look at it before each step"
    ),
    "needless_refusal": _fixed(
        TOO_STRICT, "compare only what the steps depend on that are still to be run"
    ),
    "stale_writer": _fixed(
        UNFENCED,
        "take a fencing token with the lease, send it with each effect and each record, and refuse "
        "an older one",
    ),
    "diverged_state": _fixed(
        "success is claimed over files that are not those of an undisturbed run (class HALF)",
        "write the new content beside the old one and rename it, then record the step",
    ),
}
