"""The HTML report in a real browser: what a reader does with it, by mouse and by keys alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from benchmarks.synthetic_store import FLAKY_AT, UNKNOWN_AT, make
from chaoskit.campaign.store import Store
from chaoskit.reporting.forms import render
from chaoskit.reporting.summary import summarize
from tests.browser.conftest import Browser, find, page_of, texts
from tests.reporting.test_hostile import SECRETS
from tests.reporting.test_hostile import folder as hostile_run

__all__ = ["hostile_run"]

KINDS = ("valid", "invalid", "unknown", "soak")


def press(browser: Browser, *keys: str) -> None:
    """Keys, to whatever has the focus."""
    ActionChains(browser.driver).send_keys(*keys).perform()


def focused(browser: Browser) -> str:
    """The id of what has the focus."""
    return str(browser.js("return document.activeElement.id"))


def opened(browser: Browser) -> bool:
    """Whether a trial is shown."""
    return bool(browser.js("return document.getElementById('trial').open"))


def trial_of_an_error(browser: Browser, page: Path) -> None:
    """The trial of the first finding, shown by its button."""
    browser.open(page)
    browser.js("document.querySelector('button.open').scrollIntoView({block: 'center'})")
    find(browser, "button.open").click()
    browser.until(lambda: opened(browser))
    browser.painted()


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_tells_what_the_other_forms_tell(
    browser: Browser, pages: Mapping[str, Path], campaigns: Mapping[str, Path], kind: str
) -> None:
    """Verdict, points, trials, seed and findings are those of the JSON report; no complaint."""
    browser.open(pages[kind])
    with Store(campaigns[kind]) as store:
        told = json.loads(render("json", summarize(store), store))
        stored = sum(1 for _ in store.trials())
    assert texts(browser, "#verdict .word") == [told["verdict"]]
    values = dict(
        zip(
            texts(browser, ".numbers dt"),
            texts(browser, ".numbers .value"),
            strict=True,
        )
    )
    assert values["points killed at"] == f"{told['points']['landed']:,}"
    assert values["trials"] == f"{told['trials']:,}"
    assert values["expected effects"] == f"{told['effects']:,}"
    assert values["seed"] == str(told["seed"])
    assert values["seconds"] == f"{told['elapsed_s']:,.1f}"
    kinds = {finding["kind"] for finding in told["findings"]}
    assert set(texts(browser, ".finding .kind")) == kinds
    assert texts(browser, "#trials-count") == [f"{stored} trial{'s' if stored != 1 else ''}"]
    shown = 0
    for name in kinds:  # each line of the table has one kind
        find(browser, "#trials-filter").clear()
        find(browser, "#trials-filter").send_keys(name)
        rows = find(browser, "#trials-table .grid").get_attribute("aria-rowcount")
        shown += int(str(rows))
    assert shown == len({finding["schedule"] for finding in told["findings"]})
    for line in told["not_tested"]:
        assert line in texts(browser, "#limits li")
    assert browser.complaints() == []


def test_nothing_leaves_the_page(browser: Browser, pages: Mapping[str, Path]) -> None:
    """Opening it and a trial asks for nothing but the file itself and what it holds."""
    browser.asked_for()
    trial_of_an_error(browser, pages["invalid"])
    asked = browser.asked_for()
    assert pages["invalid"].resolve().as_uri() in asked
    assert [url for url in asked if not url.startswith(("file://", "data:", "about:"))] == []


def test_the_policy_lets_nothing_out_and_runs_no_other_script(
    browser: Browser, pages: Mapping[str, Path]
) -> None:
    """A request is refused by the page's own policy; so is a script that somebody put into it."""
    browser.open(pages["invalid"])
    refused = ["connect-src", "img-src", "script-src-elem"]
    assert browser.break_out() == (refused, "undefined")


def test_a_click_on_a_point_opens_its_trial(browser: Browser, pages: Mapping[str, Path]) -> None:
    """The pointer over a failing point shows what it is; a click shows the trial of that name."""
    browser.open(pages["invalid"])
    canvas = find(browser, "#map-strip canvas")
    browser.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    browser.painted()
    width, height = canvas.size["width"], canvas.size["height"]
    name = ""
    for x in range(120, width - 10, 6):
        ActionChains(browser.driver, duration=0).move_to_element_with_offset(
            canvas, x - width // 2, height // 2 - 18
        ).perform()
        if "INVALID" in find(browser, "#tip").text:
            name = find(browser, "#tip b").text
            break
    assert name.startswith("kill@")
    assert "after payments.charge" in find(browser, "#tip").text
    ActionChains(browser.driver).click().perform()
    browser.until(lambda: opened(browser))
    assert find(browser, "#trial-title").text == name
    assert find(browser, "#trial-said .kind").text == "duplicate_effect"
    assert browser.complaints() == []


