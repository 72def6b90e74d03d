"""How a task finds its services: environment variables, and placeholders in any word of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Address
from chaoskit.model.instances import Instance

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:\.([a-z_]+))?\}")

_MISSPELT = 0.75
"""So alike is ``{payment.url}`` and one that exists; less than that is text of the task's own."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Everything that a task can be told, by placeholder and by variable."""

    placeholders: Mapping[str, str]
    environment: Mapping[str, str]
    services: Sequence[str]
    instances: Sequence[Instance] = ()

    def fill(self, text: str) -> str:
        """``text`` with its placeholders filled in; other braces are left alone.

        Raises:
            UsageError: a placeholder names a service that is not started, or a part it lacks.
        """

        def replace(found: re.Match[str]) -> str:
            whole = found[0][1:-1]
            if whole in self.placeholders:
                return self.placeholders[whole]
            if found[2] is None:
                return found[0]  # {print} and the like belong to the task
            if found[1] in self.services:
                if any(name.startswith(f"{found[1]}.") for name in self.placeholders):
                    raise unknown_name("placeholder", whole, self.placeholders)
                raise self._not_started(found, text)
            if get_close_matches(whole, self.placeholders, n=1, cutoff=_MISSPELT):
                raise unknown_name("placeholder", whole, self.placeholders)
            return found[0]

        return _PLACEHOLDER.sub(replace, text)

    def _not_started(self, found: re.Match[str], text: str) -> UsageError:
        own = [f"{{{one.name}.{found[2]}}}" for one in self.instances if one.kind == found[1]]
        fix = (
            f"write {' or '.join(own)}, by the name of the instance"
            if own
            else "add it to --services (or to services= in the scenario)"
        )
        return UsageError(f"{found[0]} in {text!r}: the service {found[1]} is not started; {fix}")

    def variables(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The task's whole environment: ours, the addresses, and the scenario's own."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("CHAOSKIT_")}
        return {
            **inherited,
            **self.environment,
            **{name: self.fill(value) for name, value in extra.items()},
        }


def addresses(
    known: Mapping[str, Address],
    own: Mapping[str, str],
    variables: Mapping[str, str],
    installed: Sequence[str],
    instances: Sequence[Instance] = (),
) -> Addresses:
    """Join the services' addresses with the trial's own values.

    Args:
        known: the address of each started service, by its name.
        own: placeholders of the trial itself (``state``, ``seed``, ``inputs``, ``here``).
        variables: the trial's own environment variables.
        installed: every service name that exists, so that a missing one can be told from text.
        instances: the services of the run.

    Raises:
        UsageError: two services would set the same variable.
    """
    placeholders = dict(own)
    environment = dict(variables)
    for name, address in known.items():
        placeholders |= {f"{name}.{part}": value for part, value in address.placeholders.items()}
        if both := sorted(environment.keys() & address.environment.keys()):
            raise UsageError(
                f"the service {name} sets {both[0]}, which is set already; give one of the "
                "services another name, as in payments:eu"
            )
        environment |= dict(address.environment)
    return Addresses(placeholders, environment, installed, instances)
