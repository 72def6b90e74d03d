"""What a shell may complete: stored runs, and kinds of finding."""

from __future__ import annotations

from pathlib import Path

import click

from chaoskit.campaign.folder import LATEST
from chaoskit.campaign.options import DEFAULT_RUNS
from chaoskit.campaign.store import FILE
from chaoskit.model.findings import FINDING_KINDS

_MOST = 100


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names of stored runs, the newest first; ``latest`` before them."""
    root = Path(str(ctx.params.get("runs") or DEFAULT_RUNS))
    stored = sorted((file.parent.name for file in root.glob(f"*/{FILE}")), reverse=True)
    names = dict.fromkeys((LATEST, *stored))
    return [name for name in names if name.startswith(incomplete)][:_MOST]


def kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The kinds of finding."""
    return [kind for kind in FINDING_KINDS if kind.startswith(incomplete)]
