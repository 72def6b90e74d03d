"""Broken tasks whose usual cause is not the cause: each is told by its own, and the advised fix
makes the task VALID.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.checkers.diagnosis import FRESH_KEY, QUEUED_AGAIN, UNSYNCED_LOSS
from chaoskit.checkers.losses import EARLY_RECORD, HALF_REPLACED
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi

pytestmark = pytest.mark.skipif(this_abi() is None, reason="system calls cannot be traced here")

TASK = """
import os, sqlite3, uuid
from pathlib import Path
from urllib.request import Request, urlopen

from chaoskit import Scenario

STATE = Path(os.environ.get("CHAOSKIT_STATE_DIR", "."))

def charge(n, key=None):
    form = f"amount={100 + n}&currency=eur&source=tok_visa".encode()
    headers = {"Authorization": "Bearer sk_test_x"} | ({"Idempotency-Key": key} if key else {})
    with urlopen(Request(os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges", form, headers)):
        pass

def note(name, text="", sync=False):
    beside = STATE / (name + ".new")
    with beside.open("w") as file:
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    beside.rename(STATE / name)
    if sync:
        folder = os.open(STATE, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

def main():
    WORK

scenario = Scenario(task=main, services=SERVICES)
"""


def campaign(
    folder: Path, work: str, services: str = '("payments",)', *, power_loss: bool = False
) -> Summary:
    """The whole campaign over a task that does ``work``, by system calls and windows."""
    folder.mkdir()
    body = textwrap.indent(textwrap.dedent(work), "    ").strip()
    file = folder / "task.py"
    file.write_text(TASK.replace("WORK", body).replace("SERVICES", services), encoding="utf-8")
    chosen = Options(
        target=Target(scenario=str(file)),
        runs=str(folder / "runs"),
        in_flight=(),
        mechanisms=("calls", "windows"),
        power_loss=power_loss,
    )
    last = [event for event in run(chosen, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


def causes(summary: Summary) -> set[tuple[str, str]]:
    """Each kind of finding with its cause."""
    return {(f.kind, f.diagnosis.missing if f.diagnosis else "") for f in summary.findings}


@pytest.mark.parametrize("charges", [1, 3])
def test_a_last_effect_whose_record_came_first_is_lost(tmp_path: Path, charges: int) -> None:
    """As any other, and not 'all steps done' taken for 'run done': one flaw, one cause."""
    broken = f"""
    for n in range({charges}):
        if not (STATE / f"d{{n}}").exists():
            note(f"d{{n}}")
            charge(n, f"k{{n}}")
    """
    assert causes(campaign(tmp_path / "1", broken)) == {("lost_effect", EARLY_RECORD)}
    fixed = broken.replace('        note(f"d{n}")\n', "") + '            note(f"d{n}")\n'
    assert campaign(tmp_path / "2", fixed).verdict == "VALID"


def test_a_row_that_was_deleted_to_be_inserted_is_lost(tmp_path: Path) -> None:
    """The last one, too; one transaction is the fix."""
    services = """("database",), tables="CREATE TABLE t (n INTEGER PRIMARY KEY, v);"
    "INSERT INTO t VALUES (1, 0), (2, 0)" """
    broken = """
    path = os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///")
    books = sqlite3.connect(path, isolation_level=None)
    for n, in books.execute("SELECT n FROM t WHERE v = 0").fetchall():
        books.execute("BEGIN")
        books.execute("DELETE FROM t WHERE n = ?", (n,))
        books.execute("COMMIT")
        books.execute("BEGIN")
        books.execute("INSERT INTO t VALUES (?, 1)", (n,))
        books.execute("COMMIT")
    """
    assert causes(campaign(tmp_path / "1", broken, services)) == {("lost_effect", HALF_REPLACED)}
    between = '    books.execute("COMMIT")\n        books.execute("BEGIN")\n    '
    fixed = broken.replace(between, "", 1)
    assert fixed != broken
    assert campaign(tmp_path / "2", fixed, services).verdict == "VALID"


KEYED = """
for n in range(2):
    if (STATE / f"d{n}").exists():
        continue
    KEY
    charge(n, key)
    note(f"d{n}", sync=True)
"""
STORED = """if not (STATE / f"k{n}").exists():
        note(f"k{n}", uuid.uuid4().hex)
    key = (STATE / f"k{n}").read_text()"""


def test_a_key_that_was_stored_and_not_synced_is_told_as_such(tmp_path: Path) -> None:
    """After a loss of power alone; one that was not stored at all is made anew, power or not."""
    unsynced = KEYED.replace("KEY", STORED)
    found = campaign(tmp_path / "1", unsynced, power_loss=True)
    assert causes(found) == {("duplicate_effect", UNSYNCED_LOSS.missing)}
    fixed = unsynced.replace("hex)", "hex, sync=True)")
    assert campaign(tmp_path / "2", fixed, power_loss=True).verdict == "VALID"
    fresh = KEYED.replace("KEY", "key = uuid.uuid4().hex")
    found = campaign(tmp_path / "3", fresh, power_loss=True)
    assert causes(found) == {("duplicate_effect", FRESH_KEY)}


QUEUE = """
if not (STATE / "queued").exists():
    QUEUE
for number, amount in enumerate((STATE / "queue").read_text().split()):
    if not (STATE / f"d{number}").exists():
        charge(int(amount), f"k{number}" if KEYED else None)
        note(f"d{number}")
"""


def test_work_that_was_queued_twice_is_told_as_such(tmp_path: Path) -> None:
    """Where one attempt alone did it twice nothing had been booked before the kill."""
    in_two = """with (STATE / "queue").open("a") as file:
        file.write("1 2 ")
    note("queued")"""
    broken = QUEUE.replace("QUEUE", in_two).replace("KEYED", "False")
    summary = campaign(tmp_path / "1", broken)
    again = [f for f in summary.findings if f.diagnosis and f.diagnosis.missing == QUEUED_AGAIN]
    assert again
    assert all(
        "attempt 2 did it twice; no other attempt did" in f.because + str(f.diagnosis)
        for f in again
    )
    for finding in summary.findings:
        assert finding.diagnosis is not None
        claims = "booked by the service before the kill" in finding.diagnosis.evidence
        assert claims == ("attempts 1 and 2" in finding.because)
    at_once = 'note("queue", "1 2 ")\n    note("queued")'
    fixed = QUEUE.replace("QUEUE", at_once).replace("KEYED", "True")
    assert campaign(tmp_path / "2", fixed).verdict == "VALID"
