"""The pytest plugin: the fixture ``chaos``, the marker ``chaos``, and options with one prefix.

    @pytest.mark.chaos("scenarios/forty_calls.py", points=60)
    def test_survives_kills(chaos):
        chaos()

Nothing of chaoskit but this file is imported until a test uses the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chaoskit.campaign.options import Options
    from chaoskit.model.token import Target
    from chaoskit.reporting.summary import Summary

MARKER = (
    "chaos(scenario, *, points=None, seed=None, depth=None, faults=None): "
    "the scenario that the `chaos` fixture kills and resumes"
)
_SETTINGS = {
    "seed": ("0", "decides inputs and samples"),
    "points": ("", "at most so many trials a wave; all of them by default"),
    "depth": ("1", "kills in one trial, at most"),
    "faults": ("", "kinds of other faults than a kill, as --faults of chaoskit run takes them"),
    "shard": ("", "K/N: only the K-th of N parts of each campaign; chaoskit join joins them"),
    "jobs": ("", "workers: a number or auto; 1 under xdist, auto elsewhere"),
    "report": ("reports/runs", "the folder in which runs are stored"),
}
_FINDINGS_MOST = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--chaos-…`` options and the ini keys ``chaos_…`` that they override."""
    group = parser.getgroup("chaos", "chaoskit: kill and resume")
    for name, (default, help_text) in _SETTINGS.items():
        parser.addini(f"chaos_{name}", help_text, default=default)
        group.addoption(f"--chaos-{name}", metavar=name.upper(), default=None, help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, so that ``--strict-markers`` knows it."""
    config.addinivalue_line("markers", MARKER)


def pytest_report_header(config: pytest.Config) -> str:
    """The seed, always."""
    return f"chaoskit: --chaos-seed={_setting(config, 'seed')}"


@dataclass(frozen=True, slots=True)
class ChaosReport:
    """What a campaign found; also on failure, as ``chaos.report``."""

    summary: Summary

    @property
    def verdict(self) -> str:
        """VALID, INVALID or UNKNOWN."""
        return self.summary.verdict

    def failure_text(self) -> str:
        """Why the test fails: four lines for each kind of finding, and what is unknown."""
        from chaoskit.reporting.terminal import four_lines, groups

        summary = self.summary
        lines = [f"{summary.verdict}: {summary.title} (seed {summary.seed})"]
        found = groups(summary.findings)
        for group in found[:_FINDINGS_MOST]:
            lines.append("")
            lines += [
                f"{label:<17} {text}" for label, text in four_lines(group[0], summary.scenario)
            ]
            if len(group) > 1:
                lines.append(f"{'':<18}and {len(group) - 1} more like it")
        if len(found) > _FINDINGS_MOST:
            lines.append(f"and {len(found) - _FINDINGS_MOST} more kinds of finding")
        lines += [f"{'unknown':<17} {reason}" for reason in summary.unknowns]
        lines.append(f"{'stored in':<17} {summary.run}")
        return "\n".join(lines)


class Chaos:
    """The fixture's value. Call it to run the marker's scenario, or use `run` and `command`."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._config = request.config
        self.report: ChaosReport | None = None

    def __call__(self) -> ChaosReport:
        """Run the scenario of the ``chaos`` marker; the test fails unless it is VALID."""
        marker = self._request.node.get_closest_marker("chaos")
        if marker is None or len(marker.args) != 1:
            pytest.fail(
                'chaos() needs @pytest.mark.chaos("path/of/scenario.py") on the test; or call '
                'chaos.run("path/of/scenario.py")',
                pytrace=False,
            )
        wrong = sorted(set(marker.kwargs) - {"points", "seed", "depth", "faults"})
        if wrong:
            pytest.fail(
                f"@pytest.mark.chaos takes points, seed, depth and faults, not {', '.join(wrong)}",
                pytrace=False,
            )
        return self.run(marker.args[0], **marker.kwargs)

    def run(
        self,
        scenario: str | Path,
        *,
        points: int | None = None,
        seed: int | None = None,
        depth: int | None = None,
        faults: str | None = None,
    ) -> ChaosReport:
        """Run a scenario file (``path`` or ``path:name``); the test fails unless it is VALID.

        Args:
            scenario: relative to the test's folder, or to pytest's root.
            points: instead of ``--chaos-points``.
            seed: instead of ``--chaos-seed``.
            depth: instead of ``--chaos-depth``.
            faults: instead of ``--chaos-faults``.
        """
        from chaoskit.model.token import Target

        target = Target(scenario=self._locate(str(scenario)))
        return self._run(self._options(target, points, seed, depth, faults))

    def command(  # noqa: PLR0913 - one campaign's words
        self,
        command: Sequence[str],
        *,
        services: Sequence[str] = (),
        resume: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        outputs: Sequence[str] = (),
        points: int | None = None,
        seed: int | None = None,
        depth: int | None = None,
        faults: str | None = None,
    ) -> ChaosReport:
        """Run any command against ``services``; the test fails unless it is VALID."""
        from chaoskit.model.token import CommandSpec, Target

        spec = CommandSpec(
            command=tuple(command),
            resume=tuple(resume),
            env=dict(env or {}),
            services=tuple(services),
            outputs=tuple(outputs),
        )
        return self._run(self._options(Target(command=spec), points, seed, depth, faults))

    def _options(
        self,
        target: Target,
        points: int | None,
        seed: int | None,
        depth: int | None,
        faults: str | None,
    ) -> Options:
        from chaoskit.campaign.mechanisms import best
        from chaoskit.campaign.options import Options
        from chaoskit.campaign.planning import kinds_from
        from chaoskit.campaign.sharding import shard_from
        from chaoskit.model.errors import UsageError

        part = _setting(self._config, "shard")
        try:
            kinds = kinds_from(_setting(self._config, "faults") if faults is None else faults)
            shard = shard_from(part) if part else None
        except UsageError as wrong:
            pytest.fail(f"chaoskit: {wrong}", pytrace=False)
        most = _setting(self._config, "points")
        return Options(
            target=target,
            mechanisms=best(),
            seed=_number(self._config, "seed") if seed is None else seed,
            max_points=points or (_number(self._config, "points") if most else None),
            depth=_number(self._config, "depth") if depth is None else depth,
            faults=kinds,
            shard=shard,
            jobs=_jobs(self._config),
            runs=str(self._config.rootpath / _setting(self._config, "report")),
        )

    def _run(self, options: Options) -> ChaosReport:
        from chaoskit.campaign.run import Finished
        from chaoskit.campaign.run import run as run_campaign
        from chaoskit.campaign.sharding import EmptyShardError
        from chaoskit.campaign.store import Store
        from chaoskit.model.errors import ChaoskitError
        from chaoskit.reporting.summary import summarize

        try:
            last = [event for event in run_campaign(options) if isinstance(event, Finished)][-1]
        except EmptyShardError as error:
            pytest.skip(f"chaoskit: {error}")
        except ChaoskitError as error:
            pytest.fail(f"chaoskit: {error}", pytrace=False)
        with Store(last.folder) as store:
            self.report = ChaosReport(summarize(store))
        self._note(self.report.summary)
        if self.report.verdict != "VALID":
            pytest.fail(self.report.failure_text(), pytrace=False)
        return self.report

    def _note(self, summary: Summary) -> None:
        """Properties of the test: they reach JUnit XML, and survive xdist."""
        properties = self._request.node.user_properties
        properties.append(("chaos_verdict", summary.verdict))
        properties.append(("chaos_seed", summary.seed))
        properties.append(("chaos_points", f"{summary.points.landed} of {summary.points.total}"))
        from chaoskit.reporting.terminal import groups

        for group in groups(summary.findings)[:_FINDINGS_MOST]:
            properties.append(("chaos_replay", group[0].replay))

    def _locate(self, text: str) -> str:
        path, colon, name = text.partition(":")
        for folder in (self._request.path.parent, self._config.rootpath):
            if (folder / path).is_file():
                return os.path.relpath(folder / path) + colon + name
        return text


@pytest.fixture
def chaos(request: pytest.FixtureRequest) -> Chaos:
    """Kill and resume a task at every point; see `chaoskit.pytest_plugin.Chaos`."""
    return Chaos(request)


def _setting(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"--chaos-{name}")
    return str(config.getini(f"chaos_{name}") if given is None else given)


def _number(config: pytest.Config, name: str, text: str | None = None) -> int:
    text = _setting(config, name) if text is None else text
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"--chaos-{name} takes a number, not {text!r}") from None


def _jobs(config: pytest.Config) -> int:
    text = _setting(config, "jobs")
    if not text:
        text = "1" if "PYTEST_XDIST_WORKER" in os.environ else "auto"
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return max(1, _number(config, "jobs", text))
