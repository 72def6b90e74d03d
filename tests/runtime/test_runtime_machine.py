"""A state machine: anything may happen to a run in any order, and the world's books stay right.

Steps of every policy are taken, raise, are stopped in their body or at any write to the store
(before it or after it), are cancelled, fenced, settled by the truth and taken up again; the model
knows what each service has done and what was promised. At the end the run is finished without
further trouble, and everything happened as often as its policy says.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chaoskit.runtime import (
    Cancelled,
    Effect,
    Order,
    OutcomeUnknown,
    Run,
    StaleOwner,
    open_run,
    operating,
    settle,
)
from chaoskit.runtime.records import State
from chaoskit.runtime.store import SqliteBooks

KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"keyed": True},
    "looked_up": {},
    "bare": {},
    "after": {"order": Order.RECORD_AFTER},
    "read": {"read_only": True},
}
EXACTLY_ONCE = {"keyed", "looked_up", "bare"}
NAMES = [f"{kind}/{n}" for kind in KINDS for n in range(2)]
KEYED = [name for name in NAMES if name.startswith(("keyed", "after", "read"))]
CRASHES_MAX = 10_000

names = st.sampled_from(NAMES)
moments = st.sampled_from(["never", "before", "after"])


class Killed(BaseException):
    """The process ends: nothing is written after it."""


def _end(*, killed: bool) -> None:
    if killed:
        raise Killed


class Failpoint:
    """Ends the process at a write to the store, before or after it was made."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.after = False
        self.dead = False

    def around(self, write: Callable[..., bool]) -> Callable[..., bool]:
        """The store's way to write, with this in it."""

        def wrapped(books: SqliteBooks, sql: str, parameters: Any) -> bool:
            if self.dead:
                raise Killed
            if self.left is None:
                return write(books, sql, parameters)
            self.left -= 1
            if self.left >= 0:
                return write(books, sql, parameters)
            self.dead = True
            if self.after:
                write(books, sql, parameters)
            raise Killed

        return wrapped


