"""Tasks that are killed at every crossing of the runtime and resumed; the world's book decides."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chaoskit import probe
from chaoskit.runtime import Effect, Order, OutcomeUnknown, Run, open_run, settle
from tests.marks import rare

VICTIM = Path(__file__).with_name("victim.py")
LETTERS = [f"letter/{index}" for index in range(3)]
NEVER = 1_000_000
ONCE = dict.fromkeys(LETTERS, 1)


def attempt(task: str, folder: Path, crossing: int) -> tuple[int, str]:
    """One life of the task: its exit code and the last crossing that it passed."""
    ended = subprocess.run(
        [sys.executable, VICTIM, task, folder, str(crossing)], capture_output=True, text=True
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    passed = lines(folder / "trace.jsonl")
    return ended.returncode, str(passed[-1]) if passed else ""


def lines(file: Path) -> list[object]:
    """The values of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def sweep(task: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """Kill the task at its first crossing, its second, … until one life ends unkilled.

    Gives, for each kill that landed, the folder and the crossing.
    """
    for crossing in range(NEVER):
        here = folder / str(crossing)
        here.mkdir()
        code, last = attempt(task, here, crossing)
        if code == 0:
            assert crossing >= 3 * len(LETTERS), "hardly a crossing was passed"
            return
        assert code == -signal.SIGKILL
        yield here, last


def sent(folder: Path) -> Counter[str]:
    """How often each letter was sent."""
    book = lines(folder / "post.jsonl")
    return Counter(line["letter"] for line in book if isinstance(line, dict) and line["sent"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["keyed", "looked_up", rare("gathered_keyed"), rare("gathered_looked_up")]
)
def test_what_can_be_told_apart_happens_once(task: str, tmp_path: Path) -> None:
    """With a key or a look-up, a kill at any crossing leaves each letter sent exactly once."""
    for folder, crossing in sweep(task, tmp_path):
        assert attempt(task, folder, NEVER)[0] == 0, crossing
        assert sent(folder) == ONCE, crossing
        if "looked_up" in task:
            assert len(lines(folder / "post.jsonl")) == len(LETTERS), crossing


@pytest.mark.slow
def test_what_cannot_be_told_apart_stops_until_it_is_settled(tmp_path: Path) -> None:
    """Without key and look-up, a kill between intent and completion ends in a named doubt.

    Nothing is sent until a person has looked at the book; then each letter is sent exactly once.
    """
    doubts = []
    for folder, crossing in sweep("bare", tmp_path):
        step, _, moment = crossing.rpartition(".")
        before = sent(folder)
        code, _ = attempt("bare", folder, NEVER)
        if moment in {"intent", "effect"}:
            doubts.append(crossing)
            assert code == OutcomeUnknown.exit_code, crossing
            assert sent(folder) == before, crossing
            happened = before[step] == 1
            settle(folder / "run.db", "default", step, happened, step if happened else None)
            code, _ = attempt("bare", folder, NEVER)
        assert code == 0, crossing
        assert sent(folder) == ONCE, crossing
    assert doubts == [f"{step}.{moment}" for step in LETTERS for moment in ("intent", "effect")]


@pytest.mark.slow
def test_record_after_repeats_exactly_the_unrecorded_step(tmp_path: Path) -> None:
    """Only a kill between a call and its record sends a letter again, and only that letter."""
    for folder, crossing in sweep("recorded_after", tmp_path):
        assert attempt("recorded_after", folder, NEVER)[0] == 0, crossing
        step, _, moment = crossing.rpartition(".")
        assert sent(folder) == ONCE | ({step: 2} if moment == "effect" else {}), crossing


@pytest.mark.slow
def test_a_phase_repeats_only_what_a_key_makes_harmless(tmp_path: Path) -> None:
    """A kill anywhere in a phase leaves each letter sent once, however often it was asked for."""
    repeated = 0
    for folder, crossing in sweep("phased", tmp_path):
        assert attempt("phased", folder, NEVER)[0] == 0, crossing
        assert sent(folder) == ONCE, crossing
        repeated += len(lines(folder / "post.jsonl")) - len(LETTERS)
    assert repeated, "nothing was held back"


@pytest.mark.slow
def test_taking_back_survives_a_kill_at_any_crossing(tmp_path: Path) -> None:
    """Each letter that was sent is called back once, the last one first; none is sent after it."""
    for folder, crossing in sweep("taken_back", tmp_path):
        assert attempt("taken_back", folder, NEVER)[0] == 0, crossing
        book = lines(folder / "post.jsonl")
        names = [line["letter"] for line in book if isinstance(line, dict) and line["sent"]]
        assert names == LETTERS + [f"undo/{letter}" for letter in reversed(LETTERS)], crossing


@pytest.mark.slow
def test_atomic_rows_are_written_once(tmp_path: Path) -> None:
    """A kill at any crossing leaves each row once, and at the end neither marker nor its table."""
    for folder, crossing in sweep("atomic", tmp_path):
        assert attempt("atomic", folder, NEVER)[0] == 0, crossing
        with closing(sqlite3.connect(folder / "rows.db")) as rows:
            assert rows.execute("SELECT text FROM row ORDER BY text").fetchall() == [
                (letter,) for letter in LETTERS
            ], crossing
            assert rows.execute("SELECT name FROM sqlite_master").fetchall() == [("row",)], crossing


@pytest.mark.slow
def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    """A further life of a run that is finished sends nothing and passes no crossing."""
    assert attempt("keyed", tmp_path, NEVER) == (0, "run.finished")
    book, trace = lines(tmp_path / "post.jsonl"), lines(tmp_path / "trace.jsonl")
    assert attempt("keyed", tmp_path, NEVER) == (0, "run.finished")
    assert (lines(tmp_path / "post.jsonl"), lines(tmp_path / "trace.jsonl")) == (book, trace)


class Killed(BaseException):
    """Ends an attempt of the model below at a crossing; nothing is written after it."""


KINDS = ["keyed", "looked_up", "bare", "recorded_after"]


class World:
    """A service that counts, and how each kind of step uses it."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.effects: dict[str, int] = {}

    def take(self, run: Run, name: str, kind: str) -> int:
        """Take one step of this kind; its result is how many effects its key has had."""
        if kind == "recorded_after":
            return run.step(name, self._request, order=Order.RECORD_AFTER, crashes_max=MOST)
        look_up = (lambda effect: self.effects.get(effect.key)) if kind == "looked_up" else None
        call = self._dedupe if kind == "keyed" else self._request
        keyed = kind == "keyed"
        return run.step(name, call, inputs=kind, keyed=keyed, look_up=look_up, crashes_max=MOST)

    def _request(self, effect: Effect) -> int:
        self.requests[effect.step] += 1
        self.effects[effect.key] = self.effects.get(effect.key, 0) + 1
        return self.effects[effect.key]

    def _dedupe(self, effect: Effect) -> int:
        return self.effects.get(effect.key) or self._request(effect)


MOST = 100
"""No step is poisoned, however often it is met."""


@settings(deadline=None)
@example(kinds=["keyed"], kills=[1] * 6)
@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=4),
    kills=st.lists(st.integers(0, 12), max_size=MOST - 1),
)
def test_any_schedule_of_kills_ends_as_the_table_says(
    kinds: list[str], kills: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However often and wherever it is killed, a run ends with each effect as its kind promises.

    A person settles what is in doubt by the truth. Then everything happened exactly once, but for
    steps recorded after: those at least once, once more per kill that fell on their crossing.
    """
    store = tmp_path_factory.mktemp("schedule") / "run.db"
    world = World()
    unrecorded: Counter[str] = Counter()
    schedule = iter(kills)
    original = probe.point
    try:
        while not _live(store, kinds, world, next(schedule, NEVER), unrecorded):
            pass
    finally:
        probe.point = original
    assert world.requests == Counter(
        {f"{kind}/{index}": 1 + unrecorded[f"{kind}/{index}"] for index, kind in enumerate(kinds)}
    )


def _live(
    store: Path, kinds: list[str], world: World, crossing: int, unrecorded: Counter[str]
) -> bool:
    """One attempt, killed at its ``crossing``-th crossing; whether the run is finished."""
    passed = iter(range(NEVER))

    def point(name: str) -> None:
        if next(passed) == crossing:
            if name.startswith("recorded_after/") and name.endswith(".effect"):
                unrecorded[name.removesuffix(".effect")] += 1
            raise Killed(name)

    probe.point = point
    try:
        with open_run(store, inputs=kinds, durability="normal") as run:
            for index, kind in enumerate(kinds):
                if not run.finished:
                    world.take(run, f"{kind}/{index}", kind)
            if not run.finished:
                run.finish(len(kinds))
            return bool(run.result == len(kinds))
    except OutcomeUnknown as unknown:
        happened = world.requests[unknown.step] == 1
        settle(store, "default", unknown.step, happened, 1 if happened else None)
    except Killed:
        pass
    return False
