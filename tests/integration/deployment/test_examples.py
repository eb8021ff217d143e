# SPDX-License-Identifier: Apache-2.0
"""The examples for users pass with a test double that they start, and with a running one.

The tests read the machine-readable output of the test runners: other output depends on terminals, colours and CI variables.
"""

import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Callable, NamedTuple

import pytest

from support.examples import DOWNLOADS, EXAMPLES, download, run
from support.process import REPOSITORY, STATESTORED

pytestmark = pytest.mark.not_sanitized("the store does the same for other clients")

# They change the test runner of the language and not the store.
SURROUNDINGS = [
    pytest.param({"TERM": "xterm-256color"}, id="at a desk"),
    pytest.param({"CI": "true", "FORCE_COLOR": "1", "GITHUB_ACTIONS": "true"}, id="in CI"),
]


@pytest.fixture(scope="module", autouse=True)
def statestored_in_path(tmp_path_factory):
    """A PATH with statestored."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "statestored").symlink_to(STATESTORED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        yield


# Each function returns the outcomes by test name.

def run_pytest(directory, variables):
    """Two processes share a running double."""
    workers = ["-n", "2"] if "STATESTORE_URL" in variables else []
    ended = run([sys.executable, "-m", "pytest", *workers, "-p", "no:cacheprovider", "--rootdir=.", "--junitxml=results.xml"],
                directory, **variables)
    assert (directory / "results.xml").exists(), ended.stdout + ended.stderr
    cases = ElementTree.parse(directory / "results.xml").iter("testcase")
    outcomes = {}
    for case in cases:  # a test with parameters has several; one that fails decides
        outcome = "".join(ElementTree.tostring(part, "unicode") for part in case) or "passed"
        test = case.get("name").partition("[")[0]
        outcomes[test] = outcome if outcomes.get(test, "passed") == "passed" else outcomes[test]
    return outcomes


def run_vitest(directory, variables):
    ended = run(["node_modules/.bin/vitest", "run", "--reporter=json", "--outputFile=results.json"], directory,
                **variables)
    assert (directory / "results.json").exists(), ended.stdout + ended.stderr
    files = json.loads((directory / "results.json").read_text())["testResults"]
    return {case["title"]: "\n".join(case["failureMessages"]) or case["status"]
            for file in files for case in file["assertionResults"]}


def run_go_test(directory, variables):
    ended = run(["go", "test", "-json", "-count=1", "."], directory, GOTOOLCHAIN="local", **variables)
    events = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    outcomes = {event["Test"]: event["Action"] for event in events
                if "Test" in event and event["Action"] in ("pass", "fail", "skip")}
    assert outcomes, ended.stdout + ended.stderr
    output = "".join(event.get("Output", "") for event in events)
    return {test: "passed" if action == "pass" else output for test, action in outcomes.items()}


class Language(NamedTuple):
    run_tests: Callable
    files: str  # a glob
    pattern: str  # matches the declaration of a test


LANGUAGES = {
    "python": Language(run_pytest, "test_*.py", r"^def (test_\w+)\("),
    "node": Language(run_vitest, "*.test.js", r"^test\('(.*)', async"),
    "go": Language(run_go_test, "*_test.go", r"^func (Test\w+)\(t \*testing\.T\)"),
}


def declared(language):
    texts = [path.read_text() for path in (EXAMPLES / language).glob(LANGUAGES[language].files)]
    return [test for text in texts for test in re.findall(LANGUAGES[language].pattern, text, re.MULTILINE)]


# One pytest process tests a language, so its packages are downloaded once.
each_language = pytest.mark.parametrize("language", [
    pytest.param(language, marks=pytest.mark.xdist_group(f"example-{language}")) for language in LANGUAGES])


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
@each_language
def test_an_example_starts_its_own_double(copy_of, language, surroundings):
    assert len(declared(language)) >= 4
    assert LANGUAGES[language].run_tests(copy_of(language), surroundings) == dict.fromkeys(declared(language), "passed")


@each_language
def test_an_example_uses_a_running_double(copy_of, double, language):
    outcomes = LANGUAGES[language].run_tests(copy_of(language), {"STATESTORE_URL": double.url})
    assert outcomes == dict.fromkeys(declared(language), "passed")


@pytest.mark.parametrize("languages", [[], ["go"]], ids=["all", "one"])
@pytest.mark.parametrize("failing", [None, "go"])
def test_one_command_runs_the_tests_of_all_examples(tmp_path, monkeypatch, languages, failing):
    """Here programs that only note their arguments stand for those of the languages."""
    for name in "python3", "npm", "go":
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\nexit {int(name == failing)}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    ended = run(["sh", str(EXAMPLES / "run.sh"), *languages], tmp_path)

    assert ended.returncode == int(failing is not None), ended.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    run_all = ["python3 -m pytest -p no:cacheprovider", "npm test", "go test -count=1 ."]
    assert [call for call in calls if " test" in call or "pytest -p" in call] == (run_all if not languages else run_all[2:])


def test_a_download_that_fails_has_a_reason(tmp_path, monkeypatch):
    example = tmp_path / "go"
    shutil.copytree(EXAMPLES / "go", example)
    for name, value in ("GOPROXY", "off"), ("GOFLAGS", "-mod=mod"), ("GOMODCACHE", str(tmp_path / "modules")):
        monkeypatch.setenv(name, value)

    assert "disabled by GOPROXY=off" in download(DOWNLOADS["go"], example)


# The document of the examples

def blocks():
    """(file, block) for each fenced block that follows a link to an example's file."""
    text = (EXAMPLES / "README.md").read_text()
    return re.findall(r"\[([\w./-]+)\]\(\1\)[^\n]*\n\n```\w*\n(.*?)```", text, re.DOTALL)


def test_the_readme_shows_the_rust_example():
    shown = re.findall(r"```rust\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    text = (EXAMPLES / "rust/src/main.rs").read_text()
    assert shown and all(block in text for block in shown)


def test_the_document_shows_the_files():
    shown = blocks()
    for file, block in shown:
        assert block in (EXAMPLES / file).read_text(), f"README.md shows what is not in {file}:\n{block}"
    assert {Path(file).parts[0] for file, _ in shown} == {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
