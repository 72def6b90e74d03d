"""Finding every process below one root, while they come and go."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ROOT = """
import ctypes, json, os, signal, subprocess, sys
from chaoskit.trial import process_tree

SUBREAPER = 36
ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
if AT_ONCE:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

def look():
    found = process_tree.descendants(os.getpid())
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return found

first = subprocess.Popen([sys.executable, "-c", "import os\\nwhile not os.fork(): pass\\n"])
while look() == [first.pid]:
    pass
empty = sum(not look() for _ in range(500))
process_tree.kill(os.getpid())
print(json.dumps({"empty": empty, "left": look()}))
"""
"""A root that adopts orphans, above a chain of processes: each starts the next one and ends."""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.parametrize("at_once", [True, False], ids=["gone-at-once", "zombies"])
def test_a_chain_of_processes_is_never_taken_for_none(at_once: bool) -> None:
    """One of them is always alive, and is found, whether the dead ones vanish at once or are taken
    in between two looks; a kill ends the last of them.
    """
    source = ROOT.replace("AT_ONCE", str(at_once))
    ran = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(ran.stdout) == {"empty": 0, "left": []}
