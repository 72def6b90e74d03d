"""From a finding to a shell script that shows it without chaoskit: strace kills the program at the
same system call, and it is resumed.

chaoskit counts the calls of one process on one file, strace those of one thread that pass its
filter. The two agree for calls on an open file, which strace finds by the descriptor, as long as
one thread of one process makes them and the file keeps its name. For everything else there is no
script, and a sentence says why.

The script quotes words of the command for the shell; what a task wrote stands in comments of one
line each.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from chaoskit import __version__
from chaoskit.model.actions import Kill
from chaoskit.model.events import CallSeen
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, parse_point
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.secrets import without_secrets
from chaoskit.model.token import CommandSpec, ReplayToken
from chaoskit.reporting.clean import names_secret, plain
from chaoskit.reporting.regression import Exhibit

ON_OPEN_FILES = {
    "write": "write",
    "pwrite": "pwrite64",
    "writev": "writev",
    "ftruncate": "ftruncate",
    "fallocate": "fallocate",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
}
"""Calls that take a descriptor and that the kernel knows by one name, which is given here."""

RENAMES = {"rename", "link", "unlink"}

_FILLED = re.compile(r"\{\w+\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

KILLED = 137
"""What strace ends with where the program was killed."""


def why_none(token: ReplayToken, baseline: History | None) -> str:
    """Why there is no script for a trial; empty: there is one.

    Args:
        token: of the trial.
        baseline: an undisturbed run with its system calls; None where it is not known.
    """
    spec, point = token.target.command, _point(token)
    if spec is None:
        return "its target is no command"
    if point is None:
        return "its schedule is not one plain kill before a system call of the first process"
    why = _of_the_command(token, spec) or _of_the_call(point)
    if why or baseline is None:
        return why or "no undisturbed run with its system calls is stored"
    return _of_the_run(point, baseline)


def _point(token: ReplayToken) -> CallPoint | None:
    fault = parse_schedule(token.schedule).alone
    if fault is None or not isinstance(fault.action, Kill):
        return None
    point = fault.point
    if not isinstance(point, CallPoint) or point.side != "before" or point.who:
        return None
    return point


def _of_the_command(token: ReplayToken, spec: CommandSpec) -> str:
    words = [*spec.command, *spec.resume, *spec.prepare, *spec.env.values()]
    if spec.services or spec.behaviours or spec.tables:
        return "the command uses fake services"
    if not spec.typed or spec.clean:
        return "the command does not run in its folder as that is"
    if token.resume_after_s or token.take is not None:
        return "the trial moves clocks or cuts the input"
    if any(map(names_secret, spec.env)) or any(without_secrets(w) != w for w in words):
        return "the command holds credentials"
    if any(map(_FILLED.search, words)) or not all(map(_VARIABLE.fullmatch, spec.env)):
        return "chaoskit fills in words of the command"
    return ""


def _of_the_call(point: CallPoint) -> str:
    if point.call not in ON_OPEN_FILES:
        return f"strace would not count {point.call} as chaoskit does"
    if "*" in point.target or os.path.isabs(unquote(point.target)) or ".." in point.target:
        return "its file has another name each time, or is in another folder"
    return ""


def _of_the_run(point: CallPoint, baseline: History) -> str:
    """Whether strace's count is this point's ordinal."""
    here = 0
    for seen, call in _calls(baseline):
        if call.call in RENAMES and point.target in call.target.split("->"):
            return "its file is renamed or removed while the program runs"
        if (call.call, call.target) != (point.call, point.target):
            continue
        if call.who or not seen.alone:
            return "several threads or processes make such calls"
        here += 1
        if here == point.ordinal:
            return ""
    return "an undisturbed run does not come to this call"


def _calls(run: History) -> Iterator[tuple[CallSeen, CallPoint]]:
    """The system calls of the first attempt."""
    for _, seen in run.of(CallSeen):
        point = parse_point(seen.call)
        if seen.attempt == 1 and isinstance(point, CallPoint):
            yield seen, point


def shell_script(exhibit: Exhibit, folder: Path) -> str:
    """A script that kills the program as the trial did, and resumes it, in a copy of its folder.

    Args:
        exhibit: what to show; `why_none` says nothing against it.
        folder: where the file will be.
    """
    token, spec, point = exhibit.token, exhibit.token.target.command, _point(exhibit.token)
    assert spec is not None
    assert point is not None
    call = ON_OPEN_FILES[point.call]
    home = Path(os.path.relpath(Path.cwd(), folder.resolve())).as_posix()
    resumes = max(1, len(exhibit.history.attempts) - 1)
    done = " || ".join(f'[ "$status" -eq {code} ]' for code in spec.success)
    lines = [
        "#!/bin/sh",
        *_header(exhibit, spec),
        "set -u",
        f'home=$(cd -P "$(dirname "$0")" && cd -P {shlex.quote(f"./{home}")} && pwd -P) || exit 2',
        'work=$(mktemp -d) && work=$(cd -P "$work" && pwd -P) || exit 2',
        'mkdir "$work/state" "$work/home" && cp -a "$home/." "$work/home" || exit 2',
        'cd "$work/home" || exit 2',
        'CHAOSKIT_STATE_DIR="$work/state"',
        f"CHAOSKIT_SEED={token.seed}",
        "export CHAOSKIT_STATE_DIR CHAOSKIT_SEED",
        *(f"export {name}={shlex.quote(value)}" for name, value in sorted(spec.env.items())),
        *([f"{shlex.join(spec.prepare)} </dev/null || exit 2"] if spec.prepare else []),
        "",
        f"# killed before {plain(str(point))}",
        f"file=$work/home/{shlex.quote(unquote(point.target))}",
        f"set -- -e trace={call} -e inject={call}:signal=KILL:when={point.ordinal}",
        'strace -f -o /dev/null "$@" -P "$file" \\',
        f"    {shlex.join(spec.command)} </dev/null",
        "status=$?",
        f'if [ "$status" -ne {KILLED} ]; then',
        '    echo "it was not killed: it did not come to this call, or strace is missing" >&2',
        "    exit 2",
        "fi",
        "",
        f"left={resumes}",
        'while [ "$left" -gt 0 ]; do',
        f"    {shlex.join(spec.resume or spec.command)} </dev/null",
        "    status=$?",
        '    echo "the resume ended with $status; its files are in $work/home"',
        f"    if {done}; then break; fi",
        "    left=$((left - 1))",
        "done",
        'exit "$status"',
        "",
    ]
    return "\n".join(lines)


def _header(exhibit: Exhibit, spec: CommandSpec) -> list[str]:
    finding = exhibit.finding
    said = [
        f"{finding.kind} of {finding.operation}, without chaoskit: a kill by strace, and a resume.",
        f"expected {finding.expected}; seen {finding.seen}",
        "",
        *_programs(spec.command),
        f"chaoskit {__version__}, {platform.system()} {platform.release()} on {platform.machine()}",
        *(f"the resume's last words: {line}" for line in _last_words(exhibit.history)),
    ]
    return [f"# {plain(line)}".rstrip() for line in said]


def _last_words(history: History) -> list[str]:
    if not history.attempts:
        return []
    lines = [line for line in without_secrets(history.last.output_tail).splitlines() if line]
    return lines[-3:]


def _programs(command: Sequence[str]) -> Iterator[str]:
    """The program, and the file that it runs if a word names one, with their digests."""
    program = shutil.which(command[0])
    files = [program] if program else []
    files += [word for word in command[1:] if os.path.isfile(word)][:1]
    for name, file in zip(("program", "script"), files, strict=False):
        try:
            digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError:
            digest = "unknown: it cannot be read"
        yield f"{name} {file}, sha256 {digest}"
