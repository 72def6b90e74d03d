"""``chaoskit doctor``: what works on this machine, found out by using it."""

from __future__ import annotations

import platform
import sys

import click
from rich.table import Table
from rich.text import Text

from chaoskit import __version__
from chaoskit.campaign.mechanisms import best
from chaoskit.cli.console import console
from chaoskit.explore.plan import MEANING
from chaoskit.trial.ladder import PROBES, Rung


@click.command(short_help="Try out each mechanism, and say which are used and what they miss.")
def doctor() -> int:
    """Use each mechanism once on a small task, and look at what it left.

    What does not work here is never used silently in part: a run says which mechanisms it used.
    Exit 0 when tasks can be killed at all, 3 when not.
    """
    out = console()
    release = f"{platform.system()} {platform.release()}, {platform.machine()}"
    out.print(f"chaoskit {__version__}, Python {platform.python_version()}, {release}", style="dim")
    rungs = [probe() for probe in PROBES]
    out.print(_table(rungs))
    used = best()
    out.print(Text.assemble(("used unless you say otherwise:", "bold"), " ", ", ".join(used)))
    for name in used:
        out.print(Text(f"  {name}: {MEANING[name]}", style="dim"))
    if "calls" not in used:
        out.print(
            Text(
                "System calls cannot be traced here, so moments between two requests are met only "
                "where the task is Python (lines) or calls probe.point (crossings). Add --times N "
                "for random moments; in a container, allow ptrace and seccomp.",
                style="yellow",
            )
        )
    sys.stdout.flush()
    return 0 if all(r.works for r in rungs if r.name == "windows") else 3


def _table(rungs: list[Rung]) -> Table:
    table = Table.grid(padding=(0, 2))
    for rung in rungs:
        mark = Text("works" if rung.works else "no", style="green" if rung.works else "yellow")
        table.add_row(Text(rung.name, style="bold"), mark, Text(rung.why))
    return table
