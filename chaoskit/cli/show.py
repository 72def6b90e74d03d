"""``chaoskit show``: the trials of a stored run, and one of them as a timeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from chaoskit.campaign.folder import LATEST, find_run
from chaoskit.campaign.options import DEFAULT_RUNS, Options
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.cli import completing
from chaoskit.cli.console import console
from chaoskit.cli.words import known_schedule
from chaoskit.explore.clocks import concerning, unmoved
from chaoskit.model.errors import UsageError
from chaoskit.reporting.clean import cleaned, plain, plain_lines
from chaoskit.reporting.terminal import COLOURS
from chaoskit.reporting.timeline import Line, minimal, told, without_calls

TRIALS_MOST = 50
NARROW = 60
"""Below so many columns a row of the list takes two lines."""


@click.command(
    short_help="Show a run's trials, or one trial's timeline.",
    epilog="Exit codes: 0 shown, 2 usage.",
)
@click.argument("run", default=LATEST, shell_complete=completing.runs)
@click.argument("trial", required=False)
@click.option("--failed", is_flag=True, help="Only trials that are not VALID.")
@click.option("--all", "everything", is_flag=True, help="Every trial, however many there are.")
@click.option("--calls", is_flag=True, help="With system calls and lines of code.")
@click.option("--minimal", "shortest", is_flag=True, help="Only what shows the first finding.")
@click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True)
def show(
    run: str,
    trial: str | None,
    failed: bool,
    everything: bool,
    calls: bool,
    shortest: bool,
    runs: Path,
) -> int:
    """List the trials of RUN (a folder, its name, or `latest`), or tell one of them.

    TRIAL is its number in the list, or its schedule; a number alone is one of the latest run.

    \b
    chaoskit show latest --failed
    chaoskit show latest 17
    chaoskit show latest kill@payments.charge#3.applied --minimal
    """
    if trial is None and run.isdigit():
        run, trial = LATEST, run
    out = console()
    with Store(find_run(runs, run)) as store:
        trials = list(store.trials())
        if trial is None:
            _list(trials, out, failed=failed, most=len(trials) if everything else TRIALS_MOST)
        else:
            _tell(store, _chosen(trials, trial), out, calls=calls, shortest=shortest)
    return 0


def _chosen(trials: Sequence[StoredTrial], text: str) -> StoredTrial:
    if text.isdigit():
        if not 1 <= int(text) <= len(trials):
            raise UsageError(f"there is no trial {text}: this run has trials 1 to {len(trials)}")
        return trials[int(text) - 1]
    known = {one.schedule: one for one in trials}
    return known[known_schedule("trial", text, known)]


def _list(trials: Sequence[StoredTrial], out: Console, *, failed: bool, most: int) -> None:
    numbered = [
        (number, one)
        for number, one in enumerate(trials, 1)
        if not failed or one.judgement.verdict != "VALID"
    ]
    narrow = out.width < NARROW
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="dim")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, one in numbered[:most]:
        verdict = one.judgement.verdict
        kinds = ", ".join(dict.fromkeys(f.kind for f in one.judgement.roots))
        said = kinds or one.judgement.end if verdict != "UNKNOWN" else "proves nothing"
        text = Text.assemble(
            plain(one.schedule), "\n" if narrow else "  ", (plain(said), COLOURS[verdict])
        )
        table.add_row(str(number), Text(verdict, style=COLOURS[verdict]), text)
    out.print(table)
    what = "trials that are not VALID" if failed else "trials"
    out.print(f"{len(numbered)} {what} of {len(trials)}", style="dim")
    if len(numbered) > most:
        out.print(f"the first {most} are shown; --all shows every one", style="dim")


def _tell(store: Store, trial: StoredTrial, out: Console, *, calls: bool, shortest: bool) -> None:
    history = store.history(trial.schedule)
    roots = trial.judgement.roots
    witness = frozenset(index for finding in roots for index in finding.witness)
    verdict = trial.judgement.verdict
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    clocks = plain(unmoved(history, options.resume_after_s))
    said = concerning(plain(trial.schedule), clocks)
    out.print(Text.assemble((verdict, COLOURS[verdict]), "  ", said))
    way = "a real kill" if trial.real else "resumed from a copy of the world at this point"
    out.print(f"  {way}; ended {trial.judgement.end}", style="dim", markup=False)
    only = None if calls else without_calls(history)
    if shortest:
        if not roots:
            raise UsageError(
                "this trial has no finding that --minimal could show: leave it out, or choose a "
                "trial from chaoskit show --failed"
            )
        only = minimal(history, roots[0])
    out.print()
    _timeline(list(told(history, only)), witness, out)
    for finding in cleaned(trial.judgement).roots:
        out.print()
        out.print(
            Text.assemble(
                ("  " + finding.kind, "bold red"), "  ", concerning(finding.operation, clocks)
            )
        )
        out.print(Text(f"  expected {finding.expected}; seen {finding.seen}"))
        out.print(Text(f"  because  {finding.because}"))
    for reason in trial.judgement.unknowns:
        out.print(Text(f"  unknown: {plain(reason)}", style="yellow"))
    _output(history.attempts[-1][1].output_tail if history.attempts else "", out)


def _timeline(lines: Sequence[Line], witness: frozenset[int], out: Console) -> None:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="red")
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for line in lines:
        style = "bold red" if line.event in witness else "bold" if line.effect else ""
        if line.what.startswith("FAULT"):
            style = "reverse"
        mark = "!" if line.event in witness else ""
        when = f"{line.seconds:.3f}"
        if out.width < NARROW:
            what = Text.assemble((f"{line.who}: ", "dim"), (line.what, style))
            table.add_row(mark, when, "", what)
        else:
            table.add_row(mark, when, line.who, Text(line.what, style=style))
    out.print(table)


def _output(tail: str, out: Console) -> None:
    lines = [line for line in plain_lines(tail) if line]
    if lines:
        out.print()
        out.print("  the last words of the last attempt:", style="dim")
        for line in lines[-10:]:
            out.print(Text(f"    {line}"))
