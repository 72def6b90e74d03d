"""The waves of a campaign: a kill at each point, some trials of each other fault, further kills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from chaoskit.campaign.mechanisms import traced
from chaoskit.campaign.options import NO_FAULTS, Options
from chaoskit.campaign.sharding import most_of
from chaoskit.explore import faults
from chaoskit.explore.plan import (
    first_wave,
    late_landings,
    moments,
    next_wave,
    noted,
    one_each,
    own_schedules,
    power_cuts,
    several_processes,
)
from chaoskit.explore.sampling import draw, sample
from chaoskit.model.actions import POWER, KillLeader
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, Point, StartPoint, TimePoint
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault, Schedule, parse_schedule
from chaoskit.trace import RING
from chaoskit.trial.loading import load

DEPTH_MOST = 3
"""How many kills one trial has at most."""

WHOLE_WAVES = 2
"""Waves with so many kills are run as a whole; what has more is sampled."""

SAMPLED = 200
"""How many trials of a sampled wave are run, where nobody says."""

DRAWN_FOR_EACH = 20
"""A sample by target is taken from so many times as many, drawn from all: there may be millions."""


def first_schedules(
    options: Options,
    surveys: tuple[History, History],
    expectation: Expectation,
    found: Sequence[Point],
) -> list[Schedule]:
    """The trials of the first wave, in the order in which they are run.

    Args:
        options: of the campaign.
        surveys: the two undisturbed runs.
        expectation: from them.
        found: the points that both of them pass.

    Raises:
        UsageError: there is nothing to try, or what is asked for cannot be done.
    """
    faults.check_changes(load(options.target).scenario, surveys[0])
    if options.only:
        return [_known(parse_schedule(text), found) for text in options.only]
    scenario = load(options.target).scenario
    wave = list(dict.fromkeys(_chosen(options, scenario, surveys, expectation, found)))
    if not wave:
        raise UsageError(
            "there is no point to kill at: no system call on the task's own files, no "
            "request and no probe.point was seen by "
            f"{', '.join(options.mechanisms)}{_untraced(options)}; add --times N for random moments"
        )
    return wave


def depth_from(number: int) -> int:
    """The depth of a campaign that ``number`` asks for.

    Raises:
        UsageError: it is not one of 1 to `DEPTH_MOST`.
    """
    if not 1 <= number <= DEPTH_MOST:
        raise UsageError(
            f"the depth is 1, 2 or {DEPTH_MOST} kills in one trial, not {number}; name a longer "
            "schedule with --at 'kill@POINT / kill@POINT / …'"
        )
    return number


def next_schedules(
    trials: Iterable[tuple[Schedule, History]], wave: int, options: Options
) -> tuple[list[Schedule], int]:
    """The trials of a further wave, and how many they were chosen from by the seed.

    Args:
        trials: those of the wave before; see `chaoskit.explore.plan.next_wave`.
        wave: the number of the one to come. From the third on, that is how many kills a trial has,
            at most `SAMPLED` are run where the options do not say how many.
        options: of the campaign.
    """
    further = (s for pair in trials for s in next_wave(dict([pair]), options.mechanisms))
    most, seed = options.max_points, options.seed + wave - 1
    if most is None and wave > WHOLE_WAVES:
        most = SAMPLED
    most = most_of(most, options.shard)
    if most is None:
        whole = list(further)
        return whole, len(whole)
    drawn, total = draw(further, most * DRAWN_FOR_EACH, seed)
    return sample(drawn, most, seed), total


def _untraced(options: Options) -> str:
    """That calls are not among the mechanisms, if that is because of this machine."""
    rung = None if "calls" in options.mechanisms else traced()
    return "" if rung is None or rung.works else f" (system calls cannot be traced: {rung.why})"


def check_only(only: Sequence[str]) -> None:
    """Refuse points that are none, before anything is run.

    Raises:
        UsageError: one of these schedules does not parse, or has no fault.
    """
    for text in only:
        if not parse_schedule(text).faults:
            raise UsageError(
                f"{text!r} has no fault, and no points at all is an error: name a point, "
                "or leave --at out for all of them"
            )


def check_resumes(options: Options, scenario: Scenario) -> None:
    """Refuse resumes that come later than the scenario declares, before anything is run.

    Raises:
        UsageError: `Options.resume_after_s`, or a clock of `Options.only`, is longer.
    """
    for text in options.only or ("none",):
        scenario.check_resumes(parse_schedule(text), options.resume_after_s)


def kinds_of(options: Options, scenario: Scenario) -> tuple[str, ...]:
    """The kinds of other faults that are tried; the scenario's own changes where nobody says."""
    if options.faults:
        return tuple(kind for kind in options.faults if kind != NO_FAULTS)
    return ("change",) if scenario.changes else ()


def kinds_from(text: str) -> tuple[str, ...]:
    """The kinds of other faults that ``text`` names: some, ``all``, ``none``; empty: nobody says.

    Raises:
        UsageError: there is no such kind.
    """
    if text == "all":
        return tuple(faults.FAULT_KINDS)
    chosen = tuple(filter(None, (part.strip() for part in text.split(","))))
    for name in chosen:
        if name not in (*faults.FAULT_KINDS, NO_FAULTS):
            raise unknown_name("kind of fault", name, ("all", NO_FAULTS, *faults.FAULT_KINDS))
    return chosen


def _chosen(
    options: Options,
    scenario: Scenario,
    surveys: tuple[History, History],
    expectation: Expectation,
    found: Sequence[Point],
) -> Iterator[Schedule]:
    first = surveys[0]
    most, seed = options.max_points, options.seed
    yield from sample(_kills(options, found), most, seed)
    if "windows" in options.mechanisms:
        late = one_each(late_landings(first, scenario.settled, options.late))
        yield from sample(late, most, seed)
    if options.power_loss:
        yield from sample(one_each(power_cuts(first, POWER)), most, seed)
    if "times" in options.mechanisms or options.times or noted(surveys, RING):
        yield from first_wave(moments(expectation.seconds, options.times or 50, seed))
    ground = faults.ground_of(scenario, first, found, options.resume_after_s)
    others = faults.schedules(ground, kinds_of(options, scenario), seed)
    yield from sample(others, most, seed)
    yield from own_schedules(scenario.schedules, surveys)


def _kills(options: Options, found: Sequence[Point]) -> list[Schedule]:
    """A kill at each point: of all processes, of the first one alone, or each of the two.

    Raises:
        UsageError: only the first one is to be killed, and there is no other. Nobody knows where
            no system calls are traced; it is done as asked then.
    """
    if options.kill == "tree":
        return first_wave(found)
    if "calls" in options.mechanisms and not several_processes(found):
        raise UsageError(
            f"--kill {options.kill}: the task has one process only, as far as its system "
            "calls tell; leave the option out"
        )
    alone = one_each(Fault(KillLeader(), point) for point in found)
    return alone if options.kill == "leader" else first_wave(found) + alone


def _known(schedule: Schedule, found: Sequence[Point]) -> Schedule:
    """``schedule``, if the first attempt of an undisturbed run passes its first point.

    Raises:
        UsageError: it does not; the message names the nearest points.
    """
    for fault in schedule.faults_of(1):
        point = fault.point
        if isinstance(point, CallPoint):  # any side of a call that is there
            point = replace(point, side="before", bytes=0)
        if not isinstance(point, TimePoint | StartPoint) and point not in found:
            raise unknown_name("point", str(fault.point), map(str, found))
    return schedule
