"""Strategies for hypothesis: points, faults and whole schedules, which shrink to what says most.

    with Bench(Target(scenario="scenarios/forty_calls.py"), seed=0) as bench:

        @given(schedules(bench.survey().first, faults=("stop", "pause", "clock")))
        def test_any_schedule(schedule):
            assert bench.trial(schedule).judgement.verdict == "VALID"

A failing schedule shrinks towards fewer attempts with a fault, fewer faults, plain kills, and
earlier points. The one module of chaoskit that imports hypothesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from chaoskit.explore import plan
from chaoskit.explore.faults import AT_POINT, FAULT_KINDS, RESUMERS, WEEK_S
from chaoskit.model.actions import LATE, AtPoint, Beside, Kill, Pause
from chaoskit.model.durations import duration_text, parse_duration
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, Point, StartPoint, WindowPoint, parse_point
from chaoskit.model.preludes import HOWS, Resumers, damage_text
from chaoskit.model.schedule import Fault, Schedule, before

KINDS: tuple[str, ...] = ("kill", "late", *FAULT_KINDS)
"""Kinds of fault that can be drawn: those of ``--faults``, a kill, and a request that lands late
(of "services", that one is down for two requests).
"""

Places = History | Iterable[Point | str]
"""Where faults may land: an undisturbed run, or points as values or as text, earliest first."""


def points(where: Places) -> st.SearchStrategy[Point]:
    """A point; it shrinks towards the first one.

    Args:
        where: an undisturbed run (its calls, windows and crossings), or the points themselves.

    Raises:
        UsageError: there is none, or a text is no point.
    """
    return st.sampled_from(_listed(where))


def faults(where: Places, kinds: Sequence[str] = ("kill",)) -> st.SearchStrategy[Fault]:
    """A fault at a point; it shrinks towards a plain kill at the first one.

    Args:
        where: see `points`.
        kinds: of `KINDS`; those that are done before an attempt are left out here. A kill is always
            among them, because everything shrinks to one.

    Raises:
        UsageError: there is no such kind, or no point.
    """
    _check(kinds)
    return st.sampled_from(_listed(where)).flatmap(
        lambda point: st.sampled_from(_actions(point, kinds)).map(lambda act: Fault(act, point))
    )


_faults_at = faults
"""`schedules` has an argument of that name."""


def preludes(
    kinds: Sequence[str],
    *,
    changes: Sequence[str] = (),
    checkpoints: Sequence[str] = ("*",),
    services: Sequence[str] = (),
    resumed_within: str | float = WEEK_S,
) -> st.SearchStrategy[Fault]:
    """What is done before an attempt: of `KINDS` clock, damage, change, resumers and services.

    Args:
        kinds: which of them; it shrinks towards the first one that is done before an attempt.
        changes: names of the scenario's changes.
        checkpoints: patterns of files that are damaged.
        services: names of the services that are down.
        resumed_within: by how much clocks advance, at the most: a text such as 72h, or seconds.

    Raises:
        UsageError: there is no such kind, or a word for it does not parse.
    """
    _check(kinds)
    within_s = parse_duration(resumed_within, "resumed_within=")
    texts = {
        "clock": [f"clock:+{duration_text(max(1, min(WEEK_S, int(within_s))))}"],
        "damage": [damage_text(how, files) for files in checkpoints for how in HOWS],
        "change": [f"change:{name}" for name in changes],
        "resumers": [f"resumers:{number}" for number in RESUMERS],
        "services": [f"down:2@{name}.*#*" for name in services],
    }
    chosen = [before(text) for kind in kinds for text in texts.get(kind, ())]
    return st.sampled_from(chosen) if chosen else st.nothing()


def schedules(  # noqa: PLR0913 - all that may be drawn, each by its name
    points: Places,
    *,
    faults: Sequence[str] = ("kill",),
    kills_max: int = 2,
    changes: Sequence[str] = (),
    checkpoints: Sequence[str] = ("*",),
    services: Sequence[str] = (),
    resumed_within: str | float = WEEK_S,
) -> st.SearchStrategy[Schedule]:
    """A schedule of one to ``kills_max`` attempts with a fault at a point, and what is done before
    their resumes. It shrinks towards one plain kill at the first point.

    A schedule may name a point that its resume does not pass: such a fault does not land, and the
    trial's verdict is UNKNOWN.

    Args:
        points: where faults land; see `points`.
        faults: kinds of `KINDS`.
        kills_max: the most attempts with a fault at a point.
        changes: see `preludes`.
        checkpoints: see `preludes`.
        services: see `preludes`.
        resumed_within: see `preludes`.

    Raises:
        UsageError: there is no such kind, no point, or ``kills_max`` is less than 1.
    """
    if kills_max < 1:
        raise UsageError(f"kills_max is at least 1, not {kills_max}")
    at_points = _faults_at(points, faults)
    prepared = preludes(
        faults,
        changes=changes,
        checkpoints=checkpoints,
        services=services,
        resumed_within=resumed_within,
    )
    return _schedules(at_points, prepared, kills_max)


@st.composite
def _schedules(
    draw: st.DrawFn,
    at_points: st.SearchStrategy[Fault],
    prepared: st.SearchStrategy[Fault],
    most: int,
) -> Schedule:
    attempts: list[tuple[Fault, ...]] = []
    met, another = 0, True
    while another:
        # What belongs to an attempt is drawn together, and whether one more follows after it: so
        # shrinking may leave out any of them.
        done = _done_before(draw, prepared) if attempts else ()
        landing = draw(at_points)
        if _needs_one_runner(landing):
            done = tuple(fault for fault in done if not isinstance(fault.action, Resumers))
        attempts.append((*done, landing))
        if isinstance(landing.action, Pause):
            attempts.append(())  # it runs beside the paused one
        met += 1
        another = met < most and draw(st.booleans())
    attempts.append(_done_before(draw, prepared))
    while not attempts[-1]:
        attempts.pop()
    return Schedule(tuple(attempts))


def _done_before(draw: st.DrawFn, prepared: st.SearchStrategy[Fault]) -> tuple[Fault, ...]:
    return () if prepared.is_empty or not draw(st.booleans()) else (draw(prepared),)


def _needs_one_runner(fault: Fault) -> bool:
    return isinstance(fault.action, Beside) or isinstance(fault.point, CallPoint)


def _actions(point: Point, kinds: Sequence[str]) -> list[AtPoint]:
    """What can be done at ``point``, the plainest first."""
    found: list[AtPoint] = [Kill()]
    for kind, action in AT_POINT.items():
        if kind in kinds and not (isinstance(action, Beside) and isinstance(point, CallPoint)):
            found.append(action)
    if "late" in kinds and isinstance(point, WindowPoint) and point.window == "received":
        found += LATE.values()
    return found


def _listed(where: Places) -> list[Point]:
    if isinstance(where, History):
        found = plan.points(where, ("calls", "windows", "crossings"))
    else:
        found = [parse_point(point) if isinstance(point, str) else point for point in where]
    if not found:
        raise UsageError("there is no point: give an undisturbed run that passes one, or points")
    for point in found:
        if isinstance(point, StartPoint):
            raise UsageError("nothing lands at the start; what is done there is a kind of fault")
    return list(dict.fromkeys(found))


def _check(kinds: Sequence[str]) -> None:
    if isinstance(kinds, str):
        raise UsageError(f"kinds of faults are a sequence of texts: write ({kinds!r},)")
    for kind in kinds:
        if kind not in KINDS:
            raise unknown_name("kind of fault", kind, KINDS)


__all__ = ["KINDS", "faults", "points", "preludes", "schedules"]
