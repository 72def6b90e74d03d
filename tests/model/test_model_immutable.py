"""Everything that flows through chaoskit is a value that nobody can change."""

from __future__ import annotations

import pkgutil
from dataclasses import is_dataclass
from importlib import import_module

import msgspec
import pytest

from chaoskit import model

MODULES = sorted(module.name for module in pkgutil.iter_modules(model.__path__))


def classes(module: str) -> list[type]:
    """The classes that the module itself defines."""
    loaded = import_module(f"chaoskit.model.{module}")
    return [
        value
        for value in vars(loaded).values()
        if isinstance(value, type) and value.__module__ == loaded.__name__
    ]


@pytest.mark.parametrize("module", MODULES)
def test_the_values_of_the_model_are_frozen(module: str) -> None:
    """Each dataclass and each struct refuses to be changed after it was made."""
    for kind in classes(module):
        if is_dataclass(kind):
            assert kind.__dataclass_params__.frozen, kind  # type: ignore[attr-defined]
        elif issubclass(kind, msgspec.Struct):
            assert kind.__struct_config__.frozen, kind


def test_there_are_values_to_look_at() -> None:
    """The test above has not run over an empty list."""
    found = [kind for module in MODULES for kind in classes(module)]
    assert sum(map(is_dataclass, found)) >= 8
    assert sum(issubclass(kind, msgspec.Struct) for kind in found) >= 20
