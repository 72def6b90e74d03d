"""Pins: what a step depends on is looked at again at resume, before it, and only then."""

# ruff: noqa: PT012 - what is stopped is an attempt, and that is several statements

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn

import pytest

from chaoskit.runtime import (
    Effect,
    Misuse,
    Replanned,
    Run,
    StaleWorld,
    UnstorableResult,
    file_digest,
    http_etag,
    open_run,
    operating,
    run_main,
    settle,
    sqlite_row,
)
from tests.runtime.calls import Stopped, never, stop

Told = list[tuple[str, ...]]


def _insert(cursor: sqlite3.Cursor) -> None:
    cursor.execute("INSERT INTO row VALUES ('x')")


class World:
    """Something that changes, and how often it was looked at."""

    def __init__(self, value: object) -> None:
        self.value = value
        self.looks = 0

    def __call__(self) -> object:
        """Look at it."""
        self.looks += 1
        return self.value


def test_a_change_is_refused_with_both_values(store: Path, told: Told) -> None:
    """Pin, step, recorded and found stand in the message, and nothing is called, each time."""
    price = World({"eur": 100})
    with open_run(store, inputs=None) as run:
        run.pin("price", price)
        run.step("approve", lambda _: "yes")
    price.value = {"eur": 130}
    for _ in range(2):
        with open_run(store, inputs=None) as run:
            run.pin("price", price)
            run.step("approve", never)
            with pytest.raises(StaleWorld) as caught:
                run.step("pay", never, needs=("price",))
        for part in ("'price'", "step 'pay'", 'recorded {"eur":100}', 'found {"eur":130}'):
            assert part in str(caught.value)
        assert told[-1] == ("refused", str(caught.value))
    price.value = {"eur": 100}
    with open_run(store, inputs=None) as run:
        run.pin("price", price)
        run.step("approve", never)
        assert run.step("pay", lambda _: "paid", needs=("price",)) == "paid"


def test_nothing_is_looked_at_without_need(store: Path) -> None:
    """Not in the attempt that recorded it, not for steps that are done, and once in each other."""
    world = World(1)
    with open_run(store, inputs=None) as run:
        run.pin("w", world)
        run.step("a", lambda _: 1, needs=("w",))
        run.step("b", lambda _: 1, needs=("w",))
    assert world.looks == 1
    with open_run(store, inputs=None) as run:
        run.pin("w", world)
        run.step("a", never, needs=("w",))
        run.step("b", never, needs=("w",))
        assert world.looks == 1
        run.step("c", lambda _: 1)
        assert world.looks == 1
        run.step("d", lambda _: 1, needs=("w",))
        run.step("e", lambda _: 1, needs=("w",))
    assert world.looks == 2


def test_what_happened_is_not_asked_after_its_needs(store: Path) -> None:
    """A look-up that finds the step stands, whatever has become of the world since."""
    world = World(1)
    with open_run(store, inputs=None) as run, pytest.raises(Stopped):
        run.pin("w", world)
        run.step("a", stop, needs=("w",), look_up=never)
    world.value = 2
    with open_run(store, inputs=None) as run:
        run.pin("w", world)
        assert run.step("a", never, needs=("w",), look_up=lambda _: "found") == "found"


def test_a_step_that_changes_the_thing_pins_it_anew(store: Path) -> None:
    """What it made of it is recorded with its completion, and is what later steps are held to."""
    world = World(1)

    def change(_: Effect) -> str:
        world.value = 2
        return "changed"

    with open_run(store, inputs=None) as run:
        run.pin("w", world)
        run.step("a", change, needs=("w",), changes=("w",))
    with open_run(store, inputs=None) as run:
        run.pin("w", world)
        run.step("a", never, needs=("w",), changes=("w",))
        run.step("b", lambda _: 1, needs=("w",))
    world.value = 3
    with (
        open_run(store, inputs=None) as run,
        pytest.raises(StaleWorld, match="recorded 2, found 3"),
    ):
        run.pin("w", world)
        run.step("a", never, needs=("w",), changes=("w",))
        run.step("b", never, needs=("w",))
        run.step("c", never, needs=("w",))


