"""The options that write a report in other forms: the same ones wherever there is a report."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from chaoskit.campaign.store import Store
from chaoskit.cli.console import plain_console
from chaoskit.model.errors import UsageError, naming
from chaoskit.reporting.files import check_file, check_folder
from chaoskit.reporting.forms import FORMS, render, write
from chaoskit.reporting.summary import Summary

STDOUT = Path("-")


def form_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--json FILE`` and its like; ``given["json_path"]`` is then a path, ``-`` or None."""
    for name, form in reversed(FORMS.items()):
        command = click.option(
            f"--{name}",
            f"{name}_path",
            metavar="FILE",
            type=click.Path(path_type=Path, allow_dash=True),
            help=form.help,
        )(command)
    return command


def forms_of(given: Mapping[str, object]) -> dict[str, Path]:
    """Which forms are asked for, and where they go.

    Raises:
        UsageError: two of them would go to standard output, or into the same file.
    """
    chosen = {name: path for name in FORMS if isinstance(path := given.get(f"{name}_path"), Path)}
    taken: dict[Path, str] = {}
    for name, path in chosen.items():
        if path in taken:
            where = "standard output" if path == STDOUT else str(path)
            raise UsageError(f"--{taken[path]} and --{name} both go to {where}: name a file")
        taken[path] = name
    return chosen


def check_forms(given: Mapping[str, object]) -> None:
    """See that the forms can be written, before anything is run.

    Raises:
        UsageError: one of them cannot.
    """
    check_places(*(path for path in forms_of(given).values() if path != STDOUT))


def check_places(*files: object, folders: Sequence[object] = ()) -> None:
    """See that reports can be written, before anything is run.

    Raises:
        UsageError: one of ``files`` is a folder, or cannot be made; or one of ``folders`` cannot.
    """
    for file in files:
        if isinstance(file, Path):
            check_file(file)
    for folder in folders:
        if isinstance(folder, Path):
            check_folder(folder)


def reading(given: Mapping[str, object]) -> Console:
    """Where a person reads: standard output, or standard error where a form goes to the former."""
    return plain_console(stderr=STDOUT in forms_of(given).values())


def write_forms(summary: Summary, store: Store, given: Mapping[str, object]) -> None:
    """Write what was asked for; one form that cannot be written is no reason to leave others out.

    Raises:
        UsageError: some cannot be written; it says how to make them later.
    """
    wrong = []
    for name, path in forms_of(given).items():
        try:
            if path == STDOUT:
                with naming("standard output", "cannot be written"):
                    click.echo(render(name, summary, store).encode(), nl=False)
            else:
                write(name, summary, store, path)
        except UsageError as error:
            run = shlex.quote(summary.run)
            wrong.append(f"{error}\nthe run is stored: chaoskit report {run} --{name} FILE")
    if wrong:
        raise UsageError("\n".join(wrong))
