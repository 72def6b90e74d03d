"""``chaoskit explain``: what a finding means, how it comes about, how to mend it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from chaoskit.campaign.folder import LATEST, find_run
from chaoskit.campaign.options import DEFAULT_RUNS
from chaoskit.campaign.store import Store
from chaoskit.cli import completing
from chaoskit.cli.console import console, labelled
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.pasted import read_schedule
from chaoskit.model.token import PREFIX, parse_token
from chaoskit.reporting.explanations import explanation, sentence

if TYPE_CHECKING:
    from chaoskit.reporting.summary import ReportedFinding

_CASE = re.compile(r"[A-Z]+-[0-9]+")
_FINGERPRINT = re.compile(r"[0-9a-f]{4,8}")


@click.command(
    short_help="Say what a finding means and how to mend it.",
    epilog="Exit codes: 0 explained, 2 usage.",
)
@click.argument("finding", required=False, shell_complete=completing.kinds)
@click.option("--run", "run", default=LATEST, show_default=True, help="Where to find it.")
@click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True)
def explain(finding: str | None, run: str, runs: Path) -> int:
    """Explain FINDING: a kind, a case as in DUP-2, or one in the latest run: by the first digits of
    its fingerprint, its point, its schedule, or its replay token.

    Without one, every kind is listed with its meaning.

    \b
    chaoskit explain duplicate_effect
    chaoskit explain add4e2
    chaoskit explain kill@payments.charge#3.applied
    """
    out = console()
    if finding is None:
        _list(out)
        return 0
    if finding in FINDING_KINDS:
        _explain(finding, out)
        return 0
    if _CASE.fullmatch(finding.upper()):
        _explain_case(finding.upper(), out)
        return 0
    if _FINGERPRINT.fullmatch(finding):
        several = [_found(find_run(runs, run), finding)]
    elif (place := _place(finding)) is not None:
        several = _at(find_run(runs, run), place)
    else:
        raise unknown_name("kind of finding", finding, FINDING_KINDS)
    for found in several:
        _show(found, out)
        out.print()
    for kind in dict.fromkeys(found.kind for found in several):
        _explain(kind, out)
    return 0


def _explain_case(case: str, out: Console) -> None:
    """The kinds of finding among whose cases it is.

    Raises:
        UsageError: there is no such case.
    """
    kinds = [kind for kind in FINDING_KINDS if case in explanation(kind).cases]
    if not kinds:
        known = (known for kind in FINDING_KINDS for known in explanation(kind).cases)
        raise unknown_name("case", case, known)
    out.print(Text(f"{case} is a failure of a real program that shows as {' and as '.join(kinds)}"))
    for kind in kinds:
        out.print()
        _explain(kind, out)


def _found(folder: Path, prefix: str) -> ReportedFinding:
    from chaoskit.reporting.summary import summarize  # it knows campaigns, and loads long

    with Store(folder) as store:
        summary = summarize(store)
    found = {f.fingerprint: f for f in reversed(summary.findings)}
    fitting = [one for print_, one in found.items() if print_.startswith(prefix)]
    if len(fitting) > 1:
        names = ", ".join(sorted(one.fingerprint for one in fitting))
        raise UsageError(f"several findings of {summary.run} begin with {prefix}: {names}")
    if not fitting:
        raise unknown_name(f"finding of {summary.run}", prefix, found)
    return fitting[0]


def _place(text: str) -> str | None:
    """The schedule that a replay token, a schedule or a point names; None: it is none of these."""
    if text.startswith(PREFIX):
        return parse_token(text).schedule
    try:
        return str(read_schedule(text))
    except UsageError:
        if "@" in text or "#" in text:
            raise
        return None


def _at(folder: Path, place: str) -> list[ReportedFinding]:
    """What was found in a schedule, or at a point of a longer one.

    Raises:
        UsageError: nothing was.
    """
    from chaoskit.reporting.summary import summarize  # it knows campaigns, and loads long

    with Store(folder) as store:
        findings = summarize(store).findings
    names = {name: None for f in findings for name in (f.schedule, f.point)}
    found = [f for f in findings if place in (f.schedule, f"kill@{f.point}")]
    if not found:
        raise unknown_name(f"place of a finding of {folder}", place, names)
    return found


def _list(out: Console) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=out.width >= len(max(FINDING_KINDS, key=len)) * 2, style="bold")
    table.add_column(overflow="fold")
    for kind, meaning in FINDING_KINDS.items():
        table.add_row(kind, meaning)
    out.print(table)


def _show(found: ReportedFinding, out: Console) -> None:
    out.print(Text.assemble((found.kind, "bold red"), f"  {found.concerns}"))
    rows = [
        ("where", found.schedule),
        ("between", found.between),
        ("in code", found.code),
        ("expected", f"{found.expected}; seen {found.seen}, because {found.because}"),
        ("repeated", found.repeated),
    ]
    if found.diagnosis is not None:
        rows += [
            ("diagnosis", found.diagnosis.missing),
            ("evidence", found.diagnosis.evidence),
            ("to mend", found.diagnosis.mend),
        ]
    labelled([(label, text) for label, text in rows if text], out)
    out.print(Text(found.replay, style="cyan"), soft_wrap=True)


def _explain(kind: str, out: Console) -> None:
    known = explanation(kind)
    out.print(Text.assemble((kind, "bold"), f": {sentence(kind)}"))
    out.print()
    out.print(Text(known.how))
    if known.example:
        out.print()
        out.print(Padding(Text(known.example, style="cyan"), (0, 0, 0, 4), expand=False))
        out.print()
    rows = [("to mend", known.mend), ("cases", ", ".join(known.cases))]
    labelled([(label, text) for label, text in rows if text], out)
