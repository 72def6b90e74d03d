"""The value of the fixture ``chaos``: it runs campaigns, and says by them how the test ends."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import pytest

from chaoskit.campaign.events import Finished, Started
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run as run_campaign
from chaoskit.campaign.sharding import EmptyShardError
from chaoskit.campaign.store import Store
from chaoskit.checkers.comparison import counted
from chaoskit.model.errors import ChaoskitError, UsageError
from chaoskit.model.token import CommandSpec, Target
from chaoskit.pytest_plugin import TOLD, baseline
from chaoskit.pytest_plugin.extent import Extent, extent_of
from chaoskit.pytest_plugin.findings import LABEL_WIDTH, tell, text_of
from chaoskit.pytest_plugin.gaps import Found, Known, Sorted, known_from, sort_out
from chaoskit.pytest_plugin.outcome import outcome_of, recorded_now
from chaoskit.pytest_plugin.words import Words, check, options_of, scenario_of
from chaoskit.reporting.clean import plain, without_credentials
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trial.loading import DEFAULT_NAME

FINDINGS_MOST = 5


@dataclass(frozen=True, slots=True)
class ChaosReport:
    """What a campaign found; also on failure, as ``chaos.report``.

    Args:
        summary: everything that reports are made from.
        held: the findings, held against what is known.
        extent: how far the campaign went.
    """

    summary: Summary
    held: Sorted
    extent: Extent

    @property
    def verdict(self) -> str:
        """VALID, INVALID or UNKNOWN, whatever is known."""
        return self.summary.verdict

    def failure_text(self) -> str:
        """What is wrong: four lines for each kind of finding that is new, and what is unknown."""
        new = self.held.new
        lines = []
        for one in new[:FINDINGS_MOST]:
            lines += ["", text_of(one, self.summary.scenario)]
        if len(new) > FINDINGS_MOST:
            lines.append(f"and {len(new) - FINDINGS_MOST} more kinds of finding")
        return self._framed(lines)

    def failure_in_short(self) -> str:
        """The same without the four lines, which the results of the findings have told before."""
        return self._framed([_line("found", one.name + _times(one)) for one in self.held.new])

    def _framed(self, findings: Sequence[str]) -> str:
        summary, held = self.summary, self.held
        verdict = summary.verdict
        if verdict == "INVALID" and not held.new:
            verdict = "INVALID, as is known"
        lines = [f"{verdict}: {summary.title} (seed {summary.seed})", *findings]
        lines += [_line("known", f"{f.name}: {f.known.reason}") for f in held.found if f.known]
        lines += [_line("unknown", reason) for reason in summary.unknowns]
        lines += [_line("gone", _removal(gap, held)) for gap in held.gone]
        return "\n".join([*lines, _line("stored in", summary.run)])


class Chaos:
    """The fixture's value. Call it to run the marker's scenario, or use `run` and `command`.

    The test fails unless the campaign is VALID. With ``known`` it is an expected failure (xfail) if
    it finds what is known and nothing else.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._config = request.config
        self.report: ChaosReport | None = None

    def __call__(self) -> ChaosReport:
        """Run the scenario of the ``chaos`` marker."""
        marker = self._request.node.get_closest_marker("chaos")
        if marker is None:
            pytest.fail(
                'chaos() needs @pytest.mark.chaos("path/of/scenario.py") on the test; or call '
                'chaos.run("path/of/scenario.py")',
                pytrace=False,
            )
        try:
            check(marker.kwargs)  # it may have been added when the test ran
            scenario = scenario_of(marker)
        except UsageError as wrong:
            raise _failure(f"chaoskit: @pytest.mark.chaos: {wrong}") from None
        return self.run(scenario, **marker.kwargs)

    def run(self, scenario: str | Path, **words: Unpack[Words]) -> ChaosReport:
        """Run a scenario file (``path`` or ``path:name``).

        Args:
            scenario: relative to the test's folder, or to pytest's root.
            words: see `Words`.
        """
        target = Target(scenario=self._locate(str(scenario)))
        return self._run(target, words)

    def command(
        self,
        command: Sequence[str],
        *,
        services: Sequence[str] = (),
        resume: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        outputs: Sequence[str] = (),
        **words: Unpack[Words],
    ) -> ChaosReport:
        """Run any command against ``services``; its words are as those of ``chaoskit run``."""
        spec = CommandSpec(
            command=tuple(command),
            resume=tuple(resume),
            env=dict(env or {}),
            services=tuple(services),
            outputs=tuple(outputs),
        )
        return self._run(Target(command=spec), words)

    def _run(self, target: Target, words: Words) -> ChaosReport:
        name = self._name(target)
        try:
            options = options_of(self._config, target, words)
            known = (*known_from(words.get("known", {})), *self._recorded(name))
            folder, earlier = _campaign(options)
        except EmptyShardError as error:
            raise pytest.skip.Exception(f"chaoskit: {error}") from None
        except ChaoskitError as error:
            raise _failure(f"chaoskit: {error}") from None
        with Store(folder) as store:
            summary = summarize(store)
            extent = extent_of(store, options, summary)
        held = sort_out(summary.findings, known, extent.could_show)
        if self._config.getoption("--chaos-update-baseline"):
            held = recorded_now(held)
        self.report = report = ChaosReport(summary, held, extent)
        told = self._request.node.stash.setdefault(TOLD, [])
        told.append(str(outcome_of(name, summary, extent, held, earlier)))
        self._note(report)
        tell(self._request, held.found, summary.scenario)
        self._end(report)
        return report

    def _end(self, report: ChaosReport) -> None:
        """Fail, or fail as expected, or go on."""
        held, summary = report.held, report.summary
        updating = self._config.getoption("--chaos-update-baseline")
        gone = [gap for gap in held.gone if not (gap.recorded and updating)]
        if held.new or summary.unknowns or gone or summary.verdict == "UNKNOWN":
            pytest.fail(report.failure_in_short(), pytrace=False)
        if held.found:
            pytest.xfail("; ".join(f"{f.name}: {f.known.reason}" for f in held.found if f.known))
            pytest.fail(report.failure_in_short(), pytrace=False)  # with --runxfail only

    def _recorded(self, name: str) -> tuple[Known, ...]:
        file = baseline.file_of(self._config)
        return () if file is None else baseline.known_in(baseline.read(file), name, file)

    def _note(self, report: ChaosReport) -> None:
        """Properties of the test: they reach JUnit XML, and survive xdist."""
        summary = report.summary
        properties = self._request.node.user_properties
        properties.append(("chaos_verdict", summary.verdict))
        properties.append(("chaos_seed", summary.seed))
        properties.append(("chaos_points", f"{summary.points.landed} of {summary.points.total}"))
        for one in report.held.found[:FINDINGS_MOST]:
            properties.append(("chaos_replay", one.findings[0].replay))

    def _locate(self, text: str) -> str:
        path, colon, name = text.partition(":")
        for folder in (self._request.path.parent, self._config.rootpath):
            if (folder / path).is_file():
                return os.path.relpath(folder / path) + colon + name
        return text

    def _name(self, target: Target) -> str:
        """What a baseline calls ``target``, the same on every machine as far as that can be.

        It is committed, and shown: without credentials.
        """
        root = self._config.rootpath
        spec = without_credentials(target).command
        if spec is not None:
            words = plain(shlex.join(spec.command))
            return baseline.COMMAND + words.replace(f"{root}{os.sep}", "")
        path, _, name = target.scenario.partition(":")
        file = Path(os.path.relpath(path, root)).as_posix()
        return file if name in {"", DEFAULT_NAME} else f"{file}:{name}"


def _campaign(options: Options) -> tuple[Path, int | None]:
    """Run a campaign; where it is stored, and how many of its trials an interrupted one had left,
    None where it was begun now.
    """
    earlier: int | None = None
    folder: Path | None = None
    for event in run_campaign(options):
        if isinstance(event, Started) and event.resumed:
            earlier = max(event.trials - 1, 0)  # the control is no trial of a fault
        elif isinstance(event, Finished):
            folder = event.folder
    assert folder is not None
    return folder, earlier


def _failure(text: str) -> BaseException:
    """A failure of the test, of which the way that led to it is of no interest."""
    return pytest.fail.Exception(text, pytrace=False)


def _line(label: str, text: str) -> str:
    return f"{label:<{LABEL_WIDTH}} {text}"


def _times(found: Found) -> str:
    number = len(found.schedules)
    return f" in {counted(number, 'trial')}"


def _removal(gap: Known, held: Sorted) -> str:
    how = "run with --chaos-update-baseline" if gap.recorded else "remove it from known="
    other = held.instead_of(gap)
    meant = f" (or was {other} meant, which is new?)" if other else ""
    return f"{gap.name} is not there any more, so that it may not come back unseen: {how}{meant}"
