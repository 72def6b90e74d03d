"""Tools: what a run was started with besides its code, and may not silently lose or swap.

A tool is anything that a step relies on and that can be replaced between two attempts: a program,
a tool server, a model, an API version. Its version and binding are recorded with the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chaoskit.runtime.errors import Misuse, ToolChanged, announced


class Tool(NamedTuple):
    """A tool as the calling code has it now.

    Attributes:
        version: which one it is.
        binding: what it is bound to: an address, a digest; empty if that says nothing.
        accepts: recorded versions that this one can take over from.
    """

    version: str
    binding: str = ""
    accepts: tuple[str, ...] = ()


Recorded = Mapping[str, Mapping[str, str]]


def pinned(tools: Mapping[str, Tool]) -> Recorded:
    """Tools as they are recorded.

    Raises:
        Misuse: a name, version or binding is not text, or a name has an ``@``.
    """
    for name, tool in tools.items():
        if not isinstance(name, str) or not name or "@" in name:
            raise Misuse(f"a tool's name is a text without @, not {name!r}")
        if not isinstance(tool, Tool):
            raise Misuse(f"tool {name!r} is a Tool(version=…), not {tool!r}")
        if not isinstance(tool.version, str) or not isinstance(tool.binding, str):
            raise Misuse(f"version and binding of tool {name!r} are texts: write str(…)")
        if not isinstance(tool.accepts, tuple):
            raise Misuse(f"accepts= of tool {name!r} is a tuple of versions, not {tool.accepts!r}")
    return {
        name: {"version": tool.version, "binding": tool.binding}
        for name, tool in sorted(tools.items())
    }


def compared(run_id: str, recorded: Recorded, given: Mapping[str, Tool]) -> Recorded:
    """What to record from now on: the tools as given, if the run can go on with them.

    A tool of an accepted version takes over: from then on the run refers to the new one.

    Raises:
        ToolChanged: one is missing, or differs; the message names each.
    """
    now = pinned(given)
    problems = [
        problem
        for name, before in recorded.items()
        if (problem := _problem(name, before, given.get(name)))
    ]
    if problems:
        raise announced(
            ToolChanged(
                f"run {run_id!r} was started with other tools: {'; '.join(problems)}. Bring back "
                "what it was started with, or declare what the new version can take over from: "
                "Tool(version=…, accepts=(…,))"
            )
        )
    return now


def _problem(name: str, before: Mapping[str, str], tool: Tool | None) -> str:
    was = before["version"]
    if tool is None:
        return f"tool {name!r} (version {was}) is missing"
    if tool.version != was:
        if was in tool.accepts:
            return ""
        return f"tool {name!r} has version {tool.version}, recorded is {was}"
    if tool.binding != before["binding"]:
        return (
            f"tool {name!r} (version {was}) is bound to {tool.binding or 'nothing'}, recorded is "
            f"{before['binding'] or 'nothing'}"
        )
    return ""
