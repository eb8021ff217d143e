# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin and the GitHub Action that start a double."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tomllib

import pytest
import yaml

from support.ctl import environment
from support.examples import EXAMPLES, run
from support.process import CTL, PATIENCE, REPOSITORY, STATESTORED

pytestmark = pytest.mark.not_sanitized("test_dev starts a double")

PLUGIN = EXAMPLES / "pytest-plugin"

SUITE = """
import os
import pathlib
import subprocess

import pytest


@pytest.mark.parametrize("number", range(16))
def test_the_key_of_another_worker_or_test_is_absent(statestore_url, statestore_control, number):
    ctl = ["statestorectl", "--port", statestore_url.rpartition(":")[2]]
    assert subprocess.run([*ctl, "set", "key", str(number), "--nx"]).returncode == 0
    assert '"key":"key"' in statestore_control("requests", "verb", "SET")
    worker = os.environ["PYTEST_XDIST_WORKER"]
    pathlib.Path(os.environ["URLS"], worker).write_text(statestore_url)
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with our programs. The wrapper of statestored notes its process id, and ends with the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "statestored").write_text(f'#!/bin/sh\necho $$ >>{folder}/pids\nexec {STATESTORED} "$@"\n')
    (folder / "statestored").chmod(0o755)
    (folder / "statestorectl").symlink_to(CTL)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    yield folder
    for pid in (folder / "pids").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


# The pytest plugin

def run_suite(directory, *arguments, **variables):
    (directory / "test_suite.py").write_text(SUITE)
    (directory / "urls").mkdir()
    ended = run([sys.executable, "-m", "pytest", "-q", "-p", "pytest_statestored", "-p", "no:cacheprovider", *arguments],
                directory, PYTHONPATH=str(PLUGIN), PYTHONDONTWRITEBYTECODE="1", URLS=str(directory / "urls"), **variables)
    return ended, [path.read_text() for path in (directory / "urls").iterdir()]


def test_each_worker_has_a_double_of_its_own(tmp_path, programs):
    ended, urls = run_suite(tmp_path, "-n", "4")

    assert ended.returncode == 0 and "16 passed" in ended.stdout, ended.stdout + ended.stderr
    assert len(set(urls)) == len(urls) == 4
    assert len((programs / "pids").read_text().split()) == 4


def test_a_double_that_does_not_start_fails_the_tests(tmp_path, programs):
    (programs / "statestored").write_text(f"#!/bin/sh\necho $$ >>{programs}/pids\nexit 7\n")

    ended, _ = run_suite(tmp_path, "-n", "1")

    assert ended.returncode == 1 and "statestored did not start: exit status 7" in ended.stdout


def test_the_package_names_the_plugin():
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())
    [module] = project["project"]["entry-points"]["pytest11"].values()
    assert [module] == project["tool"]["setuptools"]["py-modules"] == [path.stem for path in PLUGIN.glob("*.py")]
    [version] = re.findall(r"^ +version: '(.*)',", (REPOSITORY / "meson.build").read_text(), re.MULTILINE)
    assert project["project"]["version"] == version


# The GitHub Action

def start_step(directory, port):
    """Execute the last step of the action as a runner does. Return what the step says to later steps."""
    action = yaml.safe_load((REPOSITORY / "docker" / "action" / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    assert step["shell"] == "sh -e {0}" and step["env"] == {"PORT": "${{ inputs.port }}"}
    files = {name: directory / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
    ended = subprocess.run(["sh", "-e", "-c", step["run"]], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=PATIENCE,
                           env={**os.environ, "PORT": port, "RUNNER_TEMP": str(directory), **{n: str(f) for n, f in files.items()}})
    said = "".join(file.read_text() for file in files.values() if file.exists())
    return ended, dict(line.split("=", 1) for line in said.splitlines()), action


def test_the_action_starts_doubles_on_free_ports(tmp_path, programs):
    found = []
    for name in "first", "second":
        (tmp_path / name).mkdir()
        ended, said, action = start_step(tmp_path / name, "0")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert said["STATESTORE_URL"] == said["url"] and action["inputs"]["port"]["default"] == "0"
        found.append(said["url"])

    assert found[0] != found[1]
    for url in found:
        printed = subprocess.run([CTL, "--port", url.rpartition(":")[2], "set", "key", url, "--nx"], env=environment({}), capture_output=True,
                                 text=True)
        assert printed.returncode == 0, printed.stderr


def test_the_action_fails_if_the_double_does_not_start(tmp_path, programs):
    ended, said, _ = start_step(tmp_path, "no-port")

    assert ended.returncode == 1 and "no-port" in ended.stdout and said == {}
