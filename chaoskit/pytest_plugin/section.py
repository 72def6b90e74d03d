"""The section of the terminal summary: what was found, what was not looked at, where it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from chaoskit.pytest_plugin.outcome import Gap, Outcome, outcome_from

TITLE = "chaoskit: kill and resume"


def write(reporter: pytest.TerminalReporter, texts: Sequence[str], notes: Sequence[str]) -> None:
    """Write the section.

    Args:
        reporter: pytest's own.
        texts: the outcomes of all campaigns of the session.
        notes: on the baseline.
    """
    outcomes = sorted(map(outcome_from, texts), key=lambda outcome: outcome.scenario)
    reporter.section(TITLE)
    for line in lines(outcomes, reporter.config.get_verbosity()):
        reporter.write_line(line)
    for note in notes:
        reporter.write_line(note)


def lines(outcomes: Sequence[Outcome], verbosity: int = 0) -> Iterator[str]:
    """What is told: a line for a campaign that is as it should be, more for another one.

    Under ``-q`` those that are VALID and left nothing out are counted only; with ``-v`` every limit
    of every campaign is told.
    """
    quiet = [o for o in outcomes if verbosity < 0 and o.verdict == "VALID" and not _partial(o)]
    for outcome in outcomes:
        if outcome not in quiet:
            yield from _told(outcome, verbosity)
    if quiet:
        trials = sum(outcome.trials for outcome in quiet)
        yield f"VALID    {len(quiet)} whole campaign{_s(len(quiet))}, {trials} trial{_s(trials)}"
    if verbosity < 1 and outcomes:
        limits = {line for outcome in outcomes for line in outcome.not_tested}
        yield (
            f"{len(limits)} limit{_s(len(limits))} of what a kill can show: with -v, and under "
            "`not tested` in each report"
        )


def _partial(outcome: Outcome) -> bool:
    return bool(outcome.left_out or outcome.unseen or outcome.gone)


def _told(outcome: Outcome, verbosity: int) -> Iterator[str]:
    landed, total = outcome.points
    earlier = outcome.earlier
    before = "" if earlier is None else f", {earlier} of them before an interruption"
    yield (
        f"{outcome.verdict:<8} {outcome.scenario}: {outcome.trials} trial{_s(outcome.trials)}"
        f"{before}, killed at {landed} of {total} points; seed {outcome.seed}, "
        f"{outcome.seconds:.1f} s"
    )
    for gap in outcome.gaps:
        yield from _gap(gap)
    for reason in outcome.unknowns:
        yield f"  unknown     {reason}"
    for gone in outcome.gone:
        whose = "the baseline" if gone.recorded else "known="
        yield f"  gone        {gone.name}, which {whose} names"
    for name in outcome.unseen:
        yield f"  not seen    {name} is known; what could show it was not tried, so it may be there"
    for why in outcome.left_out:
        yield f"  not tested  {why}"
    if verbosity > 0:
        yield from (f"  not tested  {line}" for line in outcome.not_tested)
    if outcome.verdict != "VALID" or verbosity > 0:
        yield f"  stored in   {outcome.run}"


def _gap(gap: Gap) -> Iterator[str]:
    label, why = ("known", f" ({gap.known})") if gap.known else ("found", "")
    yield f"  {label:<11} {gap.name} in {gap.trials} trial{_s(gap.trials)}{why}"
    # The command stands alone on its line, so that it can be copied whole.
    yield gap.replay


def _s(number: int) -> str:
    return "" if number == 1 else "s"
