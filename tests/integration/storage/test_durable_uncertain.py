# SPDX-License-Identifier: Apache-2.0
"""It is unknown whether a commit is stored: its sync or its write failed, or the process was killed during the commit.

The store promises nothing, and ends. After the restart the commit is whole or absent, and all numbers continue. The plugin then
sends the request again, so with the plugin it is executed in either case, once.
"""

import json
import subprocess

import pytest

from support import stored
from support.ctl import STORE_ERROR, environment
from support.failing_disk import FailingDisk
from support.process import CTL, PATIENCE, preload, wait_until
from support.wire_client import WireClient, was_set

UNKNOWN = "it is unknown whether the last commit is stored"

N_KEYS = 100  # of a seed or an import: one commit


@pytest.fixture
def disk(tmp_path):
    return FailingDisk(tmp_path / "fails")


def version(reply):
    return dict(reply.user)["__ts"]


def numbers(data):
    header = stored.header(data)
    return header["commits"], header["notification_sequence"]


class Uncertain:
    """A store with a committed value, a writer of the next value, and a watcher."""

    def __init__(self, site, data):
        self.site, self.data = site, data
        self.writer, self.watcher = site.connect(kind=WireClient), site.connect(kind=WireClient)
        self.watcher.subscribe_to_notifications()
        self.watcher.register("key")
        self.before = version(self.writer.reply_to(self.writer.begin("SET", "key", "before")))
        assert self.watcher.changes() == [was_set("before")]
        # Until then the store would commit also without a write.
        wait_until(lambda: stored.notified_keys(data) == [], "the deliveries are stored")
        self.numbers = numbers(data)

    def write(self):
        self.requests = [self.writer.begin("SET", "key", "after"), self.writer.begin("GET", "key")]

    def check_that_nothing_was_sent(self):
        assert self.writer.messages() == []
        assert self.watcher.messages() == []

    def check_that_all_was_sent(self):
        assert [self.writer.reply_to(request).payload for request in self.requests] == [b"+OK\r\n", b"$5\r\nafter\r\n"]

    def check_after_restart(self, expected):
        """The write is whole or absent, as expected, in value, version and notification."""
        present = self.writer.reply_to(self.writer.begin("GET", "key"))
        is_stored = expected == "after"
        assert present.payload == f"${len(expected)}\r\n{expected}\r\n".encode()
        assert (version(present) > self.before) == is_stored
        restarted = numbers(self.data)
        assert restarted[0] >= self.numbers[0] + is_stored
        assert restarted[1] == self.numbers[1] + is_stored

        assert version(self.writer.reply_to(self.writer.begin("SET", "key", "later"))) > version(present)
        assert self.watcher.changes() == [was_set("after")] * is_stored + [was_set("later")]
        later = numbers(self.data)
        assert later[0] > restarted[0]
        assert later[1] == restarted[1] + 2  # the marker of changes() is a notification, too


@pytest.mark.parametrize("plugin", [False, True], ids=["plain", "plugin"])
@pytest.mark.parametrize("call, expected", [
    ("sync", "after"),  # the page cache has the commit
    ("write", "before"),
])
def test_a_write_with_an_uncertain_commit_gets_no_reply_and_notifies_nobody(make_site, data, disk, call, expected, plugin):
    """Until the restart of the store."""
    site = make_site(plugin=plugin)
    site.start_store("--data-dir", data, environment=disk.environment)
    uncertain = Uncertain(site, data)

    disk.fails(call)
    uncertain.write()
    assert site.store.wait() == 1

    uncertain.check_that_nothing_was_sent()
    assert site.store.log().count(UNKNOWN) == 1
    disk.works()
    site.store.start()
    if plugin:
        uncertain.check_that_all_was_sent()
    uncertain.check_after_restart("after" if plugin else expected)


