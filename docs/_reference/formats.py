"""The page of file formats."""

from __future__ import annotations

import sqlite3
import tempfile
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from chaoskit.campaign import store
from chaoskit.model import events, history, token
from chaoskit.model.effects import Effect
from chaoskit.pytest_plugin import baseline
from chaoskit.reporting import machine, summary
from docs._reference.markdown import arguments, prose, table, text
from docs._reference.scenario import type_name


def page() -> Iterator[str]:
    yield "# File formats"
    yield from _json_report()
    yield from _stored_campaign()
    yield from _histories()
    yield from _tokens()
    yield "## What a service writes"
    yield ""
    yield "`chaoskit serve` and `python -m fake_services` print each effect as a line of JSON. In"
    yield "histories effects have the same form."
    yield from _structs(Effect)
    yield "## The baseline of pytest"
    yield ""
    yield from prose(baseline.__doc__)
    yield from _structs(baseline.Entry)


def _json_report() -> Iterator[str]:
    schema = msgspec.json.decode(machine.schema())
    yield ""
    yield f"## The JSON report, format {summary.FORMAT}"
    yield ""
    yield "What `--json` writes; `chaoskit report --schema` prints its JSON Schema. Within a format"
    yield "fields are only added."
    yield from _of_schema(schema)
    for name, part in schema["$defs"].items():
        yield f"### {name}"
        yield from _of_schema(part)


def _of_schema(part: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield from prose(part.get("description"))
    required, said = set(part.get("required", ())), arguments(part.get("description"))
    rows = [
        (f"`{name}`", _json_type(shape), _there(name in required), text(said.get(name, "")))
        for name, shape in part["properties"].items()
    ]
    yield from _shape(rows)


def _shape(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    """A table of fields; without the column of meanings where the prose has said all."""
    head = ("field", "type", "there", "meaning")
    width = 4 if any(row[3] for row in rows) else 3
    yield from table(head[:width], [row[:width] for row in rows])


def _there(always: bool) -> str:  # noqa: FBT001 - a column of yes and no
    return "always" if always else ""


def _json_type(shape: Mapping[str, Any]) -> str:
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in shape:
        return " or ".join(map(_json_type, shape["anyOf"]))
    if words := shape.get("enum", [shape["const"]] if "const" in shape else None):
        return " or ".join(f"`{msgspec.json.encode(word).decode()}`" for word in words)
    inner = shape.get("items") or shape.get("additionalProperties")
    kind = str(shape.get("type", "any"))
    return f"{kind} of {_json_type(inner)}" if isinstance(inner, Mapping) and inner else kind


def _stored_campaign() -> Iterator[str]:
    yield f"## The stored campaign, format {store.FORMAT}"
    yield ""
    yield from prose(store.__doc__)
    yield f"`{store.FILE}` is an SQLite file. It is read with `chaoskit report`, `show`, `diff` and"
    yield "`judge`; another format is refused with the version that it has."
    with tempfile.TemporaryDirectory() as folder:
        with store.Store(Path(folder), writable=True):
            pass
        database = sqlite3.connect(Path(folder) / store.FILE)
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        for (named,) in tables.fetchall():
            columns = database.execute(f'PRAGMA table_info("{named}")').fetchall()
            yield from table(
                (f"column of `{named}`", "type"),
                [(f"`{name}`", str(kind).lower()) for _, name, kind, *_ in columns],
            )
        database.close()
    yield from prose(store.StoredTrial.__doc__)


def _histories() -> Iterator[str]:
    yield f"## Histories, format {history.FORMAT}"
    yield ""
    form = f'{{"format": {history.FORMAT}, "events": […]}}'
    yield f"A history is JSON, `{form}`; compressed in the campaign, and as it is in the folder"
    yield "of a trial that failed. Each event has `index`, `at_us` (microseconds since the trial"
    yield "began) and `body`, of which `type` says what it is."
    for kind in typing.get_args(events.Body):
        yield ""
        yield f"### {kind.__struct_config__.tag}"
        yield ""
        yield from prose(kind.__doc__)
        yield from _structs(kind, told=False)


def _tokens() -> Iterator[str]:
    yield "## The replay token"
    yield ""
    yield from prose(token.__doc__)
    for kind in (token.ReplayToken, token.Target, token.CommandSpec):
        yield f"### {kind.__name__}"
        yield ""
        yield from _structs(kind)


def _structs(kind: Any, *, told: bool = True) -> Iterator[str]:
    if told:
        yield ""
        yield from prose(kind.__doc__)
    hints, said = typing.get_type_hints(kind), arguments(kind.__doc__)
    rows = [
        (
            f"`{field.encode_name}`",
            f"`{type_name(hints[field.name])}`",
            _there(field.required),
            text(said.get(field.name, "")),
        )
        for field in msgspec.structs.fields(kind)
    ]
    yield from _shape(rows)
