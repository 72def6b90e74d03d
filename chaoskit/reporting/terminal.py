"""The report that a person reads in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from chaoskit.campaign.shrinking import Shrunken, in_words
from chaoskit.reporting.soaked import drawn
from chaoskit.reporting.summary import ReportedFinding, Summary

COLOURS = {"VALID": "bold green", "INVALID": "bold red", "UNKNOWN": "bold yellow"}
SHOWN_MOST = 3
"""How many findings of one kind and operation are written out; the rest is counted."""

WHO_MOST = 12


def show(summary: Summary, console: Console) -> None:
    """Print the whole report."""
    console.print(headline(summary))
    for group in groups(summary.findings):
        console.print()
        _show_group(group, console)
        _show_shrunken(group[0], summary.shrunk, console)
    for reason in summary.unknowns:
        console.print(Text(f"  unknown: {reason}", style="yellow"))
    console.print(_facts(summary))


def headline(summary: Summary) -> Text:
    """The verdict in a sentence."""
    points = summary.points
    text = Text()
    text.append(summary.verdict, style=COLOURS[summary.verdict])
    text.append(f"  {summary.title}", style="bold")
    text.append(
        f"\n  {summary.trials} trial{'s' if summary.trials != 1 else ''}, "
        f"killed at {points.landed} of {points.total} points, "
        f"against {summary.effects} expected effects; seed {summary.seed}, "
        f"{summary.elapsed_s:.1f} s"
    )
    return text


def groups(findings: Sequence[ReportedFinding]) -> list[list[ReportedFinding]]:
    """Findings of one kind and operation together, in the order of their first appearance."""
    found: dict[tuple[str, str], list[ReportedFinding]] = {}
    for finding in findings:
        operation = finding.operation if finding.kind != "redone_step" else ""
        found.setdefault((finding.kind, operation), []).append(finding)
    return list(found.values())


def four_lines(finding: ReportedFinding, scenario: str) -> list[tuple[str, str]]:
    """A failure as label and text: what, where, expected and seen with its reason, replay."""
    return [
        (finding.kind, f"{finding.operation} in {scenario}"),
        ("where", finding.schedule),
        ("expected", f"{finding.expected}; seen {finding.seen}, because {finding.because}"),
        ("replay", finding.replay),
    ]


def _show_group(findings: Sequence[ReportedFinding], console: Console) -> None:
    first = findings[0]
    title = Text()
    title.append(f"  {first.kind}", style="bold red")
    points = len({f.schedule for f in findings})
    title.append(f"  {first.operation}, in {points} trial{'s' if points != 1 else ''}")
    console.print(title)
    shown: dict[str, ReportedFinding] = {}
    for finding in findings:
        shown.setdefault(finding.subject, finding)
    for finding in list(shown.values())[:SHOWN_MOST]:
        _show_finding(finding, console)
    rest = list(shown.values())[SHOWN_MOST:]
    if rest:
        names = "; ".join(f.expected.rpartition(":")[0] for f in rest[:WHO_MOST])
        more = f"; and {len(rest) - WHO_MOST} more" if len(rest) > WHO_MOST else ""
        console.print(_indented(Text(f"also: {names}{more}")))
    if first.diagnosis is not None:
        table = _rows()
        table.add_row("diagnosis", Text(first.diagnosis.missing))
        table.add_row("evidence", Text(first.diagnosis.evidence))
        table.add_row("to mend", Text(first.diagnosis.mend))
        console.print(_indented(table))


def _show_finding(finding: ReportedFinding, console: Console) -> None:
    table = _rows()
    for label, text in four_lines(finding, "")[1:3]:
        table.add_row(label, Text(text))
        if label == "where":
            for name, words in (("between", finding.between), ("in code", finding.code)):
                if words:
                    table.add_row(name, Text(words))
    for line in finding.consequences[:SHOWN_MOST]:
        table.add_row("so", Text(line))
    if finding.repeated:
        table.add_row("repeated", Text(finding.repeated))
    console.print(_indented(table))
    # The command stands alone on one line, however long, so that it can be copied whole.
    console.print(Text(finding.replay, style="cyan"), soft_wrap=True)


def _show_shrunken(finding: ReportedFinding, shrunk: Sequence[Shrunken], console: Console) -> None:
    for one in shrunk:
        if (one.kind, one.operation) != (finding.kind, finding.operation):
            continue
        table = _rows()
        trial = in_words(one.smallest, one.take)
        table.add_row("smallest", Text(f"{trial}, found in {one.trials} trials"))
        if one.cut_off:
            table.add_row("", Text("not everything was tried: there may be a smaller one"))
        if one.outcome != "REPRODUCED":
            table.add_row("", Text(f"replaying it came to {one.outcome}"))
        console.print(_indented(table))
        console.print(Text(one.replay, style="cyan"), soft_wrap=True)


def _indented(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 4), expand=False)


def _rows() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _facts(summary: Summary) -> RenderableType:
    table = _rows()
    ends = ", ".join(f"{number} {end}" for end, number in sorted(summary.ends.items()))
    if ends:
        table.add_row("ends", Text(ends))
    for line in summary.remarks:
        table.add_row("note", Text(line))
    ways = [*summary.mechanisms]
    if summary.late:
        ways.append(f"{summary.late} requests that land late")
    if summary.other_faults:
        ways.append(f"{summary.other_faults} trials of other faults")
    if summary.power_cuts:
        ways.append(f"{summary.power_cuts} losses of power")
    table.add_row("mechanisms", ", ".join(ways))
    if summary.soak is not None:
        table.add_row("soak", Text(summary.soak.sentence))
        table.add_row("drawn", Text(drawn(summary.soak)))
    if summary.copies:
        table.add_row(
            "snapshots",
            f"{summary.copies} trials went on from {summary.states} states that were copied; "
            f"{summary.real_kills} were real kills (every failure once, and a sample)",
        )
    for line in summary.not_tested:
        table.add_row("not tested", Text(line))
    for operation, names in summary.volatile.items():
        table.add_row("not compared", Text(f"{operation}: {', '.join(names)}"))
    table.add_row("stored in", Text(summary.run))
    return Padding(table, (1, 0, 0, 2), expand=False)
