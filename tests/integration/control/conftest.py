# SPDX-License-Identifier: Apache-2.0
"""A test double with --control: one per module, reset before and after each test."""

import uuid

import pytest

from support.control import Control
from support.double import running_double


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with running_double(tmp_path_factory.mktemp("control"), "--control") as double:
        yield double


@pytest.fixture
def double(started):
    """Resets the double before and after the test, so that no test depends on another one."""
    started.control = started.connect(f"control-{uuid.uuid4().hex[:8]}", Control)
    started.control.do("reset")
    yield started
    started.control.do("reset")
    started.close_clients()


@pytest.fixture
def control(double):
    return double.control


@pytest.fixture
def client(double):
    return double.connect("client-1")
