"""Shrinking, shown as it runs: for one token, or for what a campaign found."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from chaoskit.campaign.options import Options
from chaoskit.campaign.shrinking import (
    GROUPS_MOST,
    ORDER,
    Asked,
    Began,
    Effort,
    Ended,
    Step,
    in_words,
    put_shrunken,
    shrink,
    shrunken,
    worth_shrinking,
)
from chaoskit.campaign.store import Store
from chaoskit.reporting.summary import Summary, summarize

UNASKED_S = 60.0
"""For how long a campaign's findings are shrunk where nobody asked for it."""


def follow(steps: Iterator[Step], out: Console, *, quiet: bool = False) -> Ended:
    """Run a shrinking to its end, showing it on ``out``."""

    def say(line: str) -> None:
        if not quiet:
            out.print(f"  {line}", style="dim", soft_wrap=True)

    for step in steps:
        match step:
            case Began():
                if not step.same:
                    say("the token's own finding did not show; another one does, and is shrunk")
                say(f"shrinking {step.finding.kind} of {step.finding.operation}: {step.schedule}")
                say(f"smaller is: {ORDER}")
            case Asked():
                if step.shows:
                    smaller = in_words(str(step.candidate.schedule), step.candidate.take)
                    say(f"smaller, after {step.trials} trials: {smaller}")
            case Ended():
                return step
    raise AssertionError("a shrinking ends by saying so")


def shrink_findings(
    summary: Summary, options: Options, out: Console, *, asked: bool | None, quiet: bool = False
) -> Summary:
    """Shrink what a campaign found, and store it; the summary with it.

    Args:
        summary: of the campaign.
        options: of it.
        out: where it is shown.
        asked: True for every finding, None for those that a sweep does not meet in their order
            (several kills, random times) and for a while only, False for none.
        quiet: show nothing.
    """
    limits = [UNASKED_S] if asked is None else []
    if options.max_time_s is not None:
        limits.append(options.max_time_s - summary.elapsed_s)
    limit = min(limits, default=math.inf)
    ends = time.monotonic() + limit
    if asked is False or not summary.findings or limit <= 0:
        return summary
    with Store(Path(summary.run), writable=True) as store:
        made = []
        try:
            for token, known in worth_shrinking(store, everything=asked is True)[:GROUPS_MOST]:
                seconds = max(0.0, ends - time.monotonic())
                effort = Effort(seconds=seconds, work_root=options.work_root)
                ended = follow(shrink(token, known, effort), out, quiet=quiet)
                made.append(shrunken(token, known, ended))
                put_shrunken(store, made)
        except KeyboardInterrupt:
            out.print("  shrinking was interrupted", style="dim")
        return summarize(store)
