"""``chaoskit diff``: what changed from one run to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from chaoskit.campaign.folder import LATEST, find_run
from chaoskit.campaign.options import DEFAULT_RUNS
from chaoskit.campaign.store import Store
from chaoskit.cli import completing
from chaoskit.cli.console import console, labelled
from chaoskit.cli.words import known_schedule
from chaoskit.reporting.differences import Change, Differences, Parting, compare
from chaoskit.reporting.timeline import Line

SHOWN_MOST = 8
UNKNOWN_CODE = 4


@click.command(
    short_help="Say what got fixed, what is new and what remains.",
    epilog="Exit codes: 0 nothing new, 1 something new, 2 usage, 4 the later run proves nothing.",
)
@click.argument("before", shell_complete=completing.runs)
@click.argument("after", default=LATEST, shell_complete=completing.runs)
@click.option("--at", "schedule", default="", metavar="SCHEDULE", help="Which trial to follow.")
@click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True)
def diff(before: str, after: str, schedule: str, runs: Path) -> int:
    """Compare two stored runs: BEFORE, and AFTER (the latest one).

    A flaw is the same in both if it has the same kind, operation and diagnosis. It counts as
    fixed only if a trial that showed it was tried again.

    For one schedule that both have tried (by default the first of which the verdict differs), the
    first event is shown at which its two trials part; times and ids that vary are left out.

    \b
    chaoskit diff 2026-11-29T22-31-18-shop-69dc
    chaoskit diff reports/main reports/branch --at kill@payments.charge#3.applied
    """
    with Store(find_run(runs, before)) as first, Store(find_run(runs, after)) as second:
        chosen = _in_both(first, second, schedule) if schedule else ""
        found = compare(first, second, chosen)
    _show(found, console())
    if found.worse:
        return 1
    return UNKNOWN_CODE if found.after.verdict == "UNKNOWN" else 0


def _in_both(first: Store, second: Store, schedule: str) -> str:
    both = first.known() & second.known()
    return known_schedule("trial of both runs", schedule, both)


def _show(found: Differences, out: Console) -> None:
    for name, summary in (("before", found.before), ("after", found.after)):
        out.print(
            Text(
                f"{name:<7} {summary.verdict}, {summary.trials} trials, {summary.points.landed} of "
                f"{summary.points.total} points, {summary.flaws} flaws in "
                f"{len(summary.findings)} findings; {summary.run}"
            )
        )
    for note in found.notes:
        out.print(Text(f"note    {note}", style="yellow"))
    for title, style, changes in (
        ("fixed", "green", found.fixed),
        ("new", "red", found.new),
        ("remains", "yellow", found.remaining),
        ("not tried again", "yellow", found.untried),
    ):
        for change in changes:
            out.print()
            out.print(_headed(title, style, change))
            labelled(_of(change), out)
    if not (found.fixed or found.new or found.remaining or found.untried):
        out.print("\nneither run shows a flaw")
    _show_points(found, out)
    if found.parting is not None:
        _show_parting(found.parting, out)
    if not found.worse and found.after.verdict == "UNKNOWN":
        out.print()
        out.print("nothing new was found, but the later run proves nothing", style="yellow")


def _headed(title: str, style: str, change: Change) -> Text:
    flaw = change.flaw
    return Text.assemble((title, f"bold {style}"), "  ", (flaw.kind, "bold"), "  ", flaw.operation)


def _of(change: Change) -> Iterator[tuple[str, str]]:
    if change.flaw.missing:
        yield "diagnosis", change.flaw.missing
    yield "trials", f"{len(change.before)} before, {len(change.after)} now"
    if change.came and change.before:
        yield "now also", _some(change.came)
    if change.went and change.after:
        yield "no longer", _some(change.went)
    if not change.before:
        yield "at", _some(change.after)
        if not change.came:
            yield "", "at points that the first run did not try"
    if not change.after and not change.went:
        yield "", f"showed at {_some(change.before)}"


def _show_points(found: Differences, out: Console) -> None:
    for title, names in (("came", found.came), ("went", found.went)):
        if names:
            out.print()
            out.print(Text(f"{len(names)} points {title}", style="bold"))
            labelled([("", _some(names))], out)


def _show_parting(parting: Parting, out: Console) -> None:
    out.print()
    was, now = parting.verdicts
    out.print(Text.assemble((parting.schedule, "bold"), f"  was {was}, is {now}"))
    if parting.number is None:
        labelled([("", "the two trials do not part")], out)
        return
    rows = [("alike", f"{parting.number} events")]
    if parting.shared is not None:
        rows.append(("after", _told(parting.shared)))
    rows.append(("before", _told(parting.before)))
    rows.append(("now", _told(parting.after)))
    labelled(rows, out)


def _told(line: Line | None) -> str:
    return (
        "the trial is over" if line is None else f"attempt {line.attempt}: {line.who} {line.what}"
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MOST} more" if len(names) > SHOWN_MOST else ""
    return ", ".join(names[:SHOWN_MOST]) + more
