"""The fake payments service in a process of its own, for those who have no worker of chaoskit."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import msgspec

from benchmarks.exploration_rows import ROOT
from chaoskit.model.effects import Effect

LEDGER_TIMEOUT_S = 30.0

REFERENCE, REFERENCE_FORM = "metadata.reference", "metadata[reference]"
"""What tells a step's charge from another one's, in the ledger and in a request."""

Charge = dict[str, str]
"""The fields of one charge, by name."""


@dataclass(slots=True)
class Service:
    """A running service, and every charge that it took, in order."""

    url: str
    _charges: list[Charge] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _marks: Iterator[int] = field(default_factory=lambda: count(1))

    def read(self, line: str) -> None:
        """Book a line of the service's ledger."""
        effect = msgspec.json.decode(line, type=Effect)
        with self._news:
            self._charges.append(dict(effect.fields))
            self._news.notify_all()

    def taken(self) -> list[Charge]:
        """The charges since the last call; a charge of our own proves that none is under way.

        Raises:
            TimeoutError: the service does not write its ledger.
        """
        mark = f"mark-{next(self._marks)}"
        form = {"amount": "100", "currency": "eur", "source": "tok_visa", REFERENCE_FORM: mark}
        headers = {"Authorization": "Bearer sk_test_mark"}
        request = Request(f"{self.url}/v1/charges", urlencode(form).encode(), headers)
        with urlopen(request, timeout=LEDGER_TIMEOUT_S) as answer:
            answer.read()
        with self._news:
            if not self._news.wait_for(lambda: self._ends_with(mark), LEDGER_TIMEOUT_S):
                raise TimeoutError("the service does not write its ledger")
            taken, self._charges = self._charges[:-1], []
            return taken

    def _ends_with(self, mark: str) -> bool:
        return bool(self._charges) and self._charges[-1][REFERENCE] == mark


def twice(charges: list[Charge], *by: str) -> list[tuple[str, ...]]:
    """The values of the fields ``by`` that more than one charge has."""
    seen = Counter(tuple(charge.get(name, "") for name in by) for charge in charges)
    return [values for values, times in seen.items() if times > 1]


@contextmanager
def payments() -> Iterator[Service]:
    """A service with empty books, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fake_services", "payments"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    lines = process.stdout
    assert lines is not None
    try:
        _, _, url = lines.readline().strip().partition("=")
        service = Service(url)

        def book() -> None:
            for line in lines:
                service.read(line)

        reader = threading.Thread(target=book, daemon=True)
        reader.start()
        yield service
    finally:
        process.terminate()
        process.wait()
