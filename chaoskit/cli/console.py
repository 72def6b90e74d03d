"""Where reports go."""

from __future__ import annotations

from rich.console import Console


def console() -> Console:
    """Standard output, in colour where it is a terminal (and NO_COLOR unset)."""
    return Console(highlight=False, soft_wrap=False)
