"""The page itself: one HTML document with its style and its script, and nothing that was sent.

Everything from the books comes as JSON and becomes text; the document holds the token, and the
words for kinds of behaviours.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from chaoskit.model.behaviours import KINDS
from fake_services.page.views import MEANINGS

STYLES = ("page.css", "books.css")
SCRIPTS = ("words.js", "talk.js", "list.js", "detail.js", "books.js", "controls.js", "page.js")
"""In this order they make one style and one script."""

ARGUMENTS = {"late-reply": "250ms", "commit-late": "1", "reject": "429", "down": "4", "lag": "2"}
"""What a behaviour of a kind with an argument begins with, where a person puts one together."""


@cache
def document(token: str, header: str) -> tuple[bytes, str]:
    """The page, and the Content-Security-Policy that allows its own style and script only.

    Args:
        token: whoever acts must bring it.
        header: in a header of this name.
    """
    from jinja2 import Environment, StrictUndefined

    style = "\n".join(map(_asset, STYLES))
    script = '(() => {\n"use strict";\n' + "\n".join(map(_asset, SCRIPTS)) + "})();"
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {}  # the kinds stay in their order
    given: dict[str, Any] = {
        "token": token,
        "header": header,
        "kinds": {
            kind: {"meaning": MEANINGS[kind], "argument": ARGUMENTS.get(kind, "")} for kind in KINDS
        },
    }
    html = environment.from_string(_asset("page.html.j2")).render(
        style=style, script=script, given=given
    )
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return html.encode(), policy


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (files("fake_services.page") / "assets" / name).read_text(encoding="utf-8")
