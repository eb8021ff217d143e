# SPDX-License-Identifier: Apache-2.0
"""The manual pages are valid and complete."""

import os
import re
import subprocess

import pytest

from support.process import BUILD, CTL, PATIENCE, REPOSITORY, STATESTORED

PAGES = ["statestored.8", "statestored.conf.5", "statestored-policy.5", "statestorectl.1"]


def run(*argv, **environment):
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "LC_ALL": "C.UTF-8", **environment})


def show(page):
    """The page as man prints it on a wide terminal."""
    result = run("man", "--warnings", "--nh", "--nj", "-l", BUILD / "server" / "man" / page, MANWIDTH="2000")
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def options_of(help_text):
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_valid_and_indexed_by_name(page):
    show(page)

    lint = run("mandoc", "-T", "lint", "-W", "error", BUILD / "server" / "man" / page)
    assert lint.stdout + lint.stderr == ""
    name, section = page.rsplit(".", 1)
    assert f'"{name} - ' in run("lexgrog", BUILD / "server" / "man" / page).stdout


@pytest.mark.parametrize("page", PAGES)
def test_no_word_is_hyphenated(page):
    shown = run("man", "-l", BUILD / "server" / "man" / page, MANWIDTH="60").stdout

    assert len(shown.splitlines()) > 100
    assert "\u2010\n" not in shown and "\u00ad" not in shown


def test_statestored_8_has_every_flag_with_its_default():
    shown = re.sub(r"\s+", " ", show("statestored.8"))
    lines = re.sub(r"\n {9,}", " ", run(STATESTORED, "--help").stdout).splitlines()

    flags = [re.match(r"  (?:-\w, )?(--[a-z-]+)( \S+)? {2,}(.*?)(?: \((.*)\))?$", line) for line in lines]
    flags = [flag for flag in flags if flag and not flag[3].startswith("print ")]
    assert len(flags) > 20
    for flag in flags:
        assert f" {flag[1]}{flag[2] or ''} " in shown
        if flag[4]:
            assert f"Default: {flag[4]}." in shown


def test_statestored_conf_5_has_every_option_of_the_shipped_file():
    shown = show("statestored.conf.5")
    shipped = (REPOSITORY / "conf" / "statestored.conf").read_text()

    names = re.findall(r"^#?([a-z-]+) = ", shipped, re.MULTILINE)
    assert len(names) > 20
    for section in re.findall(r"^\[\w+\]", shipped, re.MULTILINE):
        assert re.search(rf"^ +{re.escape(section)}$", shown, re.MULTILINE), section
    for name in names:
        assert re.search(rf"^ +{name} = \S", shown, re.MULTILINE), name


def test_statestored_policy_5_has_every_line_of_the_shipped_policy():
    shown = show("statestored-policy.5")
    shipped = (REPOSITORY / "conf" / "policy.conf").read_text()

    names = set(re.findall(r"^#?\s*([a-z]+) += ", shipped, re.MULTILINE))
    assert len(names) == 7
    for name in names:
        assert re.search(rf"^ +{name} = \S", shown, re.MULTILINE), name


@pytest.mark.parametrize("page", ["statestored.conf.5", "statestored-policy.5"])
def test_the_example_files_of_a_page_are_valid(page, tmp_path):
    source = (REPOSITORY / "server" / "man" / f"{page}.scd").read_text()
    examples = [text for text in re.findall(r"(?ms)^```\n(.*?)^```", source) if text.startswith("[")]
    option = "--policy" if page == "statestored-policy.5" else "--config"
    policy = str(REPOSITORY / "conf" / "policy.conf")

    assert examples
    for text in examples:
        (tmp_path / "file").write_text(text.replace("/etc/statestored/policy.conf", policy))
        result = run(STATESTORED, option, tmp_path / "file", "--check-config")
        assert result.returncode == 0, f"{text}\n{result.stderr}"


@pytest.mark.parametrize("page", PAGES[:3])
def test_the_example_commands_of_a_page_are_valid(page):
    source = (REPOSITORY / "server" / "man" / f"{page}.scd").read_text()
    places = {f"/etc/statestored/{name}": str(REPOSITORY / "conf" / name) for name in ("statestored.conf", "policy.conf")}
    places["CLIENT USER VERB KEY"] = "pump-7 gateway SET sensors/7"
    commands = re.findall(r"^statestored(?: .*)?$", "".join(re.findall(r"(?ms)^```\n(.*?)^```", source)), re.MULTILINE)

    assert commands
    for command in commands:
        for usual, here in places.items():
            command = command.replace(usual, here)
        check = [] if "--explain" in command or "--check-config" in command else ["--check-config"]
        result = run(STATESTORED, *command.split()[1:], *check)
        assert result.returncode == 0, f"{command}\n{result.stderr}"


def test_statestorectl_1_has_everything_that_help_has():
    shown = show("statestorectl.1")
    overview = run(CTL, "--help").stdout

    commands = re.search(r"^Commands;.*?\n\n", overview, re.MULTILINE | re.DOTALL)[0].splitlines()[1:-1]
    assert len(commands) > 10
    for line in commands:
        usage, summary = re.fullmatch(r"  (.*?) {2,}(.*)", line).groups()
        assert f"statestorectl {usage.strip()}\n" in shown
        assert f"{summary[0].upper()}{summary[1:]}." in shown

    for text in (overview, *(run(CTL, line.split()[0], "--help").stdout for line in commands)):
        for option in options_of(text):
            assert re.search(rf"^ +(-\w, )?{option}( |\[=|$)", shown, re.MULTILINE), option
        for example in re.findall(r"^  (statestorectl .*)", text.partition("\nExamples:")[0], re.MULTILINE):
            assert example in shown


def test_statestorectl_1_has_the_table_of_a_help_as_lines():
    shown = show("statestorectl.1")
    table = re.search(r"^  reset .*?\n\n", run(CTL, "test", "--help").stdout, re.MULTILINE | re.DOTALL)[0]

    for line in table.splitlines()[:-1]:
        assert re.search(rf"^ +{re.escape(line.strip())}$", shown, re.MULTILINE), line
