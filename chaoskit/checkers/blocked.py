"""What explains that a task is stuck: only what its last words, its calls and its files show."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chaoskit.checkers.comparison import counted
from chaoskit.model.events import AttemptEnded, FileLeft, ReplySent, TraceNoted
from chaoskit.model.findings import Diagnosis, Finding
from chaoskit.model.history import History
from chaoskit.model.last_words import QUOTED_CHARACTERS, is_lock, names, telling_line

REFUSES_A_KILL = "resume takes the trace of a kill for damage, and refuses for ever"
UNREADABLE = "a record that cannot be read back: torn by the kill, or damaged (class TORN)"
STALE_LOCK = "a lock outlives the process that made it (class STUCK)"
LOCK_OF_ANOTHER = "the number in a lock is that of a process which is not the task's (STUCK-4)"
NO_ANSWER = "an address does not answer, and no resume goes on without it"
ALWAYS_REFUSED = "each resume makes a request that is refused, and ends with an error"
NAMES_A_FILE = "each resume ends with an error that names a file which was left behind"

_UNREADABLE_WORDS = re.compile(
    r"JSONDecodeError|UnicodeDecodeError|UnpicklingError|EOFError|invalid literal for|"
    r"could not convert string to float|JSON input|in JSON at|is not valid JSON|unexpected EOF|"
    r"invalid character .+ looking for|not a database|disk image is malformed",
    re.IGNORECASE,
)
"""What readers of Python, Node.js, Go and SQLite say of a text or a file that is not whole."""

_LOCK_WORDS = re.compile(
    r"(?<!database is )\b(un)?lock(ed|s|file)?\b|\bpid(file)?\b|\bbusy\b|\bin use\b|"
    r"already (running|started|in progress|under way|at work)|"
    r"another (run|runner|instance|process|job|worker)\b",
    re.IGNORECASE,
)
"""What a program says that takes another one to be at work."""

_NO_ANSWER_WORDS = re.compile(
    r"connection ?refused|connection timed ?out|read timed out|no route to host|\bgetaddrinfo\b|"
    r"name or service not known|name resolution|\bE(CONNREFUSED|TIMEDOUT|NOTFOUND|AI_AGAIN)\b",
    re.IGNORECASE,
)
"""What a program says that reaches nobody."""

_NOBODY = {"nobody": "where nobody listens", "stranger": "which is no service of the run"}
"""What a `TraceNoted` says of an address."""


def blocked(finding: Finding, history: History) -> Diagnosis | None:
    """What each attempt after the last kill met; None where the history does not show it."""
    end = history.stated_end
    if end is not None:
        return Diagnosis(
            REFUSES_A_KILL,
            f"nothing was damaged or changed before attempt {end.attempt}; "
            f"{finding.because}{_files(_named(history, [end.reason]))}",
            "go on from the last complete record; where the outcome of a step is not known, look "
            "it up, or name the step (unknown_outcome); if such a refusal is what the task "
            'promises, say refusals="allowed" in the scenario',
        )
    said = words_of_all(finding, history)
    if not said:
        return None
    return (
        _unreadable(finding, history, said)
        or _locked(history, said)
        or _no_answer(finding, history, said)
        or _refused(finding, history, said)
        or _by_a_file(history, said)
    )


def words_of_all(finding: Finding, history: History) -> list[str]:
    """The telling line of each attempt that failed; none where one did not end by itself."""
    ended = _ended(finding, history)
    lines = [telling_line(body.output_tail)[:QUOTED_CHARACTERS] for body in ended]
    return lines if all(body.how == "exit" for body in ended) else []


def _unreadable(finding: Finding, history: History, said: Sequence[str]) -> Diagnosis | None:
    """A record that is not whole, where every attempt says so before it asks a service for
    anything: what it could not read was its own.
    """
    asking = {body.attempt for _, body in history.requests}
    own = all(body.attempt not in asking for body in _ended(finding, history))
    if not own or not all(map(_UNREADABLE_WORDS.search, said)):
        return None
    files = {name: file for name, file in history.left.items() if not is_lock(name)}
    return Diagnosis(
        UNREADABLE,
        f"{_each(said)} ended before it asked a service for anything, the last one with: "
        f"{said[-1]}{_files(files)}",
        "write each record beside the old one, fsync it and rename it, so that a kill leaves the "
        "old or the new one; where one cannot be read all the same, refuse and say which",
    )


def _locked(history: History, said: Sequence[str]) -> Diagnosis | None:
    locks = {name: file for name, file in history.left.items() if is_lock(name)}
    if not locks or not all(map(_LOCK_WORDS.search, said)):
        return None
    another = any(file.runs for file in locks.values())
    return Diagnosis(
        LOCK_OF_ANOTHER if another else STALE_LOCK,
        f"{_each(said)} ended with an error, the last one with: {said[-1]}{_files(locks)}",
        "use a lock that the kernel gives back (flock), or write its owner's pid and start time in "
        "it, and take it over where that process is gone",
    )


def _no_answer(finding: Finding, history: History, said: Sequence[str]) -> Diagnosis | None:
    if not all(map(_NO_ANSWER_WORDS.search, said)):
        return None
    attempts = {body.attempt for body in _ended(finding, history)}
    called = dict.fromkeys(
        f"; attempt {body.attempt} called {body.detail}, {_NOBODY[body.what]}"
        for _, body in history.of(TraceNoted)
        if body.attempt in attempts and body.what in _NOBODY
    )
    return Diagnosis(
        NO_ANSWER,
        f"{_each(said)} ended with an error, the last one with: {said[-1]}"
        + "".join([*called][-1:]),
        "store an address only for as long as who listens there lives, and look it up anew at "
        "resume; try again within bounds, and end with a reason",
    )


def _refused(finding: Finding, history: History, said: Sequence[str]) -> Diagnosis | None:
    """A request that a service refuses, the last one of every attempt."""
    replies = [_last_reply(body.attempt, history) for body in _ended(finding, history)]
    if any(reply is None or reply[1].status < 400 for reply in replies):
        return None
    operations = {reply[0] for reply in replies if reply is not None}
    statuses = [str(reply[1].status) for reply in replies if reply is not None]
    if len(operations) > 1:
        return None
    return Diagnosis(
        ALWAYS_REFUSED,
        f"the last request of {_each(said)}, {operations.pop()}, was answered with status "
        f"{' and '.join(dict.fromkeys(statuses))}; the last words: {said[-1]}",
        "look at what the service refuses: bring the record into a state that it takes, or end "
        "with a reason",
    )


def _last_reply(attempt: int, history: History) -> tuple[str, ReplySent] | None:
    """The last request of an attempt, and its answer."""
    asked = [body for _, body in history.requests if body.attempt == attempt]
    reply = history.replies.get(asked[-1].request) if asked else None
    return None if reply is None else (f"{asked[-1].service}.{asked[-1].operation}", reply[1])


def _by_a_file(history: History, said: Sequence[str]) -> Diagnosis | None:
    files = _named(history, said)
    if not files:
        return None
    return Diagnosis(
        NAMES_A_FILE,
        f"{_each(said)} ended with an error, the last one with: {said[-1]}{_files(files)}",
        "let the resume take what a kill leaves of this file: complete it, replace it, or refuse "
        "and say which",
    )


def _ended(finding: Finding, history: History) -> list[AttemptEnded]:
    bodies = [history.events[index].body for index in finding.witness]
    return [body for body in bodies if isinstance(body, AttemptEnded)]


def _named(history: History, said: Sequence[str]) -> dict[str, FileLeft]:
    """The files that all of ``said`` name."""
    return {n: f for n, f in history.left.items() if all(names(words, n) for words in said)}


def _each(said: Sequence[str]) -> str:
    return "the attempt" if len(said) == 1 else f"each of {counted(len(said), 'attempt')}"


def _files(files: dict[str, FileLeft]) -> str:
    return "".join(f"; {name} {_is(name, file)}" for name, file in files.items())


def _is(name: str, file: FileLeft) -> str:
    """What a file is at the end of the trial."""
    if file.pid:
        runs = "a process of that number runs" if file.runs else "no process of that number runs"
        none = ", and it is none of the task's" if file.runs else ""
        return f"is there and holds the process number {file.pid}: {runs}{none}"
    if not file.size:
        return "is there, and is empty" + (": it names no owner" if is_lock(name) else "")
    return f"is there with {counted(file.size, 'byte')}, and begins with {file.head!r}"
