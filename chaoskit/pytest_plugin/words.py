"""What a test asks for: the words of the marker, of ``chaos.run`` and of the options."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import pytest

from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.options import Options
from chaoskit.campaign.planning import depth_from, kinds_from
from chaoskit.campaign.sharding import shard_from
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.token import Target
from chaoskit.pytest_plugin import setting
from chaoskit.pytest_plugin.gaps import known_from

_UNITS_S = {"s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?) *(?P<unit>s|m|h|trials?)?")


class Words(TypedDict, total=False):
    """What can be said of a campaign, beside its scenario; what is left out is as the options say.

    Args:
        points: at most so many trials of each kind of fault in each wave.
        depth: kills in one trial, at most.
        seed: decides inputs and samples.
        budget: seconds, or "90s", "10m", "1h", after which no trial begins; or "200 trials".
        faults: kinds of other faults than a kill, as one text or several.
        power_loss: also lose power after each system call.
        known: findings that are known, as ``{"duplicate_effect@payments.charge": "why"}``.
    """

    points: int
    depth: int
    seed: int
    budget: float | str
    faults: str | Sequence[str]
    power_loss: bool
    known: Mapping[str, str]


WORDS = tuple(Words.__annotations__)


def check_marker(item: pytest.Item, marker: pytest.Mark) -> None:
    """See that ``marker``, the ``chaos`` marker of ``item``, can be understood.

    Raises:
        pytest.Collector.CollectError: it cannot; the message names the nearest valid words.
    """
    try:
        scenario_of(marker)
        check(marker.kwargs)
    except UsageError as wrong:
        raise pytest.Collector.CollectError(f"{item.nodeid}: @pytest.mark.chaos: {wrong}") from None


def scenario_of(marker: pytest.Mark) -> str:
    """The scenario that a marker names.

    Raises:
        UsageError: none, or several things.
    """
    if len(marker.args) != 1 or not isinstance(marker.args[0], str | os.PathLike):
        raise UsageError(
            'give one scenario, as in @pytest.mark.chaos("path/of/scenario.py", points=60), and '
            "all else by name"
        )
    return os.fspath(marker.args[0])


def check(words: Mapping[str, object]) -> None:
    """See that words have names and values that exist.

    Raises:
        UsageError: they have not; the message names the nearest ones.
    """
    for name, value in words.items():
        if name not in _CHECKS:
            raise unknown_name("word", name, WORDS)
        _CHECKS[name](name, value)


def options_of(config: pytest.Config, target: Target, words: Words) -> Options:
    """The campaign that ``words``, and the options where they say nothing, ask for.

    Raises:
        UsageError: a word or an option has a value that does not exist.
    """
    check(words)
    part = setting(config, "shard")
    seconds, trials = budget_of(words.get("budget", setting(config, "budget")))
    mechanisms = best()
    power_loss = words.get("power_loss", False)
    if power_loss and "calls" not in mechanisms:
        raise UsageError(
            "power_loss=True needs system calls, which cannot be traced here; chaoskit doctor says "
            "why"
        )
    return Options(
        target=target,
        mechanisms=mechanisms,
        seed=words["seed"] if "seed" in words else _number(config, "seed", least=None),
        max_points=words.get("points") or _number_or_none(config, "points"),
        depth=words.get("depth") or depth_from(_number(config, "depth")),
        max_time_s=seconds,
        max_trials=trials,
        faults=_kinds(words.get("faults", setting(config, "faults"))),
        power_loss=power_loss,
        shard=shard_from(part) if part else None,
        jobs=_jobs(config),
        runs=str(config.rootpath / setting(config, "report")),
    )


def budget_of(given: object) -> tuple[float | None, int | None]:
    """The seconds, or the number of trials, after which a campaign stops; None: no bound.

    Raises:
        UsageError: that is no budget, or one of nothing.
    """
    if given == "":
        return None, None
    found = _BUDGET.fullmatch(str(given).strip()) if not isinstance(given, bool) else None
    number = float(found["number"]) if found is not None else 0.0
    unit = (found["unit"] if found is not None else None) or "s"
    if number <= 0 or (unit.startswith("trial") and number != int(number)):
        raise UsageError(
            "budget is seconds, a duration as in '90s', '10m' or '1h', or trials, as in "
            f"'200 trials'; not {given!r}"
        )
    return (None, int(number)) if unit.startswith("trial") else (number * _UNITS_S[unit], None)


def _check_number(name: str, value: object, least: int | None = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} is a number; not {value!r}")
    if least is not None and value < least:
        raise UsageError(f"{name} is at least {least}; not {value!r}")


def _check_depth(name: str, value: object) -> None:
    _check_number(name, value)
    assert isinstance(value, int)
    depth_from(value)


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"{name} is True or False; not {value!r}")


def _kinds(given: object) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"faults are kinds of fault, as in 'stop,clock' or 'all'; not {given!r}")
    return kinds_from(",".join(texts))


_CHECKS: dict[str, Callable[[str, object], object]] = {
    "points": _check_number,
    "depth": _check_depth,
    "seed": lambda name, value: _check_number(name, value, None),
    "budget": lambda _, value: budget_of(value),
    "faults": lambda _, value: _kinds(value),
    "power_loss": _check_flag,
    "known": lambda _, value: known_from(value),
}


def _number(config: pytest.Config, name: str, least: int | None = 1) -> int:
    return _number_in(setting(config, name), name, least)


def _number_in(text: str, name: str, least: int | None = 1) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text.strip()):
        raise UsageError(f"--chaos-{name} takes a number; not {text!r}")
    _check_number(f"--chaos-{name}", int(text), least)
    return int(text)


def _number_or_none(config: pytest.Config, name: str) -> int | None:
    return _number(config, name) if setting(config, name) else None


def _jobs(config: pytest.Config) -> int:
    text = setting(config, "jobs")
    if not text:
        text = "1" if "PYTEST_XDIST_WORKER" in os.environ else "auto"
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return _number_in(text, "jobs")
