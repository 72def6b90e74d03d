"""How the attempts of a trial are run: what a job says, and what all of its attempts share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FIRST_TIMEOUT_S = 300.0
"""The limit of an attempt where nobody says and no baseline was measured yet."""

QUIESCE_TIMEOUT_S = 5.0
"""For how long a service waits for the end of its connections once the processes are dead."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """How attempts are run.

    Args:
        timeout_s: an attempt that takes longer is killed.
        calls: the tracer says of every call that it is about to be made.
        lines: a Python task says of every line of its own code that it is about to run.
        skip_sleeps: sleep calls return at once.
        locating: a Python task can be asked which of its lines is running.
        another_day: the second baseline run may be on another day.
        resume_after_s: by how much all clocks advance after each kill.
        varying: what is known to vary in the names of files; see `chaoskit.trace.varying`.
        digests: the outputs of the baseline run; the content of one that is the same is not stored.
    """

    timeout_s: float = FIRST_TIMEOUT_S
    calls: bool = False
    lines: bool = False
    skip_sleeps: bool = False
    locating: bool = False
    another_day: bool = False
    resume_after_s: int = 0
    varying: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
