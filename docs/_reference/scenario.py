"""The page of scenarios and changes."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaoskit.cli.starting import ADDRESSES
from chaoskit.model.changes import RIGHTS, Change
from chaoskit.model.contract import GUARANTEES
from chaoskit.model.scenario import Scenario
from docs._reference.markdown import arguments, prose, table, text

CHANGES = Path(__file__).resolve().parents[2] / "chaoskit" / "model" / "changes.py"


def page() -> Iterator[str]:
    yield "# Scenario"
    yield ""
    yield "A scenario is a Python file with a module-level `scenario = Scenario(…)`; `FILE:NAME`"
    yield "names another variable of it. All arguments are given by name."
    yield from _fields(Scenario)
    yield "## How often an effect may happen"
    yield ""
    words = ", ".join(f"`{known}`" for known in GUARANTEES)
    yield f"The values of `contract=`: {words}."
    yield "A pattern is `SERVICE.KIND`, with `*` for any text; the first one that fits decides."
    yield "What no pattern names happens `exactly-once`."
    yield ""
    yield "## Where the services are"
    yield ""
    yield "Variables of the task's environment, and placeholders in any word of `command=`,"
    yield "`resume=` and `env=`. `{state}`, `{seed}`, `{inputs}` and `{here}` (the scenario's"
    yield "folder) are filled in as well; `CHAOSKIT_STATE_DIR`, `CHAOSKIT_SEED` and"
    yield "`CHAOSKIT_INPUTS` say the same."
    rows = [(f"`{name}`", _coded(where[0]), _coded(where[1])) for name, where in ADDRESSES.items()]
    yield from table(("service", "variables", "placeholders"), rows)
    yield "## Change"
    yield ""
    yield from prose(Change.__doc__)
    yield from _fields(Change)
    yield "What is `right` after a change:"
    yield ""
    source = CHANGES.read_text(encoding="utf-8")
    for right in RIGHTS:
        meaning = re.search(rf"^\* ``{right}``: (.+?);?\.?$", source, re.MULTILINE)
        assert meaning, right
        yield f"* `{right}`: {text(meaning[1])}"
    yield ""
    yield "[Faults](../faults.md#changes) has examples."


def _coded(text: str) -> str:
    return ", ".join(f"`{part.strip()}`" for part in text.split(","))


def _fields(kind: Any) -> Iterator[str]:
    said = arguments(kind.__doc__)
    known = dataclasses.fields(kind)
    assert said.keys() == {field.name for field in known}, f"{kind.__name__} explains each field"
    rows = (
        (f"`{field.name}`", f"`{_type(field.type)}`", _default(field), text(said[field.name]))
        for field in known
    )
    yield from table(("argument", "type", "by default", "meaning"), rows)


def _type(kind: object) -> str:
    return (
        re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", str(kind)) if isinstance(kind, str) else type_name(kind)
    )


def type_name(kind: object) -> str:
    """A type as one writes it."""
    if isinstance(kind, type) and not typing.get_args(kind):
        return "None" if kind is type(None) else kind.__name__
    if typing.get_origin(kind) is typing.Literal:
        return " | ".join(f'"{word}"' for word in typing.get_args(kind))
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", str(kind))


def _default(field: Any) -> str:
    if field.default is not dataclasses.MISSING:
        return "" if field.default in {"", ()} else f"`{field.default!r}`"
    return ""