def test_the_first_error_is_reached_by_button_and_by_key(
    browser: Browser, pages: Mapping[str, Path]
) -> None:
    """From anywhere in a trial; it is the repeated effect, with the first one named."""
    trial_of_an_error(browser, pages["invalid"])
    find(browser, "#events .body").send_keys(Keys.HOME)
    browser.until(lambda: "Event 1 of" in find(browser, "#event-detail").text)
    find(browser, "#trial-error").click()
    detail = find(browser, "#event-detail").text
    assert "effect" in detail
    assert "this one is too many" in detail
    assert "It happened before, as event" in detail
    press(browser, Keys.HOME)
    browser.until(lambda: "Event 1 of" in find(browser, "#event-detail").text)
    press(browser, "e")
    assert find(browser, "#event-detail").text == detail
    assert "repeated" in str(find(browser, "#events .line.at").get_attribute("class"))
    assert find(browser, "#trial-replay code").text.startswith("chaoskit replay ck1-")
    assert browser.complaints() == []


def test_everything_can_be_done_by_keys_alone(browser: Browser, pages: Mapping[str, Path]) -> None:
    """Tab to the map, to the next failure, into its trial, to the first error, and back again."""
    browser.open(pages["invalid"])
    for _ in range(40):
        press(browser, Keys.TAB)
        if focused(browser) == "map-strip":
            break
    assert focused(browser) == "map-strip"
    press(browser, "n")
    browser.until(lambda: "INVALID" in texts(browser, "#spoken")[0])
    press(browser, "+", Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ENTER)
    browser.until(lambda: opened(browser))
    title = find(browser, "#trial-title").text
    press(browser, "e")
    assert "too many" in find(browser, "#event-detail").text
    press(browser, Keys.ESCAPE)
    browser.until(lambda: not opened(browser))
    assert focused(browser) == "map-strip"
    browser.js("document.querySelector('#trials-table .body').focus()")
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    browser.until(lambda: opened(browser))
    assert find(browser, "#trial-title").text != title
    assert browser.complaints() == []


def test_the_table_of_duplicates_is_filtered_sorted_and_downloaded(
    browser: Browser, pages: Mapping[str, Path], tmp_path: Path
) -> None:
    """Words narrow it, heads sort it, and the CSV holds the rows that are shown."""
    browser.open(pages["invalid"])
    everyone = texts(browser, "#duplicates-table .line > :first-child")
    assert len(everyone) > 1
    head = find(browser, "#duplicates-table .head button")
    browser.js("arguments[0].scrollIntoView({block: 'center'})", head)
    head.click()
    up = texts(browser, "#duplicates-table .line > :first-child")
    head.click()
    down = texts(browser, "#duplicates-table .line > :first-child")
    assert sorted(up) == sorted(everyone) == sorted(down)
    assert up == down[::-1]
    field = find(browser, "#duplicates-filter")
    field.send_keys("nobody at all")
    assert texts(browser, "#duplicates-table .none") == ["Nothing fits the filter."]
    field.clear()
    field.send_keys(up[0].split()[-1])
    shown = texts(browser, "#duplicates-table .line > :first-child")
    assert up[0] in shown
    browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    find(browser, "#duplicates-csv").click()
    file = tmp_path / "duplicate-effects.csv"
    browser.until(file.is_file)
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))))
    assert len(rows) == len(shown)
    assert rows[0]["operation"] == "payments.charge"
    assert int(rows[0]["seen"]) > int(rows[0]["expected"]) == 1
    assert rows[0]["worst trial"].startswith("kill@")
    assert browser.complaints() == []


def test_what_a_hostile_task_wrote_is_text(
    browser: Browser, hostile_run: Path, tmp_path: Path
) -> None:
    """No element of its own, no script that runs, no secret, no megabyte, in page and timeline."""
    page = page_of(hostile_run, tmp_path / "evil.html")
    trial_of_an_error(browser, page)
    assert browser.js("return document.querySelectorAll('img, a[href^=javascript]').length") == 0
    assert "<script>alert(1)</script>" in find(browser, "#trial-said").text
    find(browser, "#trial-error").click()
    for _ in range(30):  # every event of the trial is shown in turn
        press(browser, Keys.ARROW_RIGHT)
        shown = str(browser.js("return document.documentElement.innerText"))
        assert not [secret for secret in SECRETS if secret in shown]
        assert not set(shown) & set("\x1b\x07\x00\u202e\u2028")
        assert len(shown) < 100_000
    assert "[redacted]" in shown
    assert "\\x1b[31m" in shown
    assert "\\u202e" in shown
    assert browser.complaints() == []


