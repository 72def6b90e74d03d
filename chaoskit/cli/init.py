"""``chaoskit init``: a starter scenario and its test, which run as they are."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from chaoskit.cli.starting import Starter, scenario_text, test_text
from chaoskit.cli.words import command_words, pair
from chaoskit.model.errors import UsageError
from chaoskit.reporting.files import write_text
from chaoskit.trial.services import instances_of

EXAMPLE = "example"


@click.command(short_help="Write a starter scenario and a test for your own command.")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--services", default="", help="Fake services it uses, as in payments,email.")
@click.option("--resume", default="", help="The command line that resumes it, if another one.")
@click.option("--env", multiple=True, help="NAME=VALUE for the task; placeholders are filled in.")
@click.option("--name", default="", help="Of the scenario; taken from the command by default.")
@click.pass_context
def init(
    ctx: click.Context, folder: Path, services: str, resume: str, env: tuple[str, ...], name: str
) -> int:
    """Write scenarios/NAME.py and tests/test_NAME_survives.py in DIR, and say what to type next.

    The command stands after `--`; without one, an example task is written. Files that are there are
    never overwritten. Words of the command that name a file are written relative to the scenario,
    because the task runs in a work folder of its own.

    \b
    chaoskit init
    chaoskit init --services payments,email -- python bill.py --api {payments.url}
    """
    command = tuple(map(str, ctx.obj)) if isinstance(ctx.obj, tuple) else None
    if command is None and (services or resume or env):
        raise UsageError("--services, --resume and --env go with a command after --")
    if command == ():
        raise UsageError("there is no command after --; leave -- out for an example task")
    chosen = _services(services)
    resumed = command_words(resume, "--resume")
    named = _name(name, command)
    scenario = folder / "scenarios" / f"{named}.py"
    test = folder / "tests" / f"test_{named}_survives.py"
    _check(scenario, test)
    here = scenario.parent.resolve()
    starter = None
    if command is not None:
        starter = Starter(
            name=named,
            command=_moved(command, here),
            resume=_moved(resumed, here) if resumed else (),
            services=chosen,
            env=tuple(pair(text, "--env") for text in env),
        )
    for file, text in ((scenario, scenario_text(starter)), (test, test_text(named))):
        write_text(file, text, new=True)
        click.echo(f"wrote {file}")
    click.echo("next, see what happens when it is killed everywhere, and keep it that way:")
    click.echo(f"  chaoskit run {shlex.quote(str(scenario))}")
    click.echo(f"  pytest {shlex.quote(str(test))}")
    return 0


def _services(text: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
    instances_of(chosen)
    return chosen


def _name(given: str, command: Sequence[str] | None) -> str:
    """A name for the two files: as given, or that of the first file in the command."""
    if given:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", given):
            raise UsageError(f"--name takes letters, digits and _, not {given!r}")
        return given
    if command is None:
        return EXAMPLE
    words = [word for word in command if os.path.isfile(word)] or list(command)
    stem = re.sub(r"\W+", "_", Path(words[0]).stem, flags=re.ASCII).strip("_").lower()
    return stem if stem and not stem[0].isdigit() else f"task_{stem}".rstrip("_")


def _check(*files: Path) -> None:
    """See that nothing would be overwritten.

    Raises:
        UsageError: something would.
    """
    there = [str(file) for file in files if file.exists() or file.is_symlink()]
    if there:
        raise UsageError(
            f"{' and '.join(there)} there already, and stays as it is: choose another --name, or "
            "move it away"
        )


def _moved(words: Sequence[str], here: Path) -> tuple[str, ...]:
    """The command with its files seen from the scenario's folder.

    Raises:
        UsageError: its program is neither a file nor a command of this machine.
    """
    program = words[0]
    if not os.path.isfile(program) and shutil.which(program) is None:
        raise UsageError(
            f"there is no program {program!r}: give its path, or a command that your shell finds"
        )
    found = []
    for place, word in enumerate(words):
        named = os.path.isfile(word) and not os.path.isabs(word)
        if named and not (place == 0 and os.sep not in word and shutil.which(word)):
            found.append("{here}/" + os.path.relpath(os.path.abspath(word), here))
        else:
            found.append(word)
    return tuple(found)
