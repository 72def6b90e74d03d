"""``replay``, ``judge`` and ``report``: what was found, once more."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from chaoskit.campaign.replay import MEANING
from chaoskit.campaign.replay import replay as run_replay
from chaoskit.campaign.run import DEFAULT_RUNS, judge_again
from chaoskit.campaign.store import LATEST, Store, find_run
from chaoskit.cli.run import console
from chaoskit.model.findings import Verdict
from chaoskit.model.token import parse_token
from chaoskit.reporting.machine import write_json, write_junit
from chaoskit.reporting.summary import summarize
from chaoskit.reporting.terminal import show

_RUNS = click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
_COLOURS = {"REPRODUCED": "red", "FIXED": "green", "CHANGED": "red", "UNKNOWN": "yellow"}


@click.command(short_help="Run one failed trial again.")
@click.argument("token")
@click.option("-v", "--verbose", is_flag=True, help="Also print the trial's history.")
def replay(token: str, verbose: bool) -> int:
    """Run the trial that TOKEN names, and say whether it still fails.

    REPRODUCED (exit 1): the same finding. FIXED (0): the kill landed there, and nothing is wrong.
    CHANGED (1): another finding. UNKNOWN (4): the kill did not land, or the survey does not repeat.
    """
    parsed = parse_token(token)
    out = console()
    out.print(f"chaoskit: {parsed.target.label}, seed {parsed.seed}", style="dim", markup=False)
    out.print(f"  {parsed.schedule}", style="dim", markup=False)
    replayed = run_replay(parsed)
    code, meaning = MEANING[replayed.outcome]
    out.print(f"[{_COLOURS[replayed.outcome]}]{replayed.outcome}[/]  {meaning}")
    for finding in replayed.judgement.roots:
        out.print(f"  {finding.kind}  {finding.operation}", style="bold", markup=False)
        out.print(f"  expected  {finding.expected}; seen {finding.seen}", markup=False)
        out.print(f"  because   {finding.because}", markup=False)
    for reason in replayed.reasons:
        out.print(f"  unknown: {reason}", style="yellow", markup=False)
    if verbose:
        for event in replayed.history.events:
            body = msgspec.json.encode(event.body).decode()
            out.print(f"  {event.index:4} {event.at_us / 1e6:9.4f} s  {body}", markup=False)
    return code


@click.command(short_help="Judge a stored run again, running nothing.")
@click.argument("run", default=LATEST)
@_RUNS
def judge(run: str, runs: Path) -> int:
    """Ask today's checkers about the stored histories of RUN (a folder, or `latest`)."""
    out = console()
    with Store(find_run(runs, run), writable=True) as store:
        changed = judge_again(store)
        summary = summarize(store)
    for schedule, before, now in changed:
        out.print(f"  {schedule}: was {before}, is {now}", markup=False)
    out.print(
        f"judged {summary.trials} stored trials, {len(changed)} judgements changed", style="dim"
    )
    show(summary, out)
    return Verdict(summary.verdict).exit_code


@click.command(short_help="Show a stored run again.")
@click.argument("run", default=LATEST)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write JSON here.")
@click.option("--junit", "junit_path", type=click.Path(path_type=Path), help="Write JUnit XML.")
@_RUNS
def report(run: str, json_path: Path | None, junit_path: Path | None, runs: Path) -> int:
    """Show the report of RUN (a folder, or `latest`), and write it in other forms."""
    with Store(find_run(runs, run)) as store:
        summary = summarize(store)
        show(summary, console())
        if json_path is not None:
            write_json(summary, json_path)
        if junit_path is not None:
            write_junit(summary, store, junit_path)
    return Verdict(summary.verdict).exit_code
