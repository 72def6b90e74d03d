"""The pytest plugin: marker and fixture ``chaos``, options with one prefix, and what pytest asks.

    @pytest.mark.chaos("scenarios/forty_calls.py", points=60)
    def test_survives_kills(chaos):
        chaos()

Nothing of chaoskit but this file is imported until a test, or an option, asks for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chaoskit.pytest_plugin.fixture import Chaos, ChaosReport

__all__ = ["Chaos", "ChaosReport", "chaos"]

MARKER = (
    "chaos(scenario, *, points, depth, seed, budget, faults, power_loss, known): "
    "the scenario that the `chaos` fixture kills and resumes"
)
SETTINGS = {
    "seed": ("0", "decides inputs and samples"),
    "points": ("", "at most so many trials of each kind of fault a wave; all of them by default"),
    "depth": ("1", "kills in one trial, at most: 1, 2 or 3"),
    "budget": ("", "stop after 90s, 10m or 1h, or after so many trials, as in '200 trials'"),
    "faults": ("", "kinds of other faults than a kill, as --faults of chaoskit run takes them"),
    "shard": ("", "K/N: only the K-th of N parts of each campaign; chaoskit join joins them"),
    "jobs": ("", "workers: a number or auto; 1 under xdist, auto elsewhere"),
    "report": ("reports/runs", "the folder in which runs are stored"),
    "scenarios": ("", "globs of files: each scenario in them is a test, and none is written"),
    "baseline": ("", "the file of findings that are known, and are no failure while they last"),
}
"""Name, default and help of each option ``--chaos-NAME`` and ini key ``chaos_NAME``."""

UPDATE = "write the findings of this run into the baseline, and take the fixed ones out"
"""The help of the one option without an ini key, ``--chaos-update-baseline``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--chaos-…`` options and the ini keys ``chaos_…`` that they override."""
    group = parser.getgroup("chaos", "chaoskit: kill and resume")
    for name, (default, help_text) in SETTINGS.items():
        parser.addini(f"chaos_{name}", help_text, default=default)
        group.addoption(f"--chaos-{name}", metavar=name.upper(), default=None, help=help_text)
    group.addoption("--chaos-update-baseline", action="store_true", help=UPDATE)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, so that ``--strict-markers`` knows it, and whoever listens."""
    config.addinivalue_line("markers", MARKER)
    config.pluginmanager.register(_Told(config), "chaoskit-told")
    if config.getoption("--chaos-update-baseline") and not setting(config, "baseline"):
        raise pytest.UsageError(
            "--chaos-update-baseline needs a file: --chaos-baseline FILE, or chaos_baseline in the "
            "ini file"
        )
    if globs := setting(config, "scenarios"):
        from chaoskit.pytest_plugin.collecting import Scenarios

        config.pluginmanager.register(Scenarios(config, globs), "chaoskit-scenarios")


def pytest_report_header(config: pytest.Config) -> str:
    """The seed, always."""
    return f"chaoskit: --chaos-seed={setting(config, 'seed')}"


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, object, object]:
    """A marker with a word that does not exist is an error of its file's collection."""
    found = yield
    for item in found if isinstance(found, list) else ():
        if isinstance(item, pytest.Function) and "chaos" in item.fixturenames:
            marker = item.get_closest_marker("chaos")
            if marker is not None and (marker.args or marker.kwargs):
                from chaoskit.pytest_plugin.words import check_marker

                check_marker(item, marker)
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the test's campaigns found goes with its report, to the other end of xdist too."""
    report = yield
    if texts := item.stash.get(TOLD, None):
        report.__dict__["chaoskit"] = tuple(texts)
        texts.clear()
    return report


TOLD = pytest.StashKey[list[str]]()
"""The outcomes of an item's campaigns, as texts, until a report takes them along."""


class _Told:
    """Hears the outcomes of all tests, in the process that talks to the user."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._texts: list[str] = []
        self._notes: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._texts += report.__dict__.get("chaoskit", ())

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        if "chaos_finding" not in report.__dict__:
            return None
        from chaoskit.pytest_plugin.findings import status

        return status(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if setting(self._config, "baseline") and not hasattr(self._config, "workerinput"):
            from chaoskit.pytest_plugin.baseline import settle

            self._notes = settle(session, self._texts)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._texts or self._notes:
            from chaoskit.pytest_plugin.section import write

            write(terminalreporter, self._texts, self._notes)


@pytest.fixture
def chaos(request: pytest.FixtureRequest) -> Chaos:
    """Kill and resume a task at every point; see `chaoskit.pytest_plugin.Chaos`."""
    from chaoskit.pytest_plugin.fixture import Chaos

    return Chaos(request)


def setting(config: pytest.Config, name: str) -> str:
    """The value of an option of `SETTINGS`, else of its ini key, else its default."""
    given = config.getoption(f"--chaos-{name}")
    return str(config.getini(f"chaos_{name}") if given is None else given)


def __getattr__(name: str) -> object:
    """`Chaos` and `ChaosReport`, for those who name them in annotations."""
    if name in {"Chaos", "ChaosReport"}:
        from chaoskit.pytest_plugin import fixture

        return getattr(fixture, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
