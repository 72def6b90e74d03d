"""Patterns of files, as `outputs=` takes them."""

from __future__ import annotations

MAGIC = frozenset("*?[")
"""What makes a name a pattern."""


def split_pattern(pattern: str) -> tuple[str, str]:
    """Where a pattern of files starts (``""``, ``~/``, ``state:``, or a folder's absolute path that
    ends with ``/``), and what it has below that.
    """
    for start in ("state:", "~/"):
        if pattern.startswith(start):
            return start, pattern.removeprefix(start)
    if not pattern.startswith("/"):
        return "", pattern
    parts = pattern.split("/")
    plain = next((n for n, part in enumerate(parts) if MAGIC & set(part)), len(parts))
    at = min(plain, len(parts) - 1)
    return "/".join(parts[:at]) + "/", "/".join(parts[at:])
