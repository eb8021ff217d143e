# SPDX-License-Identifier: Apache-2.0
"""If the sync of a commit fails, it is unknown whether the commit is stored. The store promises nothing, and ends."""

import pytest

from support.process import preload
from support.wire_client import WireClient, was_set


@pytest.fixture
def uncertain(make_site, data, tmp_path):
    """A store, and the file whose existence makes each sync of the store fail."""
    fails = tmp_path / "fails"
    site = make_site()
    site.start_store("--data-dir", data, environment={**preload("sync_shim"), "STATESTORE_SYNC_FAILS": str(fails)})
    return site, fails


def version(reply):
    return dict(reply.user)["__ts"]


def test_a_write_with_an_uncertain_commit_gets_no_reply_and_notifies_nobody(uncertain):
    site, fails = uncertain
    writer, watcher = site.connect(kind=WireClient), site.connect(kind=WireClient)
    watcher.register("key")
    before = version(writer.reply_to(writer.begin("SET", "key", "before")))
    assert watcher.changes() == [was_set("before")]

    fails.touch()
    writer.begin("SET", "key", "after")
    writer.begin("GET", "key")
    assert site.store.wait() == 1

    assert writer.messages() == []
    assert watcher.messages() == []
    assert site.store.log().count("it is unknown whether the last commit is stored") == 1

    fails.unlink()
    site.store.start()
    present = writer.reply_to(writer.begin("GET", "key"))
    assert present.payload in (b"$6\r\nbefore\r\n", b"$5\r\nafter\r\n")
    is_stored = present.payload == b"$5\r\nafter\r\n"
    assert is_stored == (version(present) > before)
    assert version(writer.reply_to(writer.begin("SET", "key", "later"))) > version(present)
    assert watcher.changes() == [was_set("after")] * is_stored + [was_set("later")]


def test_a_repeated_write_with_an_uncertain_commit_is_executed_once(uncertain):
    site, fails = uncertain
    writer = site.connect(kind=WireClient)
    assert writer.ask("SET", "key", "before") == b"+OK\r\n"
    request = {"ts": writer.clock.now(), "correlation": b"0123456789abcdef"}

    fails.touch()
    writer.begin("SET", "key", "after", "NEX", "before", **request)
    assert site.store.wait() == 1
    fails.unlink()
    site.store.start()

    assert writer.ask("SET", "key", "after", "NEX", "before", **request) == b"+OK\r\n"
    assert writer.ask("GET", "key") == b"$5\r\nafter\r\n"
