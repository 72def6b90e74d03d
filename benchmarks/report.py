"""The HTML report of a large campaign: its size, how long it takes to make, and what it costs a
browser.

    python -m benchmarks.report [--trials N] [--keep FOLDER]

The campaign is made up (`benchmarks/synthetic_store.py`): 10,000 trials, whose histories and the
survey's have 120,000 events. The browser is chromium without a window, driven by chromedriver. The
first picture is the first contentful paint; ready is when map and tables are there and drawn; both
count from the start of the navigation. Memory is the JavaScript heap after a collection, and the
resident memory of the page's process.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks.synthetic_store import make
from chaoskit.campaign.store import FILE, Store
from chaoskit.reporting.forms import render
from chaoskit.reporting.summary import summarize

LOOKS = 5
"""So often the page is opened, each time in a browser of its own; medians are shown."""

READY = """
const done = arguments[0];
const wait = () => {
  if (document.documentElement.dataset.ready !== "yes") { requestAnimationFrame(wait); return; }
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    done({ first: paint ? paint.startTime : null, ready: performance.now() });
  }));
};
wait();
"""

OPEN = """
const done = arguments[0], from = performance.now();
const dialog = document.getElementById("trial");
new MutationObserver(() => requestAnimationFrame(() => requestAnimationFrame(
  () => done(performance.now() - from)))).observe(dialog, { attributes: true });
document.querySelector("button.open").click();
"""

ZOOM = """
const done = arguments[0], from = performance.now();
let left = 20;
const next = () => {
  if (!left--) { done((performance.now() - from) / 20); return; }
  document.getElementById(left % 2 ? "map-in" : "map-out").click();
  requestAnimationFrame(next);
};
next();
"""


def look(page: Path) -> dict[str, float]:
    """What one browser says of the page: milliseconds and megabytes."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    with tempfile.TemporaryDirectory() as profile:
        for word in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--enable-precise-memory-info",
            "--window-size=1280,900",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(word)
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        try:
            return _measured(driver, page)
        finally:
            driver.quit()


def _measured(driver: webdriver.Chrome, page: Path) -> dict[str, float]:
    driver.set_script_timeout(120)
    driver.get(page.resolve().as_uri())
    WebDriverWait(driver, 120).until(lambda d: d.execute_script("return document.body !== null"))
    times: dict[str, float] = driver.execute_async_script(READY)
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    heap = driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]
    resident = _resident(driver)
    return {
        "first picture, ms": times["first"],
        "map and tables drawn, ms": times["ready"],
        "JavaScript heap, MB": heap / 1e6,
        "page's process, resident, MB": resident / 1e6,
        "one zoom of the map with its frame, ms": driver.execute_async_script(ZOOM),
        "a trial opened and drawn, ms": driver.execute_async_script(OPEN),
        "elements in the page": driver.execute_script(
            "return document.querySelectorAll('*').length"
        ),
    }


def _resident(driver: webdriver.Chrome) -> int:
    """Of the process that draws the page: the largest renderer of this browser."""
    browser = psutil.Process(driver.service.process.pid)
    found = [
        process.memory_info().rss
        for process in browser.children(recursive=True)
        if "--type=renderer" in " ".join(process.cmdline())
    ]
    return max(found)


def main() -> None:
    """Make the store, render it, open it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="keep the page in this folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = make(Path(scratch) / "run", asked.trials)
        began = time.perf_counter()
        with Store(folder) as store:
            summary = summarize(store)
            summarized = time.perf_counter()
            text = render("html", summary, store)
            rendered = time.perf_counter()
            events = sum(len(store.history(t.schedule).events) for t in store.trials())
            survey = store.survey()
            events += len(survey[0].events) if survey is not None else 0
        page = Path(asked.keep or scratch) / "report.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        print(f"trials                                    {asked.trials:,}")
        print(f"events                                    {events:,}")
        print(
            f"store, MB                                 {(folder / FILE).stat().st_size / 1e6:.2f}"
        )
        print(f"page, MB                                  {page.stat().st_size / 1e6:.2f}")
        print(f"to summarize it, s                        {summarized - began:.2f}")
        print(f"to render it, s                           {rendered - summarized:.2f}")
        looks: list[dict[str, Any]] = [look(page) for _ in range(LOOKS)]
    for name in looks[0]:
        values = sorted(one[name] for one in looks)
        middle = statistics.median(values)
        print(f"{name:<41} {middle:,.1f} ({values[0]:,.1f} to {values[-1]:,.1f})")


if __name__ == "__main__":
    main()
