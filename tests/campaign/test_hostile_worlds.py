"""Tasks that keep their state where a copy of files could miss it: snapshots and real kills agree.

Each comes in a broken form and in a sound one, and is run both ways, at the same points.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.summary import summarize
from chaoskit.trial.ladder import tracing, view
from tests.marks import rare

pytestmark = [
    pytest.mark.view,
    pytest.mark.skipif(not (tracing().works and view().works), reason="no tracing, or no view"),
]

COMMON = """
import http.client, os, socket, sys, time, urllib.parse
url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
sound = sys.argv[1] == "sound"
state = os.path.expanduser("~/.job")
os.makedirs(state, exist_ok=True)
os.chdir(state)

def pay(n):
    shop = http.client.HTTPConnection(url.hostname, url.port)
    shop.request("POST", "/v1/charges", f"amount={n}00&currency=eur&source=tok_visa",
                 {"Authorization": "Bearer sk_test_x", "Idempotency-Key": f"k{n}",
                  "Content-Type": "application/x-www-form-urlencoded"})
    assert shop.getresponse().status == 200

def there(name):
    return os.path.lexists(name)

def done(n):
    open(f"d{n}.new", "w").close()
    os.rename(f"d{n}.new", f"d{n}")

def rest():
    for n in (1, 2):
        if not there(f"d{n}"):
            pay(n)
            done(n)
"""

MARKS = """
def mark(n): {mark}
def marked(n): return {marked}
for n in (1, 2):
    if not there(f"q{{n}}"):
        {make}
for n in (1, 2):
    if marked(n):
        continue
    if not sound:
        mark(n)  # before the effect
    pay(n)
    mark(n)
"""

WORLDS = {
    "socket": """
server = socket.socket(socket.AF_UNIX)
if sound and there("control"):
    os.unlink("control")
server.bind("control")
rest()
os.unlink("control")
""",
    "fifo": """
if not (sound and there("queue")):
    os.mkfifo("queue")
rest()
os.unlink("queue")
""",
    "mtime": MARKS.format(
        mark='os.utime(f"q{n}", (2, 2))',
        marked='os.stat(f"q{n}").st_mtime == 2',
        make='open("new", "w").close(); os.utime("new", (1, 1)); os.rename("new", f"q{n}")',
    ),
    "attribute": MARKS.format(
        mark='os.setxattr(f"q{n}", "user.done", b"1")',
        marked='"user.done" in os.listxattr(f"q{n}")',
        make='open(f"q{n}", "w").close()',
    ),
    "stamp": MARKS.format(
        mark='os.utime(f"q{n}.stamp")',
        marked='os.stat(f"q{n}.stamp").st_mtime_ns > os.stat(f"q{n}").st_mtime_ns',
        make='open(f"q{n}.stamp", "w").close(); open("new", "w").close(); '
        'time.sleep(0.02); os.utime("new"); os.rename("new", f"q{n}")',
    ),
    "holes": """
pieces = os.open("pieces", os.O_RDWR | os.O_CREAT)
os.ftruncate(pieces, 4 << 16)
def has(n):
    try:
        return os.lseek(pieces, n << 16, os.SEEK_DATA) == n << 16
    except OSError:
        return False
for n in (1, 2):
    if has(n):
        continue
    if not sound:
        os.pwrite(pieces, b"x", n << 16)
    pay(n)
    os.pwrite(pieces, b"x", n << 16)
""",
    "inode": """
if not there("log"):
    with open("log.new", "w") as log:
        log.write("1\\n2\\n")
    os.rename("log.new", "log")
own = os.stat("log").st_ino
at = open("at").read().split() if there("at") else (str(own), "0")
for n in (1, 2):
    if int(at[1]) >= n:
        continue
    if at[0] != str(own):
        sys.exit("another log")
    with open("at.new", "w") as new:
        new.write(f"{own} {n}")
    if not sound:
        os.rename("at.new", "at")
    pay(n)
    if sound:
        os.rename("at.new", "at")
""",
    "daemon": """
starter = os.getpid()
if os.fork():
    if sound:
        os.wait()
    os._exit(0)
while not sound and os.getppid() == starter:
    os.sched_yield()  # whether it has claimed success by now is not left to chance
rest()
""",
    "age": """
young = there("lock") and time.time() - os.path.getmtime("lock") < 600
if young and not sound:
    sys.exit("another one is at work")
open("lock", "w").close()
rest()
os.unlink("lock")
""",
}


class Explored(NamedTuple):
    """A campaign: its verdict, and that of each trial; how many went on from a copy."""

    verdict: str
    trials: dict[str, str]
    copied: int


def explored(task: Path, form: str, folder: Path, *, snapshots: bool) -> Explored:
    """Kill a task at some of its points."""
    spec = CommandSpec(
        command=(sys.executable, "-S", str(task), form), services=("payments",), typed=True
    )
    options = Options(
        target=Target(command=spec),
        mechanisms=("calls",),
        max_points=8,
        snapshots=snapshots,
        runs=str(folder / f"{form}-{snapshots}"),
    )
    *_, last = run(options, Inline())
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        trials = list(store.trials())
        found = {t.schedule: t.judgement.verdict for t in trials}
        return Explored(summarize(store).verdict, found, sum(not t.real for t in trials))


@pytest.mark.parametrize(
    "name",
    [
        *("mtime", "daemon", "age"),
        *(rare(name) for name in ("socket", "holes", "fifo", "attribute", "stamp", "inode")),
    ],
)
def test_snapshots_and_real_kills_agree_trial_by_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The broken form is INVALID both ways and the sound one VALID, and no trial differs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    task = tmp_path / "task.py"
    task.write_text(COMMON + WORLDS[name], encoding="utf-8")
    for form, verdict in (("broken", "INVALID"), ("sound", "VALID")):
        copied = explored(task, form, tmp_path, snapshots=True)
        real = explored(task, form, tmp_path, snapshots=False)
        assert copied.trials == real.trials, form
        assert (copied.verdict, real.verdict) == (verdict, verdict), form
        assert real.copied == 0
    assert not (tmp_path / ".job").exists()
