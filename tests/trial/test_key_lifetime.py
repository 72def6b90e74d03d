"""For how long a service remembers an idempotency key: as declared, by its own clock."""

from __future__ import annotations

import pytest

from chaoskit.cli.main import main
from chaoskit.model.errors import UsageError
from chaoskit.model.token import CommandSpec
from tests.trial.conftest import RunTask
from tests.trial.faulty import HEAD, charged, scenario

KILLED = "kill@payments.charge#1.applied"


@pytest.mark.parametrize(("lifetime", "times"), [('"72h"', 1), ("7200", 2), ('"60m"', 2)])
def test_a_key_is_forgotten_when_its_lifetime_is_over(
    run_task: RunTask, lifetime: str, times: int
) -> None:
    """Two days later a key of three days is remembered, and one of some hours is forgotten."""
    source = scenario("charge(1, key='k')", f'key_lifetime={{"payments": {lifetime}}}')
    (history,) = run_task(source, [f"{KILLED} / clock:+2d"])
    assert len(charged(history)) == times


def test_the_next_trial_has_the_same_lifetime(run_task: RunTask) -> None:
    """A reset forgets the keys, and not for how long they are remembered."""
    source = scenario("charge(1, key='k')", 'key_lifetime={"payments": "72h"}')
    histories = run_task(source, [f"{KILLED} / clock:+2d", f"{KILLED} / clock:+4d"] * 2)
    assert [len(charged(history)) for history in histories] == [1, 2, 1, 2]


MAIL_AND_JOB = """
def main():
    work = shop.Shop()
    work.send("a@example.com", "hello", "hello", key="m")
    work.submit("report", key="j")
    probe.point("done")


scenario = Scenario(
    task=main, services=("email", "jobs"), key_lifetime={"email": "3d", "jobs": "1h"}
)
"""


def test_each_service_has_its_own_lifetime(run_task: RunTask) -> None:
    """A mail's key is still known two days later, a job's key is not."""
    (history,) = run_task(HEAD + MAIL_AND_JOB, ["kill@done#1 / clock:+2d"])
    assert [body.effect.service for _, body in history.effects] == ["email", "jobs", "jobs"]


TWO = """
def main():
    for region in ("EU", "US"):
        os.environ["CHAOSKIT_PAYMENTS_URL"] = os.environ[f"CHAOSKIT_{region}_URL"]
        charge(1, key="k")
    probe.point("done")


scenario = Scenario(
    task=main,
    services=("payments:eu", "payments:us"),
    key_lifetime={"payments": "3d", "us": "1h"},
)
"""


def test_a_lifetime_of_the_kind_holds_for_instances_without_their_own(run_task: RunTask) -> None:
    """The other region forgets its key, and this one has that of the kind."""
    (history,) = run_task(HEAD + TWO, ["kill@done#1 / clock:+2d"])
    assert [body.effect.service for _, body in history.effects] == ["eu", "us", "us"]


@pytest.mark.parametrize(
    ("services", "lifetime", "message"),
    [
        (("payments",), {"paymnts": "1h"}, "unknown service 'paymnts'; nearest: payments"),
        (("payments",), {"email": "1h"}, "unknown service 'email'; nearest: payments"),
        (
            ("payments", "database"),
            {"database": "1h"},
            "that service remembers no idempotency keys; these do: payments",
        ),
        (("payments",), {"payments": "1w"}, "key_lifetime= of payments takes a time, as in 90s"),
    ],
)
def test_a_lifetime_that_cannot_be_is_refused(
    run_task: RunTask, services: tuple[str, ...], lifetime: dict[str, str], message: str
) -> None:
    """Of no service of the run, of one without keys, and no time."""
    spec = CommandSpec(command=("true",), services=services, key_lifetime=lifetime)
    with pytest.raises(UsageError) as refused:
        run_task(spec, ["none"])
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--key-lifetime", "payments"], "--key-lifetime takes NAME=VALUE"),
        (["--key-lifetime", "payments=soon"], "--key-lifetime payments= takes a time, as in 90s"),
        (["--resumed-within", "soon"], "--resumed-within takes a time, as in 90s"),
    ],
)
def test_the_command_line_refuses_what_is_no_time(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """A usage error that shows the form, exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(["run", "--services", "payments", *words, "--", "true"])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
