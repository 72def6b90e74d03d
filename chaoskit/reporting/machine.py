"""Reports for machines: JSON and JUnit XML, both from the summary."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec

from chaoskit.campaign.store import Store
from chaoskit.reporting.summary import ReportedFinding, Summary

_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_json(summary: Summary, path: Path) -> None:
    """Write the summary as JSON; its shape is `chaoskit.reporting.summary.Summary`."""
    _write(path, msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")


def write_junit(summary: Summary, store: Store, path: Path) -> None:
    """Write JUnit XML: one case per trial; UNKNOWN is an error, a finding a failure."""
    cases = [*_trial_cases(summary, store)]
    suite = ET.Element(
        "testsuite",
        name="chaoskit",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        time=f"{summary.elapsed_s:.3f}",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("seed", str(summary.seed)),
        ("verdict", summary.verdict),
        ("mechanisms", ", ".join(summary.mechanisms)),
        ("points", f"{summary.points.landed} of {summary.points.total}"),
    ):
        ET.SubElement(properties, "property", name=name, value=_legal(value))
    suite.extend(cases)
    root = ET.Element("testsuites")
    root.append(suite)
    _write(path, ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _trial_cases(summary: Summary, store: Store) -> list[ET.Element]:
    cases = []
    found: dict[str, list[ReportedFinding]] = {}
    for finding in summary.findings:
        found.setdefault(finding.schedule, []).append(finding)
    for trial in store.trials():
        case = _case(summary, trial.schedule)
        for finding in found.get(trial.schedule, ()):
            failure = ET.SubElement(
                case,
                "failure",
                type=finding.kind,
                message=_legal(f"{finding.expected}; seen {finding.seen}"),
            )
            failure.text = _legal(f"because {finding.because}\nreplay: {finding.replay}")
        if trial.judgement.verdict == "UNKNOWN":
            message = _legal("; ".join(trial.judgement.unknowns))
            ET.SubElement(case, "error", type="unknown", message=message)
        cases.append(case)
    if not cases:
        case = _case(summary, "survey")
        message = _legal("; ".join(summary.unknowns) or "no trial was run")
        ET.SubElement(case, "error", type="unknown", message=message)
        cases.append(case)
    return cases


def _case(summary: Summary, name: str) -> ET.Element:
    return ET.Element("testcase", classname=_legal(summary.scenario), name=_legal(name))


def _legal(text: str) -> str:
    """``text`` without the characters that XML 1.0 cannot hold."""
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
