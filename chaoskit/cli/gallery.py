"""``list``, ``gallery`` and ``demo``: the scenarios that prove that the harness sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.run import DEFAULT_RUNS, Options
from chaoskit.cli.run import campaign, console, jobs_number
from chaoskit.model.errors import UsageError
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary
from chaoskit.reporting.terminal import show
from chaoskit.trial.loading import load, scenario_files

DEMO = {
    "scenarios/sound/forty_calls.py": 200,
    "scenarios/sound/file_migration.py": 150,
    "scenarios/sound/backfill.py": 40,
    "scenarios/broken/record_after_effect.py": 40,
}
"""The tasks of the demonstration, with the most trials for each: a backfill takes a second."""
GALLERY_POINTS = 60

_ROOT = click.option(
    "--root", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Project root."
)
_RUNS = click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
_JOBS = click.option("-j", "--jobs", default="auto", show_default=True, help="Workers.")
_SEED = click.option("--seed", default=0, show_default=True)


_SHORT = {
    "duplicate_effect": "dup",
    "lost_effect": "lost",
    "redone_step": "redo",
    "silent_restart": "over",
    "false_success": "false",
    "wrong_inputs": "input",
    "stuck": "stuck",
    "diverged_state": "state",
    "leftover_process": "left",
}
"""Column heads of the matrix; `docs/glossary.md` has the whole names."""


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario of the gallery: what it must show, and what it showed."""

    path: str
    expected: frozenset[str]
    summary: Summary

    @property
    def right(self) -> bool:
        """A broken one shows exactly its named findings, a sound one is VALID."""
        if not self.expected:
            return self.summary.verdict == "VALID"
        return self.summary.kinds == self.expected


@click.command("list", short_help="List the scenarios below this folder.")
@_ROOT
def list_scenarios(root: Path) -> int:
    """List every scenario file below a folder named `scenarios`, with its sentence."""
    out = console()
    for path in _files(root):
        loaded = load(Target(scenario=str(path)))
        shows = ", ".join(loaded.scenario.expect)
        line = Text(f"{path}\n    {loaded.title}")
        if shows:
            line.append(f"; shows {shows}", style="red")
        out.print(line, soft_wrap=True)
    return 0


@click.command(short_help="Run every scenario: each fault must be seen, and nothing else.")
@_ROOT
@click.option("--max-points", default=GALLERY_POINTS, show_default=True, help="Trials for each.")
@_SEED
@_JOBS
@_RUNS
def gallery(root: Path, max_points: int, seed: int, jobs: str, runs: Path) -> int:
    """Run every broken scenario (its named finding and nothing else) and every sound one (VALID).

    Exit 0 if all are as they should be, 1 otherwise.
    """
    out = console()
    rows = []
    for path in _files(root):
        options = _options(path, seed, max_points, jobs, runs)
        row = _row(options, out)
        rows.append(row)
        out.print(_sentence(row), soft_wrap=True)
    out.print()
    out.print(_matrix(rows))
    out.print("● found and named   ○ named and missed   ! false alarm", style="dim")
    wrong = [row for row in rows if not row.right]
    out.print(
        f"{len(rows) - len(wrong)} of {len(rows)} scenarios are as they should be; seed {seed}"
    )
    return 1 if wrong else 0


@click.command(short_help="Three sound tasks and a broken one, in a few minutes.")
@_ROOT
@_SEED
@_JOBS
@_RUNS
def demo(root: Path, seed: int, jobs: str, runs: Path) -> int:
    """Kill and resume three sound tasks and one broken one, and show what the books say.

    Exit 0 if the sound ones are VALID and the broken one shows its fault, 1 otherwise.
    """
    out = console()
    rows = []
    for name, max_points in DEMO.items():
        path = root / name
        if not path.is_file():
            raise UsageError(f"there is no {path}: run `chaoskit demo` in a clone of the project")
        options = _options(path, seed, max_points, jobs, runs)
        out.rule(str(path), align="left", style="dim")
        row = _row(options, out)
        show(row.summary, out)
        rows.append(row)
    trials = sum(row.summary.trials for row in rows)
    out.rule(style="dim")
    out.print(
        f"{trials} trials; every one of these is as it should be:"
        if all(row.right for row in rows)
        else f"{trials} trials; [red]not all of these are as they should be[/]:"
    )
    for row in rows:
        out.print(_sentence(row), soft_wrap=True)
    return 0 if all(row.right for row in rows) else 1


def _files(root: Path) -> list[Path]:
    found = scenario_files(root)
    if not found:
        raise UsageError(f"there is no scenario file below a folder named scenarios in {root}")
    return found


def _options(path: Path, seed: int, max_points: int, jobs: str, runs: Path) -> Options:
    return Options(
        target=Target(scenario=str(path)),
        seed=seed,
        mechanisms=best(),
        max_points=max_points,
        jobs=jobs_number(jobs),
        runs=str(runs),
        fresh=True,
    )


def _row(options: Options, out: Console) -> Row:
    expected = frozenset(load(options.target).scenario.expect)
    summary = campaign(options, out)
    return Row(options.target.scenario, expected, summary)


def _sentence(row: Row) -> str:
    mark = "[green]as it should be[/]" if row.right else "[bold red]WRONG[/]"
    found = ", ".join(sorted(row.summary.kinds)) or row.summary.verdict
    wanted = ", ".join(sorted(row.expected)) or "VALID"
    says = found if row.right else f"{found}, not {wanted}"
    return f"  {mark}  {row.path}: {says}"


def _matrix(rows: Sequence[Row]) -> Table:
    kinds = [k for k in FINDING_KINDS if any(k in r.expected | r.summary.kinds for r in rows)]
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True)
    for kind in kinds:
        table.add_column(_SHORT[kind], justify="center", no_wrap=True)
    folder = ""
    for row in rows:
        path = Path(row.path)
        if path.parent.name != folder:
            folder = path.parent.name
            table.add_row(f"[dim]{folder}[/]")
        cells = [_cell(kind in row.expected, kind in row.summary.kinds) for kind in kinds]
        table.add_row(path.stem if row.right else f"[bold red]{path.stem}[/]", *cells)
    return table


def _cell(named: bool, found: bool) -> str:
    if named and found:
        return "[green]●[/]"
    if named:
        return "[bold red]○[/]"
    return "[bold red]![/]" if found else ""
