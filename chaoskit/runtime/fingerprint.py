"""Fingerprints of inputs: which fields differ from those recorded, without keeping the values.

A mapping is digested per key, so that a difference has a name; any other value as a whole.
Digests, and never the inputs themselves, are stored: inputs may be large or secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TypeAlias

from chaoskit.runtime.errors import Misuse

Fingerprint: TypeAlias = Mapping[str, str]
"""The digest of each field; one field named ``""`` for inputs that are not a mapping."""

WHOLE = ""
DIGEST_CHARACTERS = 16
"""64 bits tell apart by accident what people and programs write; nobody attacks their own run."""

_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode


def fingerprint(inputs: object) -> Fingerprint:
    """The digest of each field of ``inputs``, each the start of a SHA-256 of canonical JSON.

    Equal JSON gives equal digests: neither the order of keys nor tuple or list makes a difference.

    Raises:
        Misuse: the inputs have no JSON form.
    """
    if not isinstance(inputs, Mapping):
        return {WHOLE: _digest(inputs, WHOLE)}
    for field in inputs:
        if not isinstance(field, str):
            raise Misuse(f"inputs need text as keys, not {field!r}: write str(key)")
    return {field: _digest(value, field) for field, value in inputs.items()}


def differences(recorded: Fingerprint, given: Fingerprint) -> str:
    """Each field that is not the same, with both digests, as text; empty where all are."""
    if recorded == given:
        return ""
    return "; ".join(
        f"{_title(field)} (recorded {recorded.get(field, 'absent')}, "
        f"given {given.get(field, 'absent')})"
        for field in sorted(recorded.keys() | given.keys())
        if recorded.get(field) != given.get(field)
    )


def _digest(value: object, field: str) -> str:
    try:
        text = _canonical(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misuse(
            f"{_title(field)} cannot be fingerprinted ({error}): give plain JSON values as inputs"
        ) from error
    return sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


def _title(field: str) -> str:
    return "the inputs as a whole" if field == WHOLE else f"field {field!r}"
