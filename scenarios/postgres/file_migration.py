"""A multi-file migration whose run is recorded in a PostgreSQL database.

Each file is rewritten by `sound/file_migration.py`'s own function, and a row about it is booked. A
rewriting is not repeatable; a file that was rewritten is known by its digest, so that a kill
between it and its record, on whichever side of the commit, does it neither twice nor never.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import _shop as shop
from sound import file_migration as files

from chaoskit import Scenario
from chaoskit.runtime import Effect, open_run

TABLES = "CREATE TABLE migrated (name text PRIMARY KEY, digest text);"
FEW = 2


def main() -> None:
    """Rewrite every file once, and book it."""
    root = shop.STATE / files.SOURCE
    with (
        open_run(shop.postgres_url(), inputs={"root": files.SOURCE}) as run,
        shop.postgres() as books,
    ):
        if run.finished:
            return
        plan = run.step("plan", lambda effect: files.digests(root), keyed=True)
        for name, before in plan.items():
            file = root / name

            def rewritten(effect: Effect, file: Path = file, before: str = before) -> str | None:
                now = files.digest(file.read_bytes())
                return now if now != before else None

            after = run.step(
                f"file/{name}",
                lambda effect, file=file: files.rewrite(file),  # type: ignore[misc]
                inputs={"before": before},
                look_up=rewritten,
            )
            run.atomic_step(
                f"row/{name}",
                books,
                lambda cursor, row=(name, after): _insert(cursor, row),  # type: ignore[misc]
            )
        run.finish(len(plan))


def _insert(cursor: Any, row: tuple[str, str]) -> None:
    cursor.execute("INSERT INTO migrated VALUES (%s, %s)", row)


def _prepare_few(folder: Path, seed: int) -> None:
    files.prepare(folder, seed)
    for file in sorted((folder / files.SOURCE).rglob("*.py"))[FEW:]:
        file.unlink()


scenario = Scenario(
    title="a multi-file migration whose run is recorded in PostgreSQL, with a row for each file",
    task=main,
    services=("postgres",),
    prepare=files.prepare,
    outputs=("src/**/*.py",),
    tables=TABLES,
)

few = Scenario(
    title="the same with two files, for every window of every commit",
    task=main,
    services=("postgres",),
    prepare=_prepare_few,
    outputs=("src/**/*.py",),
    tables=TABLES,
)
