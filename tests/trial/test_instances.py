"""Two instances of one service: each has its own server, ledger, keys, behaviours and name."""

from __future__ import annotations

import pytest

from chaoskit.cli.main import main
from chaoskit.model.errors import UsageError
from chaoskit.model.events import ReplySent
from chaoskit.model.hosting import Clocked, Misbehaving, Patient, Postponing, Restorable
from chaoskit.model.instances import Instance, parse_instance, spread, spread_keys
from chaoskit.model.scenario import Scenario
from chaoskit.model.token import CommandSpec
from chaoskit.trial.services import create_services, instances_of
from fake_services.shown import Showing, repertoire_of
from tests.fake_services.postgres_running import needs_postgres
from tests.trial.conftest import RunTask
from tests.trial.faulty import HEAD, ends

TWO = """
def pay(region, key=None):
    os.environ["CHAOSKIT_PAYMENTS_URL"] = os.environ[f"CHAOSKIT_{region}_URL"]
    return charge(1, key=key)


def main():
    pay("EU", key="k")
    pay("US", key="k")
    pay("EU", key="k")


scenario = Scenario(task=main, services=("payments:eu", "payments:us"), MORE)
"""


def two(more: str = "") -> str:
    """A scenario that charges in two regions with one key, and once more in the first."""
    return HEAD + TWO.replace(", MORE", f", {more}" if more else "")


def test_each_has_its_own_ledger_and_its_own_keys(run_task: RunTask) -> None:
    """The same key is new to the other instance, and everything goes by the instance's name."""
    (history,) = run_task(two(), ["none"])
    assert [body.effect.operation for _, body in history.effects] == ["eu.charge", "us.charge"]
    assert [body.service for _, body in history.requests] == ["eu", "us", "eu"]
    wanted = [body.wants.service for _, body in history.requests if body.wants is not None]
    assert wanted == ["eu", "us", "eu"]
    assert len({body.effect.ref for _, body in history.effects}) == 2


def test_points_and_behaviours_go_by_the_instances_name(run_task: RunTask) -> None:
    """A kill and an outage concern the instance that they name, and no other."""
    killed, down = run_task(two(), ["kill@us.charge#1.applied", "down:1@us.charge#1"])
    assert ends(killed) == ["1 killed 9", "2 exit 0"]
    assert [body.effect.operation for _, body in killed.effects] == ["eu.charge", "us.charge"]
    services = {body.request: body.service for _, body in down.requests}
    told = [(services[reply.request], reply.status) for _, reply in down.of(ReplySent)]
    assert told[:2] == [("eu", 200), ("us", 503)]


def test_a_request_in_flight_lands_late_in_its_own_ledger(run_task: RunTask) -> None:
    """What a service carries out after its sender's death has the instance's name, too."""
    (history,) = run_task(two(), ["late:1@us.charge#1.received"])
    assert "us.charge" in [body.effect.operation for _, body in history.effects]
    assert {body.effect.service for _, body in history.effects} == {"eu", "us"}


def test_a_command_finds_them_by_their_placeholders(run_task: RunTask) -> None:
    """Each has its own address, and a placeholder of the kind names the instances."""
    spec = CommandSpec(
        command=("sh", "-c", "echo {eu.url} {u2.url} $CHAOSKIT_U2_URL"),
        services=("payments:eu", "payments:u2"),
    )
    (history,) = run_task(spec, ["none"])
    eu, us, variable = history.attempts[0][1].output_tail.split()
    assert eu != us
    assert us == variable
    with pytest.raises(UsageError, match=r"write \{eu\.url\}, by the name of the instance"):
        run_task(
            CommandSpec(command=("echo", "{payments.url}"), services=("payments:eu",)), ["none"]
        )


def test_a_mail_by_smtp_and_a_row_have_the_instances_name(run_task: RunTask) -> None:
    """Both doors of email and the embedded database, which no request passes, are renamed."""
    code = """
def main():
    import smtplib, sqlite3
    host, port = (os.environ[f"CHAOSKIT_WORK_SMTP_{part}"] for part in ("HOST", "PORT"))
    with smtplib.SMTP(host, int(port)) as door:
        door.sendmail("a@example.com", ["b@example.com"], "Subject: hello\\n\\nhello")
    with sqlite3.connect(os.environ["CHAOSKIT_BOOKS_PATH"]) as books:
        books.execute("INSERT INTO t VALUES (1)")


scenario = Scenario(
    task=main, services=("email:work", "database:books"), tables="CREATE TABLE t (a INTEGER)"
)
"""
    (history,) = run_task(HEAD + code, ["none"])
    assert [body.effect.operation for _, body in history.effects] == ["work.send", "books.t.insert"]


