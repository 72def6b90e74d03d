"""One owner: taken over only with proof of death, and whoever was replaced can change nothing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaoskit.runtime import Effect, Owned, Run, StaleOwner, open_run, operating, owner, settle
from chaoskit.runtime.books import open_books
from chaoskit.runtime.owner import Life, Owner, judge, parse_owner, this_process
from chaoskit.runtime.owning import new_owner
from tests.runtime.servers import change

HOLDER = """
import sys
from chaoskit.runtime import open_run
run = open_run(sys.argv[1], inputs=None)
run.step("first", lambda effect: effect.token)
print("open", flush=True)
for line in sys.stdin:
    try:
        run.step(line.strip(), lambda effect: 1)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    else:
        print("done", flush=True)
"""
"""A process that has the run open, and takes a step for each line that it reads."""

Told = list[tuple[str, ...]]


@contextmanager
def holder(store: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the run open until it is ended."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


def recorded_owner(store: Path) -> Owner:
    """Who has the run, as the store says."""
    text = operating.view(store, "default").run.owner
    assert text is not None
    return parse_owner(text)


def pretend(store: Path, **changes: object) -> None:
    """Leave the run behind as if a process that differs from this one had it."""
    open_run(store, inputs=None).close()
    text = this_process(1_000_000.0)._replace(**changes).text()  # type: ignore[arg-type]
    change(store, "UPDATE runs SET owner = ?", text)


def test_a_live_owner_is_named_and_left_alone(store: Path, told: Told) -> None:
    """While its process lives nobody else gets the run; host, pid and time are in the message."""
    with holder(store) as process:
        found = recorded_owner(store)
        assert (found.pid, found.host) == (process.pid, os.uname().nodename)
        with pytest.raises(Owned, match=f"belongs to process {process.pid} on host") as caught:
            open_run(store, inputs=None)
        assert str(found) in str(caught.value)
        assert told[-1] == ("refused", str(caught.value))
        with pytest.raises(Owned, match="it is running"):
            settle(store, "default", "first", happened=True)


def test_a_stopped_owner_is_alive(store: Path) -> None:
    """A process that is only stopped will go on some day, however long it takes: no take-over."""
    with holder(store) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(Owned, match="it is running"):
            open_run(store, inputs=None)


@pytest.mark.parametrize("reaped", [False, True], ids=["zombie", "gone"])
def test_a_killed_owner_is_replaced_at_once(store: Path, *, reaped: bool) -> None:
    """A kill is proof enough, also while nobody has asked for the dead process's end."""
    with holder(store) as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        if reaped:
            process.wait()
        with open_run(store, inputs=None) as run:
            assert run.token == 2
            assert run.step("first", lambda _: pytest.fail("called again")) == 1


@pytest.mark.parametrize(
    ("changes", "life", "why"),
    [
        ({}, Life.ALIVE, "running"),
        ({"started": "1"}, Life.DEAD, "pid belongs to a process that started at another time"),
        ({"boot": "another"}, Life.DEAD, "booted since"),
        ({"pid": 2**22 + 1}, Life.DEAD, "gone"),
        ({"space": "pid:[1]"}, Life.UNKNOWN, "another pid namespace"),
        ({"host": "elsewhere"}, Life.UNKNOWN, "another host"),
        ({"host": "elsewhere", "boot": "another"}, Life.UNKNOWN, "another host"),
        ({"boot": "another", "space": "pid:[1]"}, Life.DEAD, "booted since"),
    ],
)
def test_only_proof_of_death_counts(changes: dict[str, Any], life: Life, why: str) -> None:
    """Each sign is judged by itself; what cannot be seen from here is not taken for dead."""
    found = judge(this_process(0)._replace(**changes))
    assert found.life is life
    assert why in found.why


def test_age_proves_nothing() -> None:
    """An owner since the beginning of time is as alive as one of a moment ago."""
    assert judge(this_process(0)).life is Life.ALIVE


@pytest.mark.parametrize("changes", [{"started": "1"}, {"boot": "b"}, {"pid": 2**22 + 1}])
def test_the_dead_are_replaced_with_the_next_token(store: Path, changes: dict[str, Any]) -> None:
    """A reused pid, a reboot, a process that is gone: the run is taken over, the token grows."""
    pretend(store, **changes)
    with open_run(store, inputs=None) as run:
        assert run.token == 2


@pytest.mark.parametrize("changes", [{"host": "elsewhere"}, {"space": "pid:[1]"}])
def test_where_nobody_can_tell_a_person_must(store: Path, changes: dict[str, Any]) -> None:
    """Another host or namespace is refused with the command to type, and that command helps."""
    pretend(store, **changes)
    wanted = f"chaoskit runs release {store} default --owner-is-dead"
    with pytest.raises(Owned, match="whether it lives cannot be told from here") as caught:
        open_run(store, inputs=None)
    assert wanted in str(caught.value)
    operating.release(store, "default")
    with open_run(store, inputs=None) as run:
        assert run.token == 3


def test_a_run_that_is_open_here_is_not_opened_twice(store: Path) -> None:
    """Within one process the second opening is refused, and a dropped one is no owner."""
    run: Run | None = open_run(store, inputs=None)
    with pytest.raises(Owned, match="open in this very process"):
        open_run(store, inputs=None)
    run = None  # noqa: F841 - dropped without closing it
    with open_run(store, inputs=None) as again:
        assert again.token == 2


def test_closing_gives_the_run_back(store: Path) -> None:
    """After close there is no owner, and each opening has the next token."""
    for token in (1, 2, 3):
        with open_run(store, inputs=None) as run:
            assert run.token == token
            assert run.step("first", lambda effect: effect.token) == 1
    assert operating.view(store, "default").run.owner is None


