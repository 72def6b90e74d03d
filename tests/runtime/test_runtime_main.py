"""The last line of a program, and what loading the runtime costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chaoskit.runtime import DamagedStore, OutcomeUnknown, Refused, run_main

CASES = [
    (Refused("the inputs differ"), 75, "the inputs differ\n"),
    (DamagedStore("the store is empty"), 75, "the store is empty\n"),
    (OutcomeUnknown("mail/3", "ask"), 76, "the outcome of step 'mail/3' is unknown: ask\n"),
]


def _raising(error: BaseException) -> None:
    def program() -> None:
        raise error

    run_main(program)


@pytest.mark.parametrize(("end", "code", "message"), CASES)
def test_a_legal_end_is_a_message_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], end: Exception, code: int, message: str
) -> None:
    """A refusal ends with 75 and an unknown outcome with 76, on standard error, untraced."""
    with pytest.raises(SystemExit) as caught:
        _raising(end)
    assert caught.value.code == code
    assert capsys.readouterr().err == message


def test_a_group_of_legal_ends_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """What a task group raises counts as the end that needs a person, and every end is said."""
    ends = [end for end, _, _ in CASES]
    with pytest.raises(SystemExit) as caught:
        _raising(ExceptionGroup("steps", [ends[0], ExceptionGroup("more", ends[1:])]))
    assert caught.value.code == 76
    assert capsys.readouterr().err == "".join(message for _, _, message in CASES)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a bug"),
        KeyboardInterrupt(),
        ExceptionGroup("both", [ValueError("a bug"), Refused("the inputs differ")]),
    ],
)
def test_any_other_error_propagates(error: BaseException) -> None:
    """A bug is not a legal end, not even in company of one."""
    with pytest.raises(type(error)):
        _raising(error)


def test_success_returns() -> None:
    """A program that ends well ends the ordinary way."""
    ran: list[int] = []
    run_main(lambda: ran.append(7))
    assert ran == [7]


def test_the_runtime_loads_only_what_it_needs() -> None:
    """Loading it, once per attempt, brings in neither an event loop nor any other floor."""
    found = subprocess.run(
        [sys.executable, "-c", "import sys, chaoskit.runtime; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    heavy = {"asyncio", "dataclasses", "inspect", "subprocess", "msgspec", "http", "logging"}
    assert heavy.isdisjoint(found)
    own = {name for name in found if name.startswith("chaoskit.")}
    assert {name.split(".")[1] for name in own} == {"runtime", "probe"}


def test_the_exit_codes_are_part_of_the_exceptions() -> None:
    """A program with an ending of its own finds the codes where it catches."""
    assert (Refused.exit_code, DamagedStore.exit_code, OutcomeUnknown.exit_code) == (75, 75, 76)
