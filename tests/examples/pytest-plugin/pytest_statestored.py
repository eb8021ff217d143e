# SPDX-License-Identifier: Apache-2.0
"""`statestore_url`: the URL of a double's broker. `statestore_control`: sends the words of `statestorectl test`.

Each pytest process starts a double of its own on a free port, so `pytest -n 4` runs four. If STATESTORE_URL is set, all tests
use the double that it names.
"""

import os
import shutil
import subprocess
import urllib.parse

import pytest

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/local/bin:/usr/sbin"


def find_program(name):
    return shutil.which(name, path=PATH) or pytest.fail(f"{name} is not in {PATH}: install statestored, or extend PATH")


@pytest.fixture(scope="session")
def statestore_url():
    if "STATESTORE_URL" in os.environ:
        yield os.environ["STATESTORE_URL"]
        return
    double = subprocess.Popen(
        [find_program("statestored"), "--dev", "--control", "--port", "0", "--exit-with-parent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    url = double.stdout.readline().strip()
    if not url:
        pytest.fail(f"statestored did not start: exit status {double.wait()}")
    yield url
    double.stdin.close()
    double.wait(30)


@pytest.fixture
def statestore_control(statestore_url):
    """Ends with a reset, unless other processes may use the double as well."""

    def control(*words):
        broker = urllib.parse.urlsplit(statestore_url)
        command = [find_program("statestorectl"), "--host", broker.hostname, "--port", str(broker.port or 1883), "test", *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    yield control
    if "STATESTORE_URL" not in os.environ:
        control("reset")
