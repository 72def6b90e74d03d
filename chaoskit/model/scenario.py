"""The scenario: a task, its services, its inputs, its contract. The one value that users write.

A scenario file is a Python file with a module-level ``scenario = Scenario(...)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from chaoskit.model.changes import Change
from chaoskit.model.declared import declared
from chaoskit.model.durations import duration_text, parse_duration
from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.events import SUCCESS
from chaoskit.model.instances import Instance, parse_instance, spread_all, spread_keys
from chaoskit.model.patterns import split_pattern
from chaoskit.model.points import NAME
from chaoskit.model.preludes import Clock
from chaoskit.model.schedule import Schedule, parse_schedule

ATTEMPTS = 4
"""How often a task may fail after the last fault, where its scenario does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that chaoskit must know of a task.

    Exactly one of ``task`` and ``command`` is given.

    Args:
        task: a function of the scenario's own file, called without arguments in a process of its
            own; a failure is an exception or a non-zero exit.
        command: the program and its arguments; ``{payments.url}``, ``{state}``, ``{seed}``,
            ``{inputs}`` and ``{here}`` (the scenario's folder) are filled in.
        resume: the command for every attempt after the first; the same one by default.
        env: further environment variables, with the same placeholders.
        services: names of fake services ("payments", "email", "database" or "postgres", "jobs").
            "payments:eu" is one under a name of its own, so that there can be two: ``{eu.url}``,
            ``eu.charge``. What is said of ``payments.charge`` holds for each of them.
            "sms.py:create" is one of your own: a file beside the scenario, and what makes it there.
        inputs: makes the task's inputs, any JSON value, from the seed; written to a file that
            ``CHAOSKIT_INPUTS`` names.
        prepare: what there is before the first attempt. A function ``prepare(folder, seed)`` fills
            the work folder, once for all trials. A command is run before the first attempt of each
            trial, in the task's environment: what it does to services and files is the starting
            state, and no effect of the task. It must end with 0.
        outputs: glob patterns of files; what they match must end up as it does in an undisturbed
            run. They are relative to the folder in which the task runs, or begin with ``~/``,
            ``/`` or ``state:`` (the work folder).
        recorded: glob patterns of files, as for ``outputs``: each records that a step is complete.
        tables: SQL that makes the database's tables, so that each row is booked as it is written.
        contract: per operation pattern, how often an effect may happen; exactly once by default.
        identity: per operation, the fields that make an effect the same business fact; by default
            all that do not change from one undisturbed run to the next.
        ignore: patterns of operations whose effects are not judged, however often they happen: a
            lock, a lease, a heartbeat. They are not expected, and the report counts them.
        redo: patterns of steps or operations that may be run again after they were completed.
        settled: patterns of operations of which the task relies on this: when it is resumed, no
            request of its former life is in flight any more (it looks effects up).
        behaviours: ways in which the services misbehave in every trial, in text form. What is
            expected is what the task does without them.
        control: another form of the task (a function for ``task``, words for ``command``), say with
            checkpointing off or one item at a time. Its effects and outputs are what is expected.
        schedules: faults in text form (``kill@payments.charge#2.applied / kill@rescue#1``) that
            every campaign of this scenario runs besides those that it chooses by itself.
        key_lifetime: per service, for how long it remembers an idempotency key, by its own clock:
            ``{"payments": "72h"}``, or seconds; 24 hours by default.
        resumed_within: how long after an interruption the task is resumed at the latest: ``"72h"``,
            or seconds. No fault advances the clocks by more before a resume; None: by a week.
        changes: by name, what may be different when the task is resumed; see `Change`.
        checkpoints: glob patterns in the work folder: what the task resumes from, to be damaged
            where that is asked for; by default all that are directly in it. Empty: nothing is
            damaged, and no older copy is put back.
        allow: who may be reached besides the services, as ``HOST:PORT``, ``HOST:*`` or the path of
            a Unix socket. What is done there is in no ledger, so such a task is never VALID.
        refusals: what is said of a task that refuses to go on each time that it is resumed, after
            an interruption alone: that it is "stuck", or nothing ("allowed"). After damage, after a
            change and beside another runner it may refuse in any case.
        timeout_s: an attempt that takes longer is killed; None: 10 s plus 20 times the survey.
        attempts_max: how often a task that fails by itself is resumed after the last fault.
        success: the exit codes that mean success; any other one is a failure.
        expect: what an undisturbed run must do: per operation pattern how often, or a list with the
            fields of each effect (``{"payments.charge": [{"customer": "Ann"}, …]}``). Where it does
            something else the verdict is UNKNOWN, whatever the trials show.
        finds: kinds of finding that this scenario is known to show (the gallery's broken ones).
        cases: what it reproduces, by the numbers of a list of known failures; for the gallery.
        title: one sentence for lists.
    """

    task: Callable[[], object] | None = None
    command: Sequence[str] = ()
    resume: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    services: Sequence[str] = ()
    inputs: Callable[[int], object] | None = None
    prepare: Callable[[Path, int], None] | Sequence[str] | None = None
    outputs: Sequence[str] = ()
    recorded: Sequence[str] = ()
    tables: str = ""
    contract: Mapping[str, str] = field(default_factory=dict)
    identity: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    redo: Sequence[str] = ()
    settled: Sequence[str] = ()
    behaviours: Sequence[str] = ()
    control: Callable[[], object] | Sequence[str] = ()
    schedules: Sequence[str] = ()
    key_lifetime: Mapping[str, str | float] = field(default_factory=dict)
    resumed_within: str | float | None = None
    changes: Mapping[str, Change] = field(default_factory=dict)
    checkpoints: Sequence[str] = ("*",)
    allow: Sequence[str] = ()
    refusals: Literal["stuck", "allowed"] = "stuck"
    timeout_s: float | None = None
    attempts_max: int = ATTEMPTS
    success: Sequence[int] = SUCCESS
    expect: Mapping[str, object] = field(default_factory=dict)
    finds: Sequence[str] = ()
    cases: Sequence[str] = ()
    title: str = ""

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ScenarioError("this scenario cannot be run: " + "; ".join(problems))

    @property
    def commands(self) -> tuple[Sequence[str], ...]:
        """The command lines that there are: its own, that of a resume, that of the control, and
        the one that prepares.
        """
        others = (some for some in (self.control, self.prepare) if some and not callable(some))
        return tuple(filter(None, (self.command, self.resume, *others)))

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The services, in their order, with the names that they have in this run."""
        return tuple(map(parse_instance, self.services))

    @property
    def service_names(self) -> tuple[str, ...]:
        """The names that the services have in this run, in their order."""
        return tuple(one.name for one in self.instances)

    def for_instances(self) -> Scenario:
        """The same, with what it says of a kind of service said of each instance of that kind."""
        among = self.instances
        if all(one.name == one.kind for one in among):
            return self
        return replace(
            self,
            contract=spread_keys(self.contract, among),
            identity=spread_keys(self.identity, among),
            redo=tuple(dict.fromkeys((*self.redo, *spread_all(self.redo, among)))),
            ignore=spread_all(self.ignore, among),
            settled=spread_all(self.settled, among),
            key_lifetime=spread_keys(self.key_lifetime, among),
            changes={
                name: replace(change, matters=spread_all(change.matters, among))
                for name, change in self.changes.items()
            },
        )

    @property
    def key_lifetimes_s(self) -> dict[str, float]:
        """Per service, for how many seconds it remembers a key, where that is declared."""
        return {
            name: parse_duration(given, f"key_lifetime= of {name}")
            for name, given in self.key_lifetime.items()
        }

    @property
    def resumed_within_s(self) -> float | None:
        """`resumed_within` in seconds."""
        given = self.resumed_within
        return None if given is None else parse_duration(given, "resumed_within=")

    def check_resumes(self, schedule: Schedule, after_s: int = 0) -> None:
        """Refuse clocks that advance by more before an attempt than `resumed_within` allows.

        Args:
            schedule: the faults.
            after_s: by how much all clocks advance after each kill, besides.

        Raises:
            UsageError: they do; the message names what is too long, and the limit.
        """
        limit_s = self.resumed_within_s
        if limit_s is None:
            return
        for number, faults in enumerate((*schedule.attempts, ()), 1):
            clocks = [fault.action for fault in faults if isinstance(fault.action, Clock)]
            after = after_s if number > 1 or not clocks else 0
            if after + sum(clock.seconds for clock in clocks) <= limit_s:
                continue
            said = [f"--resume-after {duration_text(after)}"] if after else []
            raise UsageError(
                f"{' and '.join([*said, *map(str, clocks)])} is longer than the task is declared "
                f"to be resumed within: {self.resumed_within} (--resumed-within, resumed_within=); "
                "shorten the one, or raise the other"
            )

    def _problems(self) -> list[str]:
        found = []
        if (self.task is None) == (not self.command):
            found.append("give either task=FUNCTION or command=(PROGRAM, …)")
        if self.control and callable(self.control) != (self.task is not None):
            found.append("control= is a function beside task=, and a sequence beside command=")
        if self.resume and not self.command:
            found.append("resume= goes with command=")
        found.extend(
            f"{name}= takes a sequence of texts, not one text"
            for name in (
                *("command", "resume", "services", "outputs", "recorded", "redo", "settled"),
                *("control", "behaviours", "schedules", "finds", "cases", "checkpoints", "allow"),
                *("prepare", "ignore"),
            )
            if isinstance(getattr(self, name), str)
        )
        found.extend(self._problems_of_patterns())
        if not isinstance(self.schedules, str):
            found.extend(filter(None, map(_unreadable, self.schedules)))
        found.extend(
            f"allow= takes HOST:PORT, HOST:* or the path of a Unix socket, not {text!r}"
            for text in self.allow
            if not isinstance(self.allow, str) and not _REACHED.fullmatch(text)
        )
        found.extend(self._problems_of_expect())
        if self.refusals not in {"stuck", "allowed"}:
            found.append(f'refusals= is "stuck" or "allowed", not {self.refusals!r}')
        if self.attempts_max < 1:
            found.append("attempts_max= is at least 1")
        found.extend(self._problems_of_success())
        if self.timeout_s is not None and self.timeout_s <= 0:
            found.append("timeout_s= is more than 0")
        found.extend(self._problems_of_changes())
        found.extend(self._problems_of_services())
        found.extend(self._problems_of_times())
        return found

    def _problems_of_success(self) -> Iterator[str]:
        codes: object = self.success
        whole = isinstance(codes, Sequence) and all(type(code) is int for code in codes)
        if not whole or not codes or not all(0 <= code <= 255 for code in self.success):
            yield f"success= takes exit codes from 0 to 255, as in (0, 101), not {codes!r}"

    def _problems_of_patterns(self) -> Iterator[str]:
        for name in ("outputs", "recorded"):
            patterns = getattr(self, name)
            if not isinstance(patterns, str):
                yield from filter(None, (_unmatchable(name, text) for text in patterns))

    def _problems_of_times(self) -> Iterator[str]:
        try:
            _ = self.key_lifetimes_s, self.resumed_within_s
            for text in () if isinstance(self.schedules, str) else self.schedules:
                if not _unreadable(text):
                    self.check_resumes(parse_schedule(text))
        except UsageError as wrong:
            yield str(wrong)

    def _problems_of_services(self) -> Iterator[str]:
        try:
            kinds = set() if isinstance(self.services, str) else {i.kind for i in self.instances}
        except UsageError as wrong:
            yield f"services=: {wrong}"
            return
        if self.tables and not {"database", "postgres"} & kinds:
            yield 'tables= goes with services=("database", …)'

    def _problems_of_expect(self) -> Iterator[str]:
        given: object = self.expect  # a tuple of kinds, in scenarios from before
        if not isinstance(given, Mapping):
            yield (
                'expect= is a mapping, as in {"payments.charge": 12}; the kinds of finding that a '
                "scenario is known to show go in finds="
            )
            return
        try:
            declared(self.expect)
        except UsageError as error:
            yield str(error)

    def _problems_of_changes(self) -> Iterator[str]:
        for name, change in self.changes.items():
            if not re.fullmatch(NAME, name):
                yield f"changes= names {name!r}: letters, digits and _ . / : - only"
            if change.task is not None and self.task is None:
                yield f"the change {name!r} has task=, and this scenario has a command="
            if change.command and not self.command:
                yield f"the change {name!r} has command=, and this scenario has a task="


_REACHED = re.compile(r"[/@].+|[^/@:\s]+:(\*|[0-9]{1,5})|\[[0-9a-fA-F:.]+\]:(\*|[0-9]{1,5})")


def _unmatchable(name: str, pattern: str) -> str:
    """What is wrong with a pattern of files; nothing where it can match some."""
    _, below = split_pattern(pattern)
    try:
        next(Path("/dev/null").glob(below), None)
    except (ValueError, IndexError):
        return f"{name}= takes glob patterns of files, not {pattern!r}"
    return ""


def _unreadable(schedule: str) -> str:
    """What is wrong with the text of a schedule; nothing where it can be read."""
    try:
        parse_schedule(schedule)
    except UsageError as wrong:
        return f"schedules=: {wrong}"
    return ""
