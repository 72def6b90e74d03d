"""The report as GitHub-flavoured Markdown: for a pull request's comment or a job's summary.

What comes from the task stands in code, where no markup, link, mention or number of an issue is
read; a fence is longer than any run of backticks in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from chaoskit.campaign.store import Store
from chaoskit.reporting.clean import plain
from chaoskit.reporting.explanations import sentence
from chaoskit.reporting.summary import ReportedFinding, Summary
from chaoskit.reporting.terminal import causes, spread

CHARACTERS_MOST = 60_000
"""A comment on GitHub holds 65,536 characters."""

GROUPS_MOST = 12
"""How many flaws are written out."""

LINES_MOST = 20
CELL_MOST = 200
TEXT_MOST = 600
SCHEDULE_MOST = 2_000
"""A schedule is shown whole, so that it can be pasted: as much of it as any report shows."""

REPLAY_MOST = 4_000
"""A longer replay command is left out: the terminal's report has it, on one line."""


_MARKS = re.compile(r"([\\`*_\[\]<>~|&$])|^([-+=])|^(\d+)([.)])")
"""What is markup within a line; and what is only at its beginning: lists and underlines."""

_LIVE = re.compile(r"[@#]|://|www\.", re.IGNORECASE)
"""What GitHub makes a mention, a reference or a link of wherever it is not code."""


def render(summary: Summary, store: Store | None = None) -> str:
    """Markdown, short at the top, with its details folded, and short enough for a comment."""
    head, *folds = map("\n".join, _sections(summary))
    room = CHARACTERS_MOST - len(head)
    kept = []
    for fold in folds:
        if len(fold) < room:
            kept.append(fold)
            room -= len(fold) + 1
    left = len(folds) - len(kept)
    said = [f"\n{left} more parts are left out here: chaoskit report shows them"] if left else []
    return "\n".join([head, *kept, *said]) + "\n"


def code(text: str, most: int = TEXT_MOST) -> str:
    """``text`` as a code span."""
    shown = plain(text, most)
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown[:1] in {"`", " "} or shown[-1:] in {"`", " "} or not shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(text: str, most: int = CELL_MOST) -> str:
    """``text`` as a code span in a cell of a table."""
    return code(text, most).replace("|", "\\|")


def words(text: str, most: int = TEXT_MOST) -> str:
    """``text`` as words without any markup; as code where some of it could come to life."""
    shown = plain(text, most)
    return code(shown, most) if _LIVE.search(shown) else _MARKS.sub(_escaped, shown)


def _escaped(found: re.Match[str]) -> str:
    mark, first, number, dot = found.groups("")
    return f"{number}\\{mark or first or dot}"


def block(lines: Sequence[str], language: str = "") -> list[str]:
    """``lines`` as a fenced block of code."""
    runs = [run for line in lines for run in re.findall("`+", line)]
    fence = "`" * max(3, max(map(len, runs), default=0) + 1)
    return [f"{fence}{language}", *lines, fence]


def _sections(summary: Summary) -> Iterator[Iterator[str]]:
    """The head, and what is folded below it, the most telling first."""
    yield _head(summary)
    for group in causes(summary.findings)[:GROUPS_MOST]:
        yield _details(group)
    yield _folded("What was not tested", [*_listed(summary.not_tested)])
    notes = [*summary.remarks, *([summary.soak.sentence] if summary.soak else [])]
    yield _folded("Notes", [*_listed(notes)])


def _head(summary: Summary) -> Iterator[str]:
    points = summary.points
    yield f"## chaoskit: {summary.verdict_in_words}"
    yield ""
    yield f"{code(summary.title, CELL_MOST)}"
    yield ""
    yield "| trials | killed at | expected effects | flaws | findings | seed | seconds |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    yield (
        f"| {summary.trials} | {points.landed} of {points.total} points | {summary.effects} "
        f"| {summary.flaws} | {len(summary.findings)} | {summary.seed} | {summary.elapsed_s:.1f} |"
    )
    found = causes(summary.findings)
    if found:
        yield from _table(found)
    if summary.unknowns:
        yield ""
        yield "**Unknown, so this proves nothing:**"
        yield ""
        yield from _listed(summary.unknowns)


def _table(found: Sequence[Sequence[ReportedFinding]]) -> Iterator[str]:
    yield ""
    yield "| finding | operation | trials | first seen | line |"
    yield "|---|---|---:|---|---|"
    for group in found[:GROUPS_MOST]:
        first = group[0]
        line = cell(f"{first.file}:{first.line}") if first.file else ""
        yield (
            f"| **{words(first.kind)}** | {cell(first.concerns)} | {spread(group)} "
            f"| {cell(first.schedule, SCHEDULE_MOST)} | {line} |"
        )
    if len(found) > GROUPS_MOST:
        yield ""
        yield f"and {len(found) - GROUPS_MOST} more flaws"


def _details(group: Sequence[ReportedFinding]) -> Iterator[str]:
    first = group[0]
    rows = [
        f"{words(sentence(first.kind))}",
        "",
        f"- **expected** {code(first.expected)}",
        f"- **seen** {code(first.seen)}, because {code(first.because)}",
    ]
    for label, text in (
        ("between", first.between),
        ("in code", first.code),
        ("repeated", first.repeated),
    ):
        if text:
            rows.append(f"- **{label}** {code(text)}")
    rows += [f"- **also** {code(text)}" for text in first.also[:3]]
    rows += [f"- **so** {code(text)}" for text in first.consequences[:3]]
    if first.diagnosis is not None:
        rows.append(f"- **diagnosis** {words(first.diagnosis.missing)}")
        rows.append(f"- **evidence** {words(first.diagnosis.evidence)}")
        rows.append(f"- **to mend** {words(first.diagnosis.mend)}")
    if len(first.replay) <= REPLAY_MOST:
        rows += ["", "See it again:", "", *block([plain(first.replay, REPLAY_MOST)], "console")]
    what, where = f"{first.kind} of {first.concerns}", plain(first.schedule, SCHEDULE_MOST)
    yield from _folded(f"{plain(what, CELL_MOST)}, at {where}", rows)


def _folded(title: str, rows: Sequence[str]) -> Iterator[str]:
    if rows:
        # In HTML a blank line ends the block, so that what follows is read as Markdown again.
        yield from ("", f"<details><summary><code>{escape(title)}</code></summary>", "")
        yield from rows
        yield from ("", "</details>")


def _listed(texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:LINES_MOST]:
        yield f"- {words(text)}"
    if len(texts) > LINES_MOST:
        yield f"- and {len(texts) - LINES_MOST} more"
