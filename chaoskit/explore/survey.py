"""The survey: undisturbed runs, and what they teach about a task.

What differs from one to the other (times, random ids) cannot be part of an effect's identity.
What still differs after that means that the task does not repeat, and then no verdict is safe.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from chaoskit.explore.freed import freed_rows, without
from chaoskit.explore.plan import noted
from chaoskit.model.contract import Contract
from chaoskit.model.effects import Effect, Identity, identity_of
from chaoskit.model.events import CallSeen, ReplySent, RequestReceived
from chaoskit.model.expectation import Expectation, Terms
from chaoskit.model.history import History
from chaoskit.model.last_words import telling_line
from chaoskit.model.scenario import Scenario
from chaoskit.trace import OUTSIDE

Volatile = dict[str, tuple[str, ...]]

SHOWN = 3
"""Files outside of the work folder that a reason names."""

KEEP = (
    "each run gets a work folder of its own, so keep state there, in {state} "
    "(--env HOME='{state}', or an option of the task), or remove it before each run"
)
"""What a task that keeps state elsewhere is told, where that is not put back."""

_SYNC = re.compile(r"(fsync|fdatasync|sync|syncfs|sync_file_range|msync)\b")


def expect(
    first: History,
    second: History,
    scenario: Scenario,
    *later: History,
    norm: Sequence[History] = (),
) -> Expectation:
    """What every trial is measured against.

    Args:
        first: an undisturbed run; its words and its order are the ones that are kept.
        second: another one.
        scenario: of both.
        later: further undisturbed runs, as far as there are any: they may show that more varies.
        norm: runs that say what is expected, where it is not those of the task itself: of its
            control, or without its services' behaviours.
    """
    freed = freed_rows([first, second, *later, *norm], [*scenario.contract, *scenario.expect])
    runs = [without(run, freed) for run in (first, second, *later)]
    first = runs[0]
    norm = [without(run, freed) for run in norm]
    measure = norm or runs
    chosen = {name: tuple(fields) for name, fields in scenario.identity.items()}
    volatile = _volatile([_wanted(run) for run in runs])
    if norm:
        volatile = _both(volatile, _volatile([_wanted(run) for run in norm]))
    orders = [_order(run, volatile, chosen) for run in runs]
    one, *others = [_order(run, volatile, chosen) for run in norm] or orders
    digests, unstable = _digests(measure)
    problems = [problem for run in measure for problem in _failures(run)]
    problems += [problem for run in (*runs, *norm) for problem in _too_long(run)]
    changed = noted(runs, OUTSIDE)
    outside = [p for p in changed if not any(q.startswith(f"{p}/") for q in changed)]
    problems += [problem for other in others for problem in _differences(one, other, outside)]
    if unstable:
        volatile["outputs"] = tuple(unstable)
    if scenario.outputs and not digests:
        kept = f"; the task leaves state at {_some(outside)}: {KEEP}" if outside else ""
        problems.append(
            f"outputs={list(scenario.outputs)} matched no file that stays the same: "
            f"nothing to compare{kept}"
        )
    return Expectation(
        effects=tuple(_expected(measure[0])),
        order=tuple(one),
        volatile=volatile,
        identity=chosen,
        requests=tuple(_requests(measure[0], volatile, chosen).items()),
        steps=tuple(body.step for _, body in first.steps if body.phase == "started"),
        digests=digests,
        freed=freed,
        outputs={n: out for n, out in measure[0].outputs.items() if n in digests},
        ordered=all(order == orders[0] for order in orders) and not any(map(_overlaps, runs)),
        early=_early(runs, volatile, chosen),
        record_first=_record_first(first),
        unsynced=_unsynced(first, volatile, chosen),
        seconds=max(map(_seconds, runs)),
        problems=tuple(dict.fromkeys(problems)),
        rules=str(Contract.of(scenario.contract)),
        redo_allowed=tuple(scenario.redo),
        refusals=scenario.refusals,
        changes={
            name: Terms(change.right, tuple(change.matters), change.finding, change.after)
            for name, change in scenario.changes.items()
        },
    )


def _both(one: Volatile, other: Volatile) -> Volatile:
    names = sorted(one.keys() | other.keys())
    return {n: tuple(sorted({*one.get(n, ()), *other.get(n, ())})) for n in names}


def _order(run: History, volatile: Volatile, chosen: Mapping[str, Sequence[str]]) -> list[Identity]:
    """The effects of a run, one after the other."""
    return [identity_of(effect, volatile, chosen) for effect in _expected(run)]


def _wanted(history: History) -> list[Effect]:
    """Effects as booked and as asked for: a field that only one of the two shows still counts."""
    booked = [body.effect for _, body in history.effects]
    asked = [body.wants for _, body in history.requests if body.wants is not None]
    return booked + asked


def _volatile(runs: Sequence[Sequence[Effect]]) -> Volatile:
    """Per operation, the fields whose values differ between undisturbed runs."""
    one = _values(runs[0])
    found: dict[str, set[str]] = {}
    for run in runs[1:]:
        other = _values(run)
        sizes = [Counter(effect.operation for effect in some) for some in (runs[0], run)]
        for operation, name in one.keys() | other.keys():
            # where the number of effects differs every field does: that is no volatility
            same_size = sizes[0][operation] == sizes[1][operation]
            if same_size and one.get((operation, name)) != other.get((operation, name)):
                found.setdefault(operation, set()).add(name)
    return {operation: tuple(sorted(names)) for operation, names in sorted(found.items())}


def _values(effects: Sequence[Effect]) -> Mapping[tuple[str, str], Counter[str]]:
    values: dict[tuple[str, str], Counter[str]] = {}
    for effect in effects:
        for name, value in effect.fields:
            values.setdefault((effect.operation, name), Counter())[value] += 1
    return values


def _expected(history: History) -> list[Effect]:
    """What an undisturbed run booked, and what the services took for a repeat although nothing had
    gone wrong: a second, identical effect that was swallowed by a key is owed all the same.
    """
    answered: set[tuple[str, str]] = set()
    swallowed: list[Effect] = []
    for _, body in history.requests:
        reply = history.replies.get(body.request)
        if body.wants is None or body.key is None or reply is None:
            continue
        if reply[1].deduped and (body.service, body.key) in answered:
            swallowed.append(body.wants)
        if reply[1].good:
            answered.add((body.service, body.key))
    return [body.effect for _, body in history.effects] + swallowed


def _requests(
    history: History, volatile: Volatile, chosen: Mapping[str, Sequence[str]]
) -> Counter[Identity]:
    """What is asked for, and how often. A request that was refused licenses no further one."""
    replies = history.replies
    return Counter(
        identity_of(body.wants, volatile, chosen)
        for _, body in history.requests
        if body.wants is not None
        and not (body.request in replies and replies[body.request][1].status >= 400)
    )


def _failures(history: History) -> Iterator[str]:
    """Why an undisturbed run did not succeed by itself."""
    if history.completed and len(history.attempts) == 1:
        return
    ended = history.attempts[0][1]
    words = telling_line(ended.output_tail)
    how = {
        "timeout": f"did not end within {ended.seconds:.0f} s",
        "signal": f"was ended by signal {ended.code}",
        "not-started": "could not be started",
    }.get(ended.how, f"ended with status {ended.code}")
    yield f"the task fails without any fault: it {how}" + (f" ({words})" if words else "")


def _too_long(history: History) -> Iterator[str]:
    """That a run has more events than are kept, and what would make them fewer."""
    cut = history.left_out
    if cut is None:
        return
    calls = cut.what.startswith("calls")
    way = ", or --mechanisms windows, which leaves system calls out" if calls else ""
    yield (
        f"an undisturbed run has more than {cut.limit:,} events, the most that are kept of one: "
        f"{cut.most:,} are {cut.what}; give the task a smaller input{way}"
    )


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more


def _differences(
    one: Sequence[Identity], two: Sequence[Identity], outside: Sequence[str]
) -> Iterator[str]:
    """How the effects of a later run differ, and why that is: state that it found ``outside`` of
    its work folder, or chance.
    """
    first, second = Counter(one), Counter(two)
    if first == second:
        return
    only = [*(first - second), *(second - first)]
    names = ", ".join(sorted({identity.operation for identity in only}))
    files = _some(outside)
    if not two:
        where = f"at {files}" if files else "where no traced call shows it"
        yield f"the second baseline run did nothing: the first one left its state {where}; {KEEP}"
        return
    found = (
        f"two undisturbed runs do not have the same effects: {sum((first - second).values())} only "
        f"in the first, {sum((second - first).values())} only in the second ({names}); "
    )
    seed = "give the task its randomness from CHAOSKIT_SEED, or name identity= in the scenario"
    left = f"the task leaves state at {files}: {KEEP}; if it is chance that differs, "
    yield found + (left if files else "") + seed


def _digests(runs: Sequence[History]) -> tuple[dict[str, str], list[str]]:
    """The outputs that all runs leave alike, and the names of those that they do not."""
    one = runs[0].digests
    names = sorted({name for run in runs for name in run.digests})
    same = {
        name: one[name]
        for name in names
        if all(run.digests.get(name) == one.get(name) for run in runs)
    }
    return same, [name for name in names if name not in same]


def _overlaps(history: History) -> bool:
    """Whether any request came before the one ahead of it was answered."""
    open_requests: set[int] = set()
    for event in history.events:
        if isinstance(event.body, RequestReceived):
            if open_requests:
                return True
            open_requests.add(event.body.request)
        elif isinstance(event.body, ReplySent):
            open_requests.discard(event.body.request)
    return False


def _early(
    runs: Sequence[History], volatile: Volatile, chosen: Mapping[str, Sequence[str]]
) -> tuple[Identity, ...]:
    """The requests that any run sent before it had the answer to the one ahead of them."""
    found = (
        identity_of(body.wants, volatile, chosen)
        for run in runs
        for _, body in run.requests
        if body.early and body.wants is not None
    )
    return tuple(dict.fromkeys(found))


def _parts(history: History) -> list[list[str]]:
    """The calls on a task's own files before each of its requests for an effect, and at the end."""
    parts: list[list[str]] = [[]]
    for event in history.events:
        body = event.body
        if isinstance(body, RequestReceived) and body.wants is not None:
            parts.append([])
        elif isinstance(body, CallSeen) and not body.sends:
            verb, _, target = body.call.partition("(")
            if verb != "connect" and ":" not in target:  # not a service's
                parts[-1].append(body.call)
    return parts


