"""Worker processes: one that dies is replaced, and Ctrl-C is none of their business."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from chaoskit.campaign.workers import Workers
from chaoskit.model.errors import HarnessError

HANGS_AFTER_S = 300


@pytest.fixture
def workers() -> Iterator[Workers]:
    """One worker."""
    made = Workers(1)
    yield made
    made.shutdown()


def test_a_worker_that_dies_fails_its_call_alone(workers: Workers) -> None:
    """A dead worker is the harness's failure, and another one takes its place."""
    with pytest.raises(HarnessError, match="status -9"):
        workers.submit(_suicide).result(HANGS_AFTER_S)
    assert workers.submit(os.getpid).result(HANGS_AFTER_S) != os.getpid()


def test_calls_fail_where_no_worker_can_be_started(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that cannot be replaced leaves nobody waiting: each further call says why."""
    workers.submit(os.getpid).result(HANGS_AFTER_S)

    def refused() -> Any:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(workers, "_spawn", refused)
    with pytest.raises(HarnessError, match="status -9"):
        workers.submit(_suicide).result(HANGS_AFTER_S)
    for _ in range(2):
        with pytest.raises(HarnessError, match="no more processes"):
            workers.submit(os.getpid).result(HANGS_AFTER_S)


def test_ctrl_c_is_held_back_from_a_worker_that_does_not_ignore_it_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is blocked from a worker's first moment, and later ignored instead, as what is blocked
    would be blocked in tasks as well.
    """
    blocked: list[set[int]] = []
    kind = Workers(0)._context.Process
    start = kind.start

    def seen(process: Any) -> None:
        blocked.append({*signal.pthread_sigmask(signal.SIG_BLOCK, ())})
        start(process)

    monkeypatch.setattr(kind, "start", seen)
    workers = Workers(1)
    try:
        assert workers.submit(_on_ctrl_c).result(HANGS_AFTER_S) == (True, False)
    finally:
        workers.shutdown()
    assert [signal.SIGINT in signals for signals in blocked] == [True]


def _suicide() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _on_ctrl_c() -> tuple[bool, bool]:
    """Whether this process ignores it, and whether it blocks it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return signal.getsignal(signal.SIGINT) == signal.SIG_IGN, signal.SIGINT in mask
