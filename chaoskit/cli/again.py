"""``replay``, ``shrink`` and ``judge``: what was found, once more."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.text import Text

from chaoskit.campaign.folder import LATEST, find_run
from chaoskit.campaign.judging import judge_again
from chaoskit.campaign.options import DEFAULT_RUNS
from chaoskit.campaign.replay import MEANING, Replayed
from chaoskit.campaign.replay import replay as run_replay
from chaoskit.campaign.shrinking import Effort, in_words
from chaoskit.campaign.shrinking import shrink as run_shrink
from chaoskit.campaign.store import Store
from chaoskit.cli import completing
from chaoskit.cli.console import console
from chaoskit.cli.run import mechanisms_of
from chaoskit.cli.shrinking import follow
from chaoskit.explore.clocks import concerning, unmoved
from chaoskit.explore.shrink import MOST
from chaoskit.model.findings import Verdict
from chaoskit.model.token import ReplayToken, parse_token
from chaoskit.reporting.clean import cleaned, plain
from chaoskit.reporting.summary import summarize
from chaoskit.reporting.terminal import show

_RUNS = click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
_COLOURS = {
    "REPRODUCED": "red",
    "FLAKY": "red",
    "FIXED": "green",
    "CHANGED": "red",
    "UNKNOWN": "yellow",
}


@click.command(short_help="Run one failed trial again.")
@click.argument("token")
@click.option("-v", "--verbose", is_flag=True, help="Also print the trial's history.")
def replay(token: str, verbose: bool) -> int:
    """Run the trial that TOKEN names, and say whether it still fails.

    REPRODUCED (exit 1): the same finding. FIXED (0): the kill landed there, and nothing is wrong.
    CHANGED (1): another finding. UNKNOWN (4): the kill did not land, or the survey does not repeat.

    A trial that does not show it is repeated five times. FLAKY (1): some of them do.
    """
    parsed = parse_token(token)
    out = console()
    _say_what(parsed, out)
    replayed = run_replay(parsed)
    _say_outcome(replayed, out, parsed.resume_after_s)
    if verbose:
        for event in replayed.history.events:
            body = plain(msgspec.json.encode(event.body).decode())
            out.print(f"  {event.index:4} {event.at_us / 1e6:9.4f} s  {body}")
    return MEANING[replayed.outcome][0]


def _say_what(token: ReplayToken, out: Console) -> None:
    label = plain(token.target.label)
    out.print(f"chaoskit: {label}, seed {token.seed}", style="dim")
    trial = in_words(token.schedule, token.take)
    out.print(f"  {trial}", style="dim")
    if token.resume_after_s:
        out.print(f"  all clocks advance by {token.resume_after_s} s after each kill", style="dim")


def _say_outcome(replayed: Replayed, out: Console, after_s: int = 0) -> None:
    outcome, clocks = replayed.outcome, plain(unmoved(replayed.history, after_s))
    said = str(replayed.repeats) if outcome == "FLAKY" else outcome
    out.print(
        Text.assemble((said, _COLOURS[outcome]), f"  {concerning(MEANING[outcome][1], clocks)}")
    )
    if replayed.repeats is not None and outcome != "FLAKY":
        out.print(f"  {replayed.repeats.times} repeats do not show it either")
    for finding in cleaned(replayed.judgement).roots:
        out.print(f"  {finding.kind}  {concerning(finding.operation, clocks)}", style="bold")
        out.print(f"  expected  {finding.expected}; seen {finding.seen}")
        out.print(f"  because   {finding.because}")
    for reason in map(plain, replayed.reasons):
        out.print(f"  unknown: {reason}", style="yellow")


@click.command("shrink", short_help="Look for the smallest trial that still fails.")
@click.argument("token")
@click.option("--mechanisms", default="", help="Which points to try; those of TOKEN by default.")
@click.option("--max-trials", type=click.IntRange(min=1), default=MOST, show_default=True)
def shrink(token: str, mechanisms: str, max_trials: int) -> int:
    """Find the smallest trial that shows the same finding as the one that TOKEN names.

    One is smaller that has fewer faults, then fewer attempts, then exact points in place of random
    times, then earlier points, then fewer items of the input (if that is a list). The same finding
    is one of the same kind, operation and diagnosis. At the end the smallest trial is replayed,
    and the exit code is that of `chaoskit replay`.
    """
    parsed = parse_token(token)
    chosen = mechanisms_of(mechanisms) if mechanisms else ()
    out = console()
    _say_what(parsed, out)
    effort = Effort(mechanisms=chosen, most=max_trials)
    ended = follow(run_shrink(parsed, effort=effort), out)
    if not ended.began:
        out.print("  its trial does not show a finding any more: there is nothing to shrink")
    else:
        trial = in_words(ended.token.schedule, ended.token.take)
        out.print(f"smallest  {trial}", soft_wrap=True)
        more = "; not everything was tried, there may be a smaller one" if ended.cut_off else ""
        out.print(f"  {ended.trials} trials, {ended.surveys} surveys{more}", style="dim")
    _say_outcome(ended.replayed, out, parsed.resume_after_s)
    if ended.began:
        out.print(f"chaoskit replay {ended.token}", style="cyan", soft_wrap=True)
    return MEANING[ended.replayed.outcome][0]


@click.command(short_help="Judge a stored run again, running nothing.")
@click.argument("run", default=LATEST, shell_complete=completing.runs)
@_RUNS
def judge(run: str, runs: Path) -> int:
    """Ask today's checkers about the stored histories of RUN (a folder, or `latest`)."""
    out = console()
    with Store(find_run(runs, run), writable=True) as store:
        changed = judge_again(store)
        summary = summarize(store)
    for schedule, before, now in changed:
        out.print(f"  {schedule}: was {before}, is {now}")
    out.print(
        f"judged {summary.trials} stored trials, {len(changed)} judgements changed", style="dim"
    )
    show(summary, out)
    return Verdict(summary.verdict).exit_code
