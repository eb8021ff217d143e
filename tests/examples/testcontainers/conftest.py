# SPDX-License-Identifier: Apache-2.0
"""`store` and `control` as in ../python/conftest.py, with the store in a container. Use it with statestore.py and the tests
there."""

import os

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
def control(statestore_url):
    with StateStore(statestore_url) as client:
        def control(*words):
            return client.ask(*words, topic="control/invoke").value

        control("reset")
        yield control


@pytest.fixture
def store(statestore_url, control):
    with StateStore(statestore_url) as store:
        yield store
