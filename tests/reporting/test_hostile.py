"""What a hostile task writes shows as text in every form, and its credentials do not show."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chaoskit.campaign.store import Store
from chaoskit.model.token import CommandSpec, ReplayToken, Target, parse_token
from chaoskit.reporting.clean import (
    TEXT_MOST,
    cleaned,
    names_secret,
    plain,
    plain_lines,
    without_credentials,
)
from chaoskit.reporting.forms import LEFT_OUT, published, render
from chaoskit.reporting.markdown import block, cell, code, words
from chaoskit.reporting.regression import Exhibit, bug_report, pytest_file
from chaoskit.reporting.summary import REPLAY, summarize
from chaoskit.reporting.timeline import told
from tests.reporting.conftest import campaign
from tests.reporting.test_forms import TEXTS, terminal

SECRETS = ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "AKIAIOSFODNN7EXAMPLE", "ghp_" + "a1B2" * 9)

HOSTILE = """
import os
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from chaoskit import Scenario, probe

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\\x1b[31m\\x07\\u202e\\u2028"
    "</summary></details>```\\n# VALID\\n|x|`@here #1 ](javascript:alert(3)) \\x00 ]]>"
    "\\udcff SECRETS "
)
LONG = "M" * 1_000_000


def charge(text):
    parts = urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    connection = HTTPConnection(parts.hostname, parts.port, timeout=30)
    form = {"amount": 100, "currency": "eur", "source": "tok_visa",
            "description": text, "receipt_email": text, "metadata[x]": text}
    body = urlencode(form, errors="surrogateescape")
    connection.request("POST", "/v1/charges", body, {
        "Authorization": "Bearer SECRET_0",
        "Content-Type": "application/x-www-form-urlencoded",
    })
    connection.getresponse().read()


def main():
    folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
    sys.stdout.buffer.write(EVIL.encode("utf-8", "surrogateescape") + b"\\xff\\xfe\\n")
    sys.stdout.flush()
    for number, text in enumerate((EVIL, LONG)):
        probe.step(EVIL.replace("\\udcff", "") + str(number), "started")
        name = f"done-{number}<b>\\x1b[1m\\udcff"
        if not (folder / name).exists():
            charge(text)
            (folder / name).touch()
        probe.step(EVIL.replace("\\udcff", "") + str(number), "recorded")


scenario = Scenario(task=main, services=("payments",), title=EVIL, outputs=("done-*",))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored campaign of a task that puts markup, controls and secrets wherever it can."""
    root = tmp_path_factory.mktemp("hostile")
    text = HOSTILE.replace("SECRETS", " ".join(SECRETS)).replace("SECRET_0", SECRETS[0])
    (root / "evil.py").write_text(text, encoding="utf-8")
    made = campaign(Target(scenario=str(root / "evil.py")), root / "runs")
    with Store(made) as store:
        assert summarize(store).verdict == "INVALID"
    return made


def everything(folder: Path) -> Mapping[str, str]:
    """Every text that a person or a program gets of a stored campaign."""
    with Store(folder) as store:
        summary = summarize(store, title="<script>alert(0)</script>\x1b[32m" + SECRETS[0])
        texts = {name: render(name, summary, store) for name in TEXTS}
        trial = next(t for t in store.trials() if t.judgement.roots)
        history, finding = store.history(trial.schedule), trial.judgement.roots[0]
        texts["timeline"] = "\n".join(line.what for line in told(history))
    texts["terminal"] = terminal(summary)
    token = parse_token(summary.findings[0].replay.removeprefix(REPLAY))
    exhibit = Exhibit(token=token, finding=finding, history=history)
    texts["test"] = pytest_file(exhibit, folder)
    texts["bug report"] = bug_report(exhibit)
    return texts


def test_no_secret_and_no_control_is_in_any_form(folder: Path) -> None:
    """Known shapes of credentials are blotted out; escapes, bells, directions are spelt out."""
    for form, text in everything(folder).items():
        for secret in SECRETS:
            assert secret not in text, form
        for character in "\x1b\x07\x00\u202e\u2028\udcff":
            assert character not in text, (form, character)
        text.encode()
    texts = everything(folder)
    for form in ("json", "junit", "sarif", "markdown", "terminal", "timeline", "bug report"):
        assert re.search(r"\\{1,2}x1b\[31m", texts[form]), form
        assert "[redacted]" in re.sub(r"\\", "", texts[form]), form


def test_a_megabyte_in_one_field_stays_out(folder: Path) -> None:
    """No form repeats it: each stays small, and says how long the text was."""
    for form, text in everything(folder).items():
        assert "M" * (TEXT_MOST + 1) not in text, form
        assert len(text) < 200_000, (form, len(text))


def test_programs_can_read_every_form(folder: Path) -> None:
    """XML parses, JSON parses, the test compiles, and they hold the texts as texts."""
    texts = everything(folder)
    for form in ("junit", "badge"):
        root = ET.fromstring(texts[form])  # noqa: S314 - made by ourselves
        assert not list(root.iter("script"))
    failures = ET.fromstring(texts["junit"]).iter("failure")  # noqa: S314 - the same
    assert any("<script>" in str(failure.get("message")) for failure in failures)
    assert "<script>" in json.loads(texts["json"])["findings"][0]["expected"]
    assert "<script>" in json.loads(texts["sarif"])["runs"][0]["results"][0]["message"]["text"]
    compile(texts["test"], "test.py", "exec")


class _Tags(HTMLParser):
    """Collects the elements and the attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(markdown: str) -> _Tags:
    """The page that a renderer which allows HTML, links and tables makes."""
    renderer = MarkdownIt("commonmark", {"html": True, "linkify": False})
    return _Tags(renderer.enable("table").render(markdown))


