"""A real browser, without a window, and pages rendered from stored campaigns."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from chaoskit.campaign.store import Store
from chaoskit.reporting.forms import write
from chaoskit.reporting.summary import summarize
from tests.reporting.conftest import campaigns

__all__ = ["campaigns"]

PATIENCE_S = 300
"""So long a condition is waited for, at most, on a busy machine."""


class Browser:
    """One window: pages are opened in it, and what it logged is asked of it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, fragment: str = "") -> None:
        """Open a page of its own file, and wait until its script has put it together."""
        self.visit(f"{page.resolve().as_uri()}{fragment}")

    def visit(self, address: str) -> None:
        """Open the page at an address, and wait until its script has put it together."""
        self.driver.get("about:blank")
        self.logs("browser")
        self.driver.get(address)
        self.until(lambda: self.js("return document.documentElement.dataset.ready") == "yes")

    def reload(self) -> None:
        """The same page anew, in the process that has it: another one may not have what was stored
        a moment ago.
        """
        self.driver.refresh()
        self.until(lambda: self.js("return document.documentElement.dataset.ready") == "yes")

    def js(self, code: str, *given: object) -> Any:
        """What ``code`` returns in the page."""
        return self.driver.execute_script(code, *given)

    def break_out(self) -> tuple[list[str], str]:
        """Try to reach another place and to run a script: what the page's policy refused of the
        three, and what the script has set.
        """
        *refused, broken = self.driver.execute_async_script(
            """
            const done = arguments[0], found = [];
            document.addEventListener("securitypolicyviolation", (event) => {
              found.push(event.effectiveDirective);
              if (found.length === 3) done([...found, String(window.broken)]);
            });
            fetch("http://127.0.0.1:9/").catch(() => {});
            const script = document.createElement("script");
            script.textContent = "window.broken = true";
            document.body.append(script);
            const image = document.createElement("img");
            image.src = "http://127.0.0.1:9/x.png";
            document.body.append(image);
            """
        )
        return sorted(refused), broken

    def until(self, holds: Callable[[], object]) -> Any:
        """Wait until ``holds()`` is true; its value."""
        return WebDriverWait(self.driver, PATIENCE_S, poll_frequency=0.05).until(lambda _: holds())

    def painted(self) -> None:
        """Wait for the drawing that was asked for."""
        self.driver.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )

    def size(self, width: int, height: int) -> None:
        """The size of the page's window in CSS pixels."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.painted()

    def media(self, **features: str) -> None:
        """What the system prefers, as ``prefers_color_scheme="dark"``; and nothing that moves."""
        features = {"prefers_reduced_motion": "reduce", **features}
        given = [{"name": n.replace("_", "-"), "value": v} for n, v in features.items()]
        self.cdp("Emulation.setEmulatedMedia", features=given)

    def cdp(self, command: str, **given: object) -> dict[str, Any]:
        """A command of the DevTools protocol."""
        told: dict[str, Any] = self.driver.execute_cdp_cmd(command, given)
        return told

    def logs(self, kind: str) -> list[dict[str, Any]]:
        """What was logged since the last call."""
        entries: list[dict[str, Any]] = self.driver.get_log(kind)  # type: ignore[no-untyped-call]
        return entries

    def complaints(self) -> list[str]:
        """Errors and warnings of the console since the page was opened."""
        return [entry["message"] for entry in self.logs("browser") if entry["level"] != "INFO"]

    def asked_for(self) -> list[str]:
        """Every address that was asked for since the last call."""
        told = [json.loads(entry["message"])["message"] for entry in self.logs("performance")]
        return [
            one["params"]["request"]["url"]
            for one in told
            if one["method"] == "Network.requestWillBeSent"
        ]


def find(browser: Browser, css: str) -> WebElement:
    """The first element that ``css`` selects."""
    return browser.driver.find_element(By.CSS_SELECTOR, css)


def texts(browser: Browser, css: str) -> list[str]:
    """The texts of what ``css`` selects."""
    found: list[str] = browser.js(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", css
    )
    return found


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver here (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    started.set_script_timeout(PATIENCE_S)
    yield Browser(started)
    started.quit()


@pytest.fixture
def browser(session: Browser) -> Browser:
    """The browser as a test expects it: wide, and light."""
    session.media(prefers_color_scheme="light")
    session.size(1280, 900)
    session.cdp("Browser.resetPermissions")
    return session


def page_of(run: Path, file: Path) -> Path:
    """The HTML report of a stored campaign, written to ``file``."""
    with Store(run) as store:
        write("html", summarize(store), store, file)
    return file


@pytest.fixture(scope="module")
def pages(
    campaigns: Mapping[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, Path]:
    """The page of each of the small campaigns: valid, invalid, unknown, soak."""
    folder = tmp_path_factory.mktemp("pages")
    return {name: page_of(run, folder / f"{name}.html") for name, run in campaigns.items()}
