"""The gallery's rows, and how they are shown: scenario by finding, cases, smallest schedules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_uppercase

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import parse_schedule
from chaoskit.reporting.summary import ReportedFinding, Summary


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario of the gallery: what it must show, and what it showed.

    ``found``: per kind of finding, the smallest schedule that showed it. ``why``: what kept it from
    being VALID or judged at all, other than findings. ``lacks``: what this machine would need to
    run it; empty if it was run.
    """

    path: str
    verdict: str
    expected: tuple[str, ...] = ()
    found: dict[str, str] = {}
    cases: tuple[str, ...] = ()
    trials: int = 0
    seconds: float = 0.0
    why: str = ""
    lacks: str = ""

    @property
    def right(self) -> bool:
        """A broken one shows exactly its named findings, a sound one is VALID."""
        if not self.expected:
            return self.verdict == "VALID"
        return self.found.keys() == set(self.expected) and not self.why

    @property
    def words(self) -> str:
        """What it showed, and what it should have where that is something else."""
        found = ", ".join(sorted(self.found)) or self.verdict
        if self.right:
            return found
        wanted = ", ".join(sorted(self.expected)) or "VALID"
        return f"{found}, not {wanted}" + (f" ({self.why})" if self.why else "")


def row_of(path: str, scenario: Scenario, summary: Summary, seconds: float = 0.0) -> Row:
    """The row of ``scenario``, a file at ``path``, after a campaign of so many ``seconds``."""
    kinds = dict.fromkeys(finding.kind for finding in summary.findings)
    return Row(
        path=path,
        verdict=summary.verdict,
        expected=tuple(scenario.finds),
        found={k: _smallest(f for f in summary.findings if f.kind == k) for k in kinds},
        cases=tuple(scenario.cases),
        trials=summary.trials,
        seconds=seconds,
        why="; ".join(summary.unknowns[:1]),
    )


def _smallest(findings: Iterable[ReportedFinding]) -> str:
    """The schedule with the fewest attempts and faults; the first one of these."""

    def size(schedule: str) -> tuple[int, int]:
        attempts = parse_schedule(schedule).attempts
        return len(attempts), sum(map(len, attempts))

    return min((finding.schedule for finding in findings), key=size)


def matrix(rows: Sequence[Row]) -> Table:
    """Scenarios by findings, with the cases that each of them stands for."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    kinds = _kinds(rows)
    for letter in ascii_uppercase[: len(kinds)]:
        table.add_column(letter, justify="center", no_wrap=True)
    table.add_column("cases", style="dim")
    folder = ""
    for row in rows:
        path = Path(row.path)
        if path.parent.name != folder:
            folder = path.parent.name
            table.add_row(Text(folder, "dim"))
        cells = [_cell(kind in row.expected, kind in row.found) for kind in kinds]
        name = Text(path.stem, "" if row.right else "bold red")
        table.add_row(name, *cells, " ".join(row.cases))
    return table


def legend(rows: Sequence[Row]) -> Text:
    """What the columns and the marks mean."""
    kinds = zip(ascii_uppercase, _kinds(rows), strict=False)
    columns = "   ".join(f"{letter} {kind}" for letter, kind in kinds)
    return Text(f"{columns}\n● found and named   ○ named and missed   ! false alarm", "dim")


def smallest(rows: Sequence[Row]) -> Group:
    """The smallest schedule that showed each finding, ready for --at, and the seconds it took."""
    lines = [
        Text.assemble(f"{row.path}  ", (f"{kind}  {row.seconds:.1f} s", "dim"), f"\n    {schedule}")
        for row in rows
        for kind, schedule in row.found.items()
    ]
    return Group(Text("\nsmallest schedules", "dim"), *lines)


def _kinds(rows: Sequence[Row]) -> list[str]:
    return [k for k in FINDING_KINDS if any(k in (*r.expected, *r.found) for r in rows)]


def _cell(named: bool, found: bool) -> Text:
    if named and found:
        return Text("●", "green")
    if named:
        return Text("○", "bold red")
    return Text("!", "bold red") if found else Text("")
