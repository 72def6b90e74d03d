"""The picture of a kill map for README.md, from a published report, by Debian's chromium.

python reports/examples/picture.py mailmerge docs/images/kill-map.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

HERE = Path(__file__).resolve().parent
PATIENCE_S = 60
WORDS = ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1000,1400")
SHARPNESS = "--force-device-scale-factor=1.5"
_TRIM = """
document.querySelectorAll('#map .title-row, #map .lead, #map-hint').forEach((e) => e.remove());
document.getElementById('map').style.cssText = 'margin: 0; border: 0; padding: 12px;';
"""
"""What a reader of a picture cannot use."""


def main() -> None:
    """Open the report and keep its map."""
    name, picture = sys.argv[1:]
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in (*WORDS, SHARPNESS):
        options.add_argument(word)
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.get((HERE / name / "report.html").as_uri())
        ready = "return document.documentElement.dataset.ready"
        WebDriverWait(driver, PATIENCE_S).until(lambda _: driver.execute_script(ready) == "yes")
        driver.execute_script(_TRIM)
        driver.find_element(By.ID, "map").screenshot(picture)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
