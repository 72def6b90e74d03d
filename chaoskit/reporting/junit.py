"""The report as JUnit XML, as CI servers read it (the schema of Jenkins' xUnit plugin).

One case for each different trial and one for the control; a finding is a failure, a trial that
proves nothing is an error, a random moment that came too late is skipped. What no trial shows (the
survey does not repeat, nothing was run) is an error of a case of its own. The counts of the
campaign are properties.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.reporting.clean import plain
from chaoskit.reporting.summary import ReportedFinding, Summary, missed_by_time

WHOLE = "campaign"
"""The name of the case for what is unknown of the campaign as a whole."""


def render(summary: Summary, store: Store) -> str:
    """JUnit XML."""
    cases = _cases(summary, store)
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{summary.elapsed_s:.3f}",
    }
    root = ET.Element("testsuites", {"name": "chaoskit", **counts})
    skipped = str(sum(case.find("skipped") is not None for case in cases))
    suite = ET.SubElement(root, "testsuite", {"name": "chaoskit", **counts, "skipped": skipped})
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(summary).items():
        ET.SubElement(properties, "property", name=name, value=value)
    suite.extend(cases)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(summary: Summary) -> dict[str, str]:
    return {
        "chaoskit": summary.chaoskit,
        "scenario": summary.scenario,
        "verdict": summary.verdict,
        "seed": str(summary.seed),
        "mechanisms": ", ".join(summary.mechanisms),
        "points": f"{summary.points.landed} of {summary.points.total}",
        "trials": str(summary.trials),
        "kills": str(summary.kills),
        "faults": str(summary.faults),
        "effects": str(summary.effects),
        "flaws": str(summary.flaws),
        "findings": str(len(summary.findings)),
    }


def _cases(summary: Summary, store: Store) -> list[ET.Element]:
    found: dict[str, list[ReportedFinding]] = {}
    for finding in summary.findings:
        found.setdefault(finding.schedule, []).append(finding)
    cases = [_case(summary, trial, found) for trial in store.trials()]
    known = {error.get("message", "") for case in cases for error in case.iter("error")}
    left = [reason for reason in summary.unknowns if not any(reason in said for said in known)]
    if left or not cases:
        case = ET.Element("testcase", classname=summary.scenario, name=WHOLE)
        _add(case, "error", "unknown", "; ".join(left) or "no trial was run")
        cases.append(case)
    return cases


def _case(
    summary: Summary, trial: StoredTrial, found: dict[str, list[ReportedFinding]]
) -> ET.Element:
    schedule = plain(trial.schedule)
    case = ET.Element("testcase", classname=summary.scenario, name=schedule)
    for finding in found.get(schedule, ()):
        message = f"{finding.concerns}: {finding.expected}; seen {finding.seen}"
        _add(case, "failure", finding.kind, message, _details(finding))
    if missed_by_time(trial):
        _add(case, "skipped", "missed", "the random moment came after the task's end")
    elif trial.judgement.verdict == "UNKNOWN":
        _add(case, "error", "unknown", "; ".join(map(plain, trial.judgement.unknowns)))
    return case


def _details(finding: ReportedFinding) -> str:
    lines = [f"because {finding.because}"]
    lines += [
        f"{label} {text}"
        for label, text in (
            ("between", finding.between),
            ("in code", finding.code),
            ("repeated", finding.repeated),
        )
        if text
    ]
    lines += [f"also {line}" for line in finding.also]
    lines += [f"so {line}" for line in finding.consequences]
    if finding.diagnosis is not None:
        lines.append(f"diagnosis {finding.diagnosis.missing}")
        lines.append(f"evidence {finding.diagnosis.evidence}")
        lines.append(f"to mend {finding.diagnosis.mend}")
    return "\n".join([*lines, f"replay: {finding.replay}"])


def _add(case: ET.Element, tag: str, kind: str, message: str, text: str = "") -> None:
    ET.SubElement(case, tag, type=kind, message=message).text = text or None
