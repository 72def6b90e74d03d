"""``chaoskit report``: a stored run again, in the terminal and in other forms."""

from __future__ import annotations

from pathlib import Path

import click

from chaoskit.campaign.folder import LATEST, find_run
from chaoskit.campaign.options import DEFAULT_RUNS
from chaoskit.campaign.store import Store
from chaoskit.cli import completing
from chaoskit.cli.forms import check_forms, form_options, reading, write_forms
from chaoskit.model.findings import Verdict
from chaoskit.reporting.machine import schema
from chaoskit.reporting.summary import summarize
from chaoskit.reporting.terminal import show


@click.command(
    short_help="Show a stored run again, also in other forms.",
    epilog="Exit codes: 0 valid, 1 findings, 2 usage, 3 chaoskit itself failed, 4 unknown.",
)
@click.argument("run", default=LATEST, shell_complete=completing.runs)
@form_options
@click.option("--schema", "print_schema", is_flag=True, help="Print the JSON Schema of --json.")
@click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True)
def report(run: str, print_schema: bool, runs: Path, **given: object) -> int:
    """Show the report of RUN (a folder, its name, or `latest`), and write it in other forms.

    FILE may be - for standard output; what a person reads then goes to standard error.

    \b
    chaoskit report
    chaoskit report latest --sarif chaos.sarif --junit chaos.xml
    chaoskit report latest --markdown - >> "$GITHUB_STEP_SUMMARY"
    """
    if print_schema:
        click.echo(schema(), nl=False)
        return 0
    check_forms(given)
    with Store(find_run(runs, run)) as store:
        summary = summarize(store)
        show(summary, reading(given))
        write_forms(summary, store, given)
    return Verdict(summary.verdict).exit_code
