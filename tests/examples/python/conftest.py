# SPDX-License-Identifier: Apache-2.0
"""`key`: makes the keys of a test. `store`: a client. `control`: sends the words of `statestorectl test`. One double serves all
tests, also those of several processes."""

import os
import subprocess
import uuid

import pytest

import statestore
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
def key():
    """The keys of the test begin with a prefix of their own, so tests that run at the same time can share the double."""
    prefix = uuid.uuid4().hex[:8]
    return lambda name: f"{prefix}/{name}"


@pytest.fixture
def control(statestore_url, key):
    """The clients connect again at once, because the tests lose connections."""
    with StateStore(statestore_url, timeout=30) as client:
        def control(*words):
            return client.ask(*words, topic="control/invoke").value

        yield control
        control("reset", "key", key("*"))


@pytest.fixture
def store(statestore_url, control, monkeypatch):
    monkeypatch.setattr(statestore, "RECONNECT", 0.01)
    with StateStore(statestore_url, timeout=30) as store:
        yield store
