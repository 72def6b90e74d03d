"""The task's clock: what a trial moves of it, and that a program with another clock still waits."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.explore.plan import sweep
from chaoskit.model.events import TraceNoted
from chaoskit.model.history import History
from chaoskit.model.points import parse_point
from chaoskit.model.schedule import Schedule, kill
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trace import UNMOVED, UNSEEN
from chaoskit.trace.abi import this_abi
from chaoskit.trial.loading import load
from chaoskit.trial.snapshots import Snapshot
from chaoskit.trial.stage import Stage
from chaoskit.trial.supervisor import Resumed, Supervisor
from tests.trial.conftest import RunTask
from tests.trial.faulty import charged, ends, no_process_is_left, said, scenario, standing
from tests.trial.traced import history_of

KILLED = "kill@payments.charge#1.applied"
WEEK_S = 7 * 86400
needs_tracing = pytest.mark.skipif(this_abi() is None, reason="programs are not traced here")
DENIED = Path(__file__).resolve().parents[1] / "denied.py"


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """After each trial no process of it is left."""
    before = standing()
    yield
    assert no_process_is_left(before)


CLOCKS = """
if first():
    charge(1)
say(os.environ.get("CHAOSKIT_CLOCK_SHIFT_S", "none"))
say(time.time())
say(probe.now())
"""


@needs_tracing
def test_a_clock_moves_on_for_a_python_task_and_not_in_the_next_trial(run_task: RunTask) -> None:
    """``time.time`` and ``probe.now`` are ahead by as much as was said, and by no more."""
    before = time.time()
    moved, still = run_task(scenario(CLOCKS), [f"{KILLED} / clock:+7d", KILLED])
    after = time.time()
    for history, shift_s in ((moved, WEEK_S), (still, 0)):
        variable, *told = said(history, 2)
        assert variable == "none"
        assert len(told) == 2
        assert all(before <= float(text) - shift_s <= after for text in told)


@needs_tracing
def test_clocks_add_up_and_stay_moved_on(run_task: RunTask) -> None:
    """Two days and three hours, in two attempts, are so much in all that follow."""
    text = f"{KILLED} / clock:+2d + kill@here#1 / clock:+3h"
    before = time.time()
    (history,) = run_task(scenario(CLOCKS + "probe.point('here')"), [text])
    after = time.time()
    for attempt, shift_s in ((2, 2 * 86400), (3, 2 * 86400 + 3 * 3600)):
        assert before <= float(said(history, attempt)[1]) - shift_s <= after


UNTRACED = """
import asyncio, pathlib, sys
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import Target
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor

async def main():
    async with Supervisor(load(Target(scenario=sys.argv[1])), seed=0) as supervisor:
        history = await supervisor.run(parse_schedule(sys.argv[2]))
        pathlib.Path(sys.argv[3]).write_bytes(history.encode())

asyncio.run(main())
"""


@needs_tracing
@pytest.mark.parametrize("denied", ["ptrace", "filters"])
def test_where_nothing_can_be_traced_only_the_probe_moves_and_the_history_says_so(
    denied: str, tmp_path: Path
) -> None:
    """The task's own clock stays, ``probe.now`` and the variable say by how much it should not."""
    file, told = tmp_path / "untraced.py", tmp_path / "history"
    file.write_text(scenario(CLOCKS), encoding="utf-8")
    before = time.time()
    words = [sys.executable, "-c", UNTRACED, str(file), f"{KILLED} / clock:+7d", str(told)]
    subprocess.run([sys.executable, str(DENIED), denied, *words], check=True)
    after = time.time()
    history = History.decode(told.read_bytes())
    variable, own, probed = map(float, said(history, 2))
    assert variable == WEEK_S
    assert before <= own <= after
    assert before <= probed - WEEK_S <= after
    notes = [(note.attempt, note.what) for _, note in history.of(TraceNoted)]
    assert [note for note in notes if note[1] != UNSEEN] == [(2, UNMOVED)]


PYTHON_WAITS = """
import asyncio, subprocess, sys, threading, time
from datetime import datetime

def waited(what, wait):
    began, day = time.monotonic(), time.time()
    wait()
    passed = time.monotonic() - began >= 0.019 and time.time() - day >= 0.019
    print(what, "ok" if passed else "early", flush=True)

def never():
    words = [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]
    try:
        subprocess.run(words, timeout=0.02)
    except subprocess.TimeoutExpired:
        return
    raise SystemExit("the child has ended")

def condition():
    one = threading.Condition()
    with one:
        one.wait(0.02)

print(int(time.time()), int(datetime.now().timestamp()), int(time.time_ns() / 1e9), flush=True)
waited("sleep", lambda: time.sleep(0.02))
waited("event", lambda: threading.Event().wait(0.02))
waited("condition", condition)
waited("lock", lambda: (lock := threading.Lock()).acquire() and lock.acquire(timeout=0.02))
waited("asyncio", lambda: asyncio.run(asyncio.sleep(0.02)))
waited("subprocess", never)
thread = threading.Thread(target=lambda: waited("thread", lambda: time.sleep(0.02)))
thread.start()
thread.join(30)
"""
PYTHON = ["sleep", "event", "condition", "lock", "asyncio", "subprocess", "thread"]