COMMITS = """
def main():
    import psycopg
    with psycopg.connect(os.environ["CHAOSKIT_ORDERS_URL"], autocommit=True) as client:
        client.execute("INSERT INTO t VALUES (1)")


scenario = Scenario(
    task=main, services=("postgres:orders", "database:books"), tables="CREATE TABLE t (a INT)"
)
"""


@needs_postgres
def test_a_server_of_its_own_has_one_name_for_requests_and_rows(run_task: RunTask) -> None:
    """An instance of postgres stands beside a database, and an outage of it is its own."""
    done, refused = run_task(HEAD + COMMITS, ["none", "down:1@orders.connect#1"])
    assert [body.effect.operation for _, body in done.effects] == ["orders.t.insert"]
    assert {body.service for _, body in done.requests} == {"orders"}
    assert len(refused.attempts) == 2


@pytest.mark.parametrize("name", ["payments", "email", "jobs", "database"])
def test_an_instance_can_do_what_its_service_can_do(name: str) -> None:
    """Every protocol that a service keeps besides is kept under another name, and no other one."""
    (plain,) = create_services([name])
    (other,) = create_services([f"{name}:eu"])
    assert (plain.name, other.name) == (name, "eu")
    for protocol in (Clocked, Misbehaving, Patient, Postponing, Restorable, Showing):
        assert isinstance(plain, protocol) == isinstance(other, protocol), protocol
    found = repertoire_of(other)
    assert (found is None) == (repertoire_of(plain) is None)
    assert found is None or found.service == "eu"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["paymets:eu"], "unknown service 'paymets'; nearest: payments"),
        (["payments:2"], "write payments:eu"),
        (["payments:"], "write payments:eu"),
        (["payments:email"], "email is a service already; give the instance another name"),
        (["payments:state"], "state is a placeholder already"),
        (["payments:eu", "jobs:eu"], "named twice: payments:eu, jobs:eu; give each a name"),
        (["payments:eu", "payments:EU"], "named twice"),
        (["payments", "payments"], "as in payments:eu,payments:us"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_the_fix(names: list[str], message: str) -> None:
    """An unknown kind, no name, and one that is taken or given twice."""
    with pytest.raises(UsageError) as refused:
        create_services(names)
    assert message in str(refused.value)


def test_a_service_may_be_called_what_it_is() -> None:
    """``payments:payments`` is ``payments``, and another instance may stand beside it."""
    assert instances_of(["payments:payments", "payments:eu"]) == [
        Instance("payments", "payments"),
        Instance("payments", "eu"),
    ]


def test_a_rule_of_the_kind_holds_for_each_instance_and_one_of_an_instance_goes_before() -> None:
    """The order of the rules stays, since the first that matches decides."""
    among = [parse_instance(text) for text in ("payments:eu", "payments:us", "email")]
    assert spread("payments.charge", among) == ("eu.charge", "us.charge")
    assert spread("*.charge", among) == ("*.charge",)
    assert spread("email.*", among) == ("email.*",)
    rules = spread_keys({"payments.charge": 1, "us.charge": 2, "email.*": 3}, among)
    assert list(rules.items()) == [("eu.charge", 1), ("us.charge", 2), ("email.*", 3)]


def test_what_a_scenario_says_of_a_kind_it_says_of_each_instance() -> None:
    """Contract, identity, redo and settled; what is said of a step of that name stays."""
    scenario = Scenario(
        task=print,
        services=("payments:eu", "payments:us"),
        contract={"payments.charge": "at-least-once"},
        identity={"payments.charge": ("customer",)},
        redo=("payments.charge",),
        settled=("payments.*",),
    ).for_instances()
    assert scenario.contract == {"eu.charge": "at-least-once", "us.charge": "at-least-once"}
    assert scenario.identity == {"eu.charge": ("customer",), "us.charge": ("customer",)}
    assert scenario.redo == ("payments.charge", "eu.charge", "us.charge")
    assert scenario.settled == ("eu.*", "us.*")


def test_a_behaviour_of_the_kind_names_the_instances(run_task: RunTask) -> None:
    """It is not known which of them is meant: a usage error with both names."""
    with pytest.raises(UsageError, match="unknown service 'payments'; nearest: eu, us"):
        run_task(two('behaviours=("down:1@payments.charge#1",)'), ["none"])


def test_the_command_line_refuses_an_instance_without_a_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A usage error, exit code 2, that shows the form."""
    with pytest.raises(SystemExit) as ended:
        main(["run", "--services", "payments:", "--", "true"])
    assert ended.value.code == 2
    assert "write payments:eu" in capsys.readouterr().err