class Runs(RuleBasedStateMachine):
    """One run, its services, and what is known to have happened."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.store = self.folder / "run.db"
        self.failpoint = Failpoint()
        self._write = SqliteBooks._write
        SqliteBooks._write = self.failpoint.around(self._write)  # type: ignore[method-assign]
        self.run: Run | None = None
        self.effects: Counter[str] = Counter()
        self.bodies: Counter[str] = Counter()
        self.keys: dict[str, str] = {}
        self.done: dict[str, object] = {}
        self.entered: set[str] = set()
        self.taken: set[str] = set()
        self.cancelled = False
        self.token = 0

    def teardown(self) -> None:
        """Finish the run without further trouble, and look at the books."""
        try:
            self._end()
        finally:
            self.run = None
            SqliteBooks._write = self._write  # type: ignore[method-assign]
            shutil.rmtree(self.folder)

    def _end(self) -> None:
        self.failpoint.left = None
        self._drop()
        if self.cancelled:
            operating.uncancel(self.store, "default")
            self.cancelled = False
        self.open()
        for name in NAMES:
            self._settled(name)
        assert self.run is not None
        self.run.finish("end")
        for name in NAMES:
            kind = name.partition("/")[0]
            assert self.effects[name] == 1 if kind in EXACTLY_ONCE else self.effects[name] >= 1, (
                name
            )
        self._drop()
        with open_run(self.store, inputs=None) as run:
            assert run.result == "end"

    def _settled(self, name: str) -> None:
        """Take a step to its end, asking the person where nothing else can tell."""
        try:
            self._step(name, "well")
        except OutcomeUnknown:
            assert self.run is not None
            happened = self.effects[name] == 1
            self.run.settle(name, happened, name if happened else None)
            self._step(name, "well")

    def _drop(self) -> None:
        """The process ends without closing anything; the system gives its locks back."""
        if self.run is not None:
            assert isinstance(self.run._books, SqliteBooks)
            self.run._tenure = None
            self.run._books._connection.close()
        self.run = None
        self.failpoint.dead = False
        self.failpoint.left = None
        self.taken.clear()

    @initialize()
    def open(self) -> None:
        """A new process takes the run over; its token is greater than any before."""
        try:
            self.run = open_run(self.store, inputs=None, ordered=False, durability="normal")
        except Killed:
            self._drop()
            return
        assert self.run.token > self.token
        self.token = self.run.token
        self.taken.clear()

    @precondition(lambda self: self.run is None)
    @rule()
    def resume(self) -> None:
        """After an end of any kind."""
        self.open()

    @precondition(lambda self: self.run is not None)
    @rule(closed=st.booleans())
    def restart(self, *, closed: bool) -> None:
        """The process ends by itself, or is killed between two steps, and a new one begins."""
        if closed and self.run is not None:
            with suppress(Killed):
                self.run.close()
        self._drop()
        self.open()

    @precondition(lambda self: self.run is not None and self.failpoint.left is None)
    @rule(after=st.integers(0, 4), written=st.booleans())
    def arm(self, after: int, *, written: bool) -> None:
        """The process will end at one of the next writes to the store."""
        self.failpoint.left, self.failpoint.after = after, written

    @precondition(lambda self: self.run is not None)
    @rule(
        name=names, how=st.sampled_from(["well", "raises", "lost answer", "killed", "killed late"])
    )
    def take(self, name: str, how: str) -> None:
        """Take a step; its body may do the thing or not, and come back or not."""
        if name in self.taken:
            return
        cancelled, unknown = self.cancelled, self._must_be_unknown(name)
        try:
            self._step(name, how)
        except Killed:
            self._drop()
        except ConnectionError:
            assert how in {"raises", "lost answer"}
        except Cancelled:
            assert cancelled
            assert name not in self.done
        except OutcomeUnknown:
            assert name.startswith("bare")
            assert name not in self.done
        else:
            assert not unknown
            assert not cancelled or name in self.done

    def _must_be_unknown(self, name: str) -> bool:
        return name.startswith("bare") and name in self.entered and name not in self.done

    def _step(self, name: str, how: str) -> None:
        assert self.run is not None
        kind = name.partition("/")[0]
        look_up = self._find if kind == "looked_up" else None
        result = self.run.step(
            name,
            lambda effect: self._body(effect, how),
            look_up=look_up,
            crashes_max=CRASHES_MAX,
            **KINDS[kind],
        )
        assert result == self.done.get(name, name) == name
        self.done[name] = result
        self.taken.add(name)

    def _find(self, effect: Effect) -> str | None:
        return effect.step if self.effects[effect.step] else None

    def _body(self, effect: Effect, how: str) -> str:
        name = effect.step
        assert name not in self.done, f"{name} was done and is called again"
        assert not self.cancelled, f"{name} begins although the run is cancelled"
        assert self.keys.setdefault(name, effect.key) == effect.key
        assert effect.token == self.token
        self.bodies[name] += 1
        self.entered.add(name)
        if how == "killed":
            raise Killed
        if how == "raises":
            raise ConnectionError
        if not (name.startswith("keyed") and self.effects[name]):
            self.effects[name] += 1
        if how == "killed late":
            raise Killed
        if how == "lost answer":
            raise ConnectionError
        return name

    @precondition(lambda self: self.run is not None and not self.cancelled)
    @rule(
        some=st.lists(st.sampled_from(KEYED), unique=True, max_size=4),
        killed=st.booleans(),
        n=st.integers(0, 999),
    )
    def phase(self, some: list[str], n: int, *, killed: bool) -> None:
        """Take several repeatable steps whose records are held back; killed before they are made.

        What was held back counts as done once the phase has ended, and not before.
        """
        assert self.run is not None
        if f"phase/{n}" in self.taken or self.taken.intersection(some):
            return
        before = dict(self.done)
        try:
            with self.run.phase(f"phase/{n}", effects=3):
                for name in some:
                    self._step(name, "well")
                _end(killed=killed)
        except Killed:
            self._drop()
            self.done = before
        else:
            self.taken.add(f"phase/{n}")

    @precondition(lambda self: self.run is None and self.failpoint.left is None)
    @rule(name=names)
    def settle_by_the_truth(self, name: str) -> None:
        """A person looks into the books of the service and says how it is."""
        if not self._in_doubt(name):
            return
        happened = self.effects[name] > 0
        settle(self.store, "default", name, happened, name if happened else None)
        self.token += 1
        self.entered.discard(name)
        if happened:
            self.done[name] = name

    def _in_doubt(self, name: str) -> bool:
        return any(
            s.name == name and s.in_doubt for s in operating.view(self.store, "default").steps
        )

    @rule()
    def cancel(self) -> None:
        """Somebody cancels the run, or lets it go on."""
        if not self.store.exists() or self.failpoint.left is not None:
            return
        if self.cancelled:
            operating.uncancel(self.store, "default")
        else:
            operating.cancel(self.store, "default", "a while")
        self.cancelled = not self.cancelled

    @precondition(lambda self: self.run is not None and self.failpoint.left is None)
    @rule(name=names)
    def fence(self, name: str) -> None:
        """Somebody takes the run away: the old owner can do nothing any more."""
        assert self.run is not None
        operating.release(self.store, "default")
        self.token += 1
        if name not in self.taken:
            try:
                self._step(name, "well")
            except StaleOwner:
                pass
            else:
                raise AssertionError("a stale owner was not refused")
        self._drop()

    @invariant()
    def nothing_happens_twice(self) -> None:
        """Whatever was done to the run so far."""
        for name, count in self.effects.items():
            kind = name.partition("/")[0]
            assert count <= (1 if kind in EXACTLY_ONCE else self.bodies[name]), name

    @invariant()
    def what_is_done_stays_done(self) -> None:
        """Every step that gave a result, or was settled as done, is recorded as done."""
        if not self.store.exists() or self.failpoint.left is not None:
            return
        found = {s.name: s.state for s in operating.view(self.store, "default").steps}
        for name in self.done:
            assert found[name] is State.DONE, name


TestRuns = pytest.mark.slow(Runs.TestCase)
TestRuns.settings = settings(
    deadline=None, max_examples=40, stateful_step_count=30, print_blob=False
)
