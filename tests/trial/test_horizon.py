"""How far a resume is followed, and the rest that is taken from the undisturbed run."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.check import judge
from chaoskit.checkers.effects import breaks_the_contract
from chaoskit.explore.plan import sweep
from chaoskit.explore.survey import expect
from chaoskit.model.effects import Effect
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    EffectApplied,
    Event,
    FaultLanded,
    ReplySent,
    RequestReceived,
    ResumeBounded,
    StateObserved,
)
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, kill
from chaoskit.model.token import Target
from chaoskit.trial.horizon import (
    OFTEN,
    Horizon,
    Undisturbed,
    as_if_bounded,
    goes_on_alike,
    rest,
)
from chaoskit.trial.loading import load
from chaoskit.trial.logical import Reader
from chaoskit.trial.snapshots import Contents, Entry, Tree
from chaoskit.trial.supervisor import Supervisor
from tests.trial.traced import with_supervisor

# Values.


def effect(operation: str, who: str) -> Effect:
    """One of a service."""
    service, _, kind = operation.partition(".")
    return Effect(service=service, kind=kind, fields=(("who", who),))


def row_at(time: int, who: str) -> Effect:
    """One of a database, with the time at which it was written."""
    fields = (("who", who), ("at", str(time)))
    return Effect(service="books", kind="row", fields=fields)


def whom(effect: Effect) -> object:
    """For whom an effect is, whatever varies."""
    return dict(effect.fields)["who"]


def request(number: int, who: str, attempt: int = 1) -> RequestReceived:
    """One for the effect of this name."""
    return RequestReceived(
        attempt=attempt,
        request=number,
        service="shop",
        operation="sell",
        ordinal=number,
        wants=effect("shop.sell", who),
    )


def served(number: int, who: str, attempt: int = 1, *, again: bool = False) -> Iterator[Body]:
    """A request's whole life; ``again``: the service has done it before."""
    yield request(number, who, attempt)
    if not again:
        yield EffectApplied(attempt=attempt, effect=effect("shop.sell", who), request=number)
    yield ReplySent(attempt=attempt, request=number, status=200, deduped=again)


def ended(attempt: int, how: str = "exit") -> AttemptEnded:
    """The end of an attempt."""
    return AttemptEnded(attempt=attempt, how=how, code=0, seconds=0.0)  # type: ignore[arg-type]


def numbered(bodies: Sequence[Body]) -> tuple[Event, ...]:
    """As events."""
    return tuple(Event(index, 0, body) for index, body in enumerate(bodies))


class Known:
    """An undisturbed run of these requests, with a file that says how many there were before."""

    def __init__(self, folder: Path, names: Sequence[str], rows: Sequence[str] = ()) -> None:
        self.contents = Contents()
        self.run = Undisturbed(Reader(self.contents, folder), lambda e: (e.operation, whom(e)))
        bodies: list[Body] = [AttemptStarted(1, resume=False)]
        for number, who in enumerate(names, 1):
            self.run.met(request(number, who), len(bodies), self.tree(number - 1))
            bodies += served(number, who)
        bodies += [EffectApplied(attempt=1, effect=row_at(1, row)) for row in rows]
        bodies += [ended(1), StateObserved({"out": "digest"})]
        self.run.events, self.run.end = numbered(bodies), self.tree(len(names))

    def tree(self, done: int) -> Tree:
        """The files after so many requests."""
        content = self.contents.keep(str(done).encode())
        return {"state": Entry(0o40755), "state/done": Entry(0o100644, content)}

    def horizon(self, doomed: Callable[[Sequence[Effect]], bool] = lambda _: False) -> Horizon:
        """A watch over a resume."""
        return Horizon(self.run, doomed)


