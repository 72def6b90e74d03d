"""Publish a stored run as an example: its store without paths of one machine, and its HTML report.

    python reports/examples/publish.py RUN NAME     a new example
    python reports/examples/publish.py NAME         its report again, from its store

Run it from the project's folder. A test renders each example again and compares.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import zlib
from contextlib import closing
from pathlib import Path

import msgspec

from chaoskit.campaign.store import FILE, Store
from chaoskit.reporting.forms import write
from chaoskit.reporting.summary import summarize

HERE = Path(__file__).resolve().parent
REPORT = "report.html"


def publish(run: Path, name: str) -> Path:
    """Make the example ``name`` of a stored run; its folder."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    shutil.copyfile(run / FILE, folder / FILE)
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        for schedule, history in db.execute("SELECT schedule, history FROM trials").fetchall():
            text = zlib.decompress(history)
            _refuse_paths(text.decode(), schedule)
            db.execute(
                "UPDATE trials SET history = ? WHERE schedule = ?",
                (zlib.compress(text, 9), schedule),
            )
        _relative_locations(db)
        for key, value in db.execute("SELECT key, value FROM meta").fetchall():
            _refuse_paths(value, key)
        db.execute("VACUUM")
    return folder


def render(folder: Path) -> Path:
    """Write the report of an example; the file."""
    with Store(folder) as store:
        write("html", summarize(store), store, folder / REPORT)
    return folder / REPORT


def _relative_locations(db: sqlite3.Connection) -> None:
    """Lines of code by their path from the project's folder."""
    row = db.execute("SELECT value FROM meta WHERE key = 'locations'").fetchone()
    if row is None:
        return
    stored = msgspec.json.decode(row[0], type=dict[str, tuple[str, int, str]])
    made = {
        point: (os.path.relpath(file), line, function)
        for point, (file, line, function) in stored.items()
    }
    db.execute(
        "UPDATE meta SET value = ? WHERE key = 'locations'", (msgspec.json.encode(made).decode(),)
    )


def _refuse_paths(text: str, where: str) -> None:
    for path in (Path.cwd(), Path.home()):
        if str(path) in text:
            raise SystemExit(f"{where} speaks of {path}: make the run in a folder of no name")


def main() -> None:
    """Publish what the command line names."""
    *run, name = sys.argv[1:]
    folder = publish(Path(run[0]), name) if run else HERE / name
    print(render(folder).stat().st_size, "bytes")


if __name__ == "__main__":
    main()
