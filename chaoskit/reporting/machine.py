"""The report for programs: JSON, and the schema that it keeps to.

The shape is `chaoskit.reporting.summary.Summary`. Within one format version fields are only added;
a reader takes those that it knows.
"""

from __future__ import annotations

from typing import Any

import msgspec

from chaoskit.campaign.store import Store
from chaoskit.reporting.summary import FORMAT, Summary

SCHEMA_ID = f"urn:chaoskit:report:{FORMAT}"


def render(summary: Summary, store: Store | None = None) -> str:
    """The summary as JSON, indented, with a line feed at its end."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=2).decode() + "\n"


def schema() -> str:
    """The JSON Schema (draft 2020-12) of the report; published as `schema/report-1.schema.json`."""
    (shape,), parts = msgspec.json.schema_components([Summary], ref_template="#/$defs/{name}")
    summary: dict[str, Any] = parts.pop(Summary.__name__)
    summary["properties"]["format"]["const"] = FORMAT
    summary["properties"]["verdict"]["enum"] = ["VALID", "INVALID", "UNKNOWN"]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **summary,
        "title": f"A report of chaoskit, format {FORMAT}",
        "$defs": parts,
    }
    assert shape["$ref"].endswith(Summary.__name__)
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
