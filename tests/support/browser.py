# SPDX-License-Identifier: Apache-2.0
"""The console's page in Chromium without a window."""

import contextlib
import re

from support.downloads import require_program, unavailable
from support.process import PATIENCE, wait_until

# Find an element that is shown: a button by its label, a row of the list by its name.
FOUND = """
const [selector, text] = arguments;
const found = [...document.querySelectorAll(selector)].find((element) => element.checkVisibility() && !element.disabled &&
  (text === null || (element.querySelector(".name bdi") ?? element).innerText.trim() === text)) ?? null;
"""
FIND = f"{FOUND} return found;"
# Click in the same script: the page may replace the element at any time.
CLICK = f"{FOUND} found?.click(); return found !== null;"
TEXT = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText).join('\\n')"
# What must be scrolled sideways.
TOO_WIDE = """
return [...document.querySelectorAll("html, main, main *, dialog, dialog *")].filter((element) =>
  (element === document.documentElement || ["auto", "scroll"].includes(getComputedStyle(element).overflowX)) &&
  element.checkVisibility() && element.scrollWidth > element.clientWidth).map((element) =>
  `${element.localName}.${element.className}: ${element.scrollWidth} > ${element.clientWidth}`);
"""
REQUEST = """
const [words, conditions, done] = arguments;
import("/js/api.js").then(({ request }) => request(words, conditions)).then((reply) => done(reply.text ?? reply.type));
"""


@contextlib.contextmanager
def running_browser(*arguments):
    """Run Chromium with the arguments that each test needs, and with these."""
    require_program("chromium")
    require_program("chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        unavailable("python3-selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in "headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars", *arguments:
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_script_timeout(PATIENCE)
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """The page of one console. Each method waits until what it names is there."""

    def __init__(self, driver, url):
        self.driver, self.url = driver, url.rstrip("/")
        self.resize(1400, 900)

    def resize(self, width, height, scheme="light"):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, view=""):
        """Load the page anew."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}/#{view}")
        return self

    def text(self, selector="body"):
        return self.driver.execute_script(TEXT, selector)

    def shows(self, text, selector="body"):
        """Wait until the elements show the text. Return all their text. A number at the start is a whole one: not "5 keys" in "15 keys"."""
        pattern = re.compile((r"(?<![\d,.])" if text[:1].isdigit() else "") + re.escape(text))

        def found():
            shown = self.text(selector)
            return pattern.search(shown) and shown
        try:
            return wait_until(found, f"{selector} shows {text!r}")
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.text()}") from None

    def find(self, selector, text=None, script=FIND):
        try:
            return wait_until(lambda: self.driver.execute_script(script, selector, text), f"{selector} {text}")
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.text()}") from None

    def click(self, selector, text=None):
        self.find(selector, text, CLICK)

    def press(self, label):
        """Press a button: of the dialog, if one is open."""
        is_open = self.driver.execute_script("return document.querySelector('dialog[open]') !== null")
        self.click("dialog[open] button" if is_open else "button", label)

    def open_row(self, *names):
        """Open folders of the tree, and at last a key."""
        for name in names:
            self.click(".list .row", name)

    def type(self, selector, *text):
        element = self.find(selector)
        element.clear()
        element.send_keys(*text)

    def keys(self, *keys):
        """Type, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self, selector):
        """Return whether the element that has the focus is one of these. Without a focus that is the body."""
        return self.driver.execute_script("return document.activeElement.matches(arguments[0])", selector)

    def tab_to(self, selector, key):
        wait_until(lambda: self.focused(selector) or self.keys(key), f"the focus reaches {selector}")

    def too_wide(self):
        """Return the parts of the page that are wider than their place."""
        return self.driver.execute_script(TOO_WIDE)

    def request(self, *words, **conditions):
        """Send a request as another tab of the same user. Return the text of the reply, or its type."""
        return self.driver.execute_async_script(REQUEST, list(words), conditions)

    def errors(self):
        """Return what the browser reports as an error since the last call: of scripts and of the security policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and "Failed to load resource" not in entry["message"]]
