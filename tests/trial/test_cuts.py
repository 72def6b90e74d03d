"""Writes that a kill can cut: where the tracer says so, what a real SIGKILL leaves, and what a call
in pieces leaves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.model.events import CallSeen
from chaoskit.model.points import CallPoint, Point
from chaoskit.model.schedule import Schedule, kill
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from chaoskit.trial.supervisor import Supervisor
from tests.trial.traced import contents, python, scenario, traced, with_supervisor

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)

OPENED = """
    import os
    text = bytes(range(250)) * 40
    with open("from", "wb") as made:
        made.write(b"ab" + text)
    source = os.open("from", os.O_RDONLY)
    a = os.open("a", os.O_CREAT | os.O_RDWR)
    os.ftruncate(a, 4060)
    os.lseek(a, 4060, os.SEEK_SET)
"""

TEXT = bytes(range(250)) * 40

WAYS = {
    "write": "os.write(a, text)",
    "pwrite": "os.pwrite(a, text, 4060)",
    "writev": 'os.writev(a, [b"", text[:10], b"", text[10:7000], b"", text[7000:], b""])',
    "pwritev": "os.pwritev(a, [text[:4000], text[4000:4100], text[4100:]], 4060)",
    "sendfile": "os.sendfile(a, source, 2, 99999)",
    "copy_file_range": "os.copy_file_range(source, a, 99999, 2)",
}
"""Each puts all of ``text`` at byte 4060 of ``a``."""


@pytest.mark.parametrize("call", WAYS)
def test_whatever_writes_is_cut_at_the_pages_of_the_file(call: str) -> None:
    """The first, a middle and the last boundary are listed; a kill at one leaves just so much; a
    run that is looked at in all of them ends as one that is not.
    """
    spec = python(f'{OPENED}\n    assert {WAYS[call]} == 10000\n    open("end", "w").close()')
    (whole,) = traced(spec)
    assert whole.ends == ["exit 0"], whole.output
    (seen,) = [s for _, s in whole.history.of(CallSeen) if s.call == f"{call}(a)#1"]
    assert seen.cuts == (36, 4132, 8228)
    cuts = (1, *seen.cuts, 9999)
    trials = traced(spec, [f"kill@{seen.call}+short:{cut}" for cut in cuts])
    for cut, ran in zip(cuts, trials, strict=True):
        assert ran.ends == ["killed 9", "exit 0"]
        files = contents(ran.files)
        assert (files["a"], "end" in files) == (bytes(4060) + TEXT[:cut], False)

    async def then(supervisor: Supervisor) -> None:
        points: list[Point] = [CallPoint(call, "a", 1, "short", cut) for cut in cuts]
        album = await supervisor.record([*map(kill, points), kill(CallPoint("open", "end", 1))])
        kept = [supervisor.world.contents[s.tree["state/a"].content] for s in album.values()]
        assert kept == [bytes(4060) + TEXT[:cut] for cut in (*cuts, 10000)]
        (ended,) = [body for _, body in (await supervisor.run(Schedule())).attempts]
        assert (ended.how, ended.code) == ("exit", 0), ended.output_tail

    with_supervisor(spec, then)


def cuts_of(*statements: str) -> list[tuple[str, tuple[int, ...]]]:
    """The calls that a program makes, with where each of them can be cut."""
    (ran,) = traced(python("import os, socket\n" + "\n".join(statements)))
    assert ran.ends == ["exit 0"], ran.output
    return [(seen.call, seen.cuts) for _, seen in ran.history.of(CallSeen) if seen.cuts]


def test_a_write_within_a_page_is_not_cut() -> None:
    """Neither 4096 bytes of one page, nor a little before a boundary."""
    aligned = [
        'f = os.open("a", os.O_CREAT | os.O_RDWR)',
        "os.write(f, bytes(4096))",
        "os.pwrite(f, bytes(4096), 8192)",
        "os.pwrite(f, bytes(36), 4060)",
        "os.pwrite(f, bytes(1), 4095)",
        "os.write(f, bytes(0))",
    ]
    assert cuts_of(*aligned) == []


def test_where_a_write_goes_is_known() -> None:
    """The descriptor's own place, also one that a copy of it has moved; the end with O_APPEND,
    whatever place the call names.
    """
    found = cuts_of(
        'f = os.open("a", os.O_CREAT | os.O_RDWR)',
        "os.write(f, bytes(4000))",
        "os.lseek(os.dup(f), 4090, 0)",
        "os.write(f, bytes(10))",
        'g = os.open("a", os.O_RDWR | os.O_APPEND)',
        "os.write(g, bytes(4192))",
        "os.pwrite(g, bytes(9), 0)",
        "os.pwritev(f, [bytes(3), bytes(3)], 8190)",
    )
    assert found == [
        ("write(a)#2", (6,)),
        ("write(a)#3", (4092,)),
        ("pwritev(a)#1", (2,)),
    ]


def test_what_is_no_file_is_not_cut() -> None:
    """A pipe with a name in the work folder has no pages."""
    named = [
        'os.mkfifo("p")',
        'f = os.open("p", os.O_RDWR)',
        "os.write(f, bytes(20000))",
        "os.writev(f, [bytes(20000)])",
    ]
    assert cuts_of(*named) == []


OVERWRITES = """
import os, sys
file, size, place = os.open("x", os.O_RDWR), *map(int, sys.argv[1:])
one, two = b"A" * size, b"B" * size
print(flush=True)
while True:
    os.pwrite(file, one, place)
    os.pwrite(file, two, place)
