"""Missing: which version the first half is of. The second half is that of another file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario, probe

CHUNK = 8


def publish(folder: Path, seed: int) -> None:
    """The remote file."""
    (folder / "remote").write_bytes(b"the first version of this file!!")


def republish(folder: Path, env: Mapping[str, str]) -> None:
    """Another one under the same name, as long as the first."""
    (folder / "remote").write_bytes(b"THE SECOND VERSION OF THIS FILE!")


def main() -> None:
    """Fetch the file in chunks, go on behind what is there, and mail its digest."""
    part = shop.STATE / "part"
    part.touch()
    remote = (shop.STATE / "remote").read_bytes()
    while (have := part.stat().st_size) < len(remote):
        with part.open("ab") as file:
            file.write(remote[have : have + CHUNK])
        probe.point("chunk.fetched")
    digest = hashlib.sha256(part.read_bytes()).hexdigest()
    shop.Shop().send("team@example.com", "Fetched", f"{digest}\n", key="fetched")


scenario = Scenario(
    title="a download goes on after the file has changed at its source",
    task=main,
    services=("email",),
    prepare=publish,
    changes={"file": Change(world=republish, right="either")},
    schedules=("kill@chunk.fetched#2 / change:file",),
    finds=("wrong_inputs",),
    cases=("WORLD-2",),
)
