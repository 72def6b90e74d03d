"""Which line of a task is named for a finding: the one at which a reader would look."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.points import parse_point
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.places import Place, Places
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi

ROOT = Path(__file__).resolve().parents[2]

needs_tracing = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)

TASK = '''
"""Charges and records; each line that matters has its name at its end."""

import os
import urllib.request


def charge(name):
    form = f"amount=100&currency=eur&source=tok_visa&description={name}".encode()
    url = os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges"
    request = urllib.request.Request(url, form, {"Authorization": "Bearer sk_test_x"})
    return urllib.request.urlopen(request).read()  # ask


class Record:
    def put(self, name, text):
        path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], name)
        file = open(path, "wb", buffering=0)  # open
        file.write(text)  # write
        file.close()

    def has(self, name):
        return os.path.exists(os.path.join(os.environ["CHAOSKIT_STATE_DIR"], name))


def main():
    record = Record()
    for name in ("ada", "bob"):
        if not record.has(name):
            record.put(name, charge(name) and b"x" * 9000)
    os.mkdir("end") if not record.has("end") else None  # end
'''

SCENARIO = (
    TASK
    + """

from chaoskit import Scenario

scenario = Scenario(task=main, services=("payments",), outputs=("ada", "bob"))
"""
)


def lines_of(source: str) -> dict[str, int]:
    """By the name at its end the number of a line."""
    numbered = enumerate(source.splitlines(), 1)
    return {line.rpartition("# ")[2]: number for number, line in numbered if "  # " in line}


def explored(target: Target, runs: Path, **options: object) -> tuple[Summary, dict[str, Place]]:
    """A campaign; its summary, and the place of each trial with a finding."""
    given = {"mechanisms": ("calls", "windows")} | options
    chosen = Options(target=target, runs=str(runs), **given)  # type: ignore[arg-type]
    last = [event for event in run(chosen, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        survey = store.survey()
        assert survey is not None
        places = Places(survey[0], store.locations())
        found = {}
        for trial in store.trials():
            faults = parse_schedule(trial.schedule).faults_of(1)
            if trial.judgement.findings and faults:
                found[str(faults[0])] = places.of(faults[0])
        return summarize(store), found


EXPECTED = {
    "kill@sendto(payments)#2+after": ("ask", "charge"),
    "kill@payments.charge#1.applied": ("ask", "charge"),
    "kill@payments.charge#1.answered": ("ask", "charge"),
    "late:1@payments.charge#1.received": ("ask", "charge"),
    "kill@open(ada)#1": ("open", "Record.put"),
    "kill@write(ada)#1": ("write", "Record.put"),
    "kill@write(ada)#1+short:4096": ("write", "Record.put"),
    "kill@payments.charge#2.answered": ("ask", "charge"),
    "kill@open(bob)#1": ("open", "Record.put"),
}
"""Between the charge and the end of the record by which it is known: name of line, function."""

BETWEEN = {
    "kill@sendto(payments)#2+after": "after payments.charge#1, before open(ada)#1",
    "kill@payments.charge#1.applied": "after payments.charge#1, before open(ada)#1",
    "late:1@payments.charge#1.received": "before payments.charge#1",
    "kill@open(ada)#1": "after payments.charge#1, before open(ada)#1",
    "kill@write(ada)#1": "after payments.charge#1 and open(ada)#1, before write(ada)#1",
    "kill@write(ada)#1+short:4096": "after payments.charge#1 and open(ada)#1, "
    "within write(ada)#1, before payments.charge#2",
    "kill@open(bob)#1": "after payments.charge#2, before open(bob)#1",
}


@needs_tracing
@pytest.mark.parametrize("how", ["function", "command"])
def test_the_line_of_a_python_task_is_named(tmp_path: Path, how: str) -> None:
    """File, line and function are those of the call that was being made, in the task's own code,
    for a function that is forked and for a script that is started cold.
    """
    if how == "function":
        file = tmp_path / "scenario_here.py"
        file.write_text(SCENARIO, encoding="utf-8")
        target = Target(scenario=str(file))
    else:
        file = tmp_path / "script_here.py"
        file.write_text(f"{TASK}\n\nmain()\n", encoding="utf-8")
        spec = CommandSpec(
            command=(sys.executable, str(file)), services=("payments",), outputs=("ada", "bob")
        )
        target = Target(command=spec)
    summary, places = explored(target, tmp_path / "runs")
    assert summary.verdict == "INVALID"
    lines = lines_of(TASK)
    assert EXPECTED.keys() <= places.keys()
    for fault, (name, function) in EXPECTED.items():
        place = places[fault]
        assert (Path(place.file).name, place.line, place.function) == (
            file.name, lines[name], function,
        ), fault  # fmt: skip
        assert place.code.endswith(f"{file.name}:{lines[name]} in {function}")
    assert {fault: places[fault].between for fault in BETWEEN} == BETWEEN
    reported = {f.schedule: f for f in summary.findings}["kill@open(ada)#1"]
    assert (reported.line, reported.function) == (lines["open"], "Record.put")
    assert all(place.line for place in places.values()), "no finding is without its line"


STEPS = """
def main():
    record = Record()
    if not record.has("ada"):
        record.put("ada", charge("ada"))  # first
    if not record.has("bob"):
        record.put("bob", charge("bob"))  # second
