"""Small scenarios in files of their own, for a pytest of its own."""

from __future__ import annotations

from pathlib import Path

LOG = '''
"""Appends two lines to a file, from the first one whenever it is started."""
from pathlib import Path

from chaoskit import Scenario

MENDED = Path(__file__).with_name("mended")


def write_twice(mode):
    with open("log.txt", mode) as log:
        for number in range(2):
            log.write(f"line {number}\\n")
            log.flush()


def careful():
    write_twice("w")


def careless():
    write_twice("w" if MENDED.exists() else "a")


good = Scenario(task=careful, outputs=("log.txt",))
bad = Scenario(task=careless, outputs=("log.txt",))
same = bad
'''
"""``good`` survives every kill; ``bad`` shows ``diverged_state@outputs`` while there is no file
``mended`` beside it; ``same`` is another name of ``bad``.
"""

BILL = '''
"""Charges one customer and mails one receipt, and notes each of them after it was done."""
import json
import os
from urllib.request import Request, urlopen

from chaoskit import Scenario


def ask(service, path, data, headers):
    url = os.environ[f"CHAOSKIT_{service}_URL"] + path
    with urlopen(Request(url, data, headers)) as answer:
        answer.read()


def main():
    if not os.path.exists("charged"):
        form = b"amount=100&currency=eur&source=tok_visa"
        ask("PAYMENTS", "/v1/charges", form, {"Authorization": "Bearer sk_test_x"})
        open("charged", "w").close()
    if not os.path.exists("mailed"):
        mail = {"from": "shop@example.org", "to": "ada@example.org", "subject": "s", "text": "t"}
        as_json = {"Content-Type": "application/json"}
        ask("EMAIL", "/v1/messages", json.dumps(mail).encode(), as_json)
        open("mailed", "w").close()


scenario = Scenario(task=main, services=("payments", "email"))
'''
"""Shows ``duplicate_effect@payments.charge`` and ``duplicate_effect@email.send``."""


def write_files(folder: Path, **texts: str) -> None:
    """Put texts into files ``scenarios/NAME.py`` below ``folder``."""
    scenarios = folder / "scenarios"
    scenarios.mkdir(exist_ok=True)
    for name, text in texts.items():
        (scenarios / f"{name}.py").write_text(text, encoding="utf-8")
