"""The forms of a report: they keep to their published schemas and agree in what they count."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from html import unescape
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
import pytest
import xmlschema
from markdown_it import MarkdownIt
from rich.console import Console

from chaoskit.campaign.store import Store
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.token import Target
from chaoskit.reporting import markdown
from chaoskit.reporting.explanations import EXPLANATIONS
from chaoskit.reporting.forms import FORMS, render, write
from chaoskit.reporting.machine import schema
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.reporting.terminal import show
from tests.reporting.conftest import campaign

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "broken"
DATA = Path(__file__).resolve().parents[1] / "data"
KINDS = ("valid", "invalid", "unknown", "soak")
TEXTS = [name for name in FORMS if name != "html"]
"""The page is read in a browser, by tests of its own."""


def forms(folder: Path) -> dict[str, str]:
    """The texts of every form of a stored campaign, and of the terminal's report."""
    with Store(folder) as store:
        summary = summarize(store)
        texts = {name: render(name, summary, store) for name in TEXTS}
    texts["terminal"] = terminal(summary)
    return texts


def terminal(summary: Summary, width: int = 200) -> str:
    """What a person reads, without colours."""
    out = io.StringIO()
    with redirect_stdout(out):
        show(summary, Console(file=out, width=width, highlight=False, no_color=True))
    return out.getvalue()


def counts_in(form: str, text: str) -> dict[str, Any]:
    """Verdict, trials, points, flaws and findings as one form tells them."""
    return {
        "json": _in_json,
        "junit": _in_junit,
        "sarif": _in_sarif,
        "markdown": _in_markdown,
        "badge": _in_badge,
        "terminal": _in_terminal,
        "html": _in_html,
    }[form](text)


def _counts(
    verdict: str, trials: object, points: str, flaws: object, findings: object
) -> dict[str, Any]:
    told = {"trials": trials, "flaws": flaws, "findings": findings}
    return {"verdict": verdict, "points": points, **{n: int(str(v)) for n, v in told.items()}}


def _in_json(text: str) -> dict[str, Any]:
    report = json.loads(text)
    points = f"{report['points']['landed']} of {report['points']['total']}"
    findings = len(report["findings"])
    return _counts(report["verdict"], report["trials"], points, report["flaws"], findings)


def _in_junit(text: str) -> dict[str, Any]:
    root = ET.fromstring(text)  # noqa: S314 - made by ourselves
    told = {p.get("name"): str(p.get("value")) for p in root.iter("property")}
    failures = len(list(root.iter("failure")))
    assert told["findings"] == str(failures)
    return _counts(told["verdict"], told["trials"], told["points"], told["flaws"], failures)


def _in_sarif(text: str) -> dict[str, Any]:
    (run,) = json.loads(text)["runs"]
    told = run["properties"]
    points = f"{told['pointsLanded']} of {told['pointsTotal']}"
    findings = sum(result["occurrenceCount"] for result in run["results"])
    assert (told["flaws"], told["findings"]) == (len(run["results"]), findings)
    return _counts(told["verdict"], told["trials"], points, len(run["results"]), findings)


def _in_markdown(text: str) -> dict[str, Any]:
    verdict = re.search(r"^## chaoskit: (\w+)$", text, re.MULTILINE)
    row = re.search(
        r"^\| (\d+) \| (\d+ of \d+) points \| \d+ \| (\d+) \| (\d+) \|", text, re.MULTILINE
    )
    assert verdict
    assert row
    assert len(re.findall(r"^\| \*\*", text, re.MULTILINE)) == int(row[3])
    return _counts(verdict[1], row[1], row[2], row[3], row[4])


def _in_badge(text: str) -> dict[str, Any]:
    found = re.search(
        r"<title>chaoskit: (\w+), (\d+) trials, (\d+ of \d+) points, "
        r"(\d+) flaws in (\d+) findings<",
        text,
    )
    assert found
    return _counts(*found.groups())


def _in_terminal(text: str) -> dict[str, Any]:
    found = re.search(r"(\d+) trials?, killed at (\d+ of \d+) points", text)
    assert found
    row = re.search(r"^  flaws +(\d+), in (\d+) findings?$", text, re.MULTILINE)
    flaws, findings = row.groups() if row else ("0", "0")
    titles = re.findall(rf"^  ({'|'.join(FINDING_KINDS)})  .+, in \d+ trials?$", text, re.MULTILINE)
    assert len(titles) == int(flaws)
    return _counts(text.split(maxsplit=1)[0], found[1], found[2], flaws, findings)


