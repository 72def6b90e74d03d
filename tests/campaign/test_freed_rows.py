"""A lease in a database is taken again by each resume, and is no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.store import Store
from chaoskit.model.token import Target
from chaoskit.reporting.summary import summarize
from tests.reporting.conftest import campaign

TASK = '''
import os, sqlite3
from chaoskit import Scenario, probe

TABLES = """
CREATE TABLE leases (name TEXT PRIMARY KEY, owner TEXT);
CREATE TABLE sales (number INTEGER, who TEXT);
"""

def main():
    FILE = os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///")
    with sqlite3.connect(FILE, isolation_level=None) as books:
        books.execute("INSERT OR REPLACE INTO leases VALUES ('nightly', ?)", (os.getpid(),))
        for number, who in enumerate(("ada", "bob")):
            probe.point("next")
            books.execute(SALE, (number, who))
            probe.point("sold")
        books.execute("DELETE FROM leases WHERE name = 'nightly'")

SALE = "INSERT INTO sales SELECT ?1, ?2{}"
scenario = Scenario(task=main, services=("database",), tables=TABLES)
'''


@pytest.mark.parametrize(
    ("unless", "kinds"),
    [
        (" WHERE NOT EXISTS (SELECT * FROM sales WHERE number = ?1)", set()),
        ("", {"duplicate_effect"}),
    ],
    ids=["sound", "broken"],
)
def test_a_lease_that_each_resume_takes_is_no_duplicate(
    tmp_path: Path, unless: str, kinds: set[str]
) -> None:
    """The lease of a killed attempt is taken over; only what is done under it is judged, and the
    report names the rows that are not.
    """
    file = tmp_path / "lease.py"
    file.write_text(TASK.replace("{}", unless), encoding="utf-8")
    target = Target(scenario=str(file))
    with Store(campaign(target, tmp_path / "runs", mechanisms=("crossings",))) as store:
        summary = summarize(store)
    assert summary.unknowns == ()
    assert summary.kinds == kinds
    assert summary.effects == 2
    assert summary.points.landed == 4
    said = "rows that an undisturbed run takes and frees again, as locks are: leases;"
    assert any(line.startswith(said) for line in summary.not_tested)
