"""The task's clock: what a trial moves of it, and that a program with another clock still waits."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaoskit.model.events import TraceNoted
from chaoskit.model.history import History
from chaoskit.model.token import CommandSpec
from chaoskit.trace import UNMOVED
from chaoskit.trace.abi import this_abi
from chaoskit.trial.stage import Stage
from tests.trial.conftest import RunTask
from tests.trial.faulty import charged, ends, no_process_is_left, said, scenario, standing

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
    assert [(note.attempt, note.what) for _, note in history.of(TraceNoted)] == [(2, UNMOVED)]


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
