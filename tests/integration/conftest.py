# SPDX-License-Identifier: Apache-2.0
"""Two ways to a running store.

`client` and `key` stand on a broker and a store that the tests of one worker share: each test keeps to keys and
clients of its own there. `site` is a broker that no other test knows: to be stopped, flooded, filled up.
"""

import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.site import Site  # noqa: E402


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    try:
        yield site
    finally:
        site.close()


@pytest.fixture(scope="session")
def sites(tmp_path_factory):
    """The shared sites by dialect, each started when first asked for, and again when a test has ended its store."""
    started = {}

    def site_of(dialect):
        if dialect not in started:
            site = Site(tmp_path_factory.mktemp(dialect))
            started[dialect] = site
            site.start_store("--dialect", dialect)
        elif not started[dialect].store.running():
            started[dialect].store.start()
        return started[dialect]

    try:
        yield site_of
    finally:
        for site in started.values():
            site.close()


@pytest.fixture
def dialect():
    """Parametrize it to speak another one."""
    return "sdk"


@pytest.fixture
def shared(sites, dialect):
    site = sites(dialect)
    yield site
    site.disconnect_all()
    assert site.store.running(), f"this test ended the store\n{site.store.log()}"


@pytest.fixture
def client(shared):
    return shared.connect()


@pytest.fixture
def key():
    return f"key-{uuid.uuid4().hex[:12]}"
