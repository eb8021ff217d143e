# SPDX-License-Identifier: Apache-2.0
"""A full disk: writes are refused, reads are served, and writes succeed again when there is room."""

import json
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from support import resp
from support.broker import free_port
from support.ctl import STORE_ERROR, environment
from support.failing_disk import FailingDisk
from support.limited_store import ROOM, LimitedStore, limited
from support.process import CTL, PATIENCE, wait_until
from support.wire_client import WireClient, was_set

FULL = b"-ERR the disk is full\r\n"
VALUE = b"v" * 4000


@pytest.fixture
def store(site, tmp_path):
    site.store = LimitedStore(site.directory, site.broker.port, ("--data-dir", tmp_path / "data"))
    return site.store.start()


def fill(client):
    """Sets keys until some are refused. Returns the number of keys that were set."""
    n, n_refused = 0, 0
    while n_refused < 5:
        reply = client.request("SET", f"key-{n}", VALUE)
        assert reply.payload in (b"+OK\r\n", FULL)
        if reply.payload == FULL:
            n_refused += 1
        else:
            n += 1
            n_refused = 0
    assert n > 20
    return n


def assert_holds(client, n):
    replies = client.request_all(("GET", f"key-{i}") for i in range(n))
    assert {resp.read(reply.payload) for reply in replies} == {VALUE}
    assert client.request("GET", f"key-{n}").payload == b"$-1\r\n"


def test_a_full_disk_is_reported_and_reads_are_served(site, store):
    client = site.connect()
    n = fill(client)

    assert_holds(client, n)
    assert client.request("SET", f"key-{n}", VALUE).payload == FULL
    assert client.request("GET", f"key-{n}").payload == b"$-1\r\n"


def test_writes_succeed_again_when_there_is_room(site, store):
    client = site.connect()
    n = fill(client)

    store.lift()

    assert client.request("SET", f"key-{n}", VALUE).payload == b"+OK\r\n"
    assert_holds(client, n + 1)
    store.kill()
    store.start()
    assert_holds(client, n + 1)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_store_that_ends_with_a_full_disk_keeps_acknowledged_writes(site, store, end):
    client = site.connect()
    n = fill(client)

    getattr(store, end)()
    store.launch()
    wait_until(lambda: store.is_ready() or not store.running(), "statestored starts")
    if store.running():
        assert_holds(client, n)
        store.lift()
    else:
        raise AssertionError(store.log())


def test_a_refused_request_can_be_repeated(site, store):
    client = site.connect()
    n = fill(client)
    request = {"ts": client.clock.now(), "correlation": b"0123456789abcdef"}
    assert client.request("SET", f"key-{n}", VALUE, **request).payload == FULL

    store.lift()

    assert client.request("SET", f"key-{n}", VALUE, **request).payload == b"+OK\r\n"


def test_the_store_is_ready_again_when_there_is_room_without_a_write(site, tmp_path):
    page = Page()
    site.store = LimitedStore(site.directory, site.broker.port, ("--data-dir", tmp_path / "data", *page.flags))
    site.store.start()

    assert page.get("/readyz") == (200, "ready\n")
    client = site.connect()
    fill(client)
    wait_until(lambda: page.get("/readyz") == (503, READS_ONLY), "the store reports the full disk")
    client.request("GET", "key-0")
    site.store.lift()
    wait_until(lambda: page.get("/readyz") == (200, "ready\n"), "the store is ready again")


