"""Where a step stands among those that a run takes one after the other.

Results are bound to names, so a renamed, inserted, swapped or removed step would not get another
one's result; but the run would do the new one and never notice that the old one had been done. So
the index of a step is recorded, and compared where it means something: among the steps that the
run's own flow takes, which is one thread and, in it, one task. What other threads and tasks take,
and what a step takes inside its body, arrives in any order, or not at all once the outer step is
done; it has no index and does not count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import Any
from weakref import ref

from chaoskit.runtime.errors import CodeChanged, announced
from chaoskit.runtime.records import State, StepRecord

_HOW = (
    "Resume with the code that began the run; a task that skips or reorders steps on purpose opens "
    "its run with ordered=False"
)


class Positions:
    """The indices of one run's steps in one attempt. Its caller holds a lock around each call.

    Args:
        recorded: reads the step at each recorded index, once, when it is needed first.
        ordered: whether indices mean anything for this task.
    """

    def __init__(self, recorded: Callable[[], Mapping[int, str]], *, ordered: bool) -> None:
        self._read = recorded
        self._recorded: Mapping[int, str] | None = None
        self._ordered = ordered
        self._thread = get_ident()
        task = _current_task()
        self._task = None if task is None else ref(task)
        self._taken: dict[str, int] = {}
        self._in_flight: set[str] = set()

    def take(self, name: str, *, awaited: bool) -> int | None:
        """The index of the step that is taken now, None if it has none.

        Args:
            name: the step; one that is tried again keeps its index.
            awaited: the step is awaited.

        Raises:
            CodeChanged: another step is recorded at this index.
        """
        if not self._ordered or self._in_flight or not self._is_own_flow(awaited=awaited):
            return None
        index = self._taken.setdefault(name, len(self._taken))
        self._in_flight.add(name)
        if self._recorded is None:
            self._recorded = self._read()
        if (before := self._recorded.get(index, name)) != name:
            raise announced(
                CodeChanged(
                    f"the code takes step {name!r} at index {index}, where this run has recorded "
                    f"step {before!r}: a step was renamed, inserted, swapped or removed. {_HOW}"
                )
            )
        return index

    def left(self, name: str) -> None:
        """The step is no longer in flight, however it ended."""
        self._in_flight.discard(name)

    def refuse_removed(self) -> None:
        """Raise `CodeChanged` if a recorded step was never taken in this attempt."""
        if not self._ordered:
            return
        if self._recorded is None:
            self._recorded = self._read()
        for index, name in sorted(self._recorded.items()):
            if name not in self._taken:
                raise announced(
                    CodeChanged(
                        f"the run is at its end and never took step {name!r}, which is recorded at "
                        f"index {index}: it was removed. {_HOW}"
                    )
                )

    def _is_own_flow(self, *, awaited: bool) -> bool:
        """Whether the caller is the flow that opened the run: its thread, and its task if any.

        A run that was opened before its event loop adopts the loop's only task: that is the one
        which all others come from.
        """
        if get_ident() != self._thread:
            return False
        task = _current_task()
        if task is None:
            return not awaited
        own = None if self._task is None else self._task()
        if own is not None and not own.done():
            return bool(own is task)
        if len(sys.modules["asyncio"].all_tasks()) > 1:
            return False
        self._task = ref(task)
        return True


def refuse_moved(record: StepRecord, index: int | None) -> None:
    """Raise `CodeChanged` if the step was recorded at another index than it is taken at."""
    recorded = record.position
    if index is None or recorded is None or recorded == index or record.state is State.ABSENT:
        return
    raise announced(
        CodeChanged(
            f"the code takes step {record.name!r} at index {index}, and this run has recorded it "
            f"at index {recorded}: a step was inserted, swapped or removed before it. {_HOW}"
        )
    )


def _current_task() -> Any:
    """The running task of asyncio, without loading it."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.current_task()
    except (RuntimeError, AttributeError):
        return None
