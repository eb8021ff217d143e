# SPDX-License-Identifier: Apache-2.0
"""`key`, `store` and `control` as in ../../python/conftest.py, with the store in a container. Use it with statestore.py and the tests
there."""

import os
import uuid

import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from statestore import StateStore

IMAGE = os.environ.get("STATESTORE_IMAGE", "statestored-double")


@pytest.fixture(scope="session")
def statestore_url():
    double = DockerContainer(IMAGE).with_exposed_ports(1883).waiting_for(LogMessageWaitStrategy("mqtt://"))
    with double:
        yield f"mqtt://{double.get_container_host_ip()}:{double.get_exposed_port(1883)}"


@pytest.fixture
def key():
    """The keys of the test begin with a prefix of their own, so tests that run at the same time can share the double."""
    prefix = uuid.uuid4().hex[:8]
    return lambda name: f"{prefix}/{name}"


@pytest.fixture
def control(statestore_url, key):
    with StateStore(statestore_url) as client:
        def control(*words):
            return client.ask(*words, topic="control/invoke").value

        yield control
        control("reset", "key", key("*"))


@pytest.fixture
def store(statestore_url, control):
    with StateStore(statestore_url) as store:
        yield store
