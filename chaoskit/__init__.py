"""chaoskit kills a resumable task at every moment that matters, resumes it, and judges the result.

The public names load when they are first used, so that a task which only wants
``chaoskit.probe`` or ``chaoskit.runtime`` pays for nothing else.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing has it, which takes its time to import
if TYPE_CHECKING:
    from chaoskit import probe as probe
    from chaoskit import runtime as runtime
    from chaoskit.model.changes import Change as Change
    from chaoskit.model.scenario import Scenario as Scenario

__version__ = "0.1.0"

__all__ = ["Change", "Scenario", "__version__", "probe", "runtime"]

_HOMES = {
    "Change": ("chaoskit.model.changes", "Change"),
    "Scenario": ("chaoskit.model.scenario", "Scenario"),
    "probe": ("chaoskit.probe", None),
    "runtime": ("chaoskit.runtime", None),
}


def __getattr__(name: str) -> object:
    """The public name ``name``, imported on first use.

    Raises:
        AttributeError: the package has no such public name.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'chaoskit' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    loaded = import_module(module)
    return loaded if attribute is None else getattr(loaded, attribute)
