"""A command's target as it is typed: the options of ``chaoskit run`` that make it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import chain

from chaoskit.model.events import SUCCESS
from chaoskit.model.scenario import ATTEMPTS
from chaoskit.model.token import CommandSpec


def options_of(spec: CommandSpec) -> list[str]:
    """The words before ``--``, without those of tables: their SQL stands in a file."""
    given: dict[str, Sequence[str]] = {
        "--services": [",".join(spec.services)],
        "--prepare": [shlex.join(spec.prepare)],
        "--resume": [shlex.join(spec.resume)],
        "--control": [shlex.join(spec.control)],
        "--env": [f"{name}={value}" for name, value in spec.env.items()],
        "--outputs": spec.outputs,
        "--recorded": spec.recorded,
        "--contract": [",".join(f"{k}={v}" for k, v in spec.contract.items())],
        "--ignore": spec.ignore,
        "--success": [",".join(map(str, spec.success))] if spec.success != SUCCESS else [],
        "--attempts": [str(spec.attempts_max)] if spec.attempts_max != ATTEMPTS else [],
        "--behaviour": spec.behaviours,
        "--key-lifetime": [f"{name}={time}" for name, time in spec.key_lifetime.items()],
        "--resumed-within": [spec.resumed_within],
        "--allow": spec.allow,
        "--clean": spec.clean,
    }
    pairs = [(name, value) for name, values in given.items() for value in values if value]
    return list(chain.from_iterable(pairs))
