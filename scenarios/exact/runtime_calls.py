"""Forty charges as steps of `chaoskit.runtime`, each with the key that the runtime keeps for it.

    chaoskit run scenarios/exact/runtime_calls.py               a kill at every point: some minutes
    chaoskit run --depth 2 scenarios/exact/runtime_calls.py     and another one: more than an hour

Two kills at any two moments must not charge anybody twice.
"""

from __future__ import annotations

import os
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from chaoskit import Scenario
from chaoskit.runtime import Effect, open_run

CALLS = 40


def main() -> None:
    """Charge every step once, however often this is killed."""
    url = urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    service = HTTPConnection(url.hostname or "", url.port, timeout=30)
    with open_run(Path(os.environ["CHAOSKIT_STATE_DIR"]) / "run.db", inputs=CALLS) as run:
        if run.finished:
            return
        for step in range(1, CALLS + 1):

            def charge(effect: Effect, step: int = step) -> None:
                form = {"amount": 1000 + step, "currency": "eur", "source": "tok_visa"}
                headers = {
                    "Authorization": "Bearer sk_test_runtime",
                    "Content-Type": "application/x-www-form-urlencoded",
                    "Idempotency-Key": effect.key,
                }
                service.request("POST", "/v1/charges", urlencode(form).encode(), headers)
                answer = service.getresponse()
                if answer.read() and answer.status >= 400:
                    raise RuntimeError(f"charge {step}: {answer.status}")

            run.step(f"charge/{step}", charge, inputs=step, keyed=True, key_lasts=86_400)
        run.finish(CALLS)


scenario = Scenario(
    title="forty charges as steps of the reference runtime, by key",
    task=main,
    services=("payments",),
    checkpoints=("run.db",),
)
