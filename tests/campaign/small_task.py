"""A small task in a file of its own: it charges each name of a list once, and notes each charge."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from chaoskit.model.token import Target

Care = Literal["keyed", "none", "every other time"]
"""How it charges: with a key; without one; or, when it is resumed, with one every other time."""

NAMES = ("ada", "bob", "cyd", "dan")

_TEXT = '''
"""Charges every name, and notes after each charge that it is done."""
import json
import os
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from chaoskit import Scenario

CARE = {care!r}
RESUMES = Path({resumes!r})


def charge(name, key):
    parts = urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    connection = HTTPConnection(parts.hostname, parts.port, timeout=30)
    headers = {{
        "Authorization": "Bearer sk_test_x",
        "Content-Type": "application/x-www-form-urlencoded",
        **({{"Idempotency-Key": key}} if key else {{}}),
    }}
    form = {{"amount": 100, "currency": "eur", "source": "tok_visa", "description": name}}
    connection.request("POST", "/v1/charges", urlencode(form), headers)
    response = connection.getresponse()
    response.read()
    assert response.status == 200, response.status


def careful(folder):
    """Whether this attempt sends keys."""
    if CARE != "every other time" or not (folder / "begun").exists():
        return CARE != "none"
    before = len(RESUMES.read_bytes()) if RESUMES.exists() else 0
    with RESUMES.open("ab") as counter:
        counter.write(b"x")
    return before % 2 == 0


def main():
    folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
    keyed = careful(folder)
    (folder / "begun").touch()
    for name in json.loads(Path(os.environ["CHAOSKIT_INPUTS"]).read_text()):
        if not (folder / name).exists():
            charge(name, f"key-of-{{name}}" if keyed else None)
            (folder / name).touch()


scenario = Scenario(
    task=main, services=("payments",), inputs=lambda seed: {inputs!r}, title="a small task"
)
'''


def small_task(folder: Path, care: Care, inputs: object = NAMES) -> Target:
    """The target that a new file in ``folder`` is; ``folder / "resumes"`` counts its resumes."""
    file = folder / "small_task.py"
    text = _TEXT.format(care=care, resumes=str(folder / "resumes"), inputs=inputs)
    file.write_text(text, encoding="utf-8")
    return Target(scenario=str(file))
