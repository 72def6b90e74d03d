"""Tasks with more events than are kept of a trial: said by name, in a baseline and in a trial."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.explore.plan import Mechanism
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trial import recorder

TASK = """
import os
from pathlib import Path
from urllib.request import Request, urlopen

from chaoskit import Scenario, probe

STATE = Path(os.environ.get("CHAOSKIT_STATE_DIR", "."))

def charge(n):
    form = f"amount={n}&currency=eur&source=tok_visa".encode()
    headers = {"Authorization": "Bearer sk_test_x", "Idempotency-Key": f"k{n}"}
    with urlopen(Request(os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges", form, headers)):
        pass

def main():
    WORK

scenario = Scenario(task=main, services=("payments",))
"""


def campaign(
    folder: Path, work: str, mechanisms: tuple[Mechanism, ...], *, snapshots: bool = True
) -> Summary:
    """The whole campaign over a task that does ``work``, in this process."""
    file = folder / "task.py"
    body = textwrap.indent(textwrap.dedent(work), "    ").strip()
    text = TASK.replace("WORK", body)
    file.write_text(text, encoding="utf-8")
    chosen = Options(
        target=Target(scenario=str(file)),
        runs=str(folder / "runs"),
        in_flight=(),
        mechanisms=mechanisms,
        snapshots=snapshots,
    )
    last = [event for event in run(chosen, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


@pytest.mark.parametrize(
    ("work", "what"),
    [
        ("charge(1)\nfor n in range(200): probe.point('tick')", "crossings tick"),
        ("for n in range(1, 60): charge(n)", "payments.charge"),
    ],
)
def test_a_baseline_beyond_the_limit_is_unknown_and_says_what_there_is_so_much_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str, what: str
) -> None:
    """The run ends before its trials, with the limit, what floods it, and what to do."""
    monkeypatch.setattr(recorder, "EVENTS_MAX", 100)
    summary = campaign(tmp_path, work, ("windows", "crossings"))
    assert (summary.verdict, summary.trials, summary.findings) == ("UNKNOWN", 0, ())
    (reason, *_) = summary.unknowns
    assert "more than 100 events" in reason
    assert what in reason
    assert "smaller input" in reason


def test_many_system_calls_are_advised_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice is one that works: with windows alone the same task is VALID."""
    monkeypatch.setattr(recorder, "EVENTS_MAX", 100)
    work = """
    charge(1)
    with (STATE / "log").open("ab", buffering=0) as log:
        for n in range(200):
            log.write(b"x")
    """
    reason = campaign(tmp_path, work, ("calls", "windows")).unknowns[0]
    assert "calls write(log)" in reason
    assert "--mechanisms windows" in reason
    assert campaign(tmp_path, work, ("windows",)).verdict == "VALID"


def test_a_trial_beyond_the_limit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is known, and that it did too much; an effect that came later is not called lost."""
    monkeypatch.setattr(recorder, "EVENTS_MAX", 100)
    work = """
    begun = STATE / "begun"
    again = begun.exists()
    begun.touch()
    for n in range(500 if again else 0):
        probe.point("tick")
    charge(1)
    """
    summary = campaign(tmp_path, work, ("windows",), snapshots=False)
    assert (summary.verdict, summary.findings) == ("UNKNOWN", ())
    assert "attempt 2 went beyond the 100 events" in summary.unknowns[0]
    assert "crossings tick" in summary.unknowns[0]
