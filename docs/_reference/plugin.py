"""The page of the pytest plugin, from what it tells pytest."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from chaoskit import pytest_plugin
from chaoskit.pytest_plugin.words import Words
from docs._reference.markdown import arguments, prose, table, text


class _Recorder:
    """The part of `pytest.Parser` that a plugin adds its options by; it writes them down."""

    def __init__(self) -> None:
        self.options: list[tuple[str, dict[str, Any]]] = []
        self.keys: list[tuple[str, str, object]] = []

    def getgroup(self, name: str, description: str = "", after: str | None = None) -> _Recorder:
        """The plugin's group: all is written down in one place."""
        return self

    def addoption(self, name: str, **words: Any) -> None:
        """An option of the command line."""
        self.options.append((name, words))

    def addini(self, name: str, help: str, type: str | None = None, default: object = None) -> None:  # noqa: A002 - pytest's own names
        """A key of the ini file."""
        self.keys.append((name, help, default))


def page() -> Iterator[str]:
    told: Any = _Recorder()
    pytest_plugin.pytest_addoption(told)
    yield "# pytest"
    yield ""
    yield "The plugin is there as soon as chaoskit is installed. [Campaigns as tests](../pytest.md)"
    yield "shows how it is used."
    yield ""
    yield "## Marker"
    yield ""
    yield "```text"
    yield from _markers()
    yield "```"
    yield ""
    yield "What it may say, and `chaos.run` and `chaos.command` as well:"
    said = arguments(Words.__doc__).items()
    yield from table(("word", "meaning"), [(f"`{name}`", text(words)) for name, words in said])
    yield "## Options and ini keys"
    keys = {name: words for name, *words in told.keys}
    rows = []
    for option, words in told.options:
        key = option.removeprefix("--").replace("-", "_")
        *_, default = keys.get(key, ("", ""))
        shown = f"`{option} {words['metavar']}`" if "metavar" in words else f"`{option}`"
        rows.append((shown, _code(key if key in keys else ""), text(words["help"]), _code(default)))
    yield from table(("option", "ini key", "meaning", "by default"), rows)
    yield "## Fixture `chaos`"
    yield ""
    yield from _members(pytest_plugin.Chaos)
    yield "## `chaos.report`"
    yield ""
    yield from _members(pytest_plugin.ChaosReport)


def _code(words: object) -> str:
    return f"`{words}`" if words else ""


def _markers() -> list[str]:
    """The plugin's markers as pytest itself lists them."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--markers", "-p", "no:cacheprovider"],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
    return [line for line in done.stdout.splitlines() if line.startswith("@pytest.mark.chaos")]


def _members(kind: type) -> Iterator[str]:
    yield from prose(kind.__doc__)
    for name, member in vars(kind).items():
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, property):
            yield f"### `.{name}`"
            yield ""
            yield from prose(member.__doc__)
        elif inspect.isfunction(member):
            shown = "chaos" if name == "__call__" else f".{name}"
            yield f"### `{shown}{_signature(member)}`"
            yield ""
            yield from prose(member.__doc__)
            if said := arguments(member.__doc__):
                rows = ((f"`{word}`", text(words)) for word, words in said.items())
                yield from table(("argument", "meaning"), rows)


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    kept = [
        value.replace(annotation=inspect.Parameter.empty)
        for name, value in signature.parameters.items()
        if name != "self"
    ]
    return str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))