def _in_html(text: str) -> dict[str, Any]:
    """Of what needs no script."""
    shown = " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())
    verdict = re.search(r'<span class="word">(\w+)</span>', text)
    found = re.search(r"points killed at ([\d,]+) of ([\d,]+) found trials ([\d,]+) ", shown)
    assert verdict
    assert found
    row = re.search(r"What went wrong: ([\d,]+) flaws? in ([\d,]+) findings?", shown)
    flaws, findings = row.groups() if row else ("0", "0")
    assert text.count('<article class="finding"') == int(flaws)
    return _counts(verdict[1], found[3], f"{found[1]} of {found[2]}", flaws, findings)


@pytest.mark.parametrize("kind", KINDS)
def test_all_forms_tell_the_same_counts(campaigns: Mapping[str, Path], kind: str) -> None:
    """Verdict, trials, points, flaws and findings are the same in every form of one campaign, and
    each form lists as many flaws as it counts.
    """
    wanted = agreed(campaigns[kind])
    assert wanted["verdict"] == {"soak": "INVALID"}.get(kind, kind.upper())


def agreed(folder: Path) -> dict[str, Any]:
    """The counts of a campaign, after a look that every form has the same."""
    texts = forms(folder)
    with Store(folder) as store:
        texts["html"] = render("html", summarize(store), store)
    wanted = counts_in("json", texts["json"])
    for form, text in texts.items():
        assert counts_in(form, text) == wanted, form
    return wanted


