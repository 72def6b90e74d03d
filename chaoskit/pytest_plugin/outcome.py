"""The outcome of one campaign of a test, as a value that travels from a worker to the summary."""

from __future__ import annotations

import msgspec

from chaoskit.pytest_plugin.extent import Extent
from chaoskit.pytest_plugin.gaps import SHOWN_AT_MOST, Known, Sorted
from chaoskit.reporting.summary import Summary

RECORDED = "written into the baseline now"


class Gap(msgspec.Struct, frozen=True):
    """Findings that are told as one.

    ``known`` is the reason for which they are no failure, empty where there is none; ``recorded``:
    it, or they now, stand in the baseline. ``missing`` is the diagnosis, ``shown_at`` are the
    first schedules that show it, of ``trials`` in all.
    """

    name: str
    trials: int
    replay: str
    known: str
    recorded: bool
    missing: str
    shown_at: tuple[str, ...]


class Gone(msgspec.Struct, frozen=True):
    """A gap that is known and not there any more; ``recorded``: the baseline knows it."""

    name: str
    recorded: bool


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One campaign of a test.

    Args:
        scenario: its name in a baseline: a file relative to pytest's root, or a command.
        verdict: VALID, INVALID or UNKNOWN, whatever is known.
        seed: of the campaign.
        trials: how many were run.
        earlier: how many of them before an interruption; None where there was none.
        points: at how many the kill took place, and how many there are.
        seconds: all in all.
        gaps: what was found.
        gone: what is known and not there any more.
        unseen: names of known gaps of which nothing can be said.
        left_out: why the campaign was not everything that was asked for.
        not_tested: its limits, as every report says them.
        unknowns: why it is UNKNOWN.
        run: where it is stored.
    """

    scenario: str
    verdict: str
    seed: int
    trials: int
    earlier: int | None
    points: tuple[int, int]
    seconds: float
    gaps: tuple[Gap, ...]
    gone: tuple[Gone, ...]
    unseen: tuple[str, ...]
    left_out: tuple[str, ...]
    not_tested: tuple[str, ...]
    unknowns: tuple[str, ...]
    run: str

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def outcome_from(text: str) -> Outcome:
    """The inverse of ``str(outcome)``."""
    return msgspec.json.decode(text, type=Outcome)


def outcome_of(
    scenario: str, summary: Summary, extent: Extent, held: Sorted, earlier: int | None
) -> Outcome:
    """The outcome of a campaign.

    Args:
        scenario: its name in a baseline.
        summary: of the campaign.
        extent: how far it went.
        held: its findings, held against what is known.
        earlier: how many of its trials an interrupted session had left, if one had.
    """
    return Outcome(
        scenario=scenario,
        verdict=summary.verdict,
        seed=summary.seed,
        trials=summary.trials,
        earlier=earlier,
        points=(summary.points.landed, summary.points.total),
        seconds=summary.elapsed_s,
        gaps=tuple(
            Gap(
                name=one.name,
                trials=len(one.schedules),
                replay=one.findings[0].replay,
                known=one.known.reason if one.known is not None else "",
                recorded=one.known is not None and one.known.recorded,
                missing=diagnosis.missing if (diagnosis := one.findings[0].diagnosis) else "",
                shown_at=one.schedules[:SHOWN_AT_MOST],
            )
            for one in held.found
        ),
        gone=tuple(Gone(gap.name, gap.recorded) for gap in held.gone),
        unseen=tuple(gap.name for gap in held.unseen),
        left_out=extent.left_out,
        not_tested=summary.not_tested,
        unknowns=summary.unknowns,
        run=summary.run,
    )


def recorded_now(held: Sorted) -> Sorted:
    """What is new becomes known, as the baseline is being written."""
    found = tuple(
        one
        if one.known is not None
        else type(one)(one.name, one.findings, Known(one.name, RECORDED, recorded=True))
        for one in held.found
    )
    return Sorted(found, held.gone, held.unseen)