BASH_WAITS = """
echo "$(date +%s) $EPOCHSECONDS $(sh -c 'date +%s; true')"
sleep 0.02 && echo sleep ok
read -t 0.02 < <(sleep 30) || echo read ok
timeout 0.02 sleep 30 || echo timeout ok
"""

NODE_WAITS = """
console.log(Math.floor(Date.now() / 1000), Math.floor(new Date().getTime() / 1000));
const day = Date.now();
setTimeout(() => console.log("timer", Date.now() - day >= 19 ? "ok" : "early"), 20);
"""

C_WAITS = Path(__file__).with_name("waits.c")
C = ["clock_nanosleep", "sem_timedwait", "cond_timedwait", "timerfd", "monotonic", "timer", "futex"]


@pytest.fixture(scope="module", params=["dynamic", "static"])
def c_program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The C program, with the system's libraries and with all of them inside."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = str(tmp_path_factory.mktemp("c") / "waits")
    static = ["-static"] if request.param == "static" else []
    words = [compiler, *static, "-O1", "-o", program, str(C_WAITS), "-pthread", "-lrt"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip(f"no {request.param} program can be made here")
    return program


@pytest.fixture(params=[WEEK_S, -300])
def moved(
    request: pytest.FixtureRequest, run_task: RunTask, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Run a program whose clock is a week ahead, or five minutes behind: it is so in all its ways
    of reading the clock, and all its waits end in time.
    """
    shift_s: int = request.param
    monkeypatch.setattr(Stage, "shift_ns", shift_s * 10**9)

    def run(command: tuple[str, ...], waits: list[str]) -> None:
        before = int(time.time())
        (history,) = run_task(CommandSpec(command=command), ["none"], timeout_s=60)
        after = int(time.time())
        assert ends(history) == ["1 exit 0"], said(history, 1)
        told, *waited = said(history, 1)
        for text in told.split():
            assert before <= int(text) - shift_s <= after
        assert waited == [f"{name} ok" for name in waits]

    return run


@needs_tracing
def test_python_has_another_clock_and_waits(moved: Callable[..., None]) -> None:
    """Its modules' clocks all move; sleeps, locks, event loops and timeouts last as they say."""
    moved((sys.executable, "-I", "-c", PYTHON_WAITS), PYTHON)


@needs_tracing
def test_a_shell_and_its_programs_have_another_clock_and_wait(moved: Callable[..., None]) -> None:
    """``date`` in it, in a shell below it, and its own variable."""
    moved(("bash", "-c", BASH_WAITS), ["sleep", "read", "timeout"])


@needs_tracing
def test_node_has_another_clock_and_waits(moved: Callable[..., None]) -> None:
    """``Date`` moves, and a timer of its event loop ends."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js")
    moved((node, "-e", NODE_WAITS), ["timer"])


@needs_tracing
def test_c_programs_have_another_clock_and_wait_for_moments_of_it(
    moved: Callable[..., None], c_program: str
) -> None:
    """Deadlines on the wall clock in every call that takes one; a monotonic one is left alone."""
    moved((c_program,), C)


WAITS_BESIDE_WRITES = """
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *wait(void *unused) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec began, then, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec += 1;
    pthread_mutex_lock(&mutex);
    int answer = pthread_cond_timedwait(&condition, &mutex, &then);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    long passed = ended.tv_sec - began.tv_sec - (ended.tv_nsec < began.tv_nsec);
    puts(answer == ETIMEDOUT && passed >= 1 ? "ok" : "wrong");
    return unused;
}

int main(void) {
    pthread_t thread;
    int file = open("file", O_CREAT | O_WRONLY, 0600);
    pthread_create(&thread, NULL, wait, NULL);
    for (int n = 0; n < 20; n++) write(file, "x", 1);
    pthread_join(thread, NULL);
    return 0;
}
"""


@needs_tracing
@pytest.mark.parametrize("shift_s", [WEEK_S, -300])
def test_a_thread_that_waits_is_interrupted_while_another_one_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift_s: int
) -> None:
    """Its deadline is the same when the wait goes on, and its registers are its own."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, program = tmp_path / "beside.c", tmp_path / "beside"
    source.write_text(WAITS_BESIDE_WRITES, encoding="utf-8")
    subprocess.run([compiler, "-O2", "-w", "-pthread", "-o", program, source], check=True)
    monkeypatch.setattr(Stage, "shift_ns", shift_s * 10**9)
    faults = [kill(parse_point(f"write(file)#{n}")) for n in range(1, 21)]

    async def go() -> None:
        target = Target(command=CommandSpec(command=(str(program),)))
        async with Supervisor(load(target), seed=0) as supervisor:
            supervisor.conduct = replace(supervisor.conduct, timeout_s=60.0)
            album = await supervisor.record(faults)
            assert set(album) == set(faults)
            history = history_of(supervisor)
            assert ends(history) == ["1 exit 0"]
            assert said(history, 1) == ["ok"]

    asyncio.run(go())


@needs_tracing
@pytest.mark.parametrize(
    "text",
    [f"twin@{KILLED[5:]} + clock:+7d", f"{KILLED} / clock:+7d + resumers:3"],
)
def test_every_runner_has_the_clock(run_task: RunTask, text: str) -> None:
    """A twin and each of several resumers, of which no points are traced."""
    before = time.time()
    (history,) = run_task(scenario("charge(1)\nsay(time.time())"), [text])
    after = time.time()
    runners = 3 if "resumers" in text else 2
    told = [float(line) for line in said(history, len(history.attempts))]
    assert len(told) == runners
    assert all(before <= one - WEEK_S <= after for one in told)


@needs_tracing
def test_a_paused_task_and_its_successor_have_their_clocks(run_task: RunTask) -> None:
    """Both are a week ahead, before and after the pause."""
    source = scenario("say(time.time())\ncharge(1)\nsay(time.time())")
    before = time.time()
    (history,) = run_task(source, [f"clock:+7d + pause@{KILLED[5:]}"])
    after = time.time()
    told = [float(line) for attempt in (1, 2) for line in said(history, attempt)]
    assert len(told) == 4
    assert all(before <= one - WEEK_S <= after for one in told)


@needs_tracing
def test_a_task_with_another_clock_is_killed_at_its_calls(run_task: RunTask) -> None:
    """Points of a shifted attempt are the same as without a shift, and a kill there is exact."""
    code = "cat a b c; echo $(date +%s) > a; echo 1 > b; echo 2 > c"
    before = int(time.time())
    spec = CommandSpec(command=("sh", "-c", code))
    (history,) = run_task(spec, ["clock:+7d + kill@write(b)#1"])
    after = int(time.time())
    assert ends(history) == ["1 killed 9", "2 exit 0"]
    written, *rest = said(history, 2)
    assert before <= int(written) - WEEK_S <= after
    assert rest == ["cat: c: No such file or directory"]


@pytest.mark.parametrize(("clock", "times"), [("clock:+23h", 1), ("clock:+7d", 2)])
def test_a_service_forgets_a_key_by_its_own_clock(
    run_task: RunTask, clock: str, times: int
) -> None:
    """Payments remembers a key for 24 hours: a week later the repeat is a second charge."""
    (history,) = run_task(scenario("charge(1, key='k')"), [f"{KILLED} / {clock}"])
    assert len(charged(history)) == times


# Copies: their time goes on from the moment at which they were made.

HOUR_NS = 3600 * 10**9
HOLDS_A_LOCK = """
if Path("lock").exists() and time.time() - Path("lock").stat().st_mtime < LOCK_S:
    sys.exit("somebody else is at work")
Path("lock").touch()
charge(1, key="k")
Path("lock").unlink()
"""


def _older(snapshot: Snapshot, age_ns: int) -> Snapshot:
    tree = {
        name: replace(entry, mtime_ns=entry.mtime_ns - age_ns if entry.mtime_ns else 0)
        for name, entry in snapshot.tree.items()
    }
    at_ns, began_ns = snapshot.at_ns - age_ns, snapshot.began_ns - age_ns
    return replace(snapshot, tree=tree, at_ns=at_ns, began_ns=began_ns)


@needs_tracing
@pytest.mark.parametrize("lock_s", [600, 0])
def test_a_copy_that_is_resumed_later_shows_what_a_real_kill_shows(
    tmp_path: Path, lock_s: int
) -> None:
    """A lock that is live by its age after a kill is so in each copy, however old that is; one that
    has run out has run out, and every resume comes through.
    """
    file = tmp_path / "locked.py"
    source = scenario(HOLDS_A_LOCK, "attempts_max=1").replace("LOCK_S", str(lock_s))
    file.write_text(source, encoding="utf-8")

    async def go() -> None:
        async with Supervisor(load(Target(scenario=str(file))), seed=0) as supervisor:
            supervisor.conduct = replace(supervisor.conduct, calls=True)
            found, _ = sweep(await supervisor.survey(), ("calls", "windows"))
            supervisor.conduct = replace(supervisor.conduct, calls=False)
            album = await supervisor.record(map(kill, found))
            assert len(album) >= 8
            came_through = []
            for fault in list(album)[::2]:
                schedule = Schedule(((fault,),))
                copied = await supervisor.resume(_older(album[fault], HOUR_NS), schedule)
                real = await supervisor.run(schedule)
                assert copied.completed == real.completed, fault
                came_through.append(copied.completed)
            assert any(came_through)
            assert all(came_through) == (lock_s == 0)

    asyncio.run(go())


LEASE = """
if Path("until").exists():
    say(time.time() < float(Path("until").read_text()))
else:
    Path("until").write_text(str(time.time() + 3))
    charge(1)
"""


@needs_tracing
def test_a_lease_that_has_run_out_meanwhile_is_live_in_the_copy(tmp_path: Path) -> None:
    """As it is after the kill, however long the copy waits."""
    file = tmp_path / "leased.py"
    file.write_text(scenario(LEASE), encoding="utf-8")
    fault = kill(parse_point(KILLED[5:]))

    async def go() -> None:
        async with Supervisor(load(Target(scenario=str(file))), seed=0) as supervisor:
            album = await supervisor.record([fault])
            until = float((supervisor._stage.workspace.state / "until").read_text())
            await asyncio.sleep(until - time.time() + 0.1)
            assert time.time() > until
            history = await supervisor.resume(album[fault], Schedule(((fault,),)))
            assert said(history, 2) == ["True"]

    asyncio.run(go())


@needs_tracing
def test_a_copy_goes_on_from_its_own_moment(tmp_path: Path) -> None:
    """The resume's clock begins where the copy was made, a real kill's where the kill was, and
    further attempts of the trial go on with it.
    """
    file = tmp_path / "told.py"
    file.write_text(scenario("say(time.time())\ncharge(1)\nsys.exit(len(sys.argv))"), "utf-8")
    fault = kill(parse_point(KILLED[5:]))

    async def go() -> None:
        async with Supervisor(load(Target(scenario=str(file))), seed=0) as supervisor:
            album = await supervisor.record([fault])
            snapshot = _older(album[fault], 24 * HOUR_NS)
            began = time.monotonic_ns()
            history = await supervisor.resume(snapshot, Schedule(((fault,),)))
            passed = time.monotonic_ns() - began
            told = [float(said(history, n)[0]) * 1e9 for n in range(2, 6)]
            assert sorted(told) == told
            slack = 10**6  # a float of seconds has no room for the last digits
            assert snapshot.at_ns - slack <= told[0]
            assert told[-1] <= snapshot.at_ns + passed + slack

    asyncio.run(go())


@needs_tracing
def test_the_services_clocks_go_on_from_the_copy_too(tmp_path: Path) -> None:
    """A key that is remembered for a day is forgotten in a copy whose time is two days later."""
    file = tmp_path / "keyed.py"
    file.write_text(scenario("charge(1, key='k')\nprobe.point('charged')"), "utf-8")
    fault = kill(parse_point("charged#1"))

    async def go() -> None:
        async with Supervisor(load(Target(scenario=str(file))), seed=0) as supervisor:
            album = await supervisor.record([fault])
            for age_ns, charges in ((0, 1), (24 * HOUR_NS, 1), (-48 * HOUR_NS, 2)):
                snapshot = _older(album[fault], age_ns)
                history = await supervisor.resume(snapshot, Schedule(((fault,),)))
                assert len(charged(history)) == charges, age_ns

    asyncio.run(go())


@needs_tracing
def test_a_copy_made_in_a_resume_holds_the_tasks_own_time(tmp_path: Path) -> None:
    """Its moment and the times of its files are those of the resumed attempt's clock; and how old
    the first copy was makes no other world of it.
    """
    file = tmp_path / "further.py"
    source = "Path('file').touch()\nprobe.point('made')\ncharge(1, key='k')"
    file.write_text(scenario(source), "utf-8")
    first, second = kill(parse_point(KILLED[5:])), kill(parse_point("made#1"))

    async def go() -> None:
        async with Supervisor(load(Target(scenario=str(file))), seed=0) as supervisor:
            album = await supervisor.record([first])
            worlds = []
            for age_ns in (0, 24 * HOUR_NS, 48 * HOUR_NS + 1):
                old = _older(album[first], age_ns)
                began = time.monotonic_ns()
                since = Resumed(old, Schedule(((first,),)))
                further = (await supervisor.record([second], since))[second]
                passed = time.monotonic_ns() - began
                assert old.at_ns <= further.at_ns <= old.at_ns + passed
                tick = 10**7  # file times move in ticks
                times = [e.mtime_ns for name, e in further.tree.items() if name == "state/file"]
                assert len(times) == 1
                assert old.at_ns - tick <= times[0] <= further.at_ns
                contents = {name: entry.content for name, entry in further.tree.items()}
                worlds.append((str(contents), further.services))
            assert len(set(worlds)) == 1

    asyncio.run(go())
