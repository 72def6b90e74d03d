"""Trials of a task on the PostgreSQL service: kills on both sides of a COMMIT, real servers."""

from __future__ import annotations

from collections import Counter

import pytest

from chaoskit.model.events import EffectApplied, FaultLanded, ReplySent, RequestReceived
from chaoskit.model.history import History
from tests.fake_services.postgres_running import needs_postgres
from tests.trial.conftest import RunTask

pytestmark = needs_postgres

TASK = """
import os
import psycopg
from chaoskit import Scenario

def main():
    with psycopg.connect(os.environ["CHAOSKIT_DATABASE_URL"]) as client:
        for number in range(3):
            done = client.execute("SELECT 1 FROM sent WHERE number = %s", (number,)).fetchone()
            if {careful} and done:
                client.rollback()
                continue
            client.execute("INSERT INTO sent (number, part) VALUES (%s, 'a')", (number,))
            client.execute("INSERT INTO sent (number, part) VALUES (%s, 'b')", (number,))
            client.commit()

scenario = Scenario(
    task=main,
    services=("postgres",),
    tables="CREATE TABLE sent (id serial PRIMARY KEY, number int, part text)",
)
"""


def task(*, careful: bool) -> str:
    """Three transactions of two rows each; a careful one looks whether they are there."""
    return TASK.format(careful=careful)


def told(history: History) -> list[str]:
    """What happened, in order."""
    said: list[str] = []
    for event in history.events:
        match event.body:
            case RequestReceived() as body:
                said.append(f"asked {body.request} for {body.service}.{body.operation}")
            case EffectApplied() as body:
                said.append(f"done {body.request} of {body.attempt}")
            case ReplySent() as body:
                said.append(f"answered {body.request}")
            case FaultLanded():
                said.append("killed")
            case _:
                pass
    return said


@pytest.mark.parametrize("careful", [True, False])
def test_a_kill_at_a_commit_lands_on_the_side_of_it_that_was_asked_for(
    run_task: RunTask, *, careful: bool
) -> None:
    """Received: the transaction is gone. Applied and answered: it is there, and a task that does
    not look does it again. Each transaction is there as a whole.
    """
    windows = ["received", "applied", "answered"]
    schedules = [f"kill@postgres.commit#2.{window}" for window in windows]
    histories = run_task(task(careful=careful), ["none", *schedules])
    expected = [
        line
        for n in (1, 2, 3)
        for line in (f"asked {n} for postgres.commit", *[f"done {n} of 1"] * 2, f"answered {n}")
    ]
    assert told(histories[0]) == expected
    second = expected.index("asked 2 for postgres.commit")
    for history, kept in zip(histories[1:], (1, 3, 4), strict=True):
        assert history.completed
        assert len(history.landed) == 1
        before = [*expected[: second + kept], "killed"]
        assert told(history)[: len(before)] == before
        rows = Counter(dict(effect.effect.fields)["number"] for _, effect in history.effects)
        first = 2 if careful else 4
        assert rows == {"0": first, "1": 2 if careful or kept == 1 else 4, "2": 2}


def test_a_kill_at_any_moment_leaves_no_half_transaction(run_task: RunTask) -> None:
    """At a time, not at a window: the effects booked come in whole pairs."""
    schedules = [f"kill@{delay}ms" for delay in (40, 60, 80, 100, 120, 150)]
    for history in run_task(task(careful=True), schedules):
        assert history.completed
        found = Counter(tuple(sorted(dict(e.effect.fields).items())) for _, e in history.effects)
        assert set(found.values()) == {1}
        assert len(found) == 6