@pytest.mark.parametrize("name", ["fresh_budget", "bound_by_arrival", "two_records", "coarse_key"])
def test_one_flaw_is_counted_once_however_many_customers_it_concerns(
    tmp_path: Path, name: str
) -> None:
    """A finding for each trial that shows it, with whom else it concerns there; one flaw in every
    form.
    """
    target = Target(scenario=str(SCENARIOS / f"{name}.py"))
    folder = campaign(target, tmp_path, max_points=8)
    counts = agreed(folder)
    assert counts["flaws"] == 1
    with Store(folder) as store:
        findings = summarize(store).findings
        roots = [len(trial.judgement.roots) for trial in store.trials() if trial.judgement.roots]
    assert [1 + len(finding.also) for finding in findings] == roots
    assert (max(roots) > 1) == (name in {"fresh_budget", "bound_by_arrival"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_json_report_keeps_to_our_schema(campaigns: Mapping[str, Path], kind: str) -> None:
    """What is written is what the published schema says, and names its format."""
    report = json.loads(forms(campaigns[kind])["json"])
    jsonschema.Draft202012Validator(json.loads(schema())).validate(report)
    assert report["format"] == 1


def test_the_schema_refuses_what_is_no_report(campaigns: Mapping[str, Path]) -> None:
    """Another format, another verdict, a finding without its replay: each is an error."""
    validator = jsonschema.Draft202012Validator(json.loads(schema()))
    validator.check_schema(validator.schema)
    for spoil in (
        {"format": 2},
        {"verdict": "PASSED"},
        {"trials": "many"},
        {"findings": [{"kind": "duplicate_effect"}]},
    ):
        report = json.loads(forms(campaigns["invalid"])["json"]) | spoil
        assert not validator.is_valid(report), spoil


def test_the_published_schema_is_todays() -> None:
    """The schema file that is shipped says what the code writes."""
    shipped = resources.files("chaoskit.reporting") / "schema" / "report-1.schema.json"
    assert shipped.read_text(encoding="utf-8") == schema(), (
        "write it anew, if fields were only added: "
        "chaoskit report --schema > chaoskit/reporting/schema/report-1.schema.json"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_sarif_keeps_to_its_published_schema(campaigns: Mapping[str, Path], kind: str) -> None:
    """OASIS' JSON Schema of SARIF 2.1.0 accepts it."""
    log = json.loads(forms(campaigns[kind])["sarif"])
    published = json.loads((DATA / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(published).validate(log)


@pytest.mark.parametrize("kind", KINDS)
def test_junit_keeps_to_its_published_schema(campaigns: Mapping[str, Path], kind: str) -> None:
    """The schema of Jenkins' xUnit plugin accepts it."""
    xmlschema.XMLSchema(DATA / "junit-10.xsd").validate(forms(campaigns[kind])["junit"])


@pytest.mark.parametrize("kind", KINDS)
def test_junit_fails_exactly_when_the_verdict_does(
    campaigns: Mapping[str, Path], kind: str
) -> None:
    """INVALID has failures, UNKNOWN has an error, VALID has neither; the totals are the cases'."""
    root = ET.fromstring(forms(campaigns[kind])["junit"])  # noqa: S314 - made by ourselves
    suite = root[0]
    cases = list(suite.iter("testcase"))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert suite.get(name) == str(sum(case.find(tag) is not None for case in cases))
    assert suite.get("tests") == root.get("tests") == str(len(cases))
    assert (suite.get("failures") != "0") == (kind in {"invalid", "soak"})
    assert (suite.get("errors") != "0") == (kind == "unknown")
    names = [case.get("name") for case in cases]
    assert len(names) == len(set(names))


def test_sarif_points_at_the_tasks_line(
    campaigns: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result lies in the task's own file, relative to the repository, in the line that was run;
    it has a rule with help, and a fingerprint that two reports share.
    """
    script = campaigns["invalid"].parents[1] / "none" / "small_task.py"
    (script.parents[1] / ".git").mkdir(exist_ok=True)
    monkeypatch.chdir(script.parent)
    (run,) = json.loads(forms(campaigns["invalid"])["sarif"])["runs"]
    lines = script.read_text(encoding="utf-8").splitlines()
    for result in run["results"]:
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"] == {
            "uri": "none/small_task.py",
            "uriBaseId": "%SRCROOT%",
        }
        assert lines[place["region"]["startLine"] - 1].strip()
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert "To mend it" in rule["help"]["text"]
        assert result["level"] == "error"
    functions = [r["locations"][0]["logicalLocations"][0]["name"] for r in run["results"]]
    assert "charge" in functions
    (again,) = json.loads(forms(campaigns["invalid"])["sarif"])["runs"]
    prints = [result["partialFingerprints"] for result in run["results"]]
    assert prints == [result["partialFingerprints"] for result in again["results"]]
    assert len({str(one) for one in prints}) == len(prints)


def test_sarif_has_no_result_for_what_is_unknown(campaigns: Mapping[str, Path]) -> None:
    """A campaign that proves nothing is an unsuccessful invocation which says why."""
    (run,) = json.loads(forms(campaigns["unknown"])["sarif"])["runs"]
    (invocation,) = run["invocations"]
    assert run["results"] == []
    assert invocation["executionSuccessful"] is False
    assert "nothing to judge by" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_markdown_is_short_with_its_details_folded(campaigns: Mapping[str, Path]) -> None:
    """Tables at the top; each finding's details and the limits below a fold, closed again."""
    text = forms(campaigns["invalid"])["markdown"]
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert html.count("<table>") == 2
    assert html.count("<details>") == html.count("</details>") >= 2
    assert "<td><strong>duplicate_effect</strong></td>" in html
    assert text.index("<details>") < 1_500
    assert "chaoskit replay ck1-" in html


def test_markdown_fits_into_a_comment(campaigns: Mapping[str, Path]) -> None:
    """With many sorts of finding and long texts it stays below GitHub's limit, and says that
    something is left out; its folds are closed all the same.
    """
    with Store(campaigns["invalid"]) as store:
        summary = summarize(store)
    first = summary.findings[0]
    many = tuple(
        msgspec.structs.replace(
            first,
            operation=f"payments.op{number}",
            replay=first.replay + "x" * 3_000,
            **dict.fromkeys(("expected", "seen", "because", "between", "code"), "`|" * 900),
        )
        for number in range(40)
    )
    text = markdown.render(msgspec.structs.replace(summary, findings=many))
    assert len(text) < 65_536
    assert "more parts are left out here" in text
    assert "and 28 more flaws" in text
    assert text.count("<details>") == text.count("</details>")


def test_a_form_is_written_into_folders_that_it_makes(
    campaigns: Mapping[str, Path], tmp_path: Path
) -> None:
    """In UTF-8, with the text that `render` makes."""
    with Store(campaigns["invalid"]) as store:
        summary = summarize(store)
        write("badge", summary, store, tmp_path / "a" / "b.svg")
        assert (tmp_path / "a" / "b.svg").read_text(encoding="utf-8") == render(
            "badge", summary, store
        )


def test_every_kind_of_finding_is_explained() -> None:
    """How it comes about, an example that marks the kill or its kin, how to mend it, its cases."""
    assert list(EXPLANATIONS) == list(FINDING_KINDS)
    for kind, known in EXPLANATIONS.items():
        assert known.how.endswith("."), kind
        assert known.mend.endswith("."), kind
        assert 4 <= len(known.example.splitlines()) <= 6, kind
        assert all(re.fullmatch(r"[A-Z]+-\d+", case) for case in known.cases), kind
        assert known.cases, kind
