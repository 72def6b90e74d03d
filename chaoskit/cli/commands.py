"""``chaoskit``: the commands, and how each of them ends.

Exit codes: 0 valid, 1 findings, 2 usage, 3 the harness failed, 4 unknown.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
from rich.console import Console

from chaoskit import __version__
from chaoskit.cli.console import plain_console
from chaoskit.cli.process import SIGNALS
from chaoskit.model.errors import ChaoskitError, UsageError, described, naming

EPILOG = "Exit codes: 0 valid, 1 findings, 2 usage, 3 chaoskit itself failed, 4 unknown."
INTERRUPTED = 130
COMPLETING = "_CHAOSKIT_COMPLETE"
"""Set by a shell that wants to know how a word may go on."""
MESSAGE_MOST = 20_000
"""So many characters of a line of an error are shown; a pasted word may be anything."""


_COMMANDS = {
    "init": ("chaoskit.cli.init", "init"),
    "run": ("chaoskit.cli.run", "run"),
    "demo": ("chaoskit.cli.gallery", "demo"),
    "gallery": ("chaoskit.cli.gallery", "gallery"),
    "replay": ("chaoskit.cli.again", "replay"),
    "shrink": ("chaoskit.cli.again", "shrink"),
    "judge": ("chaoskit.cli.again", "judge"),
    "report": ("chaoskit.cli.report", "report"),
    "show": ("chaoskit.cli.show", "show"),
    "explain": ("chaoskit.cli.explain", "explain"),
    "join": ("chaoskit.cli.join", "join"),
    "diff": ("chaoskit.cli.diff", "diff"),
    "export": ("chaoskit.cli.export", "export"),
    "list": ("chaoskit.cli.gallery", "list_scenarios"),
    "doctor": ("chaoskit.cli.doctor", "doctor"),
    "serve": ("chaoskit.cli.serve", "serve"),
    "runs": ("chaoskit.cli.runs", "runs"),
}


class _Commands(click.Group):
    """Loads a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from importlib import import_module

        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            args
            and args[0] not in _COMMANDS
            and not (args[0].startswith("-") or ctx.resilient_parsing)
        ):
            from chaoskit.model.errors import unknown_name

            raise unknown_name("command", args[0], _COMMANDS)
        found = super().resolve_command(ctx, args)
        SIGNALS.began = True  # from here on there may be something to tidy up
        return found


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(__version__, prog_name="chaoskit")
def cli() -> None:
    """Kill a resumable task at every moment that matters, resume it, and judge the world's books.

    \b
    chaoskit run scenarios/sound/forty_calls.py
    chaoskit run --services payments,email -- ./my-task --resume-from state.json
    chaoskit replay ck1-…
    """


def split_command(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """``chaoskit run … -- COMMAND``: our words, and the task's (None where there is no ``--``)."""
    words = list(arguments)
    if words[:1] in (["run"], ["init"]) and "--" in words:
        at = words.index("--")
        return words[:at], tuple(words[at + 1 :])
    return words, None


def ended(arguments: Sequence[str]) -> int:
    """Run the command line; its exit code."""
    words, command = split_command(arguments)
    SIGNALS.done = ""
    errors = plain_console(stderr=True, soft_wrap=True)
    try:
        _check_world(arguments)
        code = cli.main(words, prog_name="chaoskit", standalone_mode=False, obj=command)
    except BaseException as error:  # noqa: BLE001 - an interruption is one as well
        return _told(error, errors)
    return code if isinstance(code, int) else 0


def _check_world(arguments: Sequence[str]) -> None:
    """See what nothing works without.

    Raises:
        UsageError: the present folder has gone, or a word is no text.
    """
    with naming("the present folder", "cannot be used", "go to one that is there (cd)"):
        os.getcwd()
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as wrong:
            shown = word.encode(errors="backslashreplace").decode()
            raise UsageError(
                f"{shown} is not UTF-8: rename the file, or set LC_ALL=C.UTF-8"
            ) from wrong


def _told(error: BaseException, errors: Console) -> int:
    """Say why a command ended so; its exit code."""
    if SIGNALS.number or isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        if message := SIGNALS.message():
            errors.print(message)
        return INTERRUPTED
    if isinstance(error, SystemExit) and COMPLETING in os.environ:
        raise error
    if isinstance(error, click.ClickException):
        error.show()
        return 2
    if isinstance(error, BrokenPipeError):
        return 0
    if isinstance(error, ChaoskitError | OSError | MemoryError):
        from chaoskit.reporting.clean import plain

        said = str(error) if isinstance(error, ChaoskitError) else described(error)
        said = "\n".join(plain(line, MESSAGE_MOST) for line in said.split("\n"))
        errors.print(f"chaoskit: {said}")
        return error.exit_code if isinstance(error, ChaoskitError) else 3
    errors.print_exception()  # a failure of ours must not look like a finding
    return 3
