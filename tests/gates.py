"""A named pipe at which one process after the other stops until the test lets it go on.

What stops opens the gate and reads one byte: ``gate.open("rb", buffering=0).read(1)``.
"""

from __future__ import annotations

import os
import select
from pathlib import Path


def arrive(gate: Path) -> int:
    """Wait until somebody stands at the gate; what closing lets it go on.

    Opening a pipe for writing waits for whoever opens it for reading.
    """
    return os.open(gate, os.O_WRONLY)


def let_go(standing: int) -> None:
    """Let go on who stands at the gate, and wait until it has left: who comes is another one.

    A gate that is opened anew any sooner is still held by who was let go, and then the same one
    counts twice.
    """
    os.write(standing, b"x")
    left = select.poll()
    left.register(standing, 0)  # nobody has it open for reading any more: POLLERR
    left.poll()
    os.close(standing)