@pytest.mark.parametrize("happened", [True, False])
def test_a_step_that_was_stopped_while_it_changed_the_thing(store: Path, *, happened: bool) -> None:
    """Its own half-done change is not taken for somebody else's; its key or look-up decides."""
    world = World(1)

    def change_and_stop(effect: Effect) -> NoReturn:
        world.value = 2 if happened else 1
        raise Stopped(effect.step)

    how: dict[str, Any] = {"needs": ("w",), "changes": ("w",), "keyed": True}
    with open_run(store, inputs=None) as run, pytest.raises(Stopped):
        run.pin("w", world)
        run.step("a", change_and_stop, **how)

    def change(_: Effect) -> None:
        world.value = 2

    with open_run(store, inputs=None) as run:
        run.pin("w", world)
        run.step("a", change, **how)
    with open_run(store, inputs=None) as run:
        run.pin("w", world)
        run.step("a", never, **how)
        run.step("b", lambda _: 1, needs=("w",))


def test_atomic_steps_have_needs_too(store: Path, tmp_path: Path) -> None:
    """A row is not written into a world that has changed."""
    world = World(1)
    with closing(sqlite3.connect(tmp_path / "rows.db")) as rows:
        rows.execute("CREATE TABLE row (text)")
        with open_run(store, inputs=None) as run:
            run.pin("w", world)
        world.value = 2
        with open_run(store, inputs=None) as run, pytest.raises(StaleWorld):
            run.pin("w", world)
            run.atomic_step("a", rows, _insert, needs=("w",))
        assert rows.execute("SELECT * FROM row").fetchall() == []


class Shop:
    """A task that quotes a price, has it approved and pays it; it plans anew when it changes."""

    def __init__(self) -> None:
        self.price = 100
        self.log: list[str] = []
        self.keys: set[str] = set()
        self.again: tuple[str, ...] = ("quote", "approve")
        self.stop_at = ""

    def main(self, store: Path) -> None:
        """One attempt."""
        with open_run(store, inputs=None) as run:
            run.pin("price", lambda: self.price, on_change=self._replan)
            if run.finished:
                return
            price = run.step("quote", lambda _: self.price, read_only=True)
            run.step("approve", self._noted(f"approve {price}"), keyed=True)
            if self.stop_at == "pay":
                raise Stopped
            run.step("pay", self._noted(f"pay {price}"), inputs=price, needs=("price",))
            run.step("thank", self._noted("thank"))
            run.finish(price)

    def _replan(self, recorded: object, found: object) -> tuple[str, ...]:
        self.log.append(f"{recorded} became {found}")
        return self.again

    def _noted(self, text: str) -> Any:
        def call(effect: Effect) -> None:
            assert effect.key not in self.keys
            self.keys.add(effect.key)
            self.log.append(text)

        return call