def _writes(run: Run, rows: sqlite3.Connection) -> dict[str, Callable[[], object]]:
    def insert(cursor: sqlite3.Cursor) -> None:
        cursor.execute("INSERT INTO row VALUES ('late')")

    return {
        "intent": lambda: run.step("late", lambda _: 1),
        "record after": lambda: run.step("late", lambda _: 1, read_only=True),
        "restore": lambda: run.step("before", lambda _: 1),
        "atomic": lambda: run.atomic_step("late", rows, insert),
        "pin": lambda: run.pin("late", lambda: 1),
        "phase": lambda: run.phase("late").__enter__(),
        "compensate": run.compensate,
        "finish": lambda: run.finish("late"),
    }


@pytest.mark.parametrize(
    "write",
    ["intent", "record after", "restore", "atomic", "pin", "phase", "compensate", "finish"],
)
def test_a_replaced_owner_can_write_nothing(store: Path, tmp_path: Path, write: str) -> None:
    """Whatever a process that was taken for dead still tries is refused, and the store stays."""
    with closing(sqlite3.connect(tmp_path / "rows.db")) as rows:
        rows.execute("CREATE TABLE row (text)")
        with open_run(store, inputs=None) as run:
            run.step("before", lambda _: 1)
        with open_run(store, inputs=None, ordered=False) as run:
            operating.release(store, "default")
            before = operating.view(store, "default")
            with pytest.raises(StaleOwner, match="has the token 2, the run has 3"):
                _writes(run, rows)[write]()
            assert operating.view(store, "default") == before
        assert rows.execute("SELECT * FROM row").fetchall() == []
    assert operating.view(store, "default").run.token == 3


def test_a_completion_of_a_replaced_owner_is_refused(store: Path) -> None:
    """An owner that wakes up after its call finds its record taken, and changes nothing."""
    with open_run(store, inputs=None) as run:

        def meanwhile(effect: Effect) -> int:
            operating.release(store, "default")
            return effect.token

        with pytest.raises(StaleOwner):
            run.step("pay", meanwhile)
    (step,) = operating.view(store, "default").steps
    assert step.state.value == "begun"


def test_a_stopped_owner_wakes_up_to_a_refusal(store: Path) -> None:
    """Stopped, declared dead by a person, replaced, woken: its next record is refused."""
    with holder(store) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.send_signal(signal.SIGSTOP)
        operating.release(store, "default")
        with open_run(store, inputs=None) as run:
            run.step("first", lambda _: 1)
            process.send_signal(signal.SIGCONT)
            process.stdin.write("late\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith("StaleOwner run 'default' has been taken")
            assert run.step("late", lambda _: 2) == 2


def test_a_fork_of_the_owner_is_not_the_owner(store: Path, tmp_path: Path) -> None:
    """A child process gets a clear refusal, and the parent's run is as it was."""
    with open_run(store, inputs=None) as run:
        run.step("before", lambda _: 1)
        child = os.fork()
        if child == 0:
            try:
                run.step("in the child".replace(" ", "-"), lambda _: 1)
            except Owned as error:
                (tmp_path / "said").write_text(str(error))
                run.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert "is a fork of process" in (tmp_path / "said").read_text()
        assert run.step("after", lambda effect: effect.token) == 1
    assert [s.name for s in operating.view(store, "default").steps] == ["before", "after"]


def test_a_run_that_finished_while_it_was_looked_at_is_not_taken(store: Path) -> None:
    """A resumer that had read the run before its owner finished and ended does not begin anew."""
    with open_run(store, inputs=None) as run:
        run.step("pay", lambda _: 1)
        with closing(open_books(store)) as books:
            seen = books.find_run("default")
            assert seen is not None
            run.finish("paid")
            assert books.take(seen, new_owner()) is None
    with open_run(store, inputs=None) as again:
        assert (again.finished, again.result) == (True, "paid")


def test_k_openers_at_once_have_one_winner(store: Path) -> None:
    """Of several processes that resume together one gets the run, and the others its name."""
    open_run(store, inputs=None).close()
    code = (
        "import sys\nfrom chaoskit.runtime import open_run, Owned\nsys.stdin.readline()\n"
        "try:\n    run = open_run(sys.argv[1], inputs=None)\nexcept Owned:\n"
        "    print('refused', flush=True)\nelse:\n    print('open', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, store],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.stdout.readline().strip() for process in started if process.stdout]
    for process in started:
        process.communicate("\n")
    assert sorted(said) == ["open", "refused", "refused", "refused"]


def test_where_there_is_no_proc_ps_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc a process is found by ps, told from a later one, and missed when gone."""
    monkeypatch.setattr(owner, "_PROC", Path("/nowhere"))
    me = this_process(0)
    assert me.boot == me.space == ""
    assert judge(me).life is Life.ALIVE
    assert judge(me._replace(started="Thu Jan 1 00:00:00 1970")).life is Life.DEAD
    assert judge(me._replace(pid=2**22 + 1)).life is Life.DEAD


def test_without_proc_and_ps_an_owner_counts_as_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can be asked nothing is taken over."""

    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(owner, "_PROC", Path("/nowhere"))
    monkeypatch.setattr(subprocess, "run", missing)
    assert judge(this_process(0)).life is Life.ALIVE


def test_an_owner_survives_its_text() -> None:
    """What the store holds of an owner is that owner."""
    me = this_process(12.5)
    assert parse_owner(me.text()) == me
    assert me.is_same_process(me._replace(since=99))
    assert json.loads(me.text())["pid"] == os.getpid()
