"""Text that a task wrote, made safe to show: what cannot be seen is spelt out, credentials are
blotted out, and what is endless is cut.

Each report quotes texts as they stand here; what its own format needs besides (XML, HTML, Markdown)
it does itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from chaoskit.model.secrets import BLOT, is_secret_name, without_secrets
from chaoskit.model.token import CommandSpec, Target
from chaoskit.model.visible import visible

TEXT_MOST = 2_000
"""Up to this many characters a text is shown whole."""

V = TypeVar("V")

_KEPT = frozenset({"replay", "run"})
"""Fields that a reader pastes or opens: they are kept as they are."""


def plain(text: str, most: int = TEXT_MOST) -> str:
    """``text`` on one line, with nothing in it that a terminal or a reader would not see.

    Args:
        text: from anywhere.
        most: so many characters of it are kept; how many there were is then said.
    """
    if len(text) <= most and text.isascii() and text.isprintable():
        return without_secrets(text)
    shown = without_secrets(text)
    more = f"… ({len(text)} characters)" if len(shown) > most else ""
    return visible(shown[:most]) + more


def plain_lines(text: str, most: int = TEXT_MOST) -> list[str]:
    """The lines of ``text``, each as `plain` would show it; of ``most`` characters the last."""
    return [plain(line, most) for line in without_secrets(text)[-most:].split("\n")]


def cleaned(value: V) -> V:
    """``value`` with every text in it `plain`: of a struct, a tuple or a mapping of them."""
    made: Any = value
    if isinstance(value, str):
        made = plain(value)
    elif isinstance(value, tuple):
        items = map(cleaned, value)
        made = value._make(items) if hasattr(value, "_make") else tuple(items)
    elif isinstance(value, Mapping):
        made = {cleaned(name): cleaned(one) for name, one in value.items()}
    elif isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if name not in _KEPT]
        made = msgspec.structs.replace(
            value, **{name: cleaned(getattr(value, name)) for name in names}
        )
    return cast("V", made)


def without_credentials(target: Target) -> Target:
    """``target`` with the credentials of its command blotted out: words and variables."""
    spec = target.command
    if spec is None:
        return target
    env = {
        name: BLOT if names_secret(name) else without_secrets(value)
        for name, value in spec.env.items()
    }
    lines = {
        name: tuple(map(without_secrets, getattr(spec, name)))
        for name in ("command", "resume", "control", "prepare")
    }
    shown: CommandSpec = msgspec.structs.replace(spec, env=env, **lines)
    return msgspec.structs.replace(target, command=shown)


def names_secret(variable: str) -> bool:
    """Whether an environment variable of this name holds a secret, as ``MAIL_API_KEY`` does."""
    parts = variable.lower().split("_")
    return any(is_secret_name("_".join(parts[at:])) for at in range(len(parts)))
