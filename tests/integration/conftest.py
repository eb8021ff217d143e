# SPDX-License-Identifier: Apache-2.0
"""Fixtures for a broker with a store: shared, or for one test.

`shared` is a broker and a store that all tests of one worker use, so each test uses its own keys and client ids there.
`client` is connected to it. `site` is a broker for one test, which starts a store with site.start_store() and may stop,
flood or fill both. `shared_plugin_site` is like `shared`, and `make_site` like `site`, with the plugin in the broker.
"""

import contextlib
import itertools
import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.fake_broker import FakeBroker  # noqa: E402
from support.proxy import Proxy  # noqa: E402
from support.site import Site, SiteBroker  # noqa: E402
from support.store import Store  # noqa: E402


LONGEST_GROUPS = ["image", "console_page"]


def pytest_collection_modifyitems(items):
    """Begin with the groups: one process runs all tests of a group, and the longest group would end long after the rest."""
    def place(item):
        group = item.get_closest_marker("xdist_group")
        name = group and group.args[0]
        return LONGEST_GROUPS.index(name) if name in LONGEST_GROUPS else len(LONGEST_GROUPS) + (group is None)

    items.sort(key=place)


@pytest.fixture
def until_end():
    """Returns the object that it is called with, and closes it after the test."""
    with contextlib.ExitStack() as opened:
        yield lambda each: opened.enter_context(contextlib.closing(each))


@pytest.fixture
def site(until_end, tmp_path):
    return until_end(Site(tmp_path))


@pytest.fixture
def make_site(until_end, tmp_path):
    """Makes a site whose broker has these lines in its configuration, and the plugin unless plugin=False."""
    numbers = itertools.count()

    def make(*lines, **more):
        directory = tmp_path / f"site-{next(numbers)}"
        directory.mkdir()
        return until_end(Site(directory, SiteBroker(directory, *lines, **more)))

    return make


@pytest.fixture
def proxy_of(until_end):
    """Makes a proxy in front of a site's broker. The proxy can interrupt connections."""
    return lambda site: until_end(Proxy(site.broker.port))


@pytest.fixture(scope="session")
def sites(tmp_path_factory):
    """The shared sites by dialect, each started when first asked for, and again when a test has ended its store."""
    started = {}

    def site_of(dialect, plugin=False):
        name = f"{dialect}-plugin" if plugin else dialect
        if name not in started:
            directory = tmp_path_factory.mktemp(name)
            site = Site(directory, SiteBroker(directory) if plugin else None)
            started[name] = site
            site.start_store("--dialect", dialect)
        elif not started[name].store.running():
            started[name].store.start()
        return started[name]

    try:
        yield site_of
    finally:
        for site in started.values():
            site.close()


@pytest.fixture
def dialect():
    """The dialect of the shared store. A test parametrizes it to use the other one."""
    return "sdk"


@pytest.fixture
def shared(sites, dialect):
    site = sites(dialect)
    yield site
    site.disconnect_all()
    assert site.store.running(), f"this test ended the store\n{site.store.log()}"


@pytest.fixture
def shared_plugin_site(sites):
    site = sites("sdk", plugin=True)
    yield site
    site.disconnect_all()
    assert site.store.running(), f"this test ended the store\n{site.store.log()}"


@pytest.fixture
def client(shared):
    return shared.connect()


@pytest.fixture
def key():
    return f"key-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def store_of(tmp_path):
    """Makes a store for a port; it is ended after the test."""
    stores = []

    def make(port):
        stores.append(Store(tmp_path, port))
        return stores[-1]

    try:
        yield make
    finally:
        for store in stores:
            if store.running():
                store.kill()


@pytest.fixture
def data(tmp_path):
    """The path of a data directory."""
    return tmp_path / "data"


@pytest.fixture(params=["stop", "kill"])
def end(request):
    """Ends a store in one of the two ways."""
    return lambda store: getattr(store, request.param)()


@pytest.fixture
def fake_broker(until_end):
    return until_end(FakeBroker())
