"""Changes: what may be different when a task is resumed, and what a correct task does then.

    Scenario(..., changes={"price": Change(world=raise_the_price, right="refuse",
                                           matters=("payments.*",), finding="stale_world")})

A schedule says when: ``kill@payments.charge#2.applied / change:price``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from chaoskit.model.errors import ScenarioError
from chaoskit.model.findings import FINDING_KINDS

Right = Literal["refuse", "go-on", "replan", "stop", "either"]
"""What a correct task does after a change:

* ``refuse``: no further effect that matters; it refuses, or says that an outcome is unknown;
* ``go-on``: it goes on as if nothing had changed; to refuse would strand it for nothing;
* ``replan``: it may go on, but no effect that matters is still the one of the world before;
* ``stop``: no further effect that matters, however often it is resumed (it was cancelled);
* ``either``: nothing is asked, but that the promises of an undisturbed run hold.
"""

RIGHTS: tuple[Right, ...] = get_args(Right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is different from some attempt on. At least one of the first five is given.

    Args:
        world: changes files in the work folder or rows in a database: ``world(folder, env)``, with
            the variables that the task sees; no process of the task is alive then.
        inputs: makes the inputs that the task is given from now on: ``inputs(seed)``.
        env: environment variables from now on, with the placeholders of a scenario.
        task: another function in place of the scenario's own (changed code).
        command: another program in place of the scenario's own (changed code).
        right: what a correct task does then.
        matters: patterns of operations whose effects must not happen on the old terms.
        finding: the kind of finding if they do.
        after: the name or a pattern of a reported step, or of an operation whose effect binds the
            task ("email.send"). Before that was done the change does not take place: a task that
            has not used the old value may use the new one.
    """

    world: Callable[[Path, Mapping[str, str]], None] | None = None
    inputs: Callable[[int], object] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    task: Callable[[], object] | None = None
    command: Sequence[str] = ()
    right: Right = "refuse"
    matters: Sequence[str] = ("*",)
    finding: str = "stale_world"
    after: str = ""

    def __post_init__(self) -> None:
        if not (self.world or self.inputs or self.env or self.task or self.command):
            raise ScenarioError(
                "a change changes something: give world=, inputs=, env=, task= or command="
            )
        if isinstance(self.command, str) or isinstance(self.matters, str):
            raise ScenarioError("command= and matters= of a change take a sequence of texts")
        if self.right not in RIGHTS:
            raise ScenarioError(f"right={self.right!r} of a change: write {', '.join(RIGHTS)}")
        if self.finding not in FINDING_KINDS:
            raise ScenarioError(
                f"finding={self.finding!r} of a change is no kind of finding: "
                f"{', '.join(FINDING_KINDS)}"
            )
