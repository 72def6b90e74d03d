"""Steps per second of the runtime, beside raw SQLite commits and beside two engines, in one run.

    python benchmarks/runtime.py [--steps 400 4000 40000] [--durability full normal] [--engines N]

The step does nothing, so that all that is measured is its record. The raw commits are what one
would write without a runtime: one row by primary key in a write-ahead log, of the same durability.
All of them take turns, a twentieth of the steps at a time, so that they meet the same machine. The
table has the whole, and the last twentieth beside the first: does a step grow dearer?

The engines run the same number of such steps in processes of their own, in the environments that
`engines/run.sh` makes; one that is not there is said to be left out.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from chaoskit.runtime import Order, open_run
from chaoskit.runtime.books import Durability

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 20
ENGINES = ("dbos", "langgraph")
SYNCHRONOUS: dict[Durability, str] = {"full": "FULL", "normal": "NORMAL"}

Step = Callable[[int], object]


class Rate:
    """How long each twentieth of the steps took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def take(self, step: Step, numbers: range) -> None:
        """Take some more steps."""
        began = time.perf_counter()
        for number in numbers:
            step(number)
        self.seconds.append(time.perf_counter() - began)

    def row(self, name: str, steps: int, raw: Rate) -> str:
        """Steps per second, as a part of ``raw``, and the last twentieth beside the first."""
        rate, base = steps / sum(self.seconds), steps / sum(raw.seconds)
        growth = self.seconds[-1] / self.seconds[0]
        micros = 1e6 * sum(self.seconds) / steps
        return (
            f"  {name:14} {rate:9.0f}/s {micros:8.0f} us a step   {rate / base:5.2f} of raw   "
            f"last twentieth / first: {growth:.2f}"
        )


def side_by_side(steps: int, durability: Durability, folder: Path) -> list[str]:
    """The rows for raw commits and for both orders of the runtime."""
    size = steps // ROUNDS
    with (
        closing(_raw(folder / "raw.db", durability)) as raw,
        open_run(folder / "after.db", inputs=None, durability=durability) as after,
        open_run(folder / "first.db", inputs=None, durability=durability) as first,
    ):

        def write(number: int) -> object:
            return raw.execute(
                "INSERT INTO steps VALUES ('default', ?, 'done', 'null')", (f"step/{number}",)
            )

        def record_after(number: int) -> object:
            return after.step(f"step/{number}", _nothing, order=Order.RECORD_AFTER)

        def intent_first(number: int) -> object:
            return first.step(f"step/{number}", _nothing, keyed=True)

        kinds: dict[str, tuple[Step, Rate]] = {
            "raw commits": (write, Rate()),
            "record after": (record_after, Rate()),
            "intent first": (intent_first, Rate()),
        }
        for turn in range(ROUNDS):
            for step, rate in kinds.values():
                rate.take(step, range(turn * size, (turn + 1) * size))
        base = kinds["raw commits"][1]
        return [rate.row(name, size * ROUNDS, base) for name, (_, rate) in kinds.items()]


def engine(name: str, steps: int, folder: Path) -> str:
    """The row of an engine, or why there is none."""
    python = ROOT / "engines" / ".envs" / name / "bin" / "python"
    if not python.exists():
        return f"  {name:14} left out: no environment at {python.relative_to(ROOT)}"
    program = ROOT / "engines" / name / "noop.py"
    done = subprocess.run(
        [python, program, folder, str(steps)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"  {name:14} left out: it failed: {done.stderr.strip().splitlines()[-1:]}"
    seconds = float(done.stdout.split()[-1])
    return f"  {name:14} {steps / seconds:9.0f}/s {1e6 * seconds / steps:8.0f} us a step"


def _raw(path: Path, durability: Durability) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={SYNCHRONOUS[durability]}")
    connection.execute(
        "CREATE TABLE steps (run TEXT, name TEXT, state TEXT, result TEXT, "
        "PRIMARY KEY (run, name)) WITHOUT ROWID"
    )
    return connection


def _nothing(_: object) -> None:
    """Do nothing."""


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[400, 4_000, 40_000])
    parser.add_argument("--durability", nargs="+", default=["full", "normal"])
    parser.add_argument("--engines", type=int, default=400, help="their steps; 0: leave them out")
    parser.add_argument("--folder", help="where the stores are made; decides what a commit costs")
    given = parser.parse_args()
    print(
        f"machine: {os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )
    for durability in given.durability:
        for steps in given.steps:
            print(f"{steps} steps, durability {durability}")
            with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                print(*side_by_side(steps, durability, Path(folder)), sep="\n")
    if given.engines:
        print(f"{given.engines} steps in engines, each at its own default durability")
        for name in ENGINES:
            with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                print(engine(name, given.engines, Path(folder)))


if __name__ == "__main__":
    main()
