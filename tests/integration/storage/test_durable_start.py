# SPDX-License-Identifier: Apache-2.0
"""The start of a store with a data directory: locking, loading, and refusing damaged data."""

import os
import re
import sqlite3
import time

import pytest

from support.process import wait_until
from support.store import RESTART_S, Store

DELETED = b"*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n"


@pytest.fixture
def second(site, tmp_path, data):
    """Starts another store in the same directory."""
    directory = tmp_path / "second"
    directory.mkdir()
    store = Store(directory, site.broker.port, ("--data-dir", data, "--client-id", "second"))
    yield store
    if store.running():
        store.kill()


def content(data):
    """The files without the lock, and without what SQLite creates when it reads: the index of the log, and an empty log."""
    found = {path.name: path.read_bytes() for path in data.iterdir() if path.name not in ("lock", "statestored.db-shm")}
    return {name: content for name, content in found.items() if content}


def assert_refuses(store, data, reason):
    before = content(data)
    store.launch()
    assert store.wait() == 1
    log = store.log()
    assert re.search(reason, log), log
    assert str(data) in log
    assert content(data) == before


def test_a_second_process_is_refused_and_the_first_continues(site, data, second):
    site.start_store("--data-dir", data)
    client = site.connect()

    second.launch()

    assert second.wait() == 1
    assert "in use by another process" in second.log()
    assert client.request("SET", "key", "value").payload == b"+OK\r\n"


def test_the_start_is_one_line_with_what_was_loaded(site, data):
    def starts():
        found = re.findall(r'msg="statestored [\d.]+: data_dir=\\"(.+)\\" keys=(\d+) load_ms=\d+ last_end=(\w+)"', site.store.log())
        return [(keys, last_end) for directory, keys, last_end in found if directory == str(data)]

    site.start_store("--data-dir", data)
    assert starts()[-1] == ("0", "none")
    client = site.connect()
    for key in "one", "two":
        client.request("SET", key, "value")
    for end, shown in ("stop", "clean"), ("kill", "unclean"), ("stop", "clean"):
        getattr(site.store, end)()
        site.store.start()
        assert starts()[-1] == ("2", shown)


def test_killing_the_owner_releases_the_lock(site, data, second):
    site.start_store("--data-dir", data)
    client = site.connect()
    client.request("SET", "key", "value")
    site.store.kill()

    second.start()

    assert client.request("GET", "key").payload == b"$5\r\nvalue\r\n"
    assert second.stop() == 0


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_damaged_database_is_refused_and_not_changed(site, data, end):
    store = site.start_store("--data-dir", data)
    client = site.connect()
    client.request("SET", "key", "a value that is easily found")
    getattr(store, end)()
    whole = content(data)
    for name, found in whole.items():
        at = found.find(b"easily")
        if at >= 0:
            (data / name).write_bytes(found[:at] + b"E" + found[at + 1:])

    assert_refuses(store, data, "damaged|was acknowledged")

    for name, found in whole.items():
        (data / name).write_bytes(found)
    store.start()
    assert client.request("GET", "key").payload == b"$28\r\na value that is easily found\r\n"


def test_a_newer_database_is_refused_and_not_changed(site, data):
    store = site.start_store("--data-dir", data)
    store.stop()
    database = sqlite3.connect(data / "statestored.db")
    database.execute("PRAGMA user_version = 1000")
    database.close()

    assert_refuses(store, data, "newer")


def test_a_foreign_database_is_refused_and_not_changed(site, data):
    data.mkdir()
    database = sqlite3.connect(data / "statestored.db")
    database.execute("CREATE TABLE entries (key, value)")
    database.close()
    store = site.launch_store("--data-dir", data)
    before = content(data)

    assert store.wait() == 1
    assert "not a database of statestored" in store.log()
    assert content(data) == before


def test_a_pipe_in_place_of_the_database_is_refused(site, data):
    """Opening it must not block: the store would hang without a message."""
    site.start_store("--data-dir", data)
    site.store.stop()
    (data / "statestored.db").unlink()
    os.mkfifo(data / "statestored.db")

    site.store.launch()

    assert site.store.wait() == 1
    assert str(data) in site.store.log()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_key_that_expired_while_stopped_is_removed_and_its_watcher_notified(make_site, data, end):
    site = make_site()
    store = site.start_store("--data-dir", data)
    client = site.connect()
    client.watch("short", "long")
    client.request("SET", "long", "value", "PX", 600000)
    version = client.request("SET", "short", "value", "PX", 300).ts
    assert [client.notification().payload[:20] for _ in range(2)]

    getattr(store, end)()
    time.sleep(0.4)
    store.start()

    notification = client.notification()
    assert notification.payload == DELETED
    assert notification.ts == version
    assert client.request("GET", "short").payload == b"$-1\r\n"
    assert client.request("GET", "long").payload == b"$5\r\nvalue\r\n"


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_key_keeps_its_deadline_over_a_restart(site, data, end):
    store = site.start_store("--data-dir", data)
    client = site.connect()
    begun = time.monotonic()
    client.request("SET", "key", "value", "PX", 3000)

    getattr(store, end)()
    store.start()

    wait_until(lambda: client.request("GET", "key").payload == b"$-1\r\n", "the key expires")
    assert time.monotonic() - begun >= 3 - RESTART_S


def test_selected_keys_survive_a_restart(site, data, tmp_path):
    """Several patterns and keys, from the file."""
    file = tmp_path / "statestored.conf"
    file.write_text(f"[storage]\ndata-dir = {data}\npersist = custom\npersist-pattern = a*\npersist-pattern = b*\n"
                    "persist-key = one\npersist-key = base64:/wA=\n")
    site.start_store("--config", file)
    client = site.connect()
    for key in b"a1", b"b1", b"one", b"\xff\x00", b"c1", b"one more":
        assert client.request("SET", key, "value").payload == b"+OK\r\n"
    site.store.kill()
    site.store.start()

    lost = [key for key in (b"a1", b"b1", b"one", b"\xff\x00", b"c1", b"one more") if client.request("GET", key).payload == b"$-1\r\n"]
    assert lost == [b"c1", b"one more"]
