"""Tasks whose files, threads or calls have other names, or another order, in each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.baselines import lost_of
from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.token import Target, parse_token
from chaoskit.reporting.summary import REPLAY, Summary, summarize
from chaoskit.reporting.terminal import headline

TASKS = """
import asyncio, base64, os, random, secrets, threading, time, uuid
from concurrent.futures import ThreadPoolExecutor
from chaoskit import Scenario

NAMES = {
    "pid": os.getpid,
    "thread": threading.get_native_id,
    "clock": lambda: time.time_ns(),
    "stamp": lambda: time.strftime("%Y%m%d-%H%M%S"),
    "digits": lambda: f"{random.SystemRandom().randrange(10**10):010d}",
    "base32": lambda: base64.b32encode(secrets.token_bytes(10)).decode().lower(),
    "uuid": uuid.uuid4,
}

def broken(n, name):
    if not os.path.exists(f"done-{n}"):
        with open(f"out-{n}", "a") as out:
            out.write("row")
        put(f"done-{n}", name)

def sound(n, name):
    if not os.path.exists(f"out-{n}"):
        put(f"out-{n}", name)

def put(path, name):
    new = f"{path}.{NAMES[name]()}.tmp"
    with open(new, "w") as file:
        file.write("row")
    os.rename(new, path)

def in_turn(step, name):
    for n in (1, 2):
        step(n, name)

def in_a_pool(step, name):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: step(n, name), (1, 2)))

def in_threads(step, name):
    async def main():
        for n in (1, 2):
            await asyncio.to_thread(step, n, name)
    asyncio.run(main())

def scenario(how, step, name):
    return Scenario(task=lambda: how(step, name), outputs=("out-[12]",))

for step in (broken, sound):
    for name in NAMES:
        globals()[f"{step.__name__}_{name}"] = scenario(in_turn, step, name)
    for how in (in_a_pool, in_threads):
        globals()[f"{step.__name__}_{how.__name__}"] = scenario(how, step, "thread")
"""


def tried(file: Path, name: str, **options: object) -> tuple[Summary, list[str]]:
    """The summary of a campaign with a scenario of this file, and the points that it lost."""
    given = Options(
        target=Target(scenario=f"{file}:{name}"),
        runs=str(file.parent / "runs"),
        mechanisms=("calls", "windows"),
        **options,  # type: ignore[arg-type]
    )
    *_, last = run(given, Inline())
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        return summarize(store), [*map(str, lost_of(store))]


WAYS = ("pid", "clock", "stamp", "digits", "base32", "uuid", "in_a_pool", "in_threads")


@pytest.fixture(name="tasks", scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all of the tasks."""
    file = tmp_path_factory.mktemp("tasks") / "tasks.py"
    file.write_text(TASKS)
    return file


@pytest.mark.parametrize("way", WAYS)
def test_a_record_under_a_name_that_varies_is_killed_at_like_any_other(
    tasks: Path, way: str
) -> None:
    """Whatever a program puts into the name of a file, or whichever thread writes it: no point is
    dropped, a row that is written ahead of its record is found twice, and the finding replays.
    """
    summary, lost = tried(tasks, f"broken_{way}")
    assert (summary.verdict, lost) == ("INVALID", [])
    assert summary.points.landed == summary.points.total >= 11
    assert any("*" in finding.point for finding in summary.findings)
    (found, *_) = (f for f in summary.findings if "*" in f.point)
    assert replay(parse_token(found.replay.removeprefix(REPLAY))).outcome == "REPRODUCED"


@pytest.mark.parametrize("way", WAYS)
def test_a_sound_task_with_names_that_vary_is_valid_at_all_points(tasks: Path, way: str) -> None:
    """Where the row is its own record nothing is wrong, and nothing was dropped to say so."""
    summary, lost = tried(tasks, f"sound_{way}")
    assert (summary.verdict, summary.unknowns, lost) == ("VALID", (), [])
    assert summary.points.landed == summary.points.tested == summary.points.total >= 7


UNSTEADY = """
import os, random, string, urllib.request
from pathlib import Path
from chaoskit import Scenario

RUNS = Path(__file__).with_name("runs-so-far")

def get(path, form=None):
    url = os.environ["CHAOSKIT_PAYMENTS_URL"] + path
    headers = {"Authorization": "Bearer sk_test_x"}
    urllib.request.urlopen(urllib.request.Request(url, form, headers)).read()

def word():
    return "".join(random.SystemRandom().choices(string.ascii_lowercase, k=12))

def writes_to_another_file():
    Path(f"note-{word()}").write_text("x")
    Path("out").write_text("row")

def looks_more_often_at_first():
    with RUNS.open("a") as file:
        file.write(".")
    for _ in range(3 if RUNS.stat().st_size == 1 else 1):
        get("/v1/charges")
    Path("out").write_text("row")

files = Scenario(task=writes_to_another_file, outputs=("out",))
looks = Scenario(task=looks_more_often_at_first, outputs=("out",), services=("payments",))
"""


LOOKS = "payments.charge.list"


@pytest.fixture(name="unsteady")
def unsteady_tasks(tmp_path: Path) -> Path:
    """A file with tasks that no two baselines of which pass the same points."""
    file = tmp_path / "unsteady.py"
    file.write_text(UNSTEADY)
    return file


def test_what_is_lost_on_files_makes_the_verdict_unknown(unsteady: Path) -> None:
    """A point on a file that no later run writes is tried, never comes, and is not passed over."""
    summary, lost = tried(unsteady, "files")
    assert summary.verdict == "UNKNOWN"
    assert len(lost) == 2 * 5, "open and write of a note, in each of five baselines"
    assert all("(note-" in point for point in lost)
    assert summary.points.landed == summary.points.total - len(lost)
    (why,) = summary.unknowns
    assert "10 points that a baseline run passed did not come again" in why
    assert lost[0] in why
    share = 100 * summary.points.landed // summary.points.total
    for reached, verdict in ((share, "VALID"), (share + 1, "UNKNOWN")):
        assert tried(unsteady, "files", reached=reached)[0].verdict == verdict


def test_what_is_lost_of_looks_at_a_service_is_counted(unsteady: Path) -> None:
    """A request that changes nothing, and is not made again, is told in the verdict's first line;
    nothing depends on it.
    """
    summary, lost = tried(unsteady, "looks")
    assert (summary.verdict, summary.unknowns) == ("VALID", ())
    points = summary.points
    assert points.landed == points.total - len(lost) < points.total == points.tested
    assert {f"{LOOKS}#2.received", f"{LOOKS}#3.answered", "connect(payments)#3"} <= {*lost}
    first, *_ = headline(summary, 100).plain.splitlines()
    assert first.startswith(f"VALID at {points.landed} of {points.total} points seen  ")
    assert any(f"{len(lost)} points that some undisturbed" in line for line in summary.not_tested)


def test_a_point_that_somebody_asks_for_and_that_never_comes_proves_nothing(
    unsteady: Path,
) -> None:
    """What is lost is forgiven where a campaign drew it, not where it is all that is tried."""
    summary, _ = tried(unsteady, "looks", only=(f"kill@{LOOKS}#2.received",))
    assert summary.verdict == "UNKNOWN"
