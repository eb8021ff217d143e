# SPDX-License-Identifier: Apache-2.0
"""statestorectl beside a store that others use too, and beside one of its own."""

import pytest

from support.ctl import Ctl


@pytest.fixture
def ctl(shared):
    return Ctl(shared.broker.port)


@pytest.fixture
def own(site):
    """Against a broker and a store that no other test knows."""
    site.start_store()
    return Ctl(site.broker.port)
