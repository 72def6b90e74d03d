"""The words of ``chaoskit run --soak``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click
import msgspec
from click.core import ParameterSource

from chaoskit.campaign.options import Options
from chaoskit.campaign.soaking import KILLS_MOST
from chaoskit.explore.plan import MECHANISMS
from chaoskit.model.errors import UsageError

_UNITS_S = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smh])")


def duration_s(text: str) -> float:
    """The seconds of 90s, 10m or 1h.

    Raises:
        UsageError: that is no duration, or none at all.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise UsageError(f"--soak takes a duration, as in 90s, 10m or 1h; not {text!r}")
    return float(found[1]) * _UNITS_S[found[2]]


def with_soak(options: Options, ctx: click.Context, given: Mapping[str, object]) -> Options:
    """The options of a campaign that soaks, if that is asked for; else as they are.

    What was not chosen is wide: every mechanism that works here, and several kills a trial.

    Raises:
        UsageError: no duration, or another option asks for what a soak does not do.
    """
    text = given["soak"]
    if text is None:
        return options
    for name, option in (("only", "--at"), ("times", "--times")):
        if given[name]:
            raise UsageError(f"{option} does not go with --soak, which draws its own moments")
    mechanisms, depth = options.mechanisms, options.depth
    if ctx.get_parameter_source("mechanisms") != ParameterSource.COMMANDLINE:
        mechanisms = tuple(m for m in MECHANISMS if m in {*mechanisms, "crossings", "times"})
    if ctx.get_parameter_source("depth") != ParameterSource.COMMANDLINE:
        depth = KILLS_MOST
    return msgspec.structs.replace(
        options, soak_s=duration_s(str(text)), mechanisms=mechanisms, depth=depth
    )