def watched(
    known: Known, horizon: Horizon, done: int, asked: Sequence[tuple[str, int]]
) -> list[bool]:
    """What the horizon says at each request of a resume.

    Args:
        known: the undisturbed run.
        horizon: the watch.
        done: how many of its effects had happened before the kill.
        asked: the requests, and what the file says at each of them.
    """
    names = [e.body.wants.fields[0][1] for e in known.run.events if _asks(e.body)]  # type: ignore[union-attr]
    bodies: list[Body] = [AttemptStarted(1, resume=False)]
    for number, who in enumerate(names[:done], 1):
        bodies += served(number, who)
    bodies += [ended(1, "killed"), AttemptStarted(2, resume=True)]
    said = []
    for number, (who, file) in enumerate(asked, done + 1):
        mine = request(number, who, 2)
        bodies.append(mine)
        said.append(horizon.looks(mine, numbered(bodies), lambda file=file: known.tree(file)))  # type: ignore[misc]
        if said[-1]:
            break
        bodies += list(served(number, who, 2))[1:]
    return said


def _asks(body: Body) -> bool:
    return isinstance(body, RequestReceived)


# When it may end.


def test_a_resume_is_followed_until_two_requests_in_a_row_find_the_world_as_it_was(
    tmp_path: Path,
) -> None:
    """One is not enough: the process may not have acted on its records yet."""
    known = Known(tmp_path, "abcdef")
    horizon = known.horizon()
    assert watched(known, horizon, 2, [("c", 2), ("d", 3), ("e", 4)]) == [False, True]
    place = horizon.cut
    assert place is not None
    assert known.run.events[place].body == request(4, "d")


@pytest.mark.parametrize(
    ("done", "asked", "why"),
    [
        (2, [("c", 9), ("d", 9), ("e", 9)], "the file says something else"),
        (2, [("c", 2), ("d", 9), ("e", 4)], "it does at every other request"),
        (2, [("c", 2), ("e", 4), ("f", 5)], "it leaves one out"),
        (2, [("x", 2), ("y", 3), ("z", 4)], "the requests are other ones"),
        (1, [("c", 2), ("d", 3), ("e", 4)], "an effect is missing"),
        (3, [("c", 2), ("d", 3), ("e", 4)], "an effect has happened twice"),
    ],
)
def test_a_resume_is_followed_where_anything_differs(
    tmp_path: Path, done: int, asked: Sequence[tuple[str, int]], why: str
) -> None:
    """Files, order, requests and effects must all be those of the undisturbed run."""
    known = Known(tmp_path, "abcdef")
    assert not any(watched(known, known.horizon(), done, asked)), why


def test_what_is_late_to_become_the_same_is_still_noticed(tmp_path: Path) -> None:
    """After some requests in vain not each one is looked at, but two in a row are, again."""
    names = [chr(ord("a") + n) for n in range(26)]
    known = Known(tmp_path, names)
    asked = [(who, 99 if n < OFTEN + 2 else n) for n, who in enumerate(names)]
    said = watched(known, known.horizon(), 0, asked)
    assert said[-1]
    assert len(said) < len(names)


def test_a_broken_contract_needs_no_further_look(tmp_path: Path) -> None:
    """Two requests after an effect too many the verdict is certain, whatever the files say."""
    known = Known(tmp_path, "abcdef")

    def twice(effects: Sequence[Effect]) -> bool:
        return max(Counter(effects).values()) > 1

    horizon = known.horizon(twice)
    asked = [("c", 9), ("d", 9), ("e", 9), ("f", 9)]
    assert watched(known, horizon, 3, asked) == [False, False, True]
    assert horizon.cut is not None
    assert known.run.events[horizon.cut].body == request(5, "e")


# The rest.


