# SPDX-License-Identifier: Apache-2.0
"""A broker or network that is slow, silent or stuck: memory is bounded, no message is lost, and the store detects it."""

import re
import struct
import subprocess
from pathlib import Path

import pytest

from support import resp
from support.load import finish_loads, start_loads
from support.message import error
from support.packets import packet, read_packet
from support.plugin import sanitizer_libraries
from support.process import PATIENCE
from support.wire_client import WireClient

MIB = 1 << 20
PUBLISH, PUBACK = 3, 4

SHARE = (64 * MIB) * 4 // 5  # of the plugin's queues, for one client while the others have little: common/fair_queue

# Sanitizers retain freed memory, and need memory themselves.
AT_MOST_MIB = 1000 if sanitizer_libraries() else 300


def check_keeps_running(process, seconds):
    """Checks that the process does not end within this time."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.child.wait(seconds)


def memory_mib(process, what):
    status = Path(f"/proc/{process.child.pid}/status").read_text()
    return int(re.search(rf"^{what}:\s*(\d+) kB", status, re.MULTILINE)[1]) / 1024


@pytest.mark.parametrize("plugin", [False, True], ids=["plain", "plugin"])
def test_no_request_is_lost_when_the_broker_stops_for_two_seconds_under_load(make_site, plugin):
    site = make_site(plugin=plugin)
    store = site.start_store()
    watcher, writer = site.connect(), site.connect()
    watcher.watch("key")
    loads = start_loads(site)

    with site.broker.paused():
        changes = [writer.send("SET", "key", n) for n in range(500)]
        check_keeps_running(store, 2)

    assert {change.result(PATIENCE).payload for change in changes} == {b"+OK\r\n"}
    assert [resp.read(watcher.notification().payload)[-1] for _ in range(500)] == [b"%d" % n for n in range(500)]
    finish_loads(loads)


class LargeReader:
    """Requests a value many times and discards the replies, because they do not fit into memory."""

    def __init__(self, site, client=None):
        self._client = client or site.connect(kind=WireClient)
        self._stream = self._client._socket.makefile("rb", buffering=MIB)

    def ask(self, key, n_times):
        self._client.send(b"".join(self._client.encode_request("GET", key)[1] for _ in range(n_times)))

    def read(self, n_replies, length):
        """Waits for all replies, and checks the minimum length of each."""
        stream = self._stream
        while n_replies > 0:
            head, body = read_packet(stream.read)
            if head >> 4 == PUBLISH:
                topic_end = 2 + struct.unpack_from("!H", body)[0]
                self._client.send(packet(PUBACK << 4, body[topic_end:topic_end + 2]))
                assert len(body) > length, body
                n_replies -= 1


@pytest.mark.not_sanitized("the next test fills the same queues")
def test_memory_is_bounded_with_a_gigabyte_of_replies_for_a_slow_broker(make_site):
    """Unsent replies are bounded: of a gigabyte of replies only a fraction is in memory at any time."""
    site = make_site()
    store = site.start_store()
    site.connect(kind=WireClient).ask("SET", "key", b"x" * (5 * MIB))
    reader = LargeReader(site)

    reader.ask("key", 100)
    reader.read(1, 5 * MIB)
    with site.broker.paused():
        reader.ask("key", 100)
        check_keeps_running(store, 2)
    reader.read(199, 5 * MIB)

    assert memory_mib(store, "VmHWM") < AT_MOST_MIB
    assert site.connect(kind=WireClient).ask("GET", "other") == b"$-1\r\n"


@pytest.mark.parametrize("plugin", [False, True], ids=["plain", "plugin"])
def test_memory_is_bounded_when_requests_arrive_and_no_reply_can_be_sent(make_site, proxy_of, plugin):
    """The store stops reading, so the broker queues further requests. The plugin queues a client's share of 64 MiB, and refuses
    the others."""
    site = make_site(plugin=plugin)
    proxy = proxy_of(site)
    store = site.start_store("--port", proxy.port)
    writer = site.connect(kind=WireClient)
    assert writer.ask("SET", "key", b"x" * (5 * MIB)) == b"+OK\r\n"
    reader = LargeReader(site)

    proxy.hold()
    reader.ask("key", 16)
    writes = [writer.begin("SET", "another key", b"y" * (5 * MIB)) for _ in range(60)]
    writer.ping()  # the broker has received all requests
    check_keeps_running(store, 1)
    assert memory_mib(store, "VmHWM") < AT_MOST_MIB
    if plugin:
        assert memory_mib(site.broker, "VmHWM") < AT_MOST_MIB
    proxy.mend()

    n_waiting = SHARE // (5 * MIB) if plugin else len(writes)
    replies = [writer.reply_to(write).payload for write in writes]
    assert replies == [b"+OK\r\n"] * n_waiting + [error("too many requests are waiting")] * (len(writes) - n_waiting)
    reader.read(16, 5 * MIB)


@pytest.mark.not_sanitized("test_companion_fan_out notifies of large values")
def test_memory_is_bounded_when_many_are_notified_of_large_values(make_site):
    site = make_site()
    store = site.start_store()
    holders = [site.connect(kind=WireClient) for _ in range(100)]
    for holder in holders:
        holder.register("key")
    writer = site.connect(kind=WireClient)

    writer.send(writer.encode_request("SET", "key", b"x" * (5 * MIB))[1])
    for holder in holders:
        LargeReader(site, holder).read(1, 5 * MIB)

    assert memory_mib(store, "VmHWM") < AT_MOST_MIB
