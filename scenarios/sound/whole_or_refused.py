"""A checkpoint with a digest and its predecessor: a torn one falls back, no good one is refused.

The opposite faults are `broken/torn_checkpoint.py` (never starts again) and
`broken/damage_is_nothing.py` (starts over).
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import _shop as shop

from chaoskit import Scenario, probe

NOW, BEFORE = (Path(shop.STATE) / name for name in ("position", "position.before"))


def read(file: Path) -> int | None:
    """The position in ``file``, None where it is not whole."""
    digest, _, text = file.read_bytes().partition(b" ") if file.exists() else (b"", b"", b"")
    return int(text) if digest == hashlib.sha256(text).hexdigest().encode() and text else None


def write(position: int) -> None:
    """A new checkpoint beside the old one, which stays until the next."""
    text = str(position).encode()
    beside = NOW.with_suffix(".new")
    with beside.open("wb") as file:
        file.write(hashlib.sha256(text).hexdigest().encode() + b" " + text)
        file.flush()
        os.fsync(file.fileno())
    if NOW.exists() and read(NOW) is not None:
        NOW.replace(BEFORE)
    beside.replace(NOW)


def main() -> None:
    """Charge by key."""
    position = read(NOW)
    if position is None:
        position = read(BEFORE)
    if position is None and (NOW.exists() or BEFORE.exists()):
        reason = "position and position.before are both damaged: restore one from a backup"
        probe.refused(reason)
        sys.exit(reason)
    services = shop.Shop()
    buyers = shop.inputs()
    for number in range(position or 0, len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        write(number + 1)


scenario = Scenario(
    title="a checkpoint with a digest: the last good one is used, and where none is it is refused",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    redo=("payments.charge",),
    schedules=tuple(
        f"kill@payments.charge#3.received / damage:{how}:{files}"
        for how in ("torn", "zero", "empty")
        for files in ("position", "position*")
    ),
    cases=("TORN-1", "TORN-5", "TORN-6"),
)
