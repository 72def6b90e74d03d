"""Budgets: what all steps of a run may cost together, over all its attempts or in each.

What a step costs is recorded with the intent, before the effect, so that a kill cannot lose it: a
body that is begun again is charged again. A step that is recorded after its effect is charged then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Literal, NamedTuple

from chaoskit.runtime.errors import Misuse, OverBudget, announced, nearest

Per = Literal["run", "attempt"]


class _Budget(NamedTuple):
    limit: float
    per: Per


class Budgets:
    """The budgets of one run in one attempt.

    Args:
        recorded: reads what all steps were charged in earlier attempts, once, if it is needed.
    """

    def __init__(self, recorded: Callable[[], Mapping[str, float]]) -> None:
        self._read = recorded
        self._recorded: Mapping[str, float] | None = None
        self._declared: dict[str, _Budget] = {}
        self._spent: dict[str, float] = {}
        self._lock = Lock()

    def declare(self, name: str, limit: float, per: Per) -> None:
        """Set a limit; may be said again, with another one, in each attempt."""
        if per not in {"run", "attempt"}:
            raise Misuse(f"a budget is per='run' or per='attempt', not {per!r}")
        if not isinstance(limit, int | float) or isinstance(limit, bool) or not limit >= 0:
            raise Misuse(f"a budget's limit is a number from 0 on, not {limit!r}")
        if self._recorded is None:
            self._recorded = self._read()
        self._declared[name] = _Budget(limit, per)

    def left(self, name: str) -> float:
        """What may still be spent of a budget."""
        budget = self._budget(name)
        with self._lock:
            return budget.limit - self._used(name, budget.per)

    def charge(self, step: str, costs: Mapping[str, float]) -> None:
        """Take what a step costs out of its budgets, all or none.

        Raises:
            OverBudget: it is more than is left of one.
            Misuse: there is no such budget, or the cost is no number.
        """
        if not costs:
            return
        with self._lock:
            for name, cost in costs.items():
                budget = self._budget(name)
                used = self._used(name, budget.per)
                if used + cost > budget.limit:
                    raise announced(
                        OverBudget(
                            f"step {step!r} costs {cost:g} {name}, and {used:g} of the budget of "
                            f"{budget.limit:g} per {budget.per} is used: it was not begun. Raise "
                            f"the limit in run.budget({name!r}, …) to go on"
                        )
                    )
            for name, cost in costs.items():
                self._spent[name] = self._spent.get(name, 0) + cost

    def give_back(self, costs: Mapping[str, float]) -> None:
        """Undo a charge that did not come to be recorded, for a step that was not begun."""
        with self._lock:
            for name, cost in costs.items():
                self._spent[name] -= cost

    def _budget(self, name: str) -> _Budget:
        if name not in self._declared:
            raise Misuse(
                f"there is no budget {name!r}: declare it with run.budget({name!r}, LIMIT); "
                f"declared: {nearest(name, self._declared)}"
            )
        return self._declared[name]

    def _used(self, name: str, per: Per) -> float:
        used = self._spent.get(name, 0)
        return used + (self._recorded or {}).get(name, 0) if per == "run" else used


def added(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    """The sum of two charges."""
    if not other:
        return one
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
