"""``chaoskit join``: the shards of one campaign as one."""

from __future__ import annotations

from pathlib import Path

import click

from chaoskit.campaign.folder import find_run
from chaoskit.campaign.joining import join as join_shards
from chaoskit.campaign.options import DEFAULT_RUNS
from chaoskit.campaign.store import Store
from chaoskit.cli import completing
from chaoskit.cli.forms import check_forms, form_options, reading, write_forms
from chaoskit.model.findings import Verdict
from chaoskit.reporting.summary import summarize
from chaoskit.reporting.terminal import show


@click.command(
    "join",
    short_help="Put the shards of one campaign together.",
    epilog="Exit codes: 0 valid, 1 findings, 2 usage, 3 chaoskit itself failed, 4 unknown.",
)
@click.argument("shards", metavar="RUN...", nargs=-1, required=True, shell_complete=completing.runs)
@click.option(
    "--into", required=True, type=click.Path(path_type=Path), help="The folder that is made."
)
@form_options
@click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True)
def join(shards: tuple[str, ...], into: Path, runs: Path, **given: object) -> int:
    """Make one campaign of all its shards, each a RUN of `chaoskit run --shard K/N`.

    They were run with the same words, from the same files, and have ended. The new folder is a run
    like any other. Its report is shown, and the exit code is that of its verdict.

    \b
    chaoskit join shard-*/run --into reports/runs/whole
    chaoskit join shard-*/run --into whole --markdown - >> "$GITHUB_STEP_SUMMARY"
    """
    check_forms(given)
    join_shards([find_run(runs, name) for name in shards], into)
    with Store(into) as store:
        summary = summarize(store)
        show(summary, reading(given))
        write_forms(summary, store, given)
    return Verdict(summary.verdict).exit_code
