"""The page as a whole: what its parts need, put into the template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from chaoskit.campaign.options import Options
from chaoskit.campaign.store import Store
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.schedule import parse_schedule
from chaoskit.reporting.html.duplicates import Duplicate, duplicates
from chaoskit.reporting.html.kill_map import KillMap, Shown, kill_map
from chaoskit.reporting.html.packing import Strings, packed, source
from chaoskit.reporting.html.sentences import again, verdict_sentence
from chaoskit.reporting.html.trial_rows import EVENTS_MOST, Row, Trials, trial_rows
from chaoskit.reporting.places import Places
from chaoskit.reporting.summary import ReportedFinding, Summary
from chaoskit.reporting.terminal import causes, spread

STYLES = ("page.css", "parts.css", "print.css")
SCRIPTS = (
    "words.js",
    "data.js",
    "strip.js",
    "map.js",
    "list.js",
    "trial.js",
    "tables.js",
    "page.js",
)
"""In this order they make one style and one script."""

EXAMPLES = 3
"""So many findings of a group are written out; the rest are in the table of trials."""


class Data(msgspec.Struct, frozen=True):
    """What the page unpacks when it opens. `assets/data.js` reads it."""

    kinds: list[str]
    strings: list[str]
    map: KillMap
    trials: list[Row]
    duplicates: tuple[Duplicate, ...]
    again: str
    title: str


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one kind, operation and diagnosis."""

    first: ReportedFinding
    meaning: str
    trials: int
    examples: list[tuple[ReportedFinding, int]]
    others: int
    repeated: list[str]


def render(summary: Summary, store: Store, *, events_most: int = EVENTS_MOST) -> str:
    """The page.

    Args:
        summary: of the campaign, its texts safe to show and its replay commands fit to publish.
        store: of the campaign.
        events_most: so many events of histories may go into it.
    """
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    survey = store.survey()
    expectation = survey[2] if survey is not None else Expectation()
    kinds = list(dict.fromkeys(finding.kind for finding in summary.findings))
    kinds += [kind for kind in FINDING_KINDS if kind not in kinds]
    found: dict[str, list[ReportedFinding]] = {}
    for finding in summary.findings:
        found.setdefault(finding.schedule, []).append(finding)
    trials = trial_rows(store, expectation, found, kinds, events_most)
    strings = Strings()
    the_map = kill_map(
        survey,
        options.mechanisms,
        list(_shown(store, trials)),
        Places(survey[0] if survey is not None else None, store.locations()),
        strings,
    )
    grouped = _groups(summary, trials)
    command = again(options)
    data = Data(
        kinds,
        strings.texts,
        the_map,
        trials.rows,
        duplicates(trials.extras, expectation),
        command,
        summary.title,
    )
    return _fill(
        summary=summary,
        sentence=verdict_sentence(summary),
        groups=grouped,
        costs=trials.waste.costs,
        spans=len(the_map.spans),
        map=the_map,
        duplicates=data.duplicates,
        left_out=trials.left_out,
        again=command,
        data=packed(data),
        blocks=trials.blocks,
    )


def _shown(store: Store, trials: Trials) -> list[Shown]:
    return [
        Shown(number, parse_schedule(trial.schedule), row.outcome, row.kind)
        for number, (trial, row) in enumerate(zip(store.trials(), trials.rows, strict=True))
    ]


def _groups(summary: Summary, trials: Trials) -> list[Group]:
    """What was found, by kind, operation and diagnosis, the most frequent of them first."""
    numbers = {row.schedule: number for number, row in enumerate(trials.rows)}
    frequent = sorted(causes(summary.findings), key=spread, reverse=True)
    return [_group(findings, numbers) for findings in frequent]


def _group(findings: list[ReportedFinding], numbers: dict[str, int]) -> Group:
    different: dict[str, ReportedFinding] = {}
    for finding in findings:
        different.setdefault(finding.subject, finding)
    examples = list(different.values())[:EXAMPLES]
    return Group(
        first=findings[0],
        meaning=FINDING_KINDS.get(findings[0].kind, ""),
        trials=spread(findings),
        examples=[(one, numbers.get(one.schedule, -1)) for one in examples],
        others=len(different) - len(examples),
        repeated=[
            f"{one.schedule}: {one.repeated}"
            for one in findings
            if one.repeated.startswith("FLAKY")
        ],
    )


def _fill(**values: Any) -> str:
    style = "\n".join(map(_asset, STYLES))
    script = '(() => {\n"use strict";\n' + "\n".join(map(_asset, SCRIPTS)) + "})();"
    made: str = _template().render(
        style=style,
        script=script,
        style_source=source(style),
        script_source=source(script),
        **values,
    )
    return made


def _asset(name: str) -> str:
    return (files("chaoskit.reporting.html") / "assets" / name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({name: _asset(name) for name in ("report.html.j2", "parts.html.j2")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
