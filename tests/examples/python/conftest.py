# SPDX-License-Identifier: Apache-2.0
"""`store`: a client of an empty state store. One double serves all tests of a run."""

import os
import subprocess

import pytest

from statestore import StateStore


@pytest.fixture(scope="session")
def statestore_url():
    """Use the double that the environment names, or start one that stops with the test run."""
    if "STATESTORE_URL" in os.environ:
        yield os.environ["STATESTORE_URL"]
        return
    double = subprocess.Popen(
        ["statestored", "--dev", "--control", "--port", "0", "--exit-with-parent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    url = double.stdout.readline().strip()
    assert url.startswith("mqtt://"), "statestored did not start"
    yield url
    double.stdin.close()
    double.wait(30)


@pytest.fixture
def store(statestore_url):
    store = StateStore(statestore_url)
    store.control("reset")
    yield store
    store.close()