@given(st.data())
def test_what_was_seen_and_the_rest_have_each_effect_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Wherever the kill was and the resume was left: every effect once, every number once, all of
    it done by that attempt; a database's rows too, of which some had been booked at the kill, at
    another time of day than in the undisturbed run.
    """
    names = [f"n{number}" for number in range(data.draw(st.integers(3, 7)))]
    rows = [f"r{number}" for number in range(data.draw(st.integers(0, 4)))]
    known = Known(tmp_path_factory.mktemp("reading"), names, rows)
    killed_at = data.draw(st.integers(0, len(names) - 3))
    applied = data.draw(st.booleans())  # and what was under way is asked for again, and known
    booked = data.draw(st.integers(0, len(rows)))
    horizon = known.horizon()
    bodies: list[Body] = [AttemptStarted(1, resume=False)]
    for number, who in enumerate(names[:killed_at], 1):
        bodies += served(number, who)
    number = killed_at + 1
    under_way = list(served(number, names[killed_at]))
    bodies += under_way[: 2 if applied else 1]
    bodies += [EffectApplied(attempt=1, effect=row_at(2, r)) for r in rows[:booked]]
    bodies += [FaultLanded(1, "kill"), ended(1, "killed"), AttemptStarted(2, resume=True)]
    for place, who in enumerate(names[killed_at:]):
        number += 1
        mine = request(number, who, 2)
        bodies.append(mine)
        tree = known.tree(killed_at + place)
        if horizon.looks(mine, numbered(bodies), lambda tree=tree: tree):  # type: ignore[misc]
            break
        again = applied and place == 0
        bodies += list(served(number, who, 2, again=again))[1:]
    assert horizon.cut is not None
    tail = rest(known.run, horizon.cut, numbered(bodies), 2)
    whole = History(numbered([*bodies, *tail]))
    happened = Counter(whom(body.effect) for _, body in whole.effects)
    assert happened == Counter((*names, *rows))
    numbers = [body.request for _, body in whole.requests]
    assert len(set(numbers)) == len(numbers)
    assert {body.request for _, body in whole.effects} - {None} <= set(numbers)
    assert whole.replies.keys() <= set(numbers)
    assert {getattr(body, "attempt", 2) for body in tail} == {2}
    assert whole.last.attempt == 2
    assert whole.completed
    assert whole.digests == {"out": "digest"}
    assert isinstance(tail[0], ResumeBounded)


# Followed past the horizon.


def followed(known: Known, names: Sequence[str], asked: Sequence[str]) -> tuple[Horizon, History]:
    """A resume from the start that could be broken off at its second request, and went on.

    Args:
        known: the undisturbed run.
        names: what that asks for.
        asked: what the resume asks for.
    """
    horizon = known.horizon()
    bodies: list[Body] = [AttemptStarted(1, resume=False), ended(1, "killed")]
    bodies.append(AttemptStarted(2, resume=True))
    for number, who in enumerate(asked, 1):
        mine = request(number, who, 2)
        bodies.append(mine)
        tree = known.tree(number - 1)
        if horizon.cut is None and horizon.looks(mine, numbered(bodies), lambda tree=tree: tree):  # type: ignore[misc]
            bodies.append(ResumeBounded(2, followed=True))
        bodies += list(served(number, who, 2))[1:]
    assert list(asked[:2]) == list(names[:2])
    return horizon, History(numbered([*bodies, ended(2), StateObserved({"out": "digest"})]))


@given(st.lists(st.sampled_from("abcdef"), min_size=3, max_size=7, unique=True), st.data())
def test_a_resume_that_goes_on_in_any_other_way_is_told_from_one_that_does_not(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject
) -> None:
    """Requests more, fewer, others or in another order after the horizon are another way; the same
    ones are not, and make the same history but for the note.
    """
    known = Known(tmp_path_factory.mktemp("reading"), names)
    others = st.lists(st.sampled_from("abcdefg"), max_size=len(names))
    later = data.draw(st.just(names[2:]) | others | st.permutations(names[2:]))
    horizon, history = followed(known, names, [*names[:2], *later])
    assert horizon.cut is not None
    (at,) = (index for index, _ in history.of(ResumeBounded))
    bounded = as_if_bounded(known.run, horizon.cut, history.events, at)
    alike = goes_on_alike(known.run, bounded, history, at)
    assert alike == (later == names[2:])
    if alike:
        kinds = [[type(e.body) for e in h.events] for h in (bounded, history)]
        assert kinds[0] == kinds[1]
        assert done(bounded) == done(history)


@pytest.mark.parametrize(
    "last",
    [
        AttemptEnded(attempt=2, how="exit", code=1, seconds=0.0),
        AttemptEnded(attempt=2, how="timeout", code=0, seconds=0.0),
        EffectApplied(attempt=2, effect=effect("books.row", "r")),
    ],
    ids=str,
)
def test_another_end_and_another_row_are_another_way(tmp_path: Path, last: Body) -> None:
    """An exit code, no end at all, and what a database says when all is over."""
    known = Known(tmp_path, "abcd")
    horizon, history = followed(known, "abcd", "abcd")
    assert horizon.cut is not None
    (at,) = (index for index, _ in history.of(ResumeBounded))
    bodies = [event.body for event in history.events]
    bounded = as_if_bounded(known.run, horizon.cut, history.events, at)
    assert goes_on_alike(known.run, bounded, history, at)
    place = next(i for i, b in enumerate(bodies) if isinstance(b, AttemptEnded) and b.attempt == 2)
    changed = [*bodies[:place], last, *bodies[place + isinstance(last, AttemptEnded) :]]
    assert not goes_on_alike(known.run, bounded, History(numbered(changed)), at)


# Real resumes.

SHOP = """
import json
import os
import sqlite3
import sys

