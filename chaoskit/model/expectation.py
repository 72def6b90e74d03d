"""The expectation: what an undisturbed run does, read off the surveys and used by every checker."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import msgspec

from chaoskit.model.contract import Contract
from chaoskit.model.effects import Effect, Identity, identity_of
from chaoskit.model.events import Output
from chaoskit.model.file_work import FileWork


class Terms(msgspec.Struct, frozen=True):
    """What a correct task does after a change of the scenario's: see `chaoskit.model.changes`."""

    right: str
    matters: tuple[str, ...] = ("*",)
    finding: str = "stale_world"
    after: str = ""


class Freed(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a database that an undisturbed run takes and frees again, as a lock or a lease is.

    ``ref`` is its primary key; empty: every row of the ``table``, each of which is inserted and
    deleted again. ``back``: the columns that get their value back by updates, with that value.
    """

    table: str
    ref: str = ""
    back: tuple[tuple[str, str], ...] = ()

    def covers(self, effect: Effect) -> bool:
        """Whether ``effect`` is one on this row."""
        return (effect.service, effect.table) == ("database", self.table) and (
            not self.ref or self.ref == effect.ref
        )

    def is_free(self, last: Effect) -> bool:
        """Whether the row is free after its ``last`` change."""
        return {*self.back} <= {*last.fields} if self.back else last.verb == "delete"

    def __str__(self) -> str:
        return f"{self.table} {self.ref}" if self.ref else self.table


class Recorded(msgspec.Struct, frozen=True):
    """A step that an undisturbed run has recorded.

    ``number``: of its request for an effect in the run, from 1 on. ``by``: the call that did.
    ``last``: no other one follows.
    """

    number: int
    identity: Identity
    by: str
    last: bool = False


class FileRecord(msgspec.Struct, frozen=True):
    """A file that records that ``steps`` are complete, once it has ``bytes`` or more."""

    file: str
    bytes: int
    steps: tuple[Identity, ...]


class Expectation(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """What the trials of a campaign are measured against.

    ``effects`` holds one witness per expected effect in the order of the first survey, identical
    ones as often as they happen. ``order`` lists the same by identity. ``volatile`` names, per
    operation, the fields that differed between the surveys. ``requests`` counts the requests
    that ask for each effect. ``steps`` are the steps that the task reports, in order, each as often
    as it begins. ``ordered`` says that both surveys had the same sequence of effects
    and that no two requests overlapped, which is what lets a successor prove a step complete;
    ``early`` are the requests that prove nothing, as they were sent before the one ahead of them on
    their connection was answered.
    ``record_first`` says that the task changes its own files before its first effect and between
    the others, and not after the last one: what it knows of an effect it had written before.
    ``unsynced`` are the effects before or after which it leaves something written without a sync.
    ``recorded``: by point, in text form, the step whose record is there when the first attempt
    comes to it; the step is complete then. ``files``: those that `Scenario.recorded` names.
    ``by_children``: the steps of which a child of the task writes the record, in a file of its own.
    ``file_work``: of a task that does nothing else, what its files are for; None: not known.
    ``changes`` are the scenario's, by name. ``refusals``: `Scenario.refusals`. ``varying``: names
    of files that differ from run to run, with ``*`` for what differs. ``outputs``: size and content
    of the files in ``digests``, as far as they are known. ``freed``: rows that are taken and freed
    again, whose changes are no expected effects. ``problems`` says in
    sentences why the survey does not repeat; empty when it does.
    """

    effects: tuple[Effect, ...] = ()
    order: tuple[Identity, ...] = ()
    volatile: dict[str, tuple[str, ...]] = {}
    identity: dict[str, tuple[str, ...]] = {}
    requests: tuple[tuple[Identity, int], ...] = ()
    steps: tuple[str, ...] = ()
    digests: dict[str, str] = {}
    ordered: bool = True
    early: tuple[Identity, ...] = ()
    record_first: bool = False
    unsynced: tuple[Identity, ...] = ()
    recorded: dict[str, Recorded] = {}
    files: tuple[FileRecord, ...] = ()
    by_children: tuple[Identity, ...] = ()
    file_work: FileWork | None = None
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    rules: str = ""
    redo_allowed: tuple[str, ...] = ()
    refusals: str = "stuck"
    changes: dict[str, Terms] = {}
    varying: tuple[str, ...] = ()
    outputs: dict[str, Output] = {}
    freed: tuple[Freed, ...] = ()

    def identify(self, effect: Effect) -> Identity:
        """The identity of ``effect`` under these surveys."""
        return identity_of(effect, self.volatile, self.identity or None)

    @cached_property
    def counts(self) -> Counter[Identity]:
        """How often each effect is expected."""
        return Counter(self.order)

    @cached_property
    def request_counts(self) -> dict[Identity, int]:
        """How often an undisturbed run asks for each effect."""
        return dict(self.requests)

    @cached_property
    def contract(self) -> Contract:
        """The scenario's contract."""
        from chaoskit.model.contract import parse_contract

        return parse_contract(self.rules)

    def sample(self, identity: Identity) -> Effect | None:
        """An expected effect with this identity, for its words."""
        for effect, known in zip(self.effects, self.order, strict=True):
            if known == identity:
                return effect
        return None

    @property
    def judges_the_last_step(self) -> bool:
        """Whether it is known by what the last step is complete."""
        if any(step.last for step in self.recorded.values()):
            return True
        known = (*self.by_children, *(step for file in self.files for step in file.steps))
        return bool(self.order) and self.order[-1] in known

    @property
    def evidence(self) -> bool:
        """Whether there is anything to judge by: an effect, or a declared output."""
        return bool(self.order or self.digests)
