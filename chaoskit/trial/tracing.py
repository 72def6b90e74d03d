"""The supervisor's side of tracing: what is asked of the tracer, and what it says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoskit.model.hosting import Address
from chaoskit.model.points import CallPoint, Side, parse_point
from chaoskit.trial.workspace import Workspace

_PORT = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):([0-9]{1,5})(?![0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One stop of a traced task, or (not ``held``) a call that it is about to make.

    Args:
        point: where; the bytes of a point that was cut short are in its name.
        sends: the call sends to a service.
        bytes: how much it would write.
        program: what the process runs, where it is not the first one.
        cuts: how much of it a kill can leave, if not all or nothing.
        alone: the task has one thread and no other process.
        held: the task stands still until it is let go.
        name: the call's name without its target.
        paths: the absolute paths of the files that it acts on.
        result: what the call returned, after it; a negative error number if it failed.
        tid: the thread that made it.
        synced: it wrote to a descriptor that was opened so that each write is durable.
    """

    point: CallPoint
    sends: bool
    bytes: int
    alone: bool
    held: bool
    name: str = ""
    paths: tuple[str, ...] = ()
    result: int = 0
    tid: int = 0
    synced: bool = False
    cuts: tuple[int, ...] = ()
    program: str = ""


def understood(message: Mapping[str, Any]) -> Traced:
    """The tracer's words as a value."""
    base = parse_point(message["call"])
    assert isinstance(base, CallPoint)
    side: Side = message["side"]
    point = CallPoint(base.call, base.target, base.ordinal, side, message.get("cut", 0), base.who)
    return Traced(
        point=point,
        sends=message["sends"],
        bytes=message["bytes"],
        alone=message["alone"],
        held=message["held"],
        name=message.get("name", ""),
        paths=tuple(message.get("paths", ())),
        result=message.get("result", 0),
        tid=message.get("tid", 0),
        synced=message.get("synced", False),
        cuts=tuple(message.get("cuts", ())),
        program=message.get("program", ""),
    )


@dataclass(frozen=True, slots=True)
class TraceScope:
    """What of a task's world is looked at: its work folder, the services' files and ports; and who
    may be reached besides.
    """

    folders: Mapping[str, str]
    ports: Mapping[int, str]
    quiet: str
    allowed: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        known: Mapping[str, Address],
        allowed: Sequence[str] = (),
        *,
        everywhere: bool = False,
    ) -> TraceScope:
        """The scope of one supervisor; ``everywhere``: all files belong to the world."""
        folders = {workspace.home: "" if workspace.cwd == workspace.home else "state:"}
        folders |= {str(workspace.services / name): f"{name}:" for name in known}
        folders.setdefault(workspace.cwd, "")
        if everywhere:
            folders.setdefault(os.path.expanduser("~"), "~/")
            folders["/"] = "/"
        ports = {port: name for name, address in known.items() for port in _ports_of(address)}
        return cls(folders, ports, str(workspace.base), allowed)

    def request(
        self,
        calls: Iterable[CallPoint],
        varying: Sequence[str] = (),
        *,
        exits: bool,
        tell: bool,
        skip_sleeps: bool,
    ) -> dict[str, object]:
        """The words for the launcher. A trace for nothing but strangers is left out where the
        kernel does not let us trace.

        ``varying``: names that were learnt from baseline runs.
        """
        hold = sorted(map(str, calls))
        return {
            "allowed": list(self.allowed),
            "optional": not (hold or exits or tell or skip_sleeps),
            "folders": dict(self.folders),
            "ports": {str(port): name for port, name in self.ports.items()},
            "quiet": [self.quiet],
            "varying": list(varying),
            "hold": hold,
            "exits": exits,
            "tell": tell,
            "skip_sleeps": skip_sleeps,
        }


def _ports_of(address: Address) -> set[int]:
    """Where a service listens, as it says, or as the addresses say that it gives to tasks."""
    texts = (*address.placeholders.values(), *address.environment.values())
    return set(address.ports) or {int(port) for text in texts for port in _PORT.findall(text)}
