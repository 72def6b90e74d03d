"""Trials per second of the sweep, beside a plain shell-style loop on the same task, in one run.

    python benchmarks/sweep_rate.py [--points N]

The loop is what one writes without chaoskit: start the task, sleep a random moment, kill -9, start
it again until it ends, look at the books. It gets the same task, the same fake services (served
in a process of their own) and the same machine, and it runs as many loops at once as there are
workers.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from chaoskit.campaign.events import Finished, TrialDone, WaveStarted
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.model.token import Target
from chaoskit.trial.loading import load
from chaoskit.trial.workspace import default_root

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "sound" / "forty_calls.py"
JOBS = 2


def sweep(
    points: int | None, mechanisms: tuple[str, ...], runs: str, *, snapshots: bool = False
) -> float:
    """Trials per second of chaoskit, without the surveys."""
    options = Options(
        target=Target(scenario=str(SCENARIO)),
        max_points=points,
        mechanisms=mechanisms,  # type: ignore[arg-type]
        jobs=JOBS,
        snapshots=snapshots,
        in_flight=(),
        runs=runs,
        fresh=True,
    )
    began, trials = 0.0, 0
    for event in run(options):
        if isinstance(event, WaveStarted):
            began = time.perf_counter()
        elif isinstance(event, TrialDone):
            assert event.trial.judgement.verdict == "VALID"
            trials += 1
        elif isinstance(event, Finished):
            return trials / (time.perf_counter() - began)
    raise AssertionError("the campaign did not finish")


class Loop(threading.Thread):
    """One plain loop with services of its own."""

    def __init__(self, number: int, until: float) -> None:
        super().__init__()
        self.trials = 0
        self._until = until
        self._random = random.Random(number)
        self._folder = Path(tempfile.mkdtemp(prefix="loop-", dir=default_root()))

    def run(self) -> None:
        """Loop until the time is over."""
        scenario = load(Target(scenario=str(SCENARIO))).scenario
        assert scenario.inputs is not None
        import json

        (self._folder / "tables.sql").write_text(scenario.tables)
        (self._folder / "inputs.json").write_text(json.dumps(scenario.inputs(0)))
        while time.perf_counter() < self._until:
            self._trial()
            self.trials += 1
        shutil.rmtree(self._folder)

    def _trial(self) -> None:
        state = self._folder / "state"
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir()
        services, environment = self._serve()
        try:
            first = self._start(environment, state)
            try:
                first.wait(self._random.uniform(0.05, 0.35))
            except subprocess.TimeoutExpired:
                first.send_signal(signal.SIGKILL)
                first.wait()
            while self._start(environment, state).wait() != 0:
                pass
        finally:
            services.terminate()
            services.wait()

    def _serve(self) -> tuple[subprocess.Popen[str], dict[str, str]]:
        """New services for each trial: without a reset, an empty world is a new process."""
        process = subprocess.Popen(
            [sys.executable, "-m", "fake_services", "--tables", str(self._folder / "tables.sql")],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout is not None
        environment = dict(os.environ)
        while len(environment.keys() & _ADDRESSES) < len(_ADDRESSES):
            name, _, value = process.stdout.readline().split()[1].partition("=")
            environment[name] = value
        threading.Thread(target=process.stdout.read, daemon=True).start()
        environment["CHAOSKIT_INPUTS"] = str(self._folder / "inputs.json")
        return process, environment

    def _start(self, environment: dict[str, str], state: Path) -> subprocess.Popen[bytes]:
        code = "import forty_calls; forty_calls.main()"
        path = os.pathsep.join(str(p) for p in (ROOT, SCENARIO.parent, SCENARIO.parents[1]))
        return subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=state,
            env={**environment, "PYTHONPATH": path, "CHAOSKIT_STATE_DIR": str(state)},
        )


_ADDRESSES = {"CHAOSKIT_PAYMENTS_URL", "CHAOSKIT_EMAIL_URL", "CHAOSKIT_DATABASE_URL"}


def loop(seconds: float) -> float:
    """Trials per second of the plain loop."""
    began = time.perf_counter()
    loops = [Loop(number, began + seconds) for number in range(JOBS)]
    for each in loops:
        each.start()
    for each in loops:
        each.join()
    return sum(each.trials for each in loops) / (time.perf_counter() - began)


def main() -> None:
    """Measure and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=240)
    parser.add_argument("--loop-seconds", type=float, default=20.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as runs:
        windows = sweep(given.points, ("windows",), runs)
        plain = loop(given.loop_seconds)
        again = sweep(given.points, ("windows",), runs)
        both = sweep(given.points, ("windows", "crossings"), runs)
        copied = sweep(None, ("windows",), runs, snapshots=True)
        all_copied = sweep(None, ("windows", "crossings"), runs, snapshots=True)
    print(
        f"machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    )
    print(f"sweep of service windows:     {windows:6.1f} trials/s, and {again:.1f} after the loop")
    print(f"windows and crossings:        {both:6.1f} trials/s")
    print(f"all windows, from snapshots:  {copied:6.1f} trials/s")
    print(f"all points, from snapshots:   {all_copied:6.1f} trials/s")
    print(f"plain loop:                   {plain:6.1f} trials/s")
    ratio, ratio_copied = (windows + again) / 2 / plain, copied / plain
    print(f"ratio (windows / plain loop): {ratio:6.1f}, from snapshots {ratio_copied:.1f}")


if __name__ == "__main__":
    main()