"""


def test_a_real_kill_cuts_nowhere_else(tmp_path: Path) -> None:
    """Of a program that only writes, SIGKILLed again and again, each write that was cut ends at a
    page of its file; and some are cut.
    """
    size, place = 20000, 4060
    allowed = {4096 * page - place for page in range(1, 6)}
    found: set[int] = set()
    for _ in range(60):
        (tmp_path / "x").write_bytes(bytes(place) + b"A" * size)
        with subprocess.Popen(
            [sys.executable, "-ISc", OVERWRITES, str(size), str(place)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        ) as task:
            assert task.stdout is not None
            task.stdout.readline()
            time.sleep(0.001)
            os.kill(task.pid, signal.SIGKILL)
        left = (tmp_path / "x").read_bytes()[place:]
        cut = len(left) - len(left.lstrip(left[:1]))
        found |= {cut} - {size}
    assert found
    assert found <= allowed


JOURNAL = """
import json, os, urllib.request
from chaoskit import Scenario

def pay(n):
    url = os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges"
    form = f"amount={{n}}00&currency=eur&source=tok_visa&description=c{{n}}".encode()
    head = {{"Authorization": "Bearer sk_test_x", "Idempotency-Key": f"k{{n}}"}}
    urllib.request.urlopen(urllib.request.Request(url, form, head)).read()

def main():
    done, whole = set(), 0
    journal = open("journal", "ab+", buffering=0)
    journal.seek(0)
    for line in journal.read().splitlines(keepends=True):
        if {torn}:
            journal.truncate(whole)
            break
        whole += len(line)
        done.add(json.loads(line).get("done"))
    if not whole:
        journal.write(json.dumps({{"config": "x" * 4050}}).encode() + b"\\n")
    for n in (1, 2):
        if n not in done:
            pay(n)
            journal.write(json.dumps({{"done": n, "note": "paid in full"}}).encode() + b"\\n")

scenario = Scenario(task=main, services=("payments",))
"""


def judged(folder: Path, source: str) -> Summary:
    """A campaign over a scenario of this source, by calls only."""
    target: Target = scenario(folder, textwrap.dedent(source))
    options = Options(target=target, mechanisms=("calls",), runs=str(folder / "runs"))
    finished = [event for event in run(options) if isinstance(event, Finished)][-1]
    with Store(finished.folder) as store:
        return summarize(store)


def test_a_small_line_that_crosses_a_page_is_torn(tmp_path: Path) -> None:
    """A journal that believes each of its lines is stuck at the one that crosses byte 4096, and
    one that drops a torn last line is valid.
    """
    broken = judged(tmp_path, JOURNAL.format(torn="False"))
    (found,) = broken.findings
    assert (found.kind, found.point) == ("stuck", "write(journal)#2+short:31")
    sound = judged(tmp_path, JOURNAL.format(torn='not line.endswith(b"\\n")'))
    assert (sound.verdict, sound.findings) == ("VALID", ())
    assert sound.points == broken.points
