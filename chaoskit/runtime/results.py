"""Results as JSON text: what a step returns is what every later resume gets back, exactly.

Refusing a tuple in the first attempt is kinder than handing a list to the second.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from math import isfinite
from typing import Any

from chaoskit.runtime.errors import UnstorableResult

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode

_FIXES: dict[type, str] = {
    tuple: "return a list",
    set: "return a sorted list",
    frozenset: "return a sorted list",
    bytes: "return text, for example base64",
}
_PLAIN = frozenset({str, int, bool, type(None)})


def encode(result: object, where: str, aftermath: str) -> str:
    """``result`` as JSON text that `decode` turns into an equal value of equal types.

    Args:
        result: any JSON value: None, "", large and non-ASCII ones included.
        where: whose result it is, for the message.
        aftermath: what stands now that it cannot be recorded, for the message.

    Raises:
        UnstorableResult: a resume would get something else back.
    """
    if result is None:
        return "null"
    try:
        problem = _problem(result, "the result")
        text = "" if problem else _encode(result)
        if not problem and json.loads(text) != result:
            problem = "the result holds text that JSON changes: return well-formed Unicode"
    except (TypeError, ValueError, RecursionError) as error:
        problem, text = f"the result has no JSON form ({error})", ""
    if problem:
        raise UnstorableResult(f"{where}: {problem}. {aftermath}")
    return text


def decode(text: str | None) -> Any:
    """The value that `encode` wrote.

    Raises:
        ValueError: the text is absent or damaged.
    """
    if text is None:
        raise ValueError("no result is stored")
    return json.loads(text)


def _problem(value: object, path: str) -> str:
    """Why ``value`` does not survive JSON, with the fix; empty if it does."""
    kind = type(value)
    if kind in _PLAIN:
        return ""
    if isinstance(value, float) and kind is float:
        return "" if isfinite(value) else f"{path} is {value}: return None or text for it"
    if isinstance(value, list) and kind is list:
        parts = ((f"{path}[{index}]", item) for index, item in enumerate(value))
        return next(filter(None, (_problem(item, where) for where, item in parts)), "")
    if isinstance(value, dict) and kind is dict:
        return _mapping_problem(value, path)
    if isinstance(value, Awaitable):
        return f"{path} is a {kind.__name__} that nobody awaited: use async_step"
    fix = _FIXES.get(kind, "return plain None, bool, int, float, str, list and dict")
    return f"{path} is a {kind.__name__}: {fix}"


def _mapping_problem(value: dict[object, object], path: str) -> str:
    for key, item in value.items():
        if type(key) is not str:
            return f"{path} has the key {key!r}, which JSON makes text: write str(key)"
        if problem := _problem(item, f"{path}[{key!r}]"):
            return problem
    return ""
