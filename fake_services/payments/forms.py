"""Stripe's form encoding: ``metadata[order]=7&expand[]=customer`` as nested mappings of text.

A list is a mapping from its indexes: ``a[0]=x``, ``a[]=x`` and the list ``["x"]`` of a client all
come out as ``{"a": {"0": "x"}}``, so that only two shapes of value are left, text and form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import unquote

from fake_services.payments.errors import invalid

FormValue: TypeAlias = "str | Form"
Form: TypeAlias = Mapping[str, FormValue]
_Node: TypeAlias = "dict[str, str | _Node]"

NESTING_MAX = 8
"""Names with more brackets are taken literally; Stripe's own parameters have at most five."""

_NESTED = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])+)")


def decode(text: str) -> Form:
    """A form body or a query string as a form. Later values win; no text is an error.

    Names whose brackets do not pair up are kept as they are, and no parameter has such a name.
    """
    form: _Node = {}
    for pair in text.replace("+", " ").split("&"):
        quoted_name, _, quoted_value = pair.partition("=")
        name = unquote(quoted_name) if "%" in quoted_name else quoted_name
        value = unquote(quoted_value) if "%" in quoted_value else quoted_value
        if "[" in name:
            _put(form, _keys(name), value)
        elif name:
            form[name] = value
    return form


def text_of(form: Form, name: str) -> str | None:
    """The text under ``name``; None where it is absent or empty, as empty means "unset" to Stripe.

    Raises:
        RefusedError: there is a nested form under that name.
    """
    value = form.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid(f"Invalid string: {name} must be a string, not a hash.", param=name)
    return value or None


def form_of(form: Form, name: str) -> Form:
    """The nested form under ``name``, empty where it is absent or unset.

    Raises:
        RefusedError: there is text under that name.
    """
    value = form.get(name) or {}
    if isinstance(value, str):
        raise invalid(f"Invalid object: {name} must be a hash, not a string.", param=name)
    return value


def texts_of(form: Form, name: str) -> tuple[str, ...]:
    """The list of texts under ``name``, in the order in which they came.

    Raises:
        RefusedError: there is something else under that name.
    """
    if name not in form:
        return ()
    items = form_of(form, name)
    values = tuple(value for value in items.values() if isinstance(value, str))
    if len(values) != len(items):
        raise invalid(f"Invalid array: {name} must be a list of strings.", param=name)
    return values


def flag_of(form: Form, name: str, *, default: bool = False) -> bool:
    """The boolean under ``name``.

    Raises:
        RefusedError: it is neither ``true`` nor ``false``.
    """
    value = text_of(form, name)
    if value is None:
        return default
    if value not in {"true", "false"}:
        raise invalid(f"Invalid boolean: {value}", param=name)
    return value == "true"


def _keys(name: str) -> list[str]:
    nested = _NESTED.fullmatch(name)
    if not nested or nested[2].count("[") > NESTING_MAX:
        return [name]
    return [nested[1], *nested[2][1:-1].split("][")]


def _put(form: _Node, keys: list[str], value: str) -> None:
    *parents, last = keys
    for key in parents:
        name = key or str(len(form))
        child = form.get(name)
        if not isinstance(child, dict):
            child = form[name] = {}
        form = child
    form[last or str(len(form))] = value
