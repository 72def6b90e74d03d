"""Three steps, each an intent, a look-up where that is left over, a charge and a record; one
scenario for each way in which the record may or may not be on the disk when the power fails.

    chaoskit run --power-loss scenarios/exact/power_loss.py:in_place           JSON, overwritten
    chaoskit run --power-loss scenarios/exact/power_loss.py:in_place_synced    the same, synced
    chaoskit run --power-loss scenarios/exact/power_loss.py:renamed            beside, and renamed
    chaoskit run --power-loss scenarios/exact/power_loss.py:synced_renamed     synced before that
    chaoskit run --power-loss scenarios/exact/power_loss.py:synced_folder      and its folder after
    chaoskit run --power-loss scenarios/exact/power_loss.py:wal_full           SQLite, and so on

``expect`` is what ``--power-loss`` shows. A kill alone shows something in the first two only. All
of them look up what they have begun, so that they rely on no charge being under way at a resume.
"""

from __future__ import annotations

import json
import os
import sqlite3
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import quote, urlencode, urlsplit

from chaoskit import Scenario

STEPS = 3
Way = Literal["in place", "in place, synced", "renamed", "synced, renamed", "synced folder"]


class Record(Protocol):
    """What a task remembers of its steps: no charge yet where one is only meant."""

    def known(self) -> dict[int, str | None]:
        """The charge of every step that was begun."""

    def put(self, step: int, charge: str | None) -> None:
        """Remember it."""


class JsonFile:
    """One file that holds everything, written anew each time."""

    def __init__(self, way: Way) -> None:
        self._folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
        self._file = self._folder / "state.json"
        self._way = way
        self._steps: dict[int, str | None] = {}
        if self._file.exists():
            stored = json.loads(self._file.read_text(encoding="utf-8"))
            self._steps = {int(step): charge for step, charge in stored.items()}

    def known(self) -> dict[int, str | None]:
        """See `Record`."""
        return dict(self._steps)

    def put(self, step: int, charge: str | None) -> None:
        """See `Record`."""
        self._steps[step] = charge
        in_place = self._way in {"in place", "in place, synced"}
        target = self._file if in_place else self._file.with_suffix(".tmp")
        with target.open("w", encoding="utf-8") as handle:
            json.dump(self._steps, handle)
            handle.flush()
            if self._way not in {"in place", "renamed"}:
                os.fsync(handle.fileno())
        if not in_place:
            target.replace(self._file)
        if self._way == "synced folder":
            folder = os.open(self._folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


class Sqlite:
    """A row for each step."""

    def __init__(self, journal: str, synchronous: str) -> None:
        path = Path(os.environ["CHAOSKIT_STATE_DIR"]) / "run.db"
        self._books = sqlite3.connect(path, isolation_level=None)
        self._books.execute(f"PRAGMA journal_mode = {journal}")
        self._books.execute(f"PRAGMA synchronous = {synchronous}")
        self._books.execute(
            "CREATE TABLE IF NOT EXISTS steps (step INTEGER PRIMARY KEY, charge TEXT)"
        )

    def known(self) -> dict[int, str | None]:
        """See `Record`."""
        return dict(self._books.execute("SELECT step, charge FROM steps"))

    def put(self, step: int, charge: str | None) -> None:
        """See `Record`."""
        self._books.execute("INSERT OR REPLACE INTO steps VALUES (?, ?)", (step, charge))


def in_json(way: Way, steps: int = STEPS) -> None:
    """The task, with its record in a JSON file."""
    charge_all(JsonFile(way), steps)


def in_sqlite(journal: str, synchronous: str, steps: int = STEPS) -> None:
    """The task, with its record in a SQLite file."""
    charge_all(Sqlite(journal, synchronous), steps)


def charge_all(record: Record, steps: int) -> None:
    """Charge every step that is not recorded yet; look up those that were begun."""
    parts = urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    service = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    known = record.known()
    for step in range(1, steps + 1):
        if known.get(step):
            continue
        charge = None
        if step in known:
            charge = _look_up(service, step)
        else:
            record.put(step, None)
        record.put(step, charge or _charge(service, step))


def _charge(service: HTTPConnection, step: int) -> str:
    form = {
        "amount": str(1000 + step),
        "currency": "eur",
        "source": "tok_visa",
        "metadata[reference]": f"step-{step}",
    }
    return str(_ask(service, "POST", "/v1/charges", form)["id"])


def _look_up(service: HTTPConnection, step: int) -> str | None:
    query = quote(f"metadata['reference']:'step-{step}'")
    found = _ask(service, "GET", f"/v1/charges/search?query={query}")["data"]
    return str(found[0]["id"]) if isinstance(found, list) and found else None


def _ask(
    service: HTTPConnection, method: str, path: str, form: dict[str, str] | None = None
) -> dict[str, object]:
    headers = {
        "Authorization": "Bearer sk_test_power",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    service.request(method, path, urlencode(form).encode() if form else None, headers)
    answer: dict[str, object] = json.loads(service.getresponse().read())
    return answer


def _scenario(task: partial[None], title: str, *expect: str) -> Scenario:
    return Scenario(
        title=title, task=task, services=("payments",), settled=("payments.*",), finds=expect
    )


def _json(title: str, way: Way, *expect: str) -> Scenario:
    return _scenario(partial(in_json, way), f"a JSON file, {title}", *expect)


def _sqlite(journal: str, synchronous: str, *expect: str) -> Scenario:
    task = partial(in_sqlite, journal, synchronous)
    return _scenario(task, f"SQLite in {journal} mode, synchronous = {synchronous}", *expect)


AGAIN = ("duplicate_effect", "silent_restart")
"""Who has lost the record charges again: with one step done twice, with more from the start."""

in_place = _json("overwritten", "in place", *AGAIN, "stuck")
in_place_synced = _json("overwritten and synced", "in place, synced", *AGAIN, "stuck")
renamed = _json("written beside and renamed", "renamed", *AGAIN, "stuck")
synced_renamed = _json("written beside, synced and renamed", "synced, renamed", *AGAIN)
synced_folder = _json("written beside, synced and renamed, its folder synced", "synced folder")

wal_full = _sqlite("WAL", "FULL")
wal_normal = _sqlite("WAL", "NORMAL", *AGAIN)
delete_full = _sqlite("DELETE", "FULL", "duplicate_effect")
delete_extra = _sqlite("DELETE", "EXTRA")
delete_off = _sqlite("DELETE", "OFF", *AGAIN)

scenario = synced_folder
