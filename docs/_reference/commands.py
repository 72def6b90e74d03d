"""The page of the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from chaoskit.cli.commands import cli
from docs._reference.markdown import Row, table, text


def page() -> Iterator[str]:
    yield "# Command line"
    yield ""
    context = click.Context(cli, info_name="chaoskit", **cli.context_settings)
    names = cli.list_commands(context)
    yield from table(
        ("command", "what it does"),
        (
            (
                f"[`{name}`](#chaoskit-{name})",
                text(_command(cli, context, name).get_short_help_str(200)),
            )
            for name in names
        ),
    )
    yield "Exit codes: 0 valid, 1 findings, 2 usage, 3 chaoskit itself failed, 4 unknown; where a"
    yield "command has others, it says so. `chaoskit --version` prints the version."
    for name in names:
        yield from _one(_command(cli, context, name), context, name, "##")


def _command(group: click.Group, context: click.Context, name: str) -> click.Command:
    found = group.get_command(context, name)
    assert found is not None
    return found


def _one(command: click.Command, above: click.Context, name: str, level: str) -> Iterator[str]:
    # With the settings of the real one: a command keeps the help option of its first context.
    context = click.Context(command, info_name=name, parent=above, **command.context_settings)
    yield ""
    yield f"{level} {context.command_path}"
    yield ""
    yield "```text"
    yield f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    yield "```"
    yield ""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        if block.startswith("\b"):
            yield from (
                "```console",
                *(f"$ {line.strip()}" for line in block.splitlines()[1:]),
                "```",
            )
        else:
            yield text(block)
        yield ""
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        yield from table(
            ("option", "meaning", "by default"), (_option(option, context) for option in options)
        )
    if command.epilog:
        yield text(command.epilog)
        yield ""
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from _one(_command(command, context, below), context, below, "###")


def _option(option: click.Option, context: click.Context) -> Row:
    names, _, words = (option.get_help_record(context) or ("", "", ""))[0], "", option.help or ""
    default = option.show_default if isinstance(option.show_default, str) else ""
    value = option.get_default(context)
    if not default and not option.is_flag and isinstance(value, (str, int, float, Path)):
        default = str(value)
    if option.is_flag and option.secondary_opts and isinstance(value, bool):
        default = (option.opts if value else option.secondary_opts)[0]
    several = " Several times." if option.multiple else ""
    return f"`{names}`", text(words) + several, f"`{default}`" if default else ""
