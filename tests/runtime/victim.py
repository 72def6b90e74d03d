"""A task that kills itself at one crossing of the runtime: ``victim.py TASK FOLDER CROSSING``.

It sends three letters to a service whose book is a file of JSON lines, or writes three rows. Every
crossing that it passes is written down; at the one of the given number it is killed by SIGKILL.
The variable STORE has the URL of the store, if it is no file in the folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from chaoskit import probe
from chaoskit.runtime import Compensating, Effect, Order, Run, open_run, run_main

STEPS = 3


class Post:
    """The service: one line per request, ``sent`` where it had an effect."""

    def __init__(self, folder: Path, *, dedupes: bool = False) -> None:
        self._book = folder / "post.jsonl"
        self._dedupes = dedupes

    def find(self, effect: Effect) -> str | None:
        """The letter that was sent under the effect's key."""
        if not self._book.exists():
            return None
        lines = (json.loads(line) for line in self._book.read_text().splitlines())
        return next((line["letter"] for line in lines if line["key"] == effect.key), None)

    def send(self, effect: Effect) -> str:
        """Send the step's letter."""
        sent = not (self._dedupes and self.find(effect))
        _append(self._book, {"letter": effect.step, "key": effect.key, "sent": sent})
        return effect.step

    async def send_later(self, effect: Effect) -> str:
        """Send the step's letter once every other one was given a chance."""
        await asyncio.sleep(0)
        return self.send(effect)


def keyed(run: Run, folder: Path) -> None:
    """Letters by a service that dedupes on the key."""
    post = Post(folder, dedupes=True)
    for index in range(STEPS):
        run.step(f"letter/{index}", post.send, keyed=True)


def looked_up(run: Run, folder: Path) -> None:
    """Letters by a service that can be asked."""
    post = Post(folder)
    for index in range(STEPS):
        run.step(f"letter/{index}", post.send, look_up=post.find)


def bare(run: Run, folder: Path) -> None:
    """Letters by a service that can do neither."""
    post = Post(folder)
    for index in range(STEPS):
        run.step(f"letter/{index}", post.send)


def recorded_after(run: Run, folder: Path) -> None:
    """Letters that may be sent twice."""
    post = Post(folder)
    for index in range(STEPS):
        run.step(f"letter/{index}", post.send, order=Order.RECORD_AFTER)


def atomic(run: Run, folder: Path) -> None:
    """Rows, each in one transaction with its completion."""
    with closing(sqlite3.connect(folder / "rows.db")) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS row (text)")
        for index in range(STEPS):
            name = f"letter/{index}"

            def body(cursor: sqlite3.Cursor, name: str = name) -> str:
                cursor.execute("INSERT INTO row VALUES (?)", (name,))
                return name

            run.atomic_step(name, connection, body)


def phased(run: Run, folder: Path) -> None:
    """Letters by a service that dedupes on the key, recorded together, but for the last one."""
    post = Post(folder, dedupes=True)
    with run.phase("letters"):
        for index in range(STEPS - 1):
            run.step(f"letter/{index}", post.send, keyed=True)
        run.step(f"letter/{STEPS - 1}", post.send, look_up=post.find)


def taken_back(run: Run, folder: Path) -> None:
    """Letters that are all called back, the last one first, by a service that dedupes."""
    post = Post(folder, dedupes=True)
    with suppress(Compensating):
        for index in range(STEPS):
            run.step(f"letter/{index}", post.send, keyed=True, undo=lambda e, _: post.send(e))
    run.compensate()


def atomic_postgres(run: Run, folder: Path) -> None:
    """Rows in the database of the store itself, each in one transaction with its completion."""
    import psycopg

    with psycopg.connect(os.environ["STORE"], autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS row (text text)")
        for index in range(STEPS):
            name = f"letter/{index}"

            def body(cursor: psycopg.Cursor[Any], name: str = name) -> str:
                cursor.execute("INSERT INTO row VALUES (%s)", (name,))
                return name

            run.atomic_step(name, connection, body)


def gathered_keyed(run: Run, folder: Path) -> None:
    """Letters that are all in flight at once, by a service that dedupes on the key."""
    asyncio.run(_gather(run, Post(folder, dedupes=True), keyed=True))


def gathered_looked_up(run: Run, folder: Path) -> None:
    """Letters that are all in flight at once, by a service that can be asked."""
    post = Post(folder)
    asyncio.run(_gather(run, post, look_up=post.find))


async def _gather(run: Run, post: Post, **options: Any) -> None:
    steps = (
        run.async_step(f"letter/{index}", post.send_later, **options) for index in range(STEPS)
    )
    await asyncio.gather(*steps)


TASKS: dict[str, Callable[[Run, Path], None]] = {
    task.__name__: task
    for task in (
        keyed,
        looked_up,
        bare,
        recorded_after,
        atomic,
        atomic_postgres,
        phased,
        taken_back,
        gathered_keyed,
        gathered_looked_up,
    )
}


def _append(file: Path, line: object) -> None:
    with file.open("a") as book:
        book.write(json.dumps(line) + "\n")


def _die_at(crossing: int, trace: Path) -> None:
    passed = iter(range(1_000_000))

    def point(name: str) -> None:
        _append(trace, name)
        if next(passed) == crossing:
            os.kill(os.getpid(), signal.SIGKILL)

    probe.point = point


def main() -> None:
    """Run the task that the command line names, to the crossing that it names."""
    task, folder, crossing = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    _die_at(crossing, folder / "trace.jsonl")
    place = os.environ.get("STORE") or folder / "run.db"
    with open_run(place, inputs=task, durability="normal") as run:
        if not run.finished:
            TASKS[task](run, folder)
            run.finish(task)


if __name__ == "__main__":
    run_main(main)
