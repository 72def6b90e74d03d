"""``chaoskit export``: a finding becomes a regression test and the draft of a bug report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import msgspec
from rich.text import Text

from chaoskit.campaign.folder import LATEST, find_run
from chaoskit.campaign.options import DEFAULT_RUNS, Options
from chaoskit.campaign.repeating import named
from chaoskit.campaign.replay import replay
from chaoskit.campaign.store import FILE, Store
from chaoskit.cli.console import console
from chaoskit.cli.forms import check_places
from chaoskit.model.errors import ChaoskitError, UsageError, unknown_name
from chaoskit.model.findings import Finding
from chaoskit.model.token import PREFIX, ReplayToken, parse_token
from chaoskit.reporting.files import write_text
from chaoskit.reporting.regression import Exhibit, bug_report, pytest_file
from chaoskit.reporting.shell_script import shell_script, why_none
from chaoskit.reporting.summary import REPLAY, ReportedFinding, summarize

_FINGERPRINT = re.compile(r"[0-9a-f]{4,8}")


@click.command(
    short_help="Turn a finding into a pytest file and a bug report.",
    epilog="Exit codes: 0 written, 2 usage, 3 chaoskit itself failed, 4 there is nothing to show.",
)
@click.argument("token")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder of the files; the present one by default.",
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
@click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True)
def export(token: str, out: Path, force: bool, runs: Path) -> int:
    """Write a test that fails until the task is mended, and the draft of a bug report.

    TOKEN is a replay token, or the first digits of the fingerprint of a finding in the latest run.
    The trial is taken from the stored runs; if it is in none, it is run again.

    The test is green once its trial shows nothing any more. Where a fix has done away with the
    trial's point, every other point is tried instead. The report holds neither paths of this
    machine nor known sorts of credentials; read it before you send it.

    Where one plain kill of a command at a call on an open file shows the finding, there is a shell
    script as well, which shows it by strace alone, in a copy of the folder.

    \b
    chaoskit export ck1-… --out tests/chaos
    chaoskit export add4e274
    """
    check_places(folders=(out,))
    parsed = _token(token, runs)
    exhibit = _stored(parsed, runs) or _run(parsed)
    said = console()
    if exhibit is None:
        said.print("the trial of this token shows no finding: there is nothing to export")
        return 4
    test = out / f"test_chaos_{exhibit.name}.py"
    report = out / f"bug_{exhibit.name}.md"
    script = out / f"reproduce_{exhibit.name}.sh"
    why = why_none(parsed, exhibit.baseline)
    for file in (test, report, *(() if why else (script,))):
        if file.exists() and not force:
            raise UsageError(f"{file} is there already: choose another --out, or give --force")
    write_text(test, pytest_file(exhibit, out))
    write_text(report, bug_report(exhibit))
    said.print(Text(f"{test}  fails until the task is mended: pytest {test}"), soft_wrap=True)
    said.print(Text(f"{report}  the draft of a bug report"), soft_wrap=True)
    if why:
        said.print(Text(f"no script for strace: {why}"), soft_wrap=True)
    else:
        write_text(script, shell_script(exhibit, out))
        said.print(Text(f"{script}  the same by strace, without chaoskit"), soft_wrap=True)
    return 0


def _token(text: str, runs: Path) -> ReplayToken:
    text = text.strip().removeprefix(REPLAY)
    if text.startswith(PREFIX) or not _FINGERPRINT.fullmatch(text):
        return parse_token(text)
    with Store(find_run(runs, LATEST)) as store:
        findings = summarize(store).findings
    for finding in findings:
        if finding.fingerprint.startswith(text):
            return parse_token(finding.replay.removeprefix(REPLAY))
    raise unknown_name("finding of the latest run", text, [f.fingerprint for f in findings])


def _stored(token: ReplayToken, runs: Path) -> Exhibit | None:
    """The token's trial in one of the stored runs, the newest first."""
    for store in _stores(runs) if token.take is None else ():
        options = msgspec.json.decode(store.get("options") or "", type=Options)
        if (options.target, options.seed) != (token.target, token.seed):
            continue
        for trial in store.trials():
            finding = named(token.fingerprint)(trial.judgement)
            if trial.schedule == token.schedule and finding is not None:
                place, survey = _place(store, token, finding), store.survey()
                return Exhibit(
                    token=token,
                    finding=finding,
                    history=store.history(trial.schedule),
                    between=place.between if place else "",
                    code=place.code if place else "",
                    baseline=survey[0] if survey else None,
                )
    return None


def _stores(runs: Path) -> Iterator[Store]:
    for file in sorted(runs.glob(f"*/{FILE}"), reverse=True):
        if not file.parent.is_symlink():
            with suppress(ChaoskitError), Store(file.parent) as store:
                yield store


def _place(store: Store, token: ReplayToken, finding: Finding) -> ReportedFinding | None:
    for one in summarize(store).findings:
        if (one.schedule, one.fingerprint) == (token.schedule, finding.fingerprint):
            return one
    return None


def _run(token: ReplayToken) -> Exhibit | None:
    """The token's trial, run again; None where it shows no finding any more."""
    replayed = replay(token)
    finding = named(token.fingerprint)(replayed.judgement) or replayed.finding
    if finding is None:
        return None
    return Exhibit(token=token, finding=finding, history=replayed.history)
