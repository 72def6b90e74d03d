"""The forms of a report, by name. All are made from the same stored data and agree in their counts.

    text = render("sarif", summary, store)

A form that is a file is often published (an artefact, a comment, a page), so its replay commands
hold no credentials.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import msgspec

from chaoskit.campaign.store import Store
from chaoskit.model.errors import unknown_name
from chaoskit.model.token import parse_token
from chaoskit.reporting.clean import without_credentials
from chaoskit.reporting.files import write_text
from chaoskit.reporting.summary import REPLAY, Summary

Render = Callable[[Summary, Store], str]
"""Makes the text of a form."""

LEFT_OUT = (
    "the replay commands of this report lack the credentials that the task's command line holds "
    "([redacted]); those that chaoskit report prints in a terminal have them"
)


class Form(NamedTuple):
    """``room`` is the module whose ``render`` makes the text; ``help`` says what it is for."""

    room: str
    help: str


FORMS: dict[str, Form] = {
    "html": Form("chaoskit.reporting.html", "Write one HTML page, with map and timelines."),
    "json": Form("chaoskit.reporting.machine", "Write JSON (see report --schema)."),
    "junit": Form("chaoskit.reporting.junit", "Write JUnit XML, for CI servers."),
    "sarif": Form("chaoskit.reporting.sarif", "Write SARIF 2.1.0, for code scanning."),
    "markdown": Form("chaoskit.reporting.markdown", "Write Markdown, for pull requests."),
    "badge": Form("chaoskit.reporting.badge", "Write an SVG badge."),
}
"""Every form with its option's help."""


def render(name: str, summary: Summary, store: Store) -> str:
    """The report in the form ``name``.

    Args:
        name: a key of `FORMS`.
        summary: of the campaign, as `summarize` makes it.
        store: of the campaign.

    Raises:
        UsageError: there is no such form.
    """
    if name not in FORMS:
        raise unknown_name("form", name, FORMS)
    made: str = import_module(FORMS[name].room).render(published(summary), store)
    return made


def write(name: str, summary: Summary, store: Store, path: Path) -> None:
    """Write the report in the form ``name`` to ``path``, in UTF-8; folders are made.

    Raises:
        UsageError: it cannot be written there.
    """
    write_text(path, render(name, summary, store))


def published(summary: Summary) -> Summary:
    """``summary`` with no credentials in its replay commands; they are all of one target."""
    commands = [one.replay for one in summary.findings[:1]]
    commands += [one.replay for one in summary.shrunk[:1]]
    if all(_without(command) == command for command in commands):
        return summary
    findings = tuple(
        msgspec.structs.replace(one, replay=_without(one.replay)) for one in summary.findings
    )
    shrunk = tuple(
        msgspec.structs.replace(one, replay=_without(one.replay)) for one in summary.shrunk
    )
    remarks = (*summary.remarks, LEFT_OUT)
    return msgspec.structs.replace(summary, findings=findings, shrunk=shrunk, remarks=remarks)


def _without(replay: str) -> str:
    if not replay.startswith(REPLAY):
        return replay
    token = parse_token(replay.removeprefix(REPLAY))
    target = without_credentials(token.target)
    if target == token.target:
        return replay
    return f"{REPLAY}{msgspec.structs.replace(token, target=target)}"
