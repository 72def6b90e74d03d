"""The page of the running services in a real browser, while real clients use the services."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import stripe
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.browser.conftest import Browser, find, texts
from tests.fake_services.page_running import Running, running

SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"

EVIL = (
    "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
    "\x1b[31m\x07\u202e\u2028</pre></textarea>{{ 7*7 }} " + SECRET
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One serving for all tests but those that end it."""
    with running(tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture
def page(served: Running, browser: Browser) -> Running:
    """Services that have just been reset, without behaviours, and their page in the browser."""
    for one in served.told("/api/state")["behaviours"]:
        served.act("/api/behaviours/forget", {"behaviour": one["behaviour"]})
    served.act("/api/reset", {})
    browser.visit(served.url)
    return served


def lines(browser: Browser) -> list[list[str]]:
    """The cells of the lines that are in the page."""
    found: list[list[str]] = browser.js(
        "return [...document.querySelectorAll('#list .line')].map("
        "(l) => [...l.children].map((c) => c.textContent))"
    )
    return found


def until_text(browser: Browser, css: str, words: str) -> None:
    """Wait until what ``css`` selects holds ``words``."""
    browser.until(lambda: words in " ".join(texts(browser, css)))


def press(browser: Browser, *keys: str) -> None:
    """Keys, to whatever has the focus."""
    ActionChains(browser.driver).send_keys(*keys).perform()


def click(browser: Browser, css: str) -> None:
    """A click on what ``css`` selects, once it is in view."""
    element = find(browser, css)
    browser.js("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def tab_to(browser: Browser, wanted: str) -> None:
    """The Tab key, until what is focused is the element with this id or label."""
    for _ in range(60):
        press(browser, Keys.TAB)
        if browser.js("const e = document.activeElement; return [e.id, e.ariaLabel]").count(wanted):
            return
    raise AssertionError(f"{wanted} cannot be reached by the Tab key")


def switch_on(browser: Browser, text: str) -> None:
    """Switch a behaviour on by its text."""
    field = find(browser, "#b-text")
    field.clear()
    field.send_keys(text)
    click(browser, "#behave button[type=submit]")
    browser.until(lambda: text in texts(browser, "#behaviours li.on code"))


def test_mails_and_charges_appear_as_they_are_sent(browser: Browser, page: Running) -> None:
    """Nobody reloads: a charge, its equal, a mail and a row come in, the newest on top."""
    assert texts(browser, "#live") == ["Live"]
    assert texts(browser, "#list .none") == ["Nothing has happened yet."]
    page.charge(1, "key-1")
    browser.until(lambda: [row[3] for row in lines(browser)] == ["charge of 42.00 EUR"])
    page.charge(1, "key-2")
    page.mail("Your order", "It is on\nits way", "<b>It is on its way</b>")
    with closing(sqlite3.connect(page.database)) as database:
        database.execute("INSERT INTO orders (customer) VALUES ('Ann')")
        database.commit()
    browser.until(lambda: len(lines(browser)) == 4)
    assert [(row[2], row[3], row[6]) for row in lines(browser)] == [
        ("database", "row inserted in orders", ""),
        ("email", 'mail "Your order"', ""),
        ("payments", "charge of 42.00 EUR", "same as 1"),
        ("payments", "charge of 42.00 EUR", ""),
    ]
    until_text(browser, "#n-effects-note", "1 the same as an earlier one")
    click(browser, "#tab-email")
    browser.until(lambda: len(lines(browser)) == 1)
    click(browser, "#list .line")
    until_text(browser, "#detail-title", 'mail "Your order" to ann@example.com')
    assert [text.strip() for text in texts(browser, "#detail pre")] == [
        "It is on\nits way", "<b>It is on its way</b>",
    ]  # fmt: skip
    click(browser, "#tab-tables")
    browser.until(lambda: lines(browser) == [["1", "Ann", "NULL"]])
    click(browser, "#tab-requests")
    browser.until(lambda: len(lines(browser)) == 3)
    assert browser.complaints() == []


def test_what_is_shown_follows_what_becomes_of_it(browser: Browser, page: Running) -> None:
    """A charge that is looked at is refunded: its detail and its line say so."""
    made = page.charge(1)
    browser.until(lambda: len(lines(browser)) == 1)
    click(browser, "#list .line")
    until_text(browser, "#detail .pairs", "succeeded")
    client = stripe.StripeClient(
        "sk_test_x", base_addresses={"api": page.environment["CHAOSKIT_PAYMENTS_URL"]}
    )
    client.v1.refunds.create({"charge": made.id})
    browser.until(lambda: [row[6] for row in lines(browser)] == ["", "refunded"])
    until_text(browser, "#detail .pairs", "amount_refunded4200")
    assert "at" in str(browser.js("return document.querySelectorAll('#list .line')[1].className"))
    assert browser.complaints() == []


def test_a_hostile_mail_shows_as_text(browser: Browser, page: Running) -> None:
    """HTML, controls, bytes that are no UTF-8, a megabyte: text, without the secret, and cut."""
    head = b"From: shop@example.com\r\nTo: ann@example.com\r\nSubject: "
    flat = EVIL.replace("\u2028", "").encode()
    html = b"\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    with page.post() as server:
        for content in (
            head + flat + html + EVIL.encode() + b"\xff\xfe\r\n",
            head + b"long" + html + (b"M" * 500 + b"\r\n") * 2_000,
        ):
            server.sendmail("shop@example.com", ["ann@example.com"], content)
    page.charge(1, EVIL.encode("ascii", "ignore").decode().replace("\x1b", "").replace("\x07", ""),
                description=EVIL, metadata={"customer_name": EVIL})  # fmt: skip
    browser.until(lambda: len(lines(browser)) == 3)
    for number in range(3):
        browser.js("document.querySelectorAll('#list .line')[arguments[0]].click()", number)
        until_text(browser, "#detail .pairs", f"Effect{3 - number},")
        shown = str(browser.js("return document.documentElement.innerText"))
        assert SECRET not in str(browser.js("return document.documentElement.outerHTML"))
        assert not set(shown) & set("\x1b\x07\x00\u202e\u2028")
        assert len(shown) < 60_000
        assert browser.js("return document.querySelectorAll('img, #main script').length") == 0
        if number == 1:
            assert "(1,002,000 characters)" in shown
        else:
            assert "<script>window.broken = 1</script>" in shown
            assert "[redacted]" in shown
            assert "\\x1b[31m" in shown
    assert browser.js("return window.broken === undefined")
    assert browser.complaints() == []


def test_a_behaviour_meets_the_next_request_until_it_is_off(
    browser: Browser, page: Running
) -> None:
    """Put together by choosing; the real client feels it; switched off, it does not."""
    page.charge(1)
    until_text(browser, "#n-requests", "1")
    Select(find(browser, "#b-kind")).select_by_value("lose-reply")
    Select(find(browser, "#b-service")).select_by_value("payments")
    Select(find(browser, "#b-operation")).select_by_value("charge")
    assert find(browser, "#b-text").get_attribute("value") == "lose-reply@payments.charge#2"
    Select(find(browser, "#b-which")).select_by_value("*")
    assert find(browser, "#b-text").get_attribute("value") == "lose-reply@payments.charge#*"
    click(browser, "#behave button[type=submit]")
    until_text(browser, "#behaviours li.on", "each payments.charge is applied, and its connection")
    with pytest.raises(stripe.APIConnectionError):
        page.charge(2)
    click(browser, "#tab-requests")
    until_text(browser, "#list .line", "applied, the answer lost")
    click(browser, "#behaviours [role=switch]")
    browser.until(lambda: texts(browser, "#behaviours li.on") == [])
    assert page.charge(3).status == "succeeded"
    click(browser, "#behaviours [aria-label^=Remove]")
    until_text(browser, "#behaviours", "None was switched on yet.")
    assert browser.complaints() == []


def test_a_wrong_behaviour_is_answered_with_the_nearest_names(
    browser: Browser, page: Running
) -> None:
    """The words of the refusal stand under the field, and go when it is right."""
    find(browser, "#b-text").clear()
    find(browser, "#b-text").send_keys("lose-reply@payments.chrge#1", Keys.ENTER)
    until_text(browser, "#b-wrong", "nearest: charge")
    assert find(browser, "#b-text").get_attribute("value") == "lose-reply@payments.chrge#1"
    switch_on(browser, "lose-reply@payments.charge#1")
    assert texts(browser, "#b-wrong") == [""]


def test_a_request_that_was_cut_off_is_let_land(browser: Browser, page: Running) -> None:
    """It is said that one waits, for as long as it does."""
    assert not find(browser, "#landing").is_displayed()
    switch_on(browser, "commit-late:end@payments.charge#1")
    with pytest.raises(stripe.APIConnectionError):
        page.charge(1)
    until_text(browser, "#landing-words", "1 request cut off")
    assert lines(browser) == []
    click(browser, "#land")
    browser.until(lambda: len(lines(browser)) == 1)
    assert not find(browser, "#landing").is_displayed()


def test_a_clock_that_is_moved_on_expires_keys(browser: Browser, page: Running) -> None:
    """The same key a day later makes a second charge."""
    for _ in range(2):
        page.charge(1, "key-1")
    browser.until(lambda: texts(browser, "#n-requests") == ["2"])
    browser.until(lambda: len(lines(browser)) == 1)
    Select(find(browser, "#c-service")).select_by_value("payments")
    find(browser, "#c-amount").clear()
    find(browser, "#c-amount").send_keys("25")
    click(browser, "#move button")
    browser.until(lambda: texts(browser, "#clocks li") == ["1 d 1 h ahead: payments"])
    assert texts(browser, "#n-clocks") == ["+1 d 1 h"]
    page.charge(1, "key-1")
    browser.until(lambda: len(lines(browser)) == 2)
    assert lines(browser)[0][6] == "same as 1"
    assert browser.complaints() == []


def test_a_reset_asks_first(browser: Browser, page: Running) -> None:
    """Kept where a person says no; empty where yes, and what was chosen is gone."""
    page.charge(1)
    browser.until(lambda: len(lines(browser)) == 1)
    click(browser, "#list .line")
    until_text(browser, "#detail-title", "charge of 42.00 EUR")
    click(browser, "#reset")
    assert browser.js("return document.activeElement.id") == "sure-no"
    press(browser, Keys.ENTER)
    assert page.told("/api/state")["effects"] == 1
    click(browser, "#reset")
    find(browser, "#sure-yes").click()
    until_text(browser, "#list .none", "Nothing has happened yet.")
    until_text(browser, "#detail-title", "Nothing is chosen")
    assert page.told("/api/state")["effects"] == 0
    assert browser.complaints() == []


def test_everything_can_be_done_by_keys_alone(browser: Browser, page: Running) -> None:
    """Tabs, list, detail and back; a behaviour on and off; a clock; a reset."""
    page.charge(1)
    page.charge(2)
    browser.until(lambda: len(lines(browser)) == 2)
    tab_to(browser, "tab-all")
    press(browser, Keys.ARROW_RIGHT)
    assert browser.js("return document.activeElement.id") == "tab-payments"
    browser.until(lambda: len(lines(browser)) == 2)
    tab_to(browser, "lines")
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    until_text(browser, "#detail .pairs", "Effect1,")
    assert find(browser, "#lines").get_attribute("aria-activedescendant") == "line-1"
    press(browser, Keys.ENTER)
    assert browser.js("return document.activeElement.id") == "detail"
    press(browser, Keys.ESCAPE)
    assert browser.js("return document.activeElement.id") == "lines"
    tab_to(browser, "b-text")
    press(browser, Keys.ENTER)
    browser.until(lambda: len(texts(browser, "#behaviours li.on")) == 1)
    press(browser, *[Keys.SHIFT + Keys.TAB] * 1)
    tab_to(browser, "theme")
    tab_to(browser, "lose-reply@payments.charge#3")
    press(browser, Keys.SPACE)
    browser.until(lambda: texts(browser, "#behaviours li.on") == [])
    assert browser.js("return document.activeElement.ariaLabel") == "lose-reply@payments.charge#3"
    tab_to(browser, "c-amount")
    press(browser, Keys.ENTER)
    browser.until(lambda: texts(browser, "#n-clocks") == ["+1 d"])
    tab_to(browser, "reset")
    press(browser, Keys.ENTER, Keys.TAB, Keys.ENTER)
    browser.until(lambda: page.told("/api/state")["effects"] == 0)
    assert browser.complaints() == []


def test_nothing_leaves_the_page(browser: Browser, page: Running) -> None:
    """All that is asked for is asked of the page's own address."""
    browser.asked_for()
    browser.visit(page.url)
    page.mail("x", html="<img src='http://127.0.0.1:9/x.png'>")
    browser.until(lambda: len(lines(browser)) == 1)
    click(browser, "#list .line")
    until_text(browser, "#detail pre", "x.png")
    asked = browser.asked_for()
    assert f"{page.url}/" in asked
    own = (f"{page.url}/", "data:", "about:")
    assert [url for url in asked if not url.startswith(own)] == []


def test_the_policy_lets_nothing_out_and_runs_no_other_script(
    browser: Browser, page: Running
) -> None:
    """A request elsewhere, a script and an image that somebody put into it are refused."""
    refused = ["connect-src", "img-src", "script-src-elem"]
    assert browser.break_out() == (refused, "undefined")


FOREIGN = """
const [url, done] = [arguments[0], arguments[1]];
const tries = [
  fetch(`${url}/api/state`).then((a) => a.text()),
  fetch(`${url}/api/reset`, { method: "POST", body: "{}",
    headers: { "Content-Type": "application/json", "Chaoskit-Page-Token": "x" } }),
  fetch(`${url}/api/reset`, { method: "POST", mode: "no-cors", body: "{}" }).then((a) => a.text()),
];
Promise.allSettled(tries).then((all) => done(all.map((one) => one.value || one.status)));
"""


class Evil(BaseHTTPRequestHandler):
    """Another site, with a page of its own."""

    def do_GET(self) -> None:
        """An empty page."""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_another_page_of_the_browser_can_do_nothing(browser: Browser, page: Running) -> None:
    """From a page of another origin neither is the state read nor anything changed."""
    page.charge(1)
    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        browser.driver.get(f"http://127.0.0.1:{site.server_address[1]}/")
        told = browser.driver.execute_async_script(FOREIGN, page.url)
        site.shutdown()
    # Two the browser does not send or show, since nobody allows them; the third we refuse, and our
    # answer is for our own pages only.
    assert told == ["rejected"] * 3
    assert page.told("/api/state")["effects"] == 1


TOP_LINE = """
const top = document.getElementById("lines").getBoundingClientRect().top;
const lines = [...document.querySelectorAll("#list .line")];
return lines.find((line) => line.getBoundingClientRect().top >= top).children[4].textContent;
"""


def test_ten_thousand_effects_are_a_few_lines(browser: Browser, page: Running) -> None:
    """Few lines are in the page at any place; what is read stays in place while more come in."""
    with closing(sqlite3.connect(page.database)) as database:
        rows = [(f"customer {n}",) for n in range(10_000)]
        database.executemany("INSERT INTO orders (customer) VALUES (?)", rows)
        database.commit()
    until_text(browser, "#n-effects", "10,000")
    browser.until(lambda: [row[4] for row in lines(browser)[:1]] == ["customer 9999"])
    assert 5 < len(lines(browser)) < 60
    browser.js("document.getElementById('lines').scrollTop = 34 * 5000")
    browser.until(lambda: any(row[4] == "customer 5000" for row in lines(browser)))
    assert len(lines(browser)) < 60
    before = browser.js(TOP_LINE)
    page.charge(1)
    until_text(browser, "#n-effects", "10,001")
    browser.until(lambda: find(browser, "#list .grid").get_attribute("aria-rowcount") == "10002")
    browser.until(lambda: browser.js(TOP_LINE) == before)
    find(browser, "#filter").send_keys("9999 row")  # the customer of one row, the id of another
    browser.until(lambda: texts(browser, "#count") == ["2 effects fit"])
    browser.until(lambda: len(lines(browser)) == 2)
    find(browser, "#lines").send_keys(Keys.END)
    until_text(browser, "#detail-title", "row inserted in orders to customer 9998")
    assert browser.complaints() == []


def test_a_narrow_window_has_all_of_it(browser: Browser, page: Running) -> None:
    """At 360 pixels nothing is cut off at the side."""
    browser.size(360, 740)
    page.mail("A subject that is rather long, and goes on for a while")
    page.charge(1, "a-key-that-is-rather-long-and-goes-on-for-a-while-without-a-space")
    browser.until(lambda: len(lines(browser)) == 2)
    for tab in ("all", "email", "requests", "payments"):
        click(browser, f"#tab-{tab}")
        browser.until(lambda: lines(browser))
        click(browser, "#list .line")
        browser.painted()
        page_fits = "return document.documentElement.scrollWidth <= window.innerWidth"
        assert browser.js(page_fits), tab
        fits = "const t = document.getElementById('list'); return t.scrollWidth <= t.clientWidth"
        assert browser.js(fits), tab


def test_light_and_dark_follow_the_system_and_the_switch(browser: Browser, page: Running) -> None:
    """What the system prefers, until a reader says otherwise; that is kept."""
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = browser.js(paper)
    browser.media(prefers_color_scheme="dark")
    browser.until(lambda: browser.js(paper) != light)
    click(browser, "#theme")
    assert browser.js(paper) == light
    browser.reload()
    assert browser.js(paper) == light
    browser.js("localStorage.clear()")


def test_a_screen_reader_finds_names_and_landmarks(browser: Browser, page: Running) -> None:
    """Every control, tab, table and region has a name; there are a banner and a main part."""
    switch_on(browser, "lose-reply@payments.charge#*")
    page.mail("x")
    browser.until(lambda: lines(browser))
    click(browser, "#list .line")
    until_text(browser, "#detail-title", "mail")
    named: dict[str, list[str]] = {}
    for node in browser.cdp("Accessibility.getFullAXTree")["nodes"]:
        if not node.get("ignored"):
            role = node["role"]["value"]
            named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert {"banner", "main", "complementary", "contentinfo"} <= named.keys()
    for role in ("button", "combobox", "searchbox", "textbox", "spinbutton", "switch", "tab",
                 "tabpanel", "grid", "columnheader", "region"):  # fmt: skip
        assert named[role], role
        assert all(named[role]), role


def test_services_that_stop_are_noticed(browser: Browser, tmp_path: Path) -> None:
    """The page says so, and is itself again when another serving is at its address."""
    with running(tmp_path) as found:
        browser.visit(found.url)
        found.charge(1)
        browser.until(lambda: len(lines(browser)) == 1)
        port = found.url.rpartition(":")[2]
    until_text(browser, "#live", "the services have stopped")
    with running(tmp_path, "--page-port", port) as again:
        until_text(browser, "#live", "Live")
        browser.until(lambda: lines(browser) == [])
        switch_on(browser, "reject:429@payments.charge#1")
        with pytest.raises(stripe.RateLimitError):
            again.charge(1)
    browser.driver.get("about:blank")
