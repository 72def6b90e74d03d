"""Each finding of a test as a result of its own: a subtest of pytest, or a report of that shape."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from chaoskit.pytest_plugin.gaps import Found
from chaoskit.reporting.terminal import four_lines

LABEL_WIDTH = 17


def tell(request: pytest.FixtureRequest, found: Sequence[Found], scenario: str) -> None:
    """Report each of ``found``: as failed where it is new, as an expected failure where not.

    The reports are those of the ``subtests`` fixture of pytest 9, or of pytest-subtests. Where
    neither is there, they are made here. Under ``-x`` the first one that fails is the last.
    """
    subtests = (
        request.getfixturevalue("subtests")
        if request.config.pluginmanager.hasplugin("subtests")
        else None
    )
    for one in found:
        text = text_of(one, scenario)
        known = _reason(request.config, one)
        if subtests is None:
            _report(request.node, one.name, text, known)
            continue
        try:
            with subtests.test(msg=one.name):
                if known:
                    pytest.xfail(known)
                pytest.fail(text, pytrace=False)
        except pytest.fail.Exception:
            return


def text_of(found: Found, scenario: str) -> str:
    """What, where, expected and seen with its reason, replay; and how many there are of it."""
    lines = [
        f"{label:<{LABEL_WIDTH}} {text}" for label, text in four_lines(found.findings[0], scenario)
    ]
    if len(found.findings) > 1:
        lines.append(f"{'':<{LABEL_WIDTH}} and {len(found.findings) - 1} more like it")
    return "\n".join(lines)


def status(report: pytest.TestReport) -> tuple[str, str, str]:
    """How pytest is to count and to show a report that was made here, as it does subtests."""
    if report.failed:
        return "failed", "u", f"SUBFAILED[{report.__dict__['chaos_finding']}]"
    return "", "", ""


def _reason(config: pytest.Config, found: Found) -> str:
    """Why a finding is no failure; nothing where it is one."""
    return "" if found.known is None or config.getoption("runxfail") else found.known.reason


def _report(item: pytest.Item, name: str, text: str, known: str) -> None:
    file, line, domain = item.location
    now = time.time()
    report = pytest.TestReport(
        item.nodeid,
        (file, line, f"{domain} [{name}]"),
        {},
        "skipped" if known else "failed",
        (file, line or 0, known) if known else text,
        "call",
        start=now,
        stop=now,
        chaos_finding=name,
    )
    if known:
        report.wasxfail = known
    capture = item.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        item.ihook.pytest_runtest_logreport(report=report)