class Page:
    """A page of the store's HTTP server."""

    def __init__(self):
        self.port = free_port()
        self.flags = ("--http-listen", f"127.0.0.1:{self.port}")

    def get(self, path):
        """Return status and text."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


READS_ONLY = "the disk of the data directory is full: keys are served, but can only be deleted until there is room\n"


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_store_that_starts_on_a_full_disk_serves_reads_until_there_is_room(site, data, tmp_path, end):
    """After a stop SQLite has no room for its files; after a kill it has them, but cannot extend them."""
    disk, page = FailingDisk(tmp_path / "fails"), Page()
    site.start_store("--data-dir", data, *page.flags, environment=disk.environment)
    client = site.connect()
    client.request("SET", "key", "value")
    getattr(site.store, end)()

    disk.fails("full")
    site.store.start()
    assert client.request("GET", "key").payload == b"$5\r\nvalue\r\n"
    assert client.request("SET", "key", VALUE).payload == FULL
    assert page.get("/readyz") == (503, READS_ONLY)
    assert "\nstatestore_storage_failing 1\n" in page.get("/metrics")[1]
    if end == "stop":
        assert "no room to write to" in site.store.log()
    else:
        assert "commit failed: free space" in site.store.log()

    disk.works()
    assert client.request("SET", "key", VALUE).payload == b"+OK\r\n"
    assert page.get("/readyz") == (200, "ready\n")
    site.store.kill()
    site.store.start()
    assert resp.read(client.request("GET", "key").payload) == VALUE


def test_an_idle_store_finds_out_at_its_start_that_the_disk_is_full(site, data, tmp_path):
    disk, page = FailingDisk(tmp_path / "fails"), Page()
    site.start_store("--data-dir", data, *page.flags, environment=disk.environment)
    site.store.kill()
    disk.fails("full")
    site.store.start()
    wait_until(lambda: page.get("/readyz") == (503, READS_ONLY), "the store reports the full disk")
    disk.works()
    wait_until(lambda: page.get("/readyz") == (200, "ready\n"), "the store is ready")


def test_a_warning_comes_before_the_disk_is_full(site, data, tmp_path):
    disk, page = FailingDisk(tmp_path / "fails"), Page()
    site.start_store("--data-dir", data, *page.flags, environment=disk.environment)
    warning = "only 10 MiB are free on the disk of the data directory"
    assert warning not in page.get("/readyz")[1]

    disk.fails("low")
    assert page.get("/readyz") == (200, f"ready\n{warning}\n")
    assert "\nstatestore_disk_free_bytes 10485760\n" in page.get("/metrics")[1]
    site.store.wait_for_log(f'level=warning msg="{warning} \\\\"{data}\\\\": free space before it is full"')
    assert site.connect().request("SET", "key", "value").payload == b"+OK\r\n"


def test_keys_are_deleted_and_expire_on_a_full_disk(make_site, data, tmp_path):
    site, disk = make_site(), FailingDisk(tmp_path / "fails")
    site.start_store("--data-dir", data, environment=disk.environment)
    client, watcher = site.connect(), site.connect()
    watcher.watch("short")
    for i in range(20):
        client.request("SET", f"key-{i}", VALUE)
    client.request("SET", "short", VALUE, "PX", 500)

    disk.fails("full")
    while client.request("SET", "new", VALUE).payload != FULL:
        pass
    for i in range(20):
        assert client.request("DEL", f"key-{i}").payload == b":1\r\n"
        assert client.request("SET", f"new-{i}", VALUE * 20).payload == FULL
    # a notification is sent after its commit
    assert [resp.read(watcher.notification().payload)[1] for _ in range(2)] == [b"SET", b"DELETE"]

    site.store.kill()
    disk.works()
    site.store.start()
    assert client.request("GET", "key-7").payload == b"$-1\r\n"
    assert client.request("GET", "short").payload == b"$-1\r\n"


def test_a_refused_write_notifies_nobody_and_later_writes_do(make_site, data):
    site = make_site()
    site.store = LimitedStore(site.directory, site.broker.port, ("--data-dir", data)).start()
    watcher, writer = site.connect(kind=WireClient), site.connect(kind=WireClient)
    watcher.register("key")
    fill(site.connect())
    for _ in range(3):
        assert writer.ask("SET", "key", VALUE) == FULL
    assert watcher.messages() == []

    site.store.lift()
    assert writer.ask("SET", "key", "later") == b"+OK\r\n"
    assert watcher.changes() == [was_set("later")]
    site.store.kill()
    site.store.room = "unlimited"
    site.store.start()
    assert writer.ask("SET", "key", "last") == b"+OK\r\n"
    assert watcher.changes() == [was_set("last")]


def lines(path, n_keys):
    path.write_text("".join(json.dumps({"key": f"key-{i}", "value": VALUE.decode()}) + "\n" for i in range(n_keys)))
    return path


def test_a_start_after_a_full_disk_completes_the_seed(site, data, tmp_path):
    n_keys = 2000
    site.store = LimitedStore(site.directory, site.broker.port,
                              ("--data-dir", data, "--seed", lines(tmp_path / "lines", n_keys)))
    site.store.room = 10 * ROOM  # several commits, but not all
    site.store.launch()
    assert site.store.wait() == 1
    assert "could not be stored: No space left on device" in site.store.log()
    assert not site.store.is_ready()

    site.store.room = "unlimited"
    site.store.start()
    n_set, n_existing = map(int, re.search(r"seeded from .*: set=(\d+) existing=(\d+) ", site.store.log()).groups())
    assert n_set > 0
    assert n_existing > 0
    assert n_set + n_existing == n_keys
    assert_holds(site.connect(), n_keys)


def test_an_import_on_a_full_disk_stores_nothing(make_site, data, tmp_path):
    """A watched key: its notification is part of the commit that fails."""
    site = make_site()
    site.start_store("--data-dir", data)
    watcher = site.connect(kind=WireClient)
    watcher.register("key-0")
    assert site.store.stop() == 0
    command = [CTL, "import", lines(tmp_path / "lines", 1500), "--data-dir", data]

    result = subprocess.run(limited(command), env=environment({}), capture_output=True, timeout=PATIENCE)
    assert (result.returncode, result.stdout) == (STORE_ERROR, b"")
    assert b"commit failed: No space left on device" in result.stderr

    assert subprocess.run(command, env=environment({}), capture_output=True, timeout=PATIENCE).returncode == 0
    site.store.start()
    assert watcher.changes() == [was_set(VALUE)]