"""


@needs_tracing
def test_the_line_that_called_a_helper_is_named_first(tmp_path: Path) -> None:
    """A request's own line is the same for all of them; the step's line tells them apart."""
    source = TASK.partition("\ndef main")[0] + STEPS
    file = tmp_path / "steps_here.py"
    file.write_text(f"{source}\n\nmain()\n", encoding="utf-8")
    spec = CommandSpec(command=(sys.executable, str(file)), services=("payments",))
    _, places = explored(Target(command=spec), tmp_path / "runs", in_flight=())
    lines = lines_of(source)
    for fault, step, helper in (
        ("kill@payments.charge#1.answered", "first", "ask"),
        ("kill@payments.charge#2.answered", "second", "ask"),
        ("kill@open(bob)#1", "second", "open"),
    ):
        place = places[fault]
        assert (place.line, place.function) == (lines[step], "main"), fault
        assert re.fullmatch(
            rf"\S+:{lines[step]} in main, through \S+:{lines[helper]} in \S+", place.code
        )


BASH = """
for name in ada bob; do
  if [ ! -e $name ]; then
    curl -sS -u sk_test_x: {payments.url}/v1/charges \\
      -d amount=100 -d currency=eur -d source=tok_visa -d description=$name >/dev/null
    echo done > $name
  fi
done
"""


@needs_tracing
def test_another_language_has_places_and_no_lines(tmp_path: Path) -> None:
    """Of a shell script it is said between which deeds a finding is, and no line is made up."""
    spec = CommandSpec(command=("bash", "-c", textwrap.dedent(BASH)), services=("payments",))
    summary, places = explored(Target(command=spec), tmp_path / "runs", in_flight=())
    assert summary.verdict == "INVALID"
    assert places
    for fault, place in places.items():
        assert (place.code, place.file, place.line, place.function) == ("", "", 0, "")
        assert place.between, fault
    ((creates, place),) = [(f, p) for f, p in places.items() if f.startswith("kill@open(ada)")]
    assert parse_point(creates.removeprefix("kill@"))
    assert place.between == "after payments.charge#1, before open(ada)#1"


def test_lines_without_a_tracer_are_placed_between_effects(tmp_path: Path) -> None:
    """Where lines are crossings the same places are named: the effects on each side, and the line
    that comes next.
    """
    file = tmp_path / "scenario_lines.py"
    file.write_text(SCENARIO, encoding="utf-8")
    target = Target(scenario=str(file))
    summary, places = explored(target, tmp_path / "runs", mechanisms=("lines",), in_flight=())
    assert summary.verdict == "INVALID"
    line = lines_of(TASK)["open"]
    place = places[f"kill@line/scenario_lines.py:{line}#1"]
    assert place.between == "after payments.charge#1, before payments.charge#2"
    assert (place.line, place.function) == (line, "Record.put")