def test_a_narrow_window_has_all_of_it(browser: Browser, pages: Mapping[str, Path]) -> None:
    """At 360 pixels nothing is cut off at the side, in the page and in a trial."""
    browser.size(360, 740)
    trial_of_an_error(browser, pages["invalid"])
    for what in ("document.documentElement", "document.getElementById('trial')"):
        assert browser.js(f"return {what}.scrollWidth <= {what}.clientWidth"), what


def test_light_and_dark_follow_the_system_and_the_switch(
    browser: Browser, pages: Mapping[str, Path]
) -> None:
    """What the system prefers, until a reader says otherwise; that is kept."""
    paper = "return getComputedStyle(document.body).backgroundColor"
    browser.open(pages["invalid"])
    light = browser.js(paper)
    browser.media(prefers_color_scheme="dark")
    browser.until(lambda: browser.js(paper) != light)
    dark = browser.js(paper)
    find(browser, "#theme").click()
    browser.until(lambda: browser.js(paper) == light)
    browser.reload()
    assert browser.js(paper) == light
    find(browser, "#theme").click()
    browser.until(lambda: browser.js(paper) == dark)
    browser.js("localStorage.clear()")


def test_paper_shows_summary_map_and_tables(browser: Browser, pages: Mapping[str, Path]) -> None:
    """Before it is printed all rows are put in, and afterwards taken out again."""
    browser.open(pages["invalid"])
    rows = "return document.querySelectorAll('#trials-table .line').length"
    browser.js("window.dispatchEvent(new Event('beforeprint'))")
    stored = int(str(find(browser, "#trials-table .grid").get_attribute("aria-rowcount")))
    assert browser.js(rows) == min(stored, 100)
    browser.js("window.dispatchEvent(new Event('afterprint'))")
    pdf = browser.cdp("Page.printToPDF", printBackground=True)
    assert len(pdf["data"]) > 10_000
    assert browser.complaints() == []


def test_a_screen_reader_finds_names_and_landmarks(
    browser: Browser, pages: Mapping[str, Path]
) -> None:
    """Every button, field, table and region has a name; there are a banner, a main, a nav."""
    trial_of_an_error(browser, pages["invalid"])
    press(browser, Keys.ESCAPE)
    nodes = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            role = node["role"]["value"]
            named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert {"banner", "main", "navigation", "contentinfo"} <= named.keys()
    for role in ("button", "searchbox", "grid", "application", "region", "columnheader", "link"):
        assert named[role], role
        assert all(named[role]), role


def test_a_long_report_shows_a_few_rows_at_a_time(browser: Browser, tmp_path: Path) -> None:
    """Two thousand trials are one table of which few rows are in the page; every outcome has its
    mark; a link opens a trial.
    """
    page = page_of(make(tmp_path / "run", 2_000), tmp_path / "long.html")
    browser.open(page, "#trial-2000")
    browser.until(lambda: opened(browser))
    assert find(browser, "#trial-number").text.startswith("Trial 2000 of 2,000")
    press(browser, Keys.ESCAPE)
    browser.until(lambda: not opened(browser))
    assert find(browser, "#trials-table .grid").get_attribute("aria-rowcount") == "2000"
    lines = "return document.querySelectorAll('#trials-table .line').length"
    assert 5 < browser.js(lines) < 60
    browser.js("document.querySelector('#trials-table .body').scrollTop = 34 * 1500")
    browser.until(lambda: "1510" in texts(browser, "#trials-table .line > :first-child"))
    assert browser.js(lines) < 60
    legend = " ".join(texts(browser, "#legend li"))
    for word in ("INVALID: duplicate_effect667", "FLAKY1", "UNKNOWN1", "VALID1,331"):
        assert word in legend.replace("\n", ""), legend
    find(browser, "#trials-filter").send_keys("flaky")
    (flaky,) = texts(browser, "#trials-table .line > :first-child")
    assert flaky == str(FLAKY_AT + 1)
    find(browser, "#trials-filter").clear()
    for chip in browser.driver.find_elements(By.CSS_SELECTOR, "#outcome-chips button"):
        if chip.text == "UNKNOWN":
            chip.click()
    assert texts(browser, "#trials-table .line > :first-child") == [str(UNKNOWN_AT + 1)]
    assert browser.complaints() == []


def test_a_trial_can_be_run_again_though_it_was_right(
    browser: Browser, pages: Mapping[str, Path]
) -> None:
    """Its command is the campaign's for this schedule alone."""
    browser.open(pages["valid"], "#trial-2")
    browser.until(lambda: opened(browser))
    schedule = find(browser, "#trial-title").text
    command = find(browser, "#trial-replay code").text
    assert command.startswith(f"chaoskit run --at '{schedule}' --seed 0 --mechanisms windows")
    assert "nothing is wrong" in find(browser, "#trial-said").text
