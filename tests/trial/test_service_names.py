"""Services by the names that people look for."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.model.errors import UsageError
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trial.loading import load, sources
from chaoskit.trial.services import create_services, unknown_service
from fake_services.host import HttpService


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("stripe", "payments"),
        ("Stripe", "payments"),
        ("smtp", "email"),
        ("mail", "email"),
        ("pg", "postgres"),
        ("postgresql", "postgres"),
        ("sqlite", "database"),
        ("paymnts", "payments"),
    ],
)
def test_another_name_of_a_service_suggests_it(name: str, meant: str) -> None:
    """What it imitates, or how it is spoken to, is answered with the service's own name."""
    with pytest.raises(UsageError) as refused:
        create_services([name])
    assert f"unknown service '{name}'; nearest: {meant}" in str(refused.value)


def test_a_service_that_is_not_installed_is_not_suggested() -> None:
    """Only valid names are."""
    assert str(unknown_service("stripe", ["email"])) == "unknown service 'stripe'; nearest: email"


SMS = """
from fake_services.host import HttpService
from fake_services.jobs.core import JobsCore


class Core(JobsCore):
    name = "sms"


def create():
    return HttpService(Core())


def needs(word):
    return word


class Sender(HttpService):
    def __init__(self):
        super().__init__(Core())


def nothing():
    return None
"""


@pytest.mark.parametrize("name", ["sms.py", "sms.py:create", "./sms.py:Sender"])
def test_a_file_makes_a_service(tmp_path: Path, name: str) -> None:
    """By a function or a class of it; a new one each time, found from the folder that is given."""
    (tmp_path / "sms.py").write_text(SMS)
    one, other = create_services([name], tmp_path) + create_services([name], tmp_path)
    assert isinstance(one, HttpService)
    assert (one.name, one is other) == ("sms", False)


NONE_THERE = {
    "smss.py:create": "there is no file {file} with a service; nearest: sms.py",
    "sms.py:Sendr": "sms.py has no class or function 'Sendr'; it has: Core, create, needs, Sender",
    "sms.py:HttpService": "no class or function 'HttpService'; it has: Core, create",
    "sms.py:Core": "Core() is no service, it lacks start, quiesce, collect, ledger, stop; it is a",
    "sms.py:nothing": "nothing() is no service, it lacks name, operations, start",
    "sms.py:needs": "needs() makes no service: TypeError: needs() missing 1 required",
    "torn.py": "torn.py cannot be imported: SyntaxError",
}


@pytest.mark.parametrize("name", NONE_THERE)
def test_a_file_without_that_service_is_refused(tmp_path: Path, name: str) -> None:
    """The message says what is there, or what is missing from it."""
    (tmp_path / "sms.py").write_text(SMS)
    (tmp_path / "torn.py").write_text("def\n")
    with pytest.raises(UsageError) as refused:
        create_services([name], tmp_path)
    assert NONE_THERE[name].format(file=tmp_path / "smss.py") in str(refused.value)


def test_a_campaign_is_another_one_when_the_file_of_its_service_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is one of those that make the task what it is."""
    monkeypatch.chdir(tmp_path)
    spec = CommandSpec(command=("true",), services=("sms.py",))
    digests = []
    for more in ("", "# other rules"):
        Path("sms.py").write_text(SMS + more)
        digests.append(sources(load(Target(command=spec))))
    assert digests[0] != digests[1]
