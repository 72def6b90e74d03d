"""The report that a person reads in a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from chaoskit.campaign.shrinking import Shrunken, in_words
from chaoskit.checkers.comparison import counted
from chaoskit.reporting.soaked import drawn
from chaoskit.reporting.summary import NO_TRIAL, Flaw, ReportedFinding, Summary, flaw_of

COLOURS = {"VALID": "bold green", "INVALID": "bold red", "UNKNOWN": "bold yellow"}
SHOWN_MOST = 3
"""How many findings of one kind, operation and diagnosis are written out, each at another place in
the task; who else is concerned is named in a line."""

WHO_MOST = 12

_HARD_SPACE = "\xa0"


def show(summary: Summary, console: Console) -> None:
    """Print the whole report; where that is no terminal, without blanks at the ends of lines."""
    if console.is_terminal:
        _show(summary, console)
        return
    with console.capture() as capture:
        _show(summary, console)
    lines = [line.rstrip(" ") for line in capture.get().split("\n")]
    console.print(Text("\n".join(lines)), soft_wrap=True, end="")


def _show(summary: Summary, console: Console) -> None:
    console.print(headline(summary, console.width))
    for cause in causes(summary.findings):
        console.print()
        _show_group(cause, console)
        _show_shrunken(cause, summary.shrunk, console)
    for reason in summary.unknowns:
        console.print(Text(f"  unknown: {reason}", style="yellow"))
    console.print(_facts(summary))


def headline(summary: Summary, width: int) -> Text:
    """The verdict in a sentence, in lines of at most ``width``; no number without its unit."""
    points = summary.points
    text = Text()
    text.append(summary.verdict_in_words, style=COLOURS[summary.verdict])
    text.append(f"  {summary.title}\n", style="bold")
    seed, seconds = f"seed {summary.seed}", f"{summary.elapsed_s:.1f} s"
    sentence = (
        f"{counted(summary.trials, 'trial')}, "
        f"killed at {points.landed} of {points.total} points, "
        f"against {counted(summary.effects, 'expected effect')}; "
        + ", ".join(words.replace(" ", _HARD_SPACE) for words in (seed, seconds))
    )
    # Not left to rich, which breaks at hard spaces as well.
    lines = textwrap.wrap(sentence, max(width - 2, 1), break_long_words=False)
    text.append("\n".join(f"  {line}" for line in lines).replace(_HARD_SPACE, " "))
    return text


def groups(findings: Sequence[ReportedFinding]) -> list[list[ReportedFinding]]:
    """Findings of one kind and operation together, in the order of their first appearance."""
    found: dict[tuple[str, str], list[ReportedFinding]] = {}
    for finding in findings:
        operation = finding.operation if finding.kind != "redone_step" else ""
        found.setdefault((finding.kind, operation), []).append(finding)
    return list(found.values())


def causes(findings: Sequence[ReportedFinding]) -> list[list[ReportedFinding]]:
    """The `groups` in their order, each flaw by itself, those of the most trials first."""
    found: list[list[ReportedFinding]] = []
    for group in groups(findings):
        flaws: dict[Flaw, list[ReportedFinding]] = {}
        for finding in group:
            flaws.setdefault(flaw_of(finding), []).append(finding)
        found += sorted(flaws.values(), key=spread, reverse=True)
    return found


def spread(findings: Sequence[ReportedFinding]) -> int:
    """In how many trials they are."""
    return len({finding.schedule for finding in findings})


def four_lines(finding: ReportedFinding, scenario: str) -> list[tuple[str, str]]:
    """A failure as label and text: what, where, expected and seen with its reason, replay."""
    return [
        (finding.kind, f"{finding.concerns} in {scenario}"),
        ("where", finding.schedule),
        ("expected", f"{finding.expected}; seen {finding.seen}, because {finding.because}"),
        ("replay", finding.replay),
    ]


def _show_group(findings: Sequence[ReportedFinding], console: Console) -> None:
    first = findings[0]
    title = Text()
    title.append(f"  {first.kind}", style="bold red")
    title.append(f"  {first.concerns}, in {counted(spread(findings), 'trial')}")
    console.print(title)
    shown, rest = _chosen(findings)
    for finding in shown:
        _show_finding(finding, console)
    if names := _also(findings, shown, rest):
        more = f"; and {len(names) - WHO_MOST} more" if len(names) > WHO_MOST else ""
        console.print(_indented(Text(f"also: {'; '.join(names[:WHO_MOST])}{more}")))
    if first.diagnosis is not None:
        table = _rows()
        table.add_row("diagnosis", Text(first.diagnosis.missing))
        table.add_row("evidence", Text(first.diagnosis.evidence))
        table.add_row("to mend", Text(first.diagnosis.mend))
        console.print(_indented(table))


def _chosen(
    findings: Sequence[ReportedFinding],
) -> tuple[list[ReportedFinding], list[ReportedFinding]]:
    """What is written out, one finding for each place, and who else is named; each subject once."""
    subjects: dict[str, ReportedFinding] = {}
    for finding in findings:
        subjects.setdefault(finding.subject, finding)
    places: dict[str, ReportedFinding] = {}
    for finding in subjects.values():
        places.setdefault(_place(finding), finding)
    shown = list(places.values())[:SHOWN_MOST]
    return shown, [finding for finding in subjects.values() if finding not in shown]


def _also(
    findings: Sequence[ReportedFinding],
    shown: Sequence[ReportedFinding],
    rest: Sequence[ReportedFinding],
) -> list[str]:
    """Who else is concerned, each once."""
    texts = [*(one.expected for one in rest), *(text for one in findings for text in one.also)]
    names = dict.fromkeys(text.rpartition(":")[0] for text in texts)
    known = {"", *(one.expected.rpartition(":")[0] for one in shown)}
    return [name for name in names if name not in known]


def _place(finding: ReportedFinding) -> str:
    """Where in the task it is: the line of code, or what the kill came between, of any step."""
    before = finding.between.rpartition("before ")[2]
    line = f"{finding.file}:{finding.line}" if finding.file else finding.code
    return line or re.sub(r"#[0-9]+", "", before or finding.schedule)


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


def _show_shrunken(
    findings: Sequence[ReportedFinding], shrunk: Sequence[Shrunken], console: Console
) -> None:
    known = {(finding.kind, finding.operation, finding.schedule) for finding in findings}
    for one in shrunk:
        if (one.kind, one.operation, one.schedule) not in known:
            continue
        table = _rows()
        trial = in_words(one.smallest, one.take)
        table.add_row("smallest", Text(f"{trial}, found in {counted(one.trials, 'trial')}"))
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
    if summary.findings:
        table.add_row(
            "flaws", Text(f"{summary.flaws}, in {counted(len(summary.findings), 'finding')}")
        )
    ends = ", ".join(f"{number} {end}" for end, number in sorted(summary.ends.items()))
    if ends:
        table.add_row("ends", Text(ends))
    for line in summary.remarks:
        table.add_row("note", Text(line))
    # Where the survey failed, what else was not tested would only bury the reason.
    tried = summary.trials > 0 or NO_TRIAL in summary.unknowns
    if tried:
        table.add_row("mechanisms", ", ".join(_ways(summary)))
    if summary.soak is not None:
        table.add_row("soak", Text(summary.soak.sentence))
        table.add_row("drawn", Text(drawn(summary.soak)))
    if summary.copies:
        table.add_row("snapshots", _snapshots(summary))
    for line in summary.not_tested if tried else ():
        table.add_row("not tested", Text(line))
    for operation, names in summary.volatile.items():
        table.add_row("not compared", Text(f"{operation}: {', '.join(names)}"))
    table.add_row("stored in", Text(summary.run))
    return Padding(table, (1, 0, 0, 2), expand=False)


def _ways(summary: Summary) -> list[str]:
    ways = [*summary.mechanisms]
    if summary.late:
        lands = "request that lands" if summary.late == 1 else "requests that land"
        ways.append(f"{summary.late} {lands} late")
    if summary.other_faults:
        ways.append(f"{counted(summary.other_faults, 'trial')} of other faults")
    if summary.services_only:
        ways.append(f"{counted(summary.services_only, 'trial')} of the services' clocks alone")
    if summary.power_cuts:
        ways.append(f"{summary.power_cuts} loss{'' if summary.power_cuts == 1 else 'es'} of power")
    return ways


def _snapshots(summary: Summary) -> str:
    were = "state that was" if summary.states == 1 else "states that were"
    real = "was a real kill" if summary.real_kills == 1 else "were real kills"
    return (
        f"{counted(summary.copies, 'trial')} went on from {summary.states} {were} copied; "
        f"{summary.real_kills} {real} (every failure once, and a sample)"
    )
