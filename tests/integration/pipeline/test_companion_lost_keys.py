# SPDX-License-Identifier: Apache-2.0
"""A restart loses keys that are not stored. The watchers of a key that does not exist after it are notified of a deletion.

Otherwise a client that stayed connected would wait for a notification forever.
"""

import shutil

import pytest

from support import resp
from support.connection import KICKED
from support.ctl import Ctl
from support.wire_client import DELETED, WireClient, was_set

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


def next_change(client):
    """Wait for a notification, and return the words after NOTIFY."""
    return resp.read(client.notification().payload)[1:]


def write_lines(path, key):
    path.write_text(f'{{"key":"{key}","value":"value","deadline":null,"token":null}}\n')
    return path


@pytest.mark.parametrize("policy", [NONE, CUSTOM], ids=["none", "custom"])
def test_a_restart_that_loses_a_key_notifies_its_watcher_once(make_site, data, end, policy):
    site = make_site()
    store = start(site, data, *policy)
    waiter = watcher_of(site, "lock")
    other = site.connect(kind=WireClient)
    other.ask("SET", "lock", "holder", "NX")
    set_at = waiter.notification().ts

    end(store)
    store.start()

    deletion = waiter.notification()
    assert resp.read(deletion.payload)[1:] == DELETED
    assert deletion.ts > set_at
    assert other.ask("GET", "lock") == b"$-1\r\n"
    assert other.ask("SET", "lock", "next", "NX") == b"+OK\r\n"
    assert waiter.changes() == [was_set("next")]


def test_only_lost_keys_are_notified(make_site, data, end):
    site = make_site()
    store = start(site, data, *CUSTOM)
    client = watcher_of(site, "stored/lock", "lock")
    client.ask("SET", "stored/lock", "holder")
    assert next_change(client) == was_set("holder")

    end(store)
    store.start()

    assert next_change(client) == DELETED
    client.ask("SET", "stored/lock", "next")
    assert client.changes() == [was_set("next")]


@pytest.mark.parametrize("before, after", [
    (NONE, ALL), (CUSTOM, ALL), (CUSTOM, NONE), (NONE, CUSTOM),
    (CUSTOM, ("--persist", "custom", "--persist-pattern", "*")),
], ids=["none to all", "custom to all", "custom to none", "none to custom", "another pattern"])
def test_lost_keys_follow_from_the_persist_mode_before_the_restart(make_site, data, before, after):
    site = make_site()
    store = start(site, data, *before)
    client = watcher_of(site, "lock")
    client.ask("SET", "lock", "holder")
    assert next_change(client) == was_set("holder")

    store.stop()
    start(site, data, *after)

    assert next_change(client) == DELETED


def test_a_registration_from_before_a_change_of_persist_mode_is_notified(make_site, data):
    site = make_site()
    store = start(site, data)
    client = watcher_of(site, "lock")
    store.stop()
    start(site, data, *NONE)  # no key is lost yet
    client.ask("SET", "lock", "holder")
    assert next_change(client) == was_set("holder")

    store.kill()
    store.start()

    assert next_change(client) == DELETED


def test_lost_and_seeded_keys_are_notified_after_another_restart(make_site, data, tmp_path):
    site = make_site()
    store = start(site, data, *NONE)
    client = watcher_of(site, "lock", "seeded")
    store.stop()

    store.port, port = 1, store.port  # the store reaches no broker, but stores its seed
    store.flags = ("--data-dir", data, "--seed", write_lines(tmp_path / "seed", "seeded"))
    store.launch()
    store.wait_for_log("seeded from")
    store.kill()
    store.port = port
    start(site, data)

    assert next_change(client) == was_set("value")
    assert next_change(client) == DELETED
    assert client.changes() == []


@pytest.mark.parametrize("plugin", [True, False], ids=["plugin", "plain"])
def test_an_import_into_the_directory_notifies_watchers_of_those_keys(make_site, data, tmp_path, plugin):
    site = make_site(plugin=plugin)
    store = start(site, data)
    client = site.connect(kind=WireClient)
    client.subscribe_to_notifications()
    client.register("key")

    store.stop()
    Ctl(site.broker.port).ok("import", write_lines(tmp_path / "lines", "key"), "--data-dir", data)
    store.start()

    assert next_change(client) == was_set("value")
    client.ask("SET", "key", "next")
    assert next_change(client) == was_set("next")


def test_seeding_notifies_watchers_of_those_keys(make_site, data, tmp_path):
    site = make_site()
    store = start(site, data)
    client = watcher_of(site, "key")

    store.stop()
    start(site, data, "--seed", write_lines(tmp_path / "seed", "key"))

    assert next_change(client) == was_set("value")
    client.ask("SET", "key", "next")
    assert client.changes() == [was_set("next")]


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


def test_a_lost_key_is_notified_without_the_plugin_too(make_site, data):
    site = make_site(plugin=False)
    store = start(site, data, *NONE)
    client = site.connect(kind=WireClient)
    client.subscribe_to_notifications()
    client.register("lock")

    store.stop()
    store.start()

    assert next_change(client) == DELETED
    client.ask("SET", "lock", "holder")
    assert next_change(client) == was_set("holder")
