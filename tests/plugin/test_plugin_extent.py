"""What counts as a whole campaign: only one that left nothing out says that a gap is gone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.mechanisms import best, traced
from chaoskit.campaign.options import Options, Shard
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.model.token import Target
from chaoskit.pytest_plugin.extent import Extent, _sampled, extent_of
from chaoskit.reporting.summary import summarize
from tests.plugin.chaos_files import LOG, write_files


def extent(folder: Path, **words: object) -> Extent:
    """How far a campaign went that these words bound."""
    write_files(folder, log=LOG)
    options = Options(
        target=Target(scenario=str(folder / "scenarios" / "log.py:good")),
        mechanisms=best(),
        runs=str(folder / "runs"),
    )
    options = msgspec.structs.replace(options, **words)
    *_, last = run(options)
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        return extent_of(store, options, summarize(store))


@pytest.mark.skipif(not traced().works, reason="without system calls no campaign is whole")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({}, ""),
        ({"max_points": 1000}, ""),
        ({"max_points": 1}, "points were not tried"),
        ({"max_trials": 2}, "the limit of 2 trials was reached"),
        ({"max_time_s": 0.0}, "the time limit of 0.0 s was reached"),
        ({"shard": Shard(1, 2)}, "other shards', this is 1/2"),
        ({"mechanisms": ("lines",)}, "system calls, which cannot be traced here"),
    ],
)
def test_a_bound_that_cut_something_off_is_named(
    tmp_path: Path, words: dict[str, object], why: str
) -> None:
    """And a bound that did not is no matter."""
    found = extent(tmp_path, **words)
    assert found.whole is (not why)
    assert why in "; ".join(found.left_out)


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        ({(1, "kill"): 5}, False),
        ({(1, "late"): 4, (1, "power"): 4, (1, "other"): 4, (2, ""): 4}, False),
        ({(1, "late"): 5}, True),
        ({(1, "power"): 5}, True),
        ({(1, "other"): 5}, True),
        ({(2, ""): 5}, True),
    ],
)
def test_a_sort_of_fault_that_fills_its_bound_may_have_been_cut(
    sizes: dict[tuple[int, str], int], *, cut: bool
) -> None:
    """How many there would have been is known of plain kills only, whose points are counted."""
    options = Options(target=Target(), max_points=5)
    assert _sampled(options, Counter(sizes)) is cut
