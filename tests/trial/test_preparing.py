"""A command that makes the starting state of each trial: what it does is no deed of the task."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from chaoskit.model.errors import ScenarioError
from chaoskit.trace.abi import this_abi
from chaoskit.trial import preparing
from tests.trial.conftest import RunTask
from tests.trial.faulty import ends, no_process_is_left, said, scenario, standing

SEED = """
import os, sqlite3, sys
from urllib.request import Request, urlopen

books = sqlite3.connect(os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///"))
with books:
    books.execute("CREATE TABLE queue (name TEXT)")
    books.execute("INSERT INTO queue VALUES ('ada')")
form = b"amount=5&currency=eur&source=tok_visa"
asked = Request(sys.argv[1] + "/v1/charges", form, {"Authorization": "Bearer sk_test_x"})
urlopen(asked).read()
open("filled", "a").write(os.environ["COLOUR"])
"""

PREPARED = (
    "services=('payments', 'database'), env={'COLOUR': 'red'}, "
    f"prepare=({sys.executable!r}, '-c', {SEED!r}, '{{payments.url}}')"
)

TAKES = """
say(Path("filled").read_text())
books = shop.database()
(names,) = books.execute("SELECT count(*) FROM queue").fetchone()
say(names)
charge(1)
with books:
    books.execute("DELETE FROM queue")
"""


def prepared(body: str, more: str = "") -> str:
    """A scenario whose world is prepared by `SEED`."""
    return scenario(body, more).replace('services=("payments", "email")', PREPARED)


def test_each_trial_begins_with_what_the_command_made(run_task: RunTask) -> None:
    """It is run once for each trial, in the task's environment, and not again for a resume."""
    runs = run_task(prepared(TAKES), ["none", "kill@payments.charge#1.received", "none"])
    assert [ends(history)[-1] for history in runs] == ["1 exit 0", "2 exit 0", "1 exit 0"]
    assert [said(history, len(history.attempts)) for history in runs] == [["red", "1"]] * 3


def test_what_the_command_does_is_no_effect_of_the_task(run_task: RunTask) -> None:
    """Its rows and charges are in no history, and points count the task's requests alone."""
    for history in run_task(prepared(TAKES), ["none", "kill@payments.charge#1.applied"]):
        operations = {body.effect.operation for _, body in history.effects}
        assert operations == {"payments.charge", "database.queue.delete"}
        assert {body.ordinal for _, body in history.requests} == {1}
        assert history.events[0].body.__struct_config__.tag == "attempt-started"


def test_services_misbehave_from_the_first_request_of_the_task_on(run_task: RunTask) -> None:
    """They behave while the world is prepared, and ordinals do not count what was asked then."""
    lost = "behaviours=('lose-reply@payments.charge#1',)"
    (history,) = run_task(prepared("charge(1) if first() else None", lost), ["none"])
    replies = [body.delivered for _, body in history.replies.values()]
    assert (replies, ends(history)) == ([False], ["1 exit 1", "2 exit 0"])


FAILING = {
    "echo going; echo no room >&2; exit 3": "ended with status 3; its last words: no room",
    "kill -9 $$": "was ended by signal 9",
    "exec ./no-such-program": "ended with status 127",
    "exec sleep 600": "did not end within 0 s",
}


@pytest.mark.parametrize("line", FAILING)
def test_a_command_that_fails_stops_everything(
    run_task: RunTask, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """No trial begins; the error has the command, how it ended and its last words."""
    if "sleep" in line:
        monkeypatch.setattr(preparing, "FIRST_TIMEOUT_S", 0.2)
    with pytest.raises(ScenarioError) as refused:
        run_task(scenario("charge(1)", f"prepare=('sh', '-c', {line!r})"), ["none"])
    text = str(refused.value)
    assert "the command of prepare, `sh -c" in text
    assert FAILING[line] in text


def test_a_command_that_is_not_there_stops_everything(run_task: RunTask) -> None:
    """As a task that cannot be started does."""
    with pytest.raises(ScenarioError, match=r"cannot be started: ./no-such.sh: No such file"):
        run_task(scenario("charge(1)", "prepare=('./no-such.sh',)"), ["none"])


def test_what_the_command_leaves_running_ends_with_it(run_task: RunTask, tmp_path: Path) -> None:
    """A server that it starts is not there when the task begins."""
    before = standing()
    line = f"sleep 600 & echo $! > {tmp_path}/pid"
    body = f"say(Path('/proc/' + Path({str(tmp_path / 'pid')!r}).read_text().strip()).exists())"
    (history,) = run_task(scenario(body, f"prepare=('sh', '-c', {json.dumps(line)})"), ["none"])
    assert said(history, 1) == ["False"]
    assert no_process_is_left(before)


@pytest.mark.skipif(this_abi() is None, reason="who is reached is seen by tracing only")
def test_the_command_reaches_no_stranger(run_task: RunTask) -> None:
    """A server that is no service of the run is refused, as it is to the task."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        code = f"import socket; socket.create_connection({server.getsockname()!r})"
        with pytest.raises(ScenarioError, match="ConnectionRefusedError"):
            run_task(
                scenario("charge(1)", f"prepare=({sys.executable!r}, '-c', {code!r})"), ["none"]
            )
        with pytest.raises(BlockingIOError):
            server.accept()