def test_a_replan_takes_the_named_steps_again(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With new keys, in the same process, and what is paid is what was approved last."""
    shop = Shop()
    shop.stop_at = "pay"
    with pytest.raises(Stopped):
        shop.main(store)
    shop.price, shop.stop_at = 130, ""
    run_main(lambda: shop.main(store))
    assert shop.log == ["approve 100", "100 became 130", "approve 130", "pay 130", "thank"]
    assert "'price' changed, and these steps are to be taken again: quote, approve" in (
        capsys.readouterr().err
    )


def test_a_replan_is_durable_before_it_is_raised(store: Path) -> None:
    """A task that is killed at the re-plan goes on from the new plan."""
    shop = Shop()
    shop.stop_at = "pay"
    with pytest.raises(Stopped):
        shop.main(store)
    shop.price, shop.stop_at = 130, ""
    with pytest.raises(Replanned) as caught:
        shop.main(store)
    assert (caught.value.pin, caught.value.steps) == ("price", ("quote", "approve"))
    shop.main(store)
    assert shop.log[-3:] == ["approve 130", "pay 130", "thank"]


def test_a_replan_never_takes_back_what_cannot_be_taken_back(store: Path) -> None:
    """An irreversible step that is done, or one in doubt, is no part of a re-plan."""
    world = World(1)
    again = ["sent"]

    def attempt(call: Any) -> None:
        with open_run(store, inputs=None) as run:
            run.pin("w", world, on_change=lambda *_: again)
            run.step("read", lambda _: 1, read_only=True)
            run.step("sent", lambda _: 1)
            run.step("maybe", call, keyed=True)
            run.step("next", never, needs=("w",))

    with pytest.raises(Stopped):
        attempt(stop)
    world.value = 2
    with pytest.raises(StaleWorld, match="'sent' again, which is done and cannot be taken back"):
        attempt(lambda _: 1)
    again[:] = ["raed"]
    with pytest.raises(Misuse, match="step 'raed', which is not recorded; recorded: read"):
        attempt(never)
    states = {s.name: s.state.value for s in operating.view(store, "default").steps}
    assert states == {"read": "done", "sent": "done", "maybe": "done"}


def test_a_step_in_doubt_is_no_part_of_a_replan(store: Path) -> None:
    """What may have happened is settled first."""
    world = World(1)

    def attempt(run: Run) -> None:
        run.pin("w", world, on_change=lambda *_: ["maybe"])
        run.step("next", never, needs=("w",))

    with open_run(store, inputs=None, ordered=False) as run, pytest.raises(Stopped):
        run.pin("w", world)
        run.step("maybe", stop, keyed=True)
    world.value = 2
    with (
        open_run(store, inputs=None, ordered=False) as run,
        pytest.raises(StaleWorld, match="may have happened, and is not settled"),
    ):
        attempt(run)
    settle(store, "default", "maybe", happened=True)
    with open_run(store, inputs=None, ordered=False) as run, pytest.raises(Replanned):
        attempt(run)


def test_a_world_that_never_holds_still_ends_refused(store: Path, told: Told) -> None:
    """Planning anew is bounded."""
    looks = iter(range(1000))
    with open_run(store, inputs=None) as run:
        run.pin("w", lambda: next(looks))

    def main() -> None:
        with open_run(store, inputs=None) as run:
            run.pin("w", lambda: next(looks), on_change=lambda *_: [])
            run.step("a", never, needs=("w",))

    with pytest.raises(SystemExit) as caught:
        run_main(main)
    assert caught.value.code == 75
    assert "changed 10 times" in told[-1][1]


def test_an_undeclared_pin_is_an_error(store: Path) -> None:
    """A need that nothing observes is not taken for granted."""
    with open_run(store, inputs=None) as run:
        run.pin("price", lambda: 1)
        with pytest.raises(Misuse, match=r"needs 'prise', which is not pinned.*pinned: price"):
            run.step("a", never, needs=("prise",))
        with pytest.raises(UnstorableResult, match="pin 'odd'"):
            run.pin("odd", lambda: (1, 2))
        with pytest.raises(Misuse, match="a pin's name"):
            run.pin("", lambda: 1)


def test_a_large_value_is_held_by_its_digest(store: Path) -> None:
    """Nothing large is stored, and a change is still noticed."""
    world = World("x" * 5000)
    with open_run(store, inputs=None) as run:
        run.pin("w", world)
    (pin,) = operating.view(store, "default").pins
    assert pin.value is None
    world.value = "x" * 4999
    with open_run(store, inputs=None) as run, pytest.raises(StaleWorld, match="recorded digest"):
        run.pin("w", world)
        run.step("a", never, needs=("w",))


def test_a_file_is_observed_by_its_bytes(tmp_path: Path) -> None:
    """The same bytes are the same, whatever happened to the file; none is something else."""
    path = tmp_path / "file"
    observe = file_digest(path)
    assert observe() is None
    path.write_bytes(b"one")
    first = observe()
    path.unlink()
    path.write_bytes(b"one")
    assert observe() == first
    path.write_bytes(b"two")
    assert observe() not in {first, None}


def test_a_row_is_observed_by_its_values(tmp_path: Path) -> None:
    """The first row of a query, None if there is none; a database is never made."""
    path = tmp_path / "rows.db"
    observe = sqlite_row(path, "SELECT name, price FROM item WHERE id = ?", (7,))
    with pytest.raises(sqlite3.OperationalError):
        observe()
    assert not path.exists()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE item (id, name, price)")
        assert observe() is None
        connection.execute("INSERT INTO item VALUES (7, 'č', 1.5)")
        assert observe() == ["č", 1.5]


class _Tagged(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        status, etag = self.server.answers[self.path]  # type: ignore[attr-defined]
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    """A server whose answers are in ``answers``, by path."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Tagged) as server:
        server.answers = {}  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_resource_is_observed_by_its_etag(server: Any) -> None:
    """Its tag, None when it is gone, and an error where nothing can be told."""
    base = f"http://127.0.0.1:{server.server_port}"
    server.answers.update({"/a?b=1": (200, '"v1"'), "/gone": (404, ""), "/bare": (200, "")})
    server.answers["/down"] = (503, '"v1"')
    assert http_etag(f"{base}/a?b=1")() == '"v1"'
    assert http_etag(f"{base}/gone")() is None
    with pytest.raises(Misuse, match="gives no ETag"):
        http_etag(f"{base}/bare")()
    with pytest.raises(OSError, match="answered 503"):
        http_etag(f"{base}/down")()
    with pytest.raises(Misuse, match="http://"):
        http_etag("ftp://example.com/x")
