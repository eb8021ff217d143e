# SPDX-License-Identifier: Apache-2.0
"""Fixtures that run statestorectl with a shared store or with a store of the test."""

import pytest

from support.ctl import Ctl


@pytest.fixture
def ctl(shared):
    return Ctl(shared.broker.port)


@pytest.fixture
def site_ctl(site):
    """statestorectl with a broker and a store that no other test uses."""
    site.start_store()
    return Ctl(site.broker.port)
