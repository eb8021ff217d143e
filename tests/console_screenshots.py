#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Take the screenshots of the console for README.md, from a store with example data.

usage: STATESTORE_BUILD=DIRECTORY tests/console_screenshots.py
"""

import re
import tempfile
from pathlib import Path

from support.browser import Page, running_browser
from support.double import running_double

CONSOLE = Path(__file__).parent.parent / "server/http/console"
WIDTH, HEIGHT = 1120, 560


def fill(double):
    plant = double.connect("plant")
    for line in range(1, 4):
        for name, value in ("temperature", 21 + line), ("pressure", 1013), ("state", "running"):
            plant.request("SET", f"plant/line-{line}/{name}", value)
    plant.request("SET", "config/gateway", '{"name": "gateway-1", "limits": {"rate": 1.50}, "tags": ["a", "b"]}')
    plant.request("SET", "session/42", "{}", "PX", "3600000")
    double.connect("controller-7").request("SET", "jobs/backup", "controller-7", "NX", "PX", "60000")
    waiting = double.connect("controller-8")
    waiting.watch("jobs/backup")
    waiting.request("SET", "jobs/backup", "controller-8", "NX", "PX", "60000")
    plant.request("SET", "plant/valve", "open", ft="001795219608228:00000:StateStore")
    waiting.request("SET", "plant/valve", "shut")


def main():
    with tempfile.TemporaryDirectory() as directory, running_double(directory, "--control") as double, \
            running_browser() as driver:
        fill(double)
        page = Page(driver, re.search(r"at (https?://[\d.]+:\d+)/", double.log())[1])
        page.resize(WIDTH, HEIGHT)
        page.open("keys").open_row("config/", "gateway")
        page.shows('"rate"', ".value")
        driver.save_screenshot(str(CONSOLE / "keys-light.png"))

        page.resize(WIDTH, HEIGHT, "dark")
        page.open("live")
        page.shows("jobs/backup", "tbody")
        driver.save_screenshot(str(CONSOLE / "live-dark.png"))


if __name__ == "__main__":
    main()
