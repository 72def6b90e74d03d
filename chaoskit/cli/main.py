"""``chaoskit``: the commands, and how each of them ends.

Exit codes: 0 valid, 1 findings, 2 usage, 3 the harness failed, 4 unknown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from chaoskit import __version__
from chaoskit.cli.console import plain_console
from chaoskit.model.errors import ChaoskitError

EPILOG = "Exit codes: 0 valid, 1 findings, 2 usage, 3 chaoskit itself failed, 4 unknown."
INTERRUPTED = 130
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
        return super().resolve_command(ctx, args)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    words, command = split_command(sys.argv[1:] if arguments is None else arguments)
    errors = plain_console(stderr=True, soft_wrap=True)
    try:
        code = cli.main(words, prog_name="chaoskit", standalone_mode=False, obj=command)
    except (click.exceptions.Abort, KeyboardInterrupt):
        errors.print("interrupted; a campaign goes on when the same command is given again")
        code = INTERRUPTED
    except click.ClickException as wrong:
        wrong.show()
        code = 2
    except ChaoskitError as wrong:
        from chaoskit.reporting.clean import plain

        said = "\n".join(plain(line, MESSAGE_MOST) for line in str(wrong).split("\n"))
        errors.print(f"chaoskit: {said}")
        code = wrong.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception:  # noqa: BLE001 - a failure of ours must not look like a finding
        errors.print_exception()
        code = 3
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
