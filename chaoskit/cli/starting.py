"""What ``chaoskit init`` writes: a scenario that explains itself, and its test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaoskit.model.instances import Instance, parse_instance

WIDTH = 88
"""Of a line, as formatters have it by default; the files are written as these would leave them."""

ADDRESSES = {
    "payments": ("CHAOSKIT_PAYMENTS_URL", "{payments.url}"),
    "email": (
        "CHAOSKIT_EMAIL_URL, CHAOSKIT_SMTP_HOST, CHAOSKIT_SMTP_PORT",
        "{email.url}, {email.smtp_host}, {email.smtp_port}",
    ),
    "jobs": ("CHAOSKIT_JOBS_URL", "{jobs.url}"),
    "database": ("CHAOSKIT_DATABASE_URL", "{database.url}"),
    "postgres": ("CHAOSKIT_DATABASE_URL", "{database.url}"),
}
"""How a task is told where each service is: variables, and placeholders."""


@dataclass(frozen=True, slots=True)
class Starter:
    """A user's own command. ``resume`` is empty where the same command resumes the task."""

    name: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    services: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


def scenario_text(starter: Starter | None) -> str:
    """The text of a scenario file; that of the example where there is no command."""
    return _EXAMPLE if starter is None else "\n".join(_lines(starter)) + "\n"


def test_text(name: str) -> str:
    """The text of the scenario's test file, which lies in a folder beside the scenario's."""
    return _TEST.format(name=name)


def literal(text: str) -> str:
    """``text`` as Python writes it, in double quotes where that needs no escapes."""
    quoted = repr(text)
    if quoted.startswith("'") and '"' not in text:
        return f'"{quoted[1:-1]}"'
    return quoted


def _lines(starter: Starter) -> Iterator[str]:
    yield f'"""{starter.name}: killed everywhere, resumed, judged by what really happened."""'
    yield ""
    yield "from chaoskit import Scenario"
    yield ""
    yield "scenario = Scenario("
    yield "    # The program and its arguments. It runs in a work folder of its own, and what it"
    yield "    # keeps there survives the kill; {here} is this file's folder, {state} that one."
    yield from _sequence("command", starter.command)
    if starter.resume:
        yield "    # What is started after each kill."
        yield from _sequence("resume", starter.resume)
    else:
        yield "    # After a kill the same command is started again; if it is another one, add"
        yield '    # resume=("program", "--resume").'
    yield from _services(starter.services)
    yield from _environment(starter)
    yield "    # How often each effect may happen. Without a line here: exactly once."
    yield "    contract={},"
    yield ")"


def _services(services: Sequence[str]) -> Iterator[str]:
    if not services:
        yield "    # No fake services, so the task is judged by the files it leaves: what matches"
        yield "    # must end up as in a run that nobody kills. Name those that are the same in"
        yield "    # each run; logs and times are not. If it charges, sends or stores something"
        yield '    # elsewhere, add services=("payments", "email", "database", "jobs").'
        yield '    outputs=("*",),'
        return
    yield "    # The fake services that it talks to. They keep books of what really happened."
    yield from _sequence("services", services)
    yield "    # Where they are stands in variables of the task's environment; placeholders in a"
    yield "    # word of command or env are filled in."
    for service in services:
        for address in _addresses(parse_instance(service)):
            yield f"    # - {service}: {address}"


def _addresses(service: Instance) -> tuple[str, ...]:
    found = ADDRESSES.get(service.kind, ("see its own documentation",))
    if service.name == service.kind:
        return found
    parts = re.findall(r"\.(\w+)\}", found[-1])
    variables = ", ".join(f"CHAOSKIT_{service.name}_{part}".upper() for part in parts)
    return variables, ", ".join(f"{{{service.name}.{part}}}" for part in parts)


def _environment(starter: Starter) -> Iterator[str]:
    if starter.env:
        yield "    # Variables of the task's environment."
        yield "    env={"
        yield from (f"        {literal(name)}: {literal(value)}," for name, value in starter.env)
        yield "    },"
    elif starter.services:
        yield "    # A program with other names for them gets these here, as in"
        yield '    # {"API_BASE": "{payments.url}"}.'
        yield "    env={},"


def _sequence(name: str, words: Sequence[str]) -> Iterator[str]:
    written = [literal(word) for word in words]
    comma = "," if len(written) == 1 else ""
    line = f"    {name}=({', '.join(written)}{comma}),"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"    {name}=("
    yield from (f"        {word}," for word in written)
    yield "    ),"


_TEST = '''"""{name} must survive a kill at any moment."""

import pytest


# Every point is tried. A sample is quicker: points=60; two kills in a trial: depth=2.
@pytest.mark.chaos("../scenarios/{name}.py")
def test_{name}_survives_kills(chaos):
    """The task is killed everywhere and resumed, and nothing is lost or done twice."""
    chaos()
'''

_EXAMPLE = '''"""An example to change: charge three customers, once each, whatever happens.

Take the idempotency key away (the line that says so) and run it again: the report shows
who was charged twice, by a kill at which moment, and how to see it again.
"""

import json
import os
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from chaoskit import Scenario


def charge(customer, key):
    """Ask the payments service for one charge, and fail if it does not succeed."""
    form = {"amount": customer["cents"], "currency": "eur", "source": "tok_visa"}
    form["description"] = customer["name"]
    headers = {"Authorization": "Bearer sk_test_example"}
    headers["Idempotency-Key"] = key  # the same key again is the same charge
    # The fake service listens here; it speaks the protocol of the real one.
    url = os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges"
    with urlopen(Request(url, urlencode(form).encode(), headers), timeout=30) as answer:
        answer.read()


def main():
    """Do the task; it is called in a process of its own, and again after each kill."""
    # What lies in this folder survives a kill: here, how many customers are done.
    checkpoint = Path(os.environ["CHAOSKIT_STATE_DIR"]) / "done.json"
    done = json.loads(checkpoint.read_text()) if checkpoint.exists() else 0
    customers = json.loads(Path(os.environ["CHAOSKIT_INPUTS"]).read_text())
    for number in range(done, len(customers)):
        charge(customers[number], key=f"order-{number}")
        # Written beside and renamed, so that a kill never leaves half a file.
        beside = checkpoint.with_suffix(".tmp")
        beside.write_text(json.dumps(number + 1))
        beside.replace(checkpoint)


scenario = Scenario(
    # The function above. A program in any language is command=("program", "argument").
    task=main,
    # The fake services that it talks to; also: "email", "database", "jobs".
    services=("payments",),
    # What it works on, any JSON value, in the file that CHAOSKIT_INPUTS names.
    inputs=lambda seed: [
        {"name": "Ada", "cents": 1200},
        {"name": "Bob", "cents": 450},
        {"name": "Cyd", "cents": 9900},
    ],
    # How often each effect may happen. Without a line here: exactly once.
    contract={},
)
'''
