"""How fast the crash states of one task are explored, by chaoskit and by others, in one run.

    python benchmarks/exploration.py [--variant wal|delete] [--sample N] [--json FILE]

The task is the forty steps of ``scenarios/exact/forty_steps.py``. The rows:

    chaoskit, calls     the whole command, survey and confirmation by real kills included; before
                        everything else and once more after it, and by one worker, which also
                        says how many different states there are
    (a)                 each point by a cold Python that is killed there and one that resumes: in a
                        plain loop with strace, and by chaoskit with nothing copied or forked
    (b)                 chaoskit with the windows of requests for its points
    (c)                 kill -9 after a random time in a plain loop, until as many states were seen
    (d)                 ckpt-chaos from the public registry, installed for this run

What takes too long is run in part, on trials that are evenly spread, and extrapolated: ``~``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.exploration_campaigns import Worlds, cold_prefixes, cold_surveys, explore
from benchmarks.exploration_loops import strace_prefixes, timers
from benchmarks.exploration_peer import peer_rows
from benchmarks.exploration_rows import JOURNALS, Row, Setting
from chaoskit.trial.workspace import default_root

TITLES = ("trials", "states", "seconds", "trials/s", "states/s", "times", "found")

NOTES = """\
states/s: different crash states judged per second of wall time. times: the mean of the first two
rows' states/s over this row's. ~: extrapolated from the measured trials. found: how many of the
measured trials were reported as a duplicate. Each trial of (d) counts as a state of its own, which
flatters it. (a) and (c) cannot know which points have a state in common; their states are counted
by what chaoskit knows of them."""


def measure(setting: Setting) -> list[Row]:
    """Every row, in the order of the table."""
    _say("chaoskit by calls")
    alone, worlds = explore(setting, "calls", 1)
    first, _ = explore(setting, "calls", setting.jobs)
    _say("chaoskit by windows")
    exact, _ = explore(setting, "windows", 1)
    windows, _ = explore(setting, "windows", setting.jobs)
    _say("two recorded cold runs, then (a)")
    surveys = cold_surveys(setting)
    by_strace = strace_prefixes(setting, before_calls(worlds))
    by_chaoskit = cold_prefixes(setting, surveys, alone.states)
    _say("(c)")
    timed = timers(setting, surveys, worlds)
    _say("(d)")
    peers = peer_rows(setting)
    _say("chaoskit by calls once more")
    again, _ = explore(setting, "calls", setting.jobs)
    return [
        replace(first, states=alone.states),
        replace(again, states=alone.states, name=f"{again.name}, again"),
        alone,
        by_strace,
        by_chaoskit,
        replace(windows, states=exact.states, name=f"(b) {windows.name}"),
        *timed,
        *peers,
    ]


def before_calls(worlds: Worlds) -> int:
    """How many of the states a kill before some call leads to: all that strace can do."""
    return len({world for schedule, world in worlds.items() if "+" not in schedule})


def table(rows: Sequence[Row]) -> str:
    """The rows for people."""
    line = "{:<33} {:>7} {:>6} {:>9} {:>8} {:>8} {:>6} {:>8}"
    lines = [line.format("", *TITLES)]
    for row in rows:
        if not row.seconds:
            lines.append(f"{row.name:<33} {row.note}")
            continue
        about = "" if row.whole else "~"
        lines.append(
            line.format(
                row.name,
                f"{row.trials:,}",
                f"{row.states:,.0f}",
                f"{about}{row.seconds:,.1f}",
                f"{row.trials / row.seconds:.2f}",
                f"{row.rate:.2f}" if row.rate >= 0.1 else f"{row.rate:.4f}",
                f"{_base(rows) / row.rate:,.1f}",
                f"{row.found}/{row.measured}",
            )
        )
        lines += [f"    {row.note}"] if row.note else []
    return "\n".join(lines)


def as_json(rows: Sequence[Row], setting: Setting) -> dict[str, object]:
    """The rows for machines."""
    told = [
        asdict(row)
        | {"extrapolated": not row.whole, "states_per_second": row.rate}
        | {"times": _base(rows) / row.rate if row.rate else None}
        for row in rows
    ]
    sizes = {"jobs": setting.jobs, "sample": setting.sample}
    return {"task": setting.scenario, "machine": machine()} | sizes | {"rows": told}


def machine() -> dict[str, object]:
    """Where this ran."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def _base(rows: Sequence[Row]) -> float:
    """The rate that the others are measured by: the mean of chaoskit's two rows."""
    return (rows[0].rate + rows[1].rate) / 2


def _say(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variant", choices=JOURNALS, default="wal")
    parser.add_argument("--sample", type=int, default=40, help="trials of what is not run whole")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    return parser.parse_args()


def main() -> int:
    """Measure, and print the table."""
    given = _arguments()
    if given.sample < 2 or given.jobs < 1:
        print("exploration: --sample is at least 2, --jobs at least 1", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="exploration-", dir=default_root()) as folder:
        setting = Setting(
            variant=given.variant, sample=given.sample, jobs=given.jobs, folder=Path(folder)
        )
        rows = measure(setting)
    about = machine()
    print("machine: {cores} cores, {architecture}, {kernel}, Python {python}".format(**about))
    print(f"task: {setting.scenario}; {setting.jobs} trials at a time\n")
    print(f"{table(rows)}\n\n{NOTES}")
    if given.json is not None:
        given.json.write_text(json.dumps(as_json(rows, setting), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
