# SPDX-License-Identifier: Apache-2.0
"""The files of the console, without a server: rules for their text, and their modules in Node."""

import pathlib
import re
import shutil
import subprocess

import pytest

from support.downloads import require_program
from support.process import PATIENCE, REPOSITORY

CONSOLE = pathlib.Path(REPOSITORY) / "server/http/console"
SERVED = sorted(path for path in CONSOLE.rglob("*") if path.suffix in (".html", ".css", ".js", ".svg"))

# Ways to make markup or code of a text, and inline code and styles, which the Content-Security-Policy forbids.
MARKUP_OR_CODE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\b"
    r"|new Function|setAttribute\(.style|<[a-z]+ [^>]*\bon[a-z]+=|<[a-z]+ [^>]*\bstyle=")
COLUMNS_MAX = 119
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CSS = (CONSOLE / "console.css").read_text()
NAMESPACE = "http://www.w3.org/2000/svg"


def test_modules_without_a_browser(tmp_path):
    """RESP3, bytes, quoting, differences, trees, formats."""
    require_program("node")
    for path in [*CONSOLE.glob("js/*.js"), pathlib.Path(__file__).parent / "console_modules.mjs"]:
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')

    run = subprocess.run(["node", "--test", "console_modules.mjs"], cwd=tmp_path, capture_output=True, text=True,
                         timeout=PATIENCE, check=False)

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("path", SERVED, ids=lambda path: path.name)
def test_no_text_becomes_markup_or_code(path):
    assert not MARKUP_OR_CODE.search(path.read_text())


@pytest.mark.parametrize("path", SERVED, ids=lambda path: path.name)
def test_nothing_is_loaded_from_elsewhere(path):
    text = COMMENT.sub("", path.read_text()).replace(NAMESPACE, "")

    assert not re.search(r"//[\w.-]+\.\w+|url\(|@import", text)


def test_each_import_names_a_module():
    for path in CONSOLE.glob("js/*.js"):
        for name in re.findall(r'from "\./([\w.]+)"', path.read_text()):
            assert (CONSOLE / "js" / name).exists(), f"{path.name} imports {name}"


def test_lines_are_short():
    for path in CONSOLE.rglob("*.[jc]s*"):
        assert max(map(len, path.read_text().splitlines())) <= COLUMNS_MAX, path


BACKGROUNDS = ("back", "card", "hover", "selected", "warn", "added", "removed")


def colors(scheme):
    """Return the colours of console.css by their names, each as three numbers from 0 to 255."""
    named = re.findall(r"(?:--|\.)([\w-]+)(?: { color)?: light-dark\((#\w+, #\w+)\)", CSS)
    return {name: [int(both.split(", ")[scheme][i:i + 2], 16) for i in (1, 3, 5)] for name, both in named}


def luminance(color):
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (c / 255 for c in color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(*pair):
    dark, light = sorted(map(luminance, pair))
    return (light + 0.05) / (dark + 0.05)


def test_each_color_is_for_both_schemes():
    names = colors(0)

    assert {"text", "color-3", "color-5"} <= names.keys()
    assert len(re.findall(r"#[0-9a-f]{3,8}\b", CSS.replace("#0008", ""))) == 2 * len(names), "but the shade behind a dialog"


def test_each_color_is_used():
    for name in re.findall(r"--([\w-]+): light-dark", CSS):
        assert f"color: var(--{name})" in CSS or f"background: var(--{name})" in CSS or name == "line", name
    assert sorted(re.findall(r"\.color-(\d) {", CSS)) == list("0123456"), "the lines of a chart"


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_contrast(scheme):
    """At least 4.5 to 1: WCAG 2.2, 1.4.3."""
    color = colors(scheme)
    texts = color.keys() - {*BACKGROUNDS, "line", "on-accent"}

    for text, back in [*((text, back) for text in texts for back in BACKGROUNDS), ("on-accent", "accent")]:
        assert contrast(color[text], color[back]) >= 4.5, f"{text} on {back}"


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_a_disabled_button_can_be_read(scheme):
    """At least 3 to 1, although 1.4.3 exempts it: the label says what the button waits for."""
    color = colors(scheme)
    [opacity] = map(float, re.findall(r"button:disabled { opacity: ([\d.]+)", CSS))

    for text, back in ("text", "card"), ("bad", "card"), ("accent", "back"), ("on-accent", "accent"):
        for behind in "back", "card":
            faded = [[opacity * c + (1 - opacity) * b for c, b in zip(color[name], color[behind])] for name in (text, back)]
            assert contrast(*faded) >= 3, f"{text} on {back} before {behind}"
