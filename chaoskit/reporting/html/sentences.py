"""The sentences at the top of the page: the verdict, and the command that runs it again."""

from __future__ import annotations

import shlex

from chaoskit.campaign.options import Options
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.reporting.clean import plain, without_credentials
from chaoskit.reporting.summary import Summary
from chaoskit.reporting.terminal import groups, spread


def verdict_sentence(summary: Summary) -> str:
    """What the campaign found, in one sentence that claims no more than was tried."""
    tried = _tried(summary)
    if summary.verdict == "VALID":
        ends = (
            "every effect happened as often as its contract says, and nothing finished was redone"
        )
        return f"{tried} {ends}."
    if summary.verdict == "INVALID":
        return f"{tried} {_found(summary)}."
    why = f": {summary.unknowns[0]}" if summary.unknowns else ""
    return f"Nothing is proven either way{why}."


def _found(summary: Summary) -> str:
    """The most frequent kind of finding, in how many trials it is, and how many others there are.

    Findings of one kind and operation are told together, whatever their diagnoses.
    """
    together = groups(summary.findings)
    first = max(together, key=spread)
    meaning = FINDING_KINDS.get(first[0].kind, first[0].kind)
    operations = {finding.operation for finding in first}
    where = f" ({first[0].operation})" if len(operations) == 1 and first[0].operation else ""
    more = len(together) - 1
    rest = f"; and {more} more kind{'s' if more > 1 else ''} of finding" if more else ""
    return f"{meaning}{where} in {_trials(spread(first))}{rest}"


def _tried(summary: Summary) -> str:
    points = summary.points
    if summary.soak is not None:
        return f"In {_trials(summary.soak.trials)} of random schedules,"
    if not points.landed:
        return f"In {_trials(summary.trials)},"
    of = f"{points.landed:,} of {points.total:,}"
    return f"Killed at {of} point{'s' if points.total != 1 else ''} and resumed:"


def _trials(number: int) -> str:
    return f"{number:,} trial{'s' if number != 1 else ''}"


def again(options: Options) -> str:
    """The command line that runs the campaign again, without credentials.

    Options that were left at what they are by default are left out; so are those that change only
    how fast it goes.
    """
    words = ["chaoskit", "run"]
    words += ["--seed", str(options.seed), "--mechanisms", ",".join(options.mechanisms)]
    for name, value, default in _valued(options):
        if value != default and value is not None:
            words += [name, str(value)]
    for flag, is_set in (
        ("--no-snapshots", not options.snapshots),
        ("--skip-sleeps", options.skip_sleeps),
        ("--power-loss", options.power_loss),
    ):
        words += [flag] if is_set else []
    for point in options.only:
        words += ["--at", point]
    return plain(shlex.join([*words, *_target(options)]), 4_000)


def _valued(options: Options) -> list[tuple[str, object, object]]:
    landing = ",".join(("landed", *options.in_flight))
    return [
        ("--in-flight", landing, "landed,late:1"),
        ("--times", options.times, 0),
        ("--depth", options.depth, 3 if options.soak_s is not None else 1),
        ("--kill", options.kill, "tree"),
        ("--faults", ",".join(options.faults), ""),
        ("--max-points", options.max_points, None),
        ("--reached", options.reached, 100),
        ("--max-time", options.max_time_s, None),
        ("--timeout", options.timeout_s, None),
        ("--resume-after", f"{options.resume_after_s}s", "0s"),
        ("--soak", None if options.soak_s is None else f"{options.soak_s:g}s", None),
    ]


def _target(options: Options) -> list[str]:
    spec = without_credentials(options.target).command
    if spec is None:
        return [options.target.scenario]
    words: list[str] = []
    if spec.services:
        words += ["--services", ",".join(spec.services)]
    if spec.resume:
        words += ["--resume", shlex.join(spec.resume)]
    for name, value in spec.env.items():
        words += ["--env", f"{name}={value}"]
    for pattern in spec.outputs:
        words += ["--outputs", pattern]
    if spec.contract:
        words += ["--contract", ",".join(f"{k}={v}" for k, v in spec.contract.items())]
    if spec.resumed_within:
        words += ["--resumed-within", spec.resumed_within]
    lifetimes = [f"{name}={time}" for name, time in spec.key_lifetime.items()]
    several = {
        "--behaviour": spec.behaviours,
        "--key-lifetime": lifetimes,
        "--allow": spec.allow,
        "--clean": spec.clean,
    }
    for option, values in several.items():
        for value in values:
            words += [option, value]
    return [*words, "--", *spec.command]
