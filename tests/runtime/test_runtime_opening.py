"""What belongs to a run as a whole: its options and its tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaoskit.runtime import (
    Misuse,
    OtherInputs,
    Tool,
    ToolChanged,
    UnstorableResult,
    open_run,
    operating,
)

Told = list[tuple[str, ...]]


def start(store: Path, **how: Any) -> None:
    """Begin a run and leave it."""
    with open_run(store, inputs=None, **how) as run:
        run.step("a", lambda _: 1)


@pytest.mark.parametrize("given", [None, {}, {"dry": False}, {"to": ["ä"], "dry": False}])
def test_options_survive_a_resume_that_leaves_them_out(
    store: Path, given: dict[str, Any] | None
) -> None:
    """A resume gets the recorded options, whichever of them it repeats."""
    start(store, options={"dry": False, "to": ["ä"], "rate": None})
    with open_run(store, inputs=None, options=given) as run:
        assert run.options == {"dry": False, "to": ["ä"], "rate": None}


def test_a_run_without_options_has_none(store: Path) -> None:
    """No options are no options, and later ones are refused like any others."""
    start(store)
    with open_run(store, inputs=None) as run:
        assert run.options == {}
    with pytest.raises(OtherInputs, match=r"option 'dry' \(not recorded, given True\)"):
        open_run(store, inputs=None, options={"dry": True})


def test_another_option_is_refused_by_name_and_values(store: Path, told: Told) -> None:
    """The message has each option that differs, with both values, and the others not."""
    start(store, options={"dry": False, "rate": 1, "to": "a"})
    with pytest.raises(OtherInputs) as caught:
        open_run(store, inputs=None, options={"dry": True, "rate": 1, "to": "b"})
    assert "option 'dry' (recorded False, given True)" in str(caught.value)
    assert "option 'to' (recorded 'a', given 'b')" in str(caught.value)
    assert "rate" not in str(caught.value)
    assert told[-1] == ("refused", str(caught.value))
    start(store)


def test_options_are_what_a_resume_can_get_back(store: Path) -> None:
    """What JSON would change is refused at the start."""
    with pytest.raises(UnstorableResult, match="options="):
        open_run(store, inputs=None, options={"when": (1, 2)})
    assert not store.exists()


ANY_VERSION: Any = 1
ANY_TEXT: Any = "1.3"
MAILER = {"mailer": Tool("1.4", "https://mail.example.com/v1")}


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ({}, "tool 'mailer' (version 1.4) is missing"),
        (None, "tool 'mailer' (version 1.4) is missing"),
        ({"mailer": Tool("2.0", "x")}, "tool 'mailer' has version 2.0, recorded is 1.4"),
        ({"mailer": Tool("2.0", accepts=("1.3",))}, "has version 2.0, recorded is 1.4"),
        ({"mailer": Tool("1.4", "y")}, "bound to y, recorded is https://mail.example.com/v1"),
        ({"mailer": Tool("1.4", accepts=("1.4",))}, "bound to nothing, recorded is https"),
    ],
)
def test_a_missing_or_changed_tool_is_refused_by_name(
    store: Path, told: Told, now: dict[str, Tool] | None, says: str
) -> None:
    """Before any step; and nothing of the run changes, so that the old tool goes on."""
    start(store, tools=MAILER)
    before = operating.view(store, "default")
    with pytest.raises(ToolChanged) as caught:
        open_run(store, inputs=None, tools=now)
    assert says in str(caught.value)
    assert told[-1] == ("refused", str(caught.value))
    assert operating.view(store, "default") == before
    start(store, tools=MAILER)


def test_every_changed_tool_is_named(store: Path) -> None:
    """One message for all, so that a person need not find them one by one."""
    start(store, tools={"a": Tool("1"), "b": Tool("1"), "c": Tool("1")})
    with pytest.raises(ToolChanged, match=r"'a' has version 2.*'b' \(version 1\) is missing"):
        open_run(store, inputs=None, tools={"a": Tool("2"), "c": Tool("1")})


def test_a_new_version_may_take_over(store: Path) -> None:
    """From then on the run refers to the new version, and the old one is no way back."""
    start(store, tools=MAILER)
    start(store, tools={"mailer": Tool("2.0", "elsewhere", accepts=("1.3", "1.4"))})
    assert operating.view(store, "default").run.tools["mailer"]["version"] == "2.0"
    with pytest.raises(ToolChanged, match=r"has version 1\.4, recorded is 2\.0"):
        open_run(store, inputs=None, tools=MAILER)


def test_a_new_tool_is_added(store: Path) -> None:
    """A tool that a later attempt brings along is one of the run's from then on."""
    start(store, tools=MAILER)
    start(store, tools={**MAILER, "search": Tool("1")})
    with pytest.raises(ToolChanged, match=r"'search' \(version 1\) is missing"):
        open_run(store, inputs=None, tools=MAILER)


def test_a_finished_run_needs_no_tools(store: Path) -> None:
    """Its result can be had without them, and it keeps none of them in use."""
    with open_run(store, inputs=None, tools=MAILER) as run:
        assert operating.tool_uses([store])[0].tool == "mailer"
        run.finish("done")
    with open_run(store, inputs=None) as run:
        assert run.result == "done"
    assert operating.tool_uses([store]) == []


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ({"a@b": Tool("1")}, "a text without @"),
        ({"": Tool("1")}, "a text without @"),
        ({"a": "1.4"}, r"is a Tool\(version=…\)"),
        ({"a": Tool(ANY_VERSION)}, "are texts"),
        ({"a": Tool("1", "", ANY_TEXT)}, "a tuple of versions"),
    ],
)
def test_tools_that_mean_nothing_are_refused(store: Path, tools: Any, says: str) -> None:
    """A typing error in a tool is an error, and no store is made for it."""
    with pytest.raises(Misuse, match=says):
        open_run(store, inputs=None, tools=tools)
    assert not store.exists()
