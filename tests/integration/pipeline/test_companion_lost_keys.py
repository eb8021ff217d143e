# SPDX-License-Identifier: Apache-2.0
"""A restart loses keys that are not stored: clients that watched them are disconnected, so that they register again.

No notification tells of such a loss. A client that stayed connected would wait for one forever.
"""

import shutil

import pytest

from support.connection import KICKED
from support.ctl import Ctl
from support.wire_client import WireClient, was_set

NONE = ("--persist", "none")
CUSTOM = ("--persist", "custom", "--persist-pattern", "stored/*")
ALL = ()


def start(site, data, *options):
    """Start the site's store with these options instead of its former ones."""
    if not site.store:
        return site.start_store("--data-dir", data, *options)
    site.store.flags = ("--data-dir", data, *options)
    return site.store.start()


def watcher_of(site, *keys):
    client = site.connect(kind=WireClient)
    client.register(*keys)
    return client


def write_lines(path, key):
    path.write_text(f'{{"key":"{key}","value":"value"}}\n')
    return path


@pytest.mark.parametrize("policy", [NONE, CUSTOM], ids=["none", "custom"])
def test_a_restart_that_loses_a_key_disconnects_its_watcher(make_site, data, end, policy):
    site = make_site()
    store = start(site, data, *policy)
    waiter = watcher_of(site, "lock")
    other = site.connect(kind=WireClient)
    other.ask("SET", "lock", "holder", "NX")

    end(store)
    store.start()

    assert waiter.wait_until_closed() == KICKED
    assert other.ask("GET", "lock") == b"$-1\r\n"


def test_watchers_of_stored_keys_stay_connected(make_site, data, end):
    site = make_site()
    store = start(site, data, *CUSTOM)
    client = watcher_of(site, "stored/lock")

    end(store)
    store.start()
    client.ask("SET", "stored/lock", "holder")

    assert client.changes() == [was_set("holder")]


def test_a_client_that_watches_both_kinds_is_disconnected(make_site, data, end):
    site = make_site()
    store = start(site, data, *CUSTOM)
    client = watcher_of(site, "stored/lock", "lock")

    end(store)
    store.start()

    assert client.wait_until_closed() == KICKED


@pytest.mark.parametrize("before, after", [
    (NONE, ALL), (CUSTOM, ALL), (CUSTOM, NONE), (NONE, CUSTOM),
    (CUSTOM, ("--persist", "custom", "--persist-pattern", "*")),
], ids=["none to all", "custom to all", "custom to none", "none to custom", "another pattern"])
def test_lost_keys_follow_from_the_persist_mode_before_the_restart(make_site, data, before, after):
    site = make_site()
    store = start(site, data, *before)
    client = watcher_of(site, "lock")
    client.ask("SET", "lock", "holder")

    store.stop()
    start(site, data, *after)

    assert client.wait_until_closed() == KICKED


def test_a_registration_from_before_a_change_of_persist_mode_ends(make_site, data):
    site = make_site()
    store = start(site, data)
    client = watcher_of(site, "lock")
    store.stop()
    start(site, data, *NONE)  # no key is lost yet
    client.ask("SET", "lock", "holder")
    assert client.changes() == [was_set("holder")]

    store.kill()
    store.start()

    assert client.wait_until_closed() == KICKED


def test_pending_disconnects_survive_another_restart(make_site, data, tmp_path):
    site = make_site()
    store = start(site, data, *NONE)
    client = watcher_of(site, "lock")
    store.stop()

    store.port, port = 1, store.port  # the store reaches no broker, but stores its seed
    store.flags = ("--data-dir", data, "--seed", write_lines(tmp_path / "seed", "seeded"))
    store.launch()
    store.wait_for_log("seeded from")
    store.kill()
    store.port = port
    start(site, data)

    assert client.wait_until_closed() == KICKED


def test_an_import_into_the_directory_disconnects_watchers_of_those_keys(make_site, data, tmp_path):
    site = make_site()
    store = start(site, data)
    client = watcher_of(site, "key")

    store.stop()
    Ctl(site.broker.port).ok("import", write_lines(tmp_path / "lines", "key"), "--data-dir", data)
    store.start()

    assert client.wait_until_closed() == KICKED


def test_seeding_disconnects_watchers_of_those_keys(make_site, data, tmp_path):
    site = make_site()
    store = start(site, data)
    client = watcher_of(site, "key")

    store.stop()
    start(site, data, "--seed", write_lines(tmp_path / "seed", "key"))

    assert client.wait_until_closed() == KICKED


def test_an_older_copy_of_the_database_disconnects_all_watchers(make_site, data, tmp_path):
    site = make_site()
    store = start(site, data)
    client = watcher_of(site, "key")
    store.stop()
    shutil.copy(data / "statestored.db", tmp_path / "older")
    store.start()
    client.ask("SET", "key", "newer")

    store.stop()
    for path in data.iterdir():
        path.unlink()
    shutil.copy(tmp_path / "older", data / "statestored.db")
    store.start()

    assert client.wait_until_closed() == KICKED


def test_lost_keys_are_logged_without_the_plugin_and_registrations_stay(make_site, data):
    site = make_site(plugin=False)
    store = start(site, data, *NONE)
    client = site.connect(kind=WireClient)
    client.subscribe_to_notifications()
    client.register("lock")

    store.stop()
    store.start()

    store.wait_for_log("keys that were not stored are lost")
    client.ask("SET", "lock", "holder")
    assert client.changes() == [was_set("holder")]
