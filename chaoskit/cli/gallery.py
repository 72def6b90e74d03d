"""``list``, ``gallery`` and ``demo``: the scenarios that prove that the harness sees."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path

import click
import msgspec
from rich.text import Text

from chaoskit.campaign.events import Finished
from chaoskit.campaign.jobs import close_session
from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.options import DEFAULT_RUNS, Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline, Workers
from chaoskit.cli.console import console
from chaoskit.cli.matrix import Row, legend, matrix, row_of, smallest
from chaoskit.cli.run import campaign, jobs_number
from chaoskit.model.errors import ChaoskitError, UsageError
from chaoskit.model.hosting import Demanding
from chaoskit.model.token import Target
from chaoskit.reporting.summary import summarize
from chaoskit.reporting.terminal import show
from chaoskit.trial.loading import Loaded, load, scenario_files
from chaoskit.trial.services import create_services

DEMO = {
    "scenarios/sound/forty_calls.py": 200,
    "scenarios/sound/file_migration.py": 150,
    "scenarios/sound/backfill.py": 40,
    "scenarios/broken/record_after_effect.py": 40,
}
"""The tasks of the demonstration, with the most trials for each: a backfill takes a second."""
GALLERY_POINTS = 32
"""The gallery is many small scenarios: two dozen points are all windows of most of them."""

SHORT = "few"
"""How a file calls a short form of its scenario, which says as much of what the harness sees."""

_ROOT = click.option(
    "--root", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Project root."
)
_RUNS = click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
_JOBS = click.option("-j", "--jobs", default="auto", show_default=True, help="Workers.")
_SEED = click.option("--seed", default=0, show_default=True)


@click.command("list", short_help="List the scenarios below this folder.")
@_ROOT
def list_scenarios(root: Path) -> int:
    """List every scenario file below a folder named `scenarios`, with its sentence."""
    out = console()
    for path in _files(root):
        loaded = load(Target(scenario=str(path)))
        shows = ", ".join(loaded.scenario.finds)
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

    One whose service needs a program that is not installed here is left out, and said to be.
    Exit 0 if all the others are as they should be, 1 otherwise.
    """
    out = console()
    number = jobs_number(jobs)
    every = [_options(_short(path), seed, max_points, "1", runs) for path in _files(root)]
    if len(every) == 1:
        every = [msgspec.structs.replace(every[0], jobs=number)]
    rows = []
    for row in rows_of(every[::-1], number):  # the longest ones are the last
        rows.append(row)
        out.print(_sentence(row), soft_wrap=True)
    left_out = sum(bool(row.lacks) for row in rows)
    rows = sorted((row for row in rows if not row.lacks), key=lambda row: row.path)
    out.print()
    out.print(matrix(rows))
    out.print(legend(rows))
    out.print(smallest(rows))
    wrong = [row for row in rows if not row.right]
    out.print(
        f"{len(rows) - len(wrong)} of {len(rows)} scenarios are as they should be, "
        f"{sum(row.trials for row in rows)} trials; seed {seed}"
        + (f"; {left_out} left out" if left_out else "")
    )
    return 1 if wrong else 0


def rows_of(every: Sequence[Options], workers: int) -> Iterator[Row]:
    """Run each campaign as a whole in one of ``workers`` processes, and tell as each one ends."""
    executor = Workers(workers, close_session)
    try:
        jobs = [executor.submit(perform, msgspec.msgpack.encode(options)) for options in every]
        for done in as_completed(jobs):
            yield msgspec.msgpack.decode(done.result(), type=Row)
    except BaseException:
        executor.shutdown(cancel_futures=True)
        raise
    executor.shutdown()


def perform(options: bytes) -> bytes:
    """One campaign in this process: encoded `Options` in, an encoded `Row` out."""
    chosen = msgspec.msgpack.decode(options, type=Options)
    path, began = chosen.target.scenario, time.monotonic()
    wanted: tuple[str, ...] = ()
    try:
        loaded = load(chosen.target)
        scenario = loaded.scenario
        wanted = tuple(scenario.finds)
        if lacks := _lacks(loaded):
            return msgspec.msgpack.encode(Row(path=path, verdict="UNKNOWN", lacks=lacks))
        *_, finished = run(chosen, Inline())
        assert isinstance(finished, Finished)
        with Store(finished.folder) as store:
            row = row_of(path, scenario, summarize(store), time.monotonic() - began)
    except ChaoskitError as error:
        row = Row(path=path, verdict="UNKNOWN", expected=wanted, why=str(error))
    return msgspec.msgpack.encode(row)


def _lacks(loaded: Loaded) -> str:
    """Which program the services of a scenario need that is not installed here."""
    services = create_services(loaded.scenario.services, loaded.here)
    told = (service.missing() for service in services if isinstance(service, Demanding))
    return "; ".join(filter(None, told))


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
        summary = campaign(options, out)
        show(summary, out)
        rows.append(row_of(str(path), load(options.target).scenario, summary))
    trials = sum(row.trials for row in rows)
    out.rule(style="dim")
    right = all(row.right for row in rows)
    said = "every one of these is as it" if right else "not all of these are as they"
    out.print(f"{trials} trials; {said} should be:", style="" if right else "red")
    for row in rows:
        out.print(_sentence(row), soft_wrap=True)
    return 0 if all(row.right for row in rows) else 1


def _files(root: Path) -> list[Path]:
    found = scenario_files(root)
    if not found:
        raise UsageError(f"there is no scenario file below a folder named scenarios in {root}")
    return found


def _short(path: Path) -> str:
    """The short form of a long scenario, where its file has one; else its scenario."""
    short = f"{path}:{SHORT}"
    try:
        load(Target(scenario=short))
    except ChaoskitError:  # it has none, or cannot be loaded, which its row will say
        return str(path)
    return short


def _options(path: Path | str, seed: int, max_points: int, jobs: str, runs: Path) -> Options:
    return Options(
        target=Target(scenario=str(path)),
        seed=seed,
        mechanisms=best(),
        max_points=max_points,
        jobs=jobs_number(jobs),
        runs=str(runs),
        fresh=True,
    )


def _sentence(row: Row) -> Text:
    if row.lacks:
        return Text.assemble("  ", ("LEFT OUT", "bold yellow"), f"  {row.path}: {row.lacks}")
    mark = ("as it should be", "green") if row.right else ("WRONG", "bold red")
    return Text.assemble("  ", mark, f"  {row.path}: {row.words}")
