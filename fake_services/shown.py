"""What a service can show of itself besides its ledger, for a person who looks while a task runs.

Each is a protocol that a service may implement; the page asks for it, nothing else does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from chaoskit.model.behaviours import KINDS, BehaviourKind
from chaoskit.model.hosting import Misbehaving, Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A thing as it is now, with nothing left out or cut; whoever shows it sees to secrets.

    ``state`` is how far it is, in a word or two, or empty; ``facts`` are JSON-like values by name;
    ``texts`` are those that are read line by line, with their titles.
    """

    state: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    texts: Sequence[tuple[str, str]] = ()


@runtime_checkable
class Showing(Protocol):
    """What a service, or the core of one, can do besides: show what an effect has made."""

    def show(self, ref: str) -> Shown | None:
        """The thing with this id (an effect's ``ref``); None: there is no such thing."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a table, as texts (None: NULL), and how many there are in all."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    total: int


@runtime_checkable
class Tabular(Protocol):
    """What a service can do besides: show the rows of its tables as they are now."""

    def tables(self) -> Sequence[str]:
        """Their names.

        Raises:
            ScenarioError: the database cannot be read just now.
        """

    def rows(self, table: str, start: int, limit: int) -> Rows:
        """Up to ``limit`` rows in the order of their keys, after the first ``start``.

        Raises:
            UsageError: there is no such table.
            ScenarioError: the database cannot be read just now.
        """


@dataclass(frozen=True, slots=True)
class Repertoire:
    """What may stand in a behaviour for a service: its name there, operations, and kinds."""

    service: str
    operations: Sequence[str]
    kinds: Sequence[BehaviourKind] = KINDS


@runtime_checkable
class Particular(Protocol):
    """What a service can say besides: its behaviours are not named as its effects are."""

    @property
    def repertoire(self) -> Repertoire:
        """What may be asked of it."""


def repertoire_of(service: Service) -> Repertoire | None:
    """What may be asked of a service in the middle of a run; None: it has no behaviours."""
    if not isinstance(service, Misbehaving):
        return None
    if isinstance(service, Particular):
        return service.repertoire
    return Repertoire(service.name, service.operations)
