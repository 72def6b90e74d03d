"""Where a kill can cut a write: the boundaries of a file's pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.trace.cuts import Extent, boundaries

PAGE = 4096


@given(st.integers(0, 10**7), st.integers(0, 10**6))
def test_the_boundaries_are_those_inside_the_write(start: int, size: int) -> None:
    """The first and the last multiple of a page that has bytes of the write on both sides, and one
    between them where there are more than two; none where no page is crossed.
    """
    every = [at - start for at in range(-(-start // PAGE) * PAGE, start + size, PAGE) if at > start]
    found = boundaries(Extent(start, size), PAGE)
    assert set(found) <= set(every)
    assert found[:1] == tuple(every[:1])
    assert found[-1:] == tuple(every[-1:])
    assert len(found) == min(len(every), 3)
    assert list(found) == sorted(found)