sys.path.insert(0, {folder!r})
import _shop as shop

from chaoskit import Scenario, probe

STEPS = 6


def main(keyed):
    services, books, checkpoint = shop.Shop(), shop.database(), shop.Checkpoint()
    for number in range(checkpoint.values.get("done", 0), STEPS):
        buyer = {{"cents": 100 + number, "email": "a@example.com", "name": "A"}}
        key = f"k{{number}}"
        probe.step(f"step-{{number}}", "started")
        services.charge(buyer, key=key if keyed else None)
        services.send("a@example.com", f"mail {{number}}", "thanks", key=key)
        with books:
            books.execute("INSERT OR IGNORE INTO sales VALUES (?)", (number,))
        checkpoint.save(done=number + 1)
        probe.step(f"step-{{number}}", "recorded")
    (shop.STATE / "out.txt").write_text("all of them")


def of(keyed):
    return Scenario(
        task=lambda: main(keyed),
        services=("payments", "email", "database"),
        tables="CREATE TABLE sales (number INTEGER PRIMARY KEY);",
        outputs=("out.txt",),
    )


sound, broken = of(True), of(False)
"""


def done(history: History) -> Counter[object]:
    """Every effect with its attempt; the id that a service gave it counts from a repeat on."""
    return Counter(
        (body.attempt, body.effect.operation, body.effect.fields, body.effect.key)
        for _, body in history.effects
    )


@pytest.mark.parametrize("name", ["sound", "broken"])
def test_a_bounded_resume_tells_what_the_full_one_does(
    tmp_path: Path, root: Path, name: str
) -> None:
    """At every window: the same effects by the same attempts, outputs, end and judgement, where it
    is broken off at once and where it is only noted that it could be.
    """
    file = tmp_path / "shop.py"
    text = textwrap.dedent(SHOP).format(folder=str(root / "scenarios"))
    file.write_text(text, encoding="utf-8")
    target = Target(scenario=f"{file}:{name}")
    cut: set[Schedule] = set()

    async def then(supervisor: Supervisor) -> None:
        supervisor.tracing = False
        first, second = await supervisor.survey()
        expectation = expect(first, second, load(target).scenario)
        run = Undisturbed(supervisor.world.reader)
        faults = [kill(point) for point in sweep((first, second), ("windows",))[0]]
        album = await supervisor.record(faults, learn=run)
        for fault in faults:
            schedule = Schedule(((fault,),))
            snapshot = album[fault]

            def horizon() -> Horizon:
                return Horizon(run, lambda effects: breaks_the_contract(effects, expectation))

            full = await supervisor.resume(snapshot, schedule)
            bounded = await supervisor.resume(snapshot, schedule, horizon())
            watch = horizon()
            watch.how = "noted"
            noted = await supervisor.resume(snapshot, schedule, watch)
            for other in (bounded, noted):
                assert done(other) == done(full), schedule
                assert other.digests == full.digests
                assert other.completed == full.completed
                assert judge(other, expectation, schedule) == judge(full, expectation, schedule)
            marks = [[b.followed for _, b in h.of(ResumeBounded)] for h in (full, bounded, noted)]
            assert marks in ([[], [], []], [[], [False], [True]])
            if marks[1]:
                cut.add(schedule)
                ends = [next(i for i, _ in h.of(ResumeBounded)) for h in (bounded, noted)]
                assert ends[0] == ends[1], "it is noted where it is broken off"
        verdicts = {judge(first, expectation, Schedule()).verdict}
        assert verdicts == {"VALID"}
        assert len(cut) > len(faults) / 2

    with_supervisor(target, then)
