"""The rows of ckpt-chaos, from the public registry, in an environment of its own.

It starts a training command once to list the files that Python itself opens for writing, renames
and removes below ``{out}``, then once more for each of them: the process ends itself there (or with
the file cut in half), the command is run again, and a result is compared with that of the
undisturbed run. What happened outside ``{out}`` is not in its books.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.ckpt_chaos_task import CHECKPOINT
from benchmarks.exploration_rows import Pace, Row, Setting
from benchmarks.exploration_service import REFERENCE, Service, payments, twice

REQUIREMENTS = Path(__file__).with_name("requirements-ckpt-chaos.txt")
TASK = Path(__file__).with_name("ckpt_chaos_task.py")
INSTALL_TIMEOUT_S = 300
RUN_TIMEOUT_S = 1800
_RUN = "metadata.run"
_VERDICTS = re.compile(r"\b([A-Z][A-Z_]+): (\d+)")
_FINDING = re.compile(r"^(#\d+ \S+ \[\w+\]).* SILENT_DIVERGENCE", re.MULTILINE)


class UnavailableError(Exception):
    """ckpt-chaos could not be installed, or did not run."""


def peer_rows(setting: Setting) -> list[Row]:
    """(d) ckpt-chaos on the very task, and on its charges with a checkpoint that it can see."""
    names = {
        "sqlite": "(d) ckpt-chaos, the same task",
        "json": "(d) ckpt-chaos, JSON checkpoint",
        "asking": "(d) the same, asking the service",
    }
    try:
        python = _install(setting.folder / "ckpt-chaos")
    except UnavailableError as why:
        return [Row(name="(d) ckpt-chaos", note=f"not measured: {why}")]
    rows = []
    with payments() as service:
        for kind, name in names.items():
            try:
                rows.append(replace(_campaign(setting, kind, python, service), name=name))
            except UnavailableError as why:
                rows.append(Row(name=name, note=f"not measured: {why}"))
    return rows


def _install(folder: Path) -> Path:
    """A new environment with ckpt-chaos in it; its Python."""
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for words in (
        [sys.executable, "-m", "venv", str(folder)],
        [*pip, "--requirement", str(REQUIREMENTS)],
    ):
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as wrong:
            raise UnavailableError(f"{' '.join(words[1:4])}: {wrong}") from wrong
        if done.returncode:
            raise UnavailableError(_last_line(done.stderr or done.stdout))
    return python


def _campaign(setting: Setting, kind: str, python: Path, service: Service) -> Row:
    """One run of ckpt-chaos; ``kind`` is also the name of its folder."""
    work = setting.folder / kind
    began = time.time()
    done = subprocess.run(
        _words(setting, kind, python, work),
        cwd=setting.folder,
        env=_environment(service.url),
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    seconds = time.time() - began
    verdicts = _VERDICTS.findall(done.stdout.strip().rpartition("\n")[2])
    if not verdicts:
        raise UnavailableError(_last_line(done.stderr or done.stdout))
    ends = [f.stat().st_mtime for f in work.glob("pt_*/result.json")]
    trials, points = len(ends) - 1, _points(work)  # one of them is the control, without a kill
    pace = Pace.of(began, ends)
    found = _FINDING.findall(done.stdout)
    repeated = {run for run, _ in twice(service.taken(), _RUN, REFERENCE)}
    told = ", ".join(f"{number} {verdict}" for verdict, number in verdicts)
    return Row(
        name=kind,
        trials=points,
        states=points,
        seconds=seconds if trials == points else pace.seconds(points + 1),
        measured=trials,
        found=len(found),
        note=f"says {told}, exit {done.returncode}; charged twice in {len(repeated)} trials",
        details={
            "trials_per_second": pace.rate,
            "charged_twice": len(repeated),
            "verdicts": {verdict: int(number) for verdict, number in verdicts},
            "exit_code": done.returncode,
            "found_at": found,
        },
    )


def _words(setting: Setting, kind: str, python: Path, work: Path) -> list[str]:
    command = [str(python), str(TASK), "--out", "{out}"]
    store = "sqlite" if kind == "sqlite" else "json"
    judged = {
        "sqlite": (),  # the raw bytes of an SQLite file differ from run to run
        "json": ("--result-file", f"{{out}}/{CHECKPOINT}"),
        "asking": ("--result-cmd", shlex.join([*command, "--charged"])),
    }[kind]
    return [
        *(str(python), "-m", "ckpt_chaos", "run", "--work", str(work)),
        *("--jobs", str(setting.jobs), "--max-points", str(setting.sample)),
        *judged,
        *("--", *command, "--store", store, "--journal", setting.journal),
    ]


def _environment(url: str) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return inherited | {"CHAOSKIT_PAYMENTS_URL": url}


def _points(work: Path) -> int:
    """How many points the whole run has: each file event, and again each that can be torn."""
    lines = (work / "reference" / "events.log.rank0").read_text(encoding="utf-8").splitlines()
    return len(lines) + sum(line.endswith("\t1") for line in lines)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1][-300:]