def test_markdown_is_not_broken_out_of(folder: Path) -> None:
    """Nothing of the task's becomes an element, a heading, a link or a cell; folds are closed."""
    texts = everything(folder)
    for form in ("markdown", "bug report"):
        page = page_of(texts[form])
        assert not {"script", "img", "a"} & set(page.found), form
        assert not {"onerror", "href", "src"} & set(page.attributes), form
        assert page.found.count("details") == texts[form].count("</details>\n"), form
        assert "<script>alert(1)</script>" in page.text
    headings = [tag for tag in page_of(texts["markdown"]).found if tag in {"h1", "h2", "h3"}]
    assert headings == ["h2"]


def test_a_mention_or_a_number_of_an_issue_stays_in_code() -> None:
    """GitHub makes mentions, references and links of plain words, so such words are code."""
    assert words("ask @here") == "`ask @here`"
    assert words("see #12") == "`see #12`"
    assert words("at https://x.example") == "`at https://x.example`"
    assert words("*plain* _words_") == r"\*plain\* \_words\_"
    assert words("1. no list") == r"1\. no list"


@given(st.text())
def test_any_text_in_code_or_words_is_one_line_of_that_text(text: str) -> None:
    """Rendered, a span of code and a sentence hold the plain text and no element of its own."""
    shown = plain(text, 600)
    for made in (code(text), words(text)):
        page = page_of(f"- x {made} x\n")
        assert set(page.found) <= {"ul", "li", "code"}
        assert re.sub(r"\s+", "", page.text) == re.sub(r"\s+", "", f"x {shown} x")
    cells = page_of(f"| a | b |\n|---|---|\n| {cell(text)} | end |\n")
    assert cells.found.count("td") == 2
    assert cells.text.rstrip().endswith("end")


@given(st.lists(st.text(alphabet="`~ab \\<", max_size=12), max_size=5))
def test_any_lines_in_a_block_stay_in_it(lines: list[str]) -> None:
    """A fence is longer than what could close it."""
    page = MarkdownIt().render("\n".join(block(lines)) + "\nafter\n")
    assert page.count("<pre>") == 1
    inside = re.search(r"<code>(.*?)</code></pre>\n<p>after</p>\n$", page, re.DOTALL)
    assert inside
    assert html.unescape(inside[1]) == "".join(f"{line}\n" for line in lines)


@given(st.text(st.characters(), max_size=200))
def test_plain_text_has_only_what_can_be_seen(text: str) -> None:
    """No control, format, surrogate or separator remains, and it can be encoded."""
    shown = plain(text)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()
    assert plain(shown) == shown


@given(st.text(max_size=60), st.integers(1, 50))
def test_a_cut_text_says_how_long_it_was(text: str, most: int) -> None:
    """Within the limit it is whole; beyond it the number of its characters follows."""
    shown = plain(text, most)
    if len(text) > most and "[redacted]" not in shown:
        assert shown.endswith(f"… ({len(text)} characters)")


def test_lines_are_kept_apart_and_the_last_ones_are_kept() -> None:
    """The tail of an output is shown line by line."""
    assert plain_lines("one\ntwo\x1b[1m") == ["one", "two\\x1b[1m"]
    assert plain_lines("abc\ndef", most=3) == ["def"]


class _Inner(msgspec.Struct, frozen=True):
    text: str


class _Outer(msgspec.Struct, frozen=True):
    texts: tuple[str, ...]
    by_name: dict[str, _Inner]
    replay: str
    number: int = 3


def test_every_text_of_a_value_is_cleaned_but_what_is_pasted() -> None:
    """In tuples, mappings and structs; a replay command stays as it is."""
    given_ = _Outer(("a\x1b",), {"k\n": _Inner("b\x07")}, "chaoskit replay \x1b")
    made = cleaned(given_)
    assert made == _Outer(("a\\x1b",), {"k\\n": _Inner("b\\x07")}, "chaoskit replay \x1b")


@pytest.mark.parametrize("name", ["API_KEY", "STRIPE_API_KEY", "password", "DB_PASSWORD"])
def test_variables_that_hold_secrets_are_known_by_their_names(name: str) -> None:
    """Also with a word before the telling one."""
    assert names_secret(name)
    assert not names_secret("CHAOSKIT_PAYMENTS_URL")


def test_published_replay_commands_hold_no_credentials(folder: Path) -> None:
    """Those of a command line with credentials are blotted out, and a remark says so; the
    terminal's are whole.
    """
    spec = CommandSpec(
        command=("task", f"--key={SECRETS[0]}"), env={"MAIL_API_KEY": "hunter2", "MODE": "fast"}
    )
    target = Target(command=spec)
    blotted = without_credentials(target).command
    assert blotted is not None
    assert blotted.command == ("task", "--key=[redacted]")
    assert blotted.env == {"MAIL_API_KEY": "[redacted]", "MODE": "fast"}
    token = ReplayToken(target=target, seed=0, schedule="kill@1ms")
    with Store(folder) as store:
        summary = summarize(store)
    first = msgspec.structs.replace(summary.findings[0], replay=f"{REPLAY}{token}")
    summary = msgspec.structs.replace(summary, findings=(first,))
    made = published(summary)
    said = parse_token(made.findings[0].replay.removeprefix(REPLAY))
    assert said.target.command == blotted
    assert LEFT_OUT in made.remarks
    assert published(made) == made
