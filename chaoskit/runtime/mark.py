"""The mark beside a store: which record was the latest, so that an older copy is noticed.

After each commit the mark gets the commit's serial, in one write and without waiting for the disk.
A process that is killed between the two leaves it behind the store, which is legal; ahead of the
store it can only be if the store was replaced by an older copy, or lost records. With durability
``normal`` a loss of power does just that, and is told apart by the id of the boot.

A folder that is restored as a whole, store and mark, is an older world and is not noticed.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

SUFFIX = "-mark"
LENGTH = 160
_WORD = "chaoskit-mark"


class Mark(NamedTuple):
    """What is in a mark: the store's uid, the boot and the durability of the last writer, a serial.

    ``boot`` and ``durability`` are ``-`` where they are unknown.
    """

    uid: str
    boot: str
    durability: str
    serial: int

    def data(self) -> bytes:
        """The mark as bytes, always as many."""
        line = f"{_WORD} {self.uid} {self.boot or '-'} {self.durability} {self.serial:020d}"
        text = f"{line} {crc32(line.encode()):08x}"
        return text.ljust(LENGTH - 1).encode() + b"\n"


class Lag(Enum):
    """How a store stands to its mark."""

    NONE = "the store is as late as its mark, or later"
    POWER = "records are missing that a loss of power may take at this durability"
    OLDER = "the store is older than its mark"
    OTHER = "the mark is another store's"


def parse_mark(data: bytes) -> Mark | None:
    """The mark in ``data``; None if it is torn, which a loss of power may do to it."""
    text = data.decode("ascii", "replace").rstrip()
    line, _, check = text.rpartition(" ")
    words = line.split(" ")
    if len(words) != 5 or words[0] != _WORD or check != f"{crc32(line.encode()):08x}":
        return None
    boot = "" if words[2] == "-" else words[2]
    return Mark(words[1], boot, words[3], int(words[4]))


def mark_of(store: Path) -> Path:
    """Where the mark of the store in this file is."""
    return store.with_name(store.name + SUFFIX)


def read(store: Path) -> Mark | None:
    """The mark beside a store; None if there is none, or a torn one."""
    try:
        return parse_mark(mark_of(store).read_bytes())
    except FileNotFoundError:
        return None


def lag(mark: Mark | None, uid: str, serial: int, boot: str) -> Lag:
    """How the store with this uid and latest serial stands to its mark.

    Args:
        mark: what is beside it.
        uid: the store's own.
        serial: of its latest record.
        boot: the id of the present boot; empty where the system has none, so that a loss of
            power cannot be ruled out.
    """
    if mark is None:
        return Lag.NONE
    if mark.uid != uid:
        return Lag.OTHER
    if mark.serial <= serial:
        return Lag.NONE
    rebooted = not boot or mark.boot != boot
    return Lag.POWER if mark.durability == "normal" and rebooted else Lag.OLDER


class Pen:
    """Writes the mark of one open store. What it cannot write it leaves: behind is legal."""

    def __init__(self, store: Path, uid: str, boot: str, durability: str) -> None:
        self._mark = Mark(uid, boot, durability, 0)
        try:
            self._file = os.open(mark_of(store), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            self._file = -1

    def write(self, serial: int) -> None:
        """Say that the record of this serial was the latest."""
        if self._file < 0:
            return
        try:
            os.pwrite(self._file, self._mark._replace(serial=serial).data(), 0)
        except OSError:
            self.close()

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
