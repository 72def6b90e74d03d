"""What is run by ``make exhaustive`` only: a property again, with other clients, modes, sizes."""

from __future__ import annotations

from typing import Any

import pytest


def rare(*values: Any, name: str | None = None) -> Any:
    """A set of parameters that the ordinary run leaves out, because another one stands for it."""
    return pytest.param(*values, id=name, marks=pytest.mark.exhaustive)