def _record_first(history: History) -> bool:
    """Whether a task's records come before its effects; see `Expectation`. Only system calls show
    it.
    """
    parts = [{file for call in part for file in _files(call)} for part in _parts(history)]
    if len(parts) == 1:
        return False
    first, *between, last = parts
    middle = set[str]().union(*between)
    return bool(first) and not last and (not middle or bool(first & middle))


def _files(call: str) -> set[str]:
    """The files of a call, numbers left out: a marker for each step counts as one file."""
    target = call.partition("(")[2].rpartition(")")[0]
    return set(re.sub(r"\d+", "#", target).split("->"))


def _unsynced(
    history: History, volatile: Volatile, chosen: Mapping[str, Sequence[str]]
) -> tuple[Identity, ...]:
    """The effects before or after which a run leaves what it has written without a sync."""
    open_ends = [bool(part) and not _SYNC.match(part[-1]) for part in _parts(history)]
    asked = [body.wants for _, body in history.requests if body.wants is not None]
    found = (
        identity_of(wants, volatile, chosen)
        for wants, before, after in zip(asked, open_ends, open_ends[1:], strict=False)
        if before or after
    )
    return tuple(dict.fromkeys(found))


def _seconds(history: History) -> float:
    return sum(body.seconds for _, body in history.attempts)
