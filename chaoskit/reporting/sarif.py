"""The report as SARIF 2.1.0 (OASIS, errata 01), for code scanning.

One result for each flaw: findings of one kind, operation and diagnosis, at the line where the
first of them was met; ``occurrenceCount`` says how many there are. What keeps a campaign from a
verdict is a notification of its invocation, never a result.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from chaoskit.campaign.options import Options
from chaoskit.campaign.store import Store
from chaoskit.model.findings import Verdict
from chaoskit.model.token import Target
from chaoskit.reporting.explanations import explanation, sentence
from chaoskit.reporting.summary import Flaw, ReportedFinding, Summary, flaw_of

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT_ID = "%SRCROOT%"
SHOWN_MOST = 20
"""How many schedules and other lines of one flaw are written down."""

_IDENTITY = "chaoskit/v1"

Json = dict[str, Any]


class _Where(NamedTuple):
    """A file as a URI (relative to the root of the sources), and a line."""

    uri: str
    line: int
    function: str = ""


def render(summary: Summary, store: Store) -> str:
    """SARIF."""
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    root, fallback = _root(), _script(options.target)
    flaws: dict[Flaw, list[ReportedFinding]] = {}
    for finding in summary.findings:
        flaws.setdefault(flaw_of(finding), []).append(finding)
    kinds = list(dict.fromkeys(finding.kind for finding in summary.findings))
    results = [_result(found, kinds, root, fallback) for found in flaws.values()]
    run = {
        "tool": {"driver": _driver(summary, kinds)},
        "automationDetails": {"id": f"chaoskit/{summary.scenario}/"},
        "invocations": [_invocation(summary)],
        "originalUriBaseIds": {ROOT_ID: {"description": {"text": "The root of the sources."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {
            "verdict": summary.verdict,
            "seed": summary.seed,
            "trials": summary.trials,
            "flaws": summary.flaws,
            "findings": len(summary.findings),
            "pointsTotal": summary.points.total,
            "pointsLanded": summary.points.landed,
            "notTested": list(summary.not_tested),
        },
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _driver(summary: Summary, kinds: Sequence[str]) -> Json:
    return {
        "name": "chaoskit",
        "version": summary.chaoskit,
        "semanticVersion": summary.chaoskit,
        "rules": [_rule(kind) for kind in kinds],
    }


def _rule(kind: str) -> Json:
    known = explanation(kind)
    cases = f"\n\nKnown cases: {', '.join(known.cases)}" if known.cases else ""
    example = f"\n\n```python\n{known.example}\n```" if known.example else ""
    mend = f"\n\nTo mend it: {known.mend}" if known.mend else ""
    bold = mend.replace("To mend it:", "**To mend it:**", 1)
    return {
        "id": kind,
        "name": "".join(word.capitalize() for word in kind.split("_")),
        "shortDescription": {"text": sentence(kind)},
        "fullDescription": {"text": known.how},
        "help": {
            "text": f"{known.how}{mend}{cases}",
            "markdown": f"{known.how}{example}{bold}{cases}",
        },
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["resume", "checkpoint", "side-effects"]},
    }


def _invocation(summary: Summary) -> Json:
    notes = [{"level": "error", "message": {"text": text}} for text in summary.unknowns]
    notes += [{"level": "note", "message": {"text": text}} for text in summary.remarks]
    return {
        "executionSuccessful": summary.verdict != Verdict.UNKNOWN.value,
        "exitCode": Verdict(summary.verdict).exit_code,
        "toolExecutionNotifications": notes,
    }


def _result(
    found: Sequence[ReportedFinding], kinds: Sequence[str], root: Path, fallback: str
) -> Json:
    first = found[0]
    places = list(dict.fromkeys(filter(None, (_where(f, root, fallback) for f in found))))
    identity = "|".join(flaw_of(first))
    result: Json = {
        "ruleId": first.kind,
        "ruleIndex": kinds.index(first.kind),
        "kind": "fail",
        "level": "error",
        "message": {"text": _message(found)},
        "partialFingerprints": {_IDENTITY: hashlib.sha256(identity.encode()).hexdigest()[:32]},
        "occurrenceCount": len(found),
        "properties": {
            "operation": first.operation,
            "trials": len({f.schedule for f in found}),
            "schedules": list(dict.fromkeys(f.schedule for f in found))[:SHOWN_MOST],
            "fingerprints": list(dict.fromkeys(f.fingerprint for f in found))[:SHOWN_MOST],
            "replay": first.replay,
        },
    }
    if places:
        result["locations"] = [_location(places[0])]
    if len(places) > 1:
        result["relatedLocations"] = [
            {"id": number, **_location(place), "message": {"text": "killed here, the same"}}
            for number, place in enumerate(places[1 : SHOWN_MOST + 1], 1)
        ]
    return result


def _message(found: Sequence[ReportedFinding]) -> str:
    first = found[0]
    lines = [
        f"{first.concerns}: {first.expected}; seen {first.seen}, because {first.because}.",
        f"Killed at {first.point}" + (f", {first.between}." if first.between else "."),
    ]
    if first.diagnosis is not None:
        lines.append(f"Missing: {first.diagnosis.missing}. To mend it: {first.diagnosis.mend}.")
    if first.also:
        lines.append(f"Also: {'; '.join(first.also[:3])}.")
    if first.repeated:
        lines.append(f"Repeated: {first.repeated}.")
    if len(found) > 1:
        lines.append(f"{len(found) - 1} more findings like this one.")
    return "\n".join([*lines, first.replay])


def _location(where: _Where) -> Json:
    location: Json = {
        "physicalLocation": {
            "artifactLocation": {"uri": where.uri, "uriBaseId": ROOT_ID},
            "region": {"startLine": where.line},
        }
    }
    if where.function:
        location["logicalLocations"] = [{"name": where.function, "kind": "function"}]
    return location


def _where(finding: ReportedFinding, root: Path, fallback: str) -> _Where | None:
    """The line of a finding; the first line of the script where its own is not known."""
    uri = _uri(finding.file, root) if finding.file else ""
    if uri:
        return _Where(uri, max(1, finding.line), finding.function)
    uri = _uri(fallback, root) if fallback else ""
    return _Where(uri, 1) if uri else None


def _uri(file: str, root: Path) -> str:
    """``file`` relative to the root of the sources; its bare name where it is not below that."""
    path = Path(os.path.normpath(Path.cwd() / file))
    below = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return quote(str(PurePosixPath(below)))


def _root() -> Path:
    """The folder that relative URIs are relative to: the repository's, else the present one."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _script(target: Target) -> str:
    """The scenario's file, or the first word of a command that names one."""
    if target.command is None:
        return target.scenario.partition(":")[0]
    return next((word for word in target.command.command if Path(word).is_file()), "")