@pytest.mark.parametrize("plugin", [False, True], ids=["plain", "plugin"])
def test_a_write_gets_no_reply_if_the_store_is_killed_during_its_commit(make_site, data, tmp_path, plugin):
    """Until the restart of the store."""
    stall = tmp_path / "stall"
    site = make_site(plugin=plugin)
    site.start_store("--data-dir", data, environment={**preload("stall_shim"), "STATESTORE_STALL": str(stall)})
    uncertain = Uncertain(site, data)
    log = data / "statestored.db-wal"

    stall.touch()
    before = log.read_bytes()
    uncertain.write()
    wait_until(lambda: log.read_bytes() != before, "the commit is written")
    uncertain.check_that_nothing_was_sent()
    site.store.kill()

    uncertain.check_that_nothing_was_sent()
    stall.unlink()
    site.store.start()
    if plugin:
        uncertain.check_that_all_was_sent()
    uncertain.check_after_restart(stored_value(data))


def stored_value(data):
    value, _ = stored.entries(data)[b"key"]
    return value.decode()


def test_a_repeated_write_with_an_uncertain_commit_is_executed_once(make_site, data, disk):
    site = make_site()
    site.start_store("--data-dir", data, environment=disk.environment)
    writer = site.connect(kind=WireClient)
    assert writer.ask("SET", "key", "before") == b"+OK\r\n"
    request = {"ts": writer.clock.now(), "correlation": b"0123456789abcdef"}

    disk.fails("sync")
    writer.begin("SET", "key", "after", "NEX", "before", **request)
    assert site.store.wait() == 1
    disk.works()
    site.store.start()

    assert writer.ask("SET", "key", "after", "NEX", "before", **request) == b"+OK\r\n"
    assert writer.ask("GET", "key") == b"$5\r\nafter\r\n"


@pytest.fixture
def lines(tmp_path):
    """A file of N_KEYS keys."""
    path = tmp_path / "lines"
    path.write_text("".join(json.dumps({"key": f"key-{i}", "value": "seed"}) + "\n" for i in range(N_KEYS)))
    return path


@pytest.mark.parametrize("call, n_stored", [("sync", N_KEYS), ("write", 0)])
def test_a_seed_with_an_uncertain_commit_ends_the_start(make_site, data, disk, lines, call, n_stored):
    site = make_site()
    site.start_store("--data-dir", data, environment=disk.environment)
    watcher = site.connect(kind=WireClient)
    watcher.register("key-0", f"key-{N_KEYS - 1}")
    before = numbers(data)
    assert site.store.stop() == 0

    disk.fails(call)
    site.store.flags = ("--data-dir", data, "--seed", lines)
    site.store.launch()
    assert site.store.wait() == 1
    assert site.store.log().count(UNKNOWN) == 1
    assert not site.store.is_ready()
    assert watcher.messages() == []

    disk.works()
    site.store.start()
    site.store.wait_for_log(f"set={N_KEYS - n_stored} existing={n_stored} ")
    assert watcher.changes() == [was_set("seed")] * 2
    after = numbers(data)
    assert after[0] > before[0]
    assert after[1] == before[1] + 3


@pytest.mark.parametrize("call, n_stored", [("sync", N_KEYS), ("write", 0)])
def test_an_import_with_an_uncertain_commit_ends(site, data, disk, lines, call, n_stored):
    site.start_store("--data-dir", data)
    assert site.store.stop() == 0

    def ctl(*arguments, more=None):
        return subprocess.run([CTL, *arguments, "--data-dir", data], env={**environment({}), **(more or {})},
                              capture_output=True, timeout=PATIENCE)

    disk.fails(call)
    result = ctl("import", lines, more=disk.environment)
    assert (result.returncode, result.stdout) == (STORE_ERROR, b"")
    assert f"0 keys were imported; it is unknown whether the next {N_KEYS} are stored" in result.stderr.decode()

    assert len(ctl("export").stdout.splitlines()) == n_stored
    disk.works()
    assert ctl("import", lines).stdout == b"%d keys imported\n" % N_KEYS
    assert len(ctl("export").stdout.splitlines()) == N_KEYS
    site.store.start()
    assert site.connect().request("GET", "key-0").payload == b"$4\r\nseed\r\n"
