# SPDX-License-Identifier: Apache-2.0
"""The broker drops a frame of the plugin, because its queue to the store is full: nothing is lost."""

import pytest

from support.broker import version
from support.process import wait_until
from support.stepped_clock import SteppedClock
from support.stored import notified_keys, select
from support.wire_client import DELETED, WireClient, wire_clients

DROPPED = "Outgoing messages are being dropped for client statestored"
LARGE = b"x" * (16 << 20)  # more than the sockets between broker and store hold
STEP_S = 1000


class FullSession:
    """The broker queues one packet for the store behind the one that it writes, and drops further frames.

    Keys that expire make the store send notifications although it receives nothing. The plugin answers each with a frame.
    """

    def __init__(self, site, proxy, clock):
        self.site = site
        self.proxy = proxy
        self.clock = clock
        self.watcher, self.sender = wire_clients(site, 2)
        self.keys = ["first", "second"]
        self.watcher.register(*self.keys)
        for n, key in enumerate(self.keys, 1):
            assert self.sender.ask("SET", key, "value", "PX", n * STEP_S * 1000 - 1) == b"+OK\r\n"
        assert len(self.watcher.changes()) == len(self.keys)

    def drop_frame(self, send=lambda: None):
        """Have the broker drop the frame that acknowledges the second notification, and contains what send() has sent."""
        self.proxy.hold_replies()
        large = self.sender.begin("SET", "large", LARGE)  # fills the sockets
        self.sender.ping()
        self._expire(1)  # its acknowledgement fills the queue
        send()
        assert DROPPED not in self.site.broker.log()
        self._expire(2)
        self.site.broker.wait_for_log(DROPPED)
        self.proxy.mend()
        assert self.sender.reply_to(large).payload == b"+OK\r\n"
        self.site.store.wait_for_log("the broker has dropped a frame of the plugin")
        assert self.watcher.changes() == [], "no notification is repeated"

    def _expire(self, n):
        self.clock.advance_monotonic(n * STEP_S)
        assert self.watcher.notification().payload.endswith(DELETED[0] + b"\r\n")


@pytest.fixture
def full(make_site, proxy_of, tmp_path, data):
    clock = SteppedClock(tmp_path)
    clock.advance_monotonic(0)
    # mosquitto 2.1 counts the packet that it writes.
    site = make_site(f"max_queued_messages {1 if version() < (2, 1) else 2}")
    proxy = proxy_of(site)
    site.start_store("--data-dir", data, "--port", proxy.port, "--keepalive", "65535s", environment=clock.environment())
    return FullSession(site, proxy, clock)


def test_an_acknowledgement_that_the_broker_drops_is_requested_again(full, data):
    """Without it, the limit of pending notifications would stop the store for ever."""
    full.drop_frame()

    wait_until(lambda: notified_keys(data) == [], "the store knows that the notifications are published")


def test_a_request_that_the_broker_drops_is_executed_once(full):
    client, = wire_clients(full.site, 1)
    assert client.ask("SET", "key", "value") == b"+OK\r\n"
    deletions = []

    full.drop_frame(lambda: deletions.extend(client.begin("DEL", "key") for _ in range(3)))

    assert [client.reply_to(deletion).payload for deletion in deletions] == [b":1\r\n", b":0\r\n", b":0\r\n"]
    assert client.messages() == []


def test_a_disconnect_that_the_broker_drops_is_reported_again(full, data):
    holder, = wire_clients(full.site, 1)
    holder.register("key")

    def is_registered():
        return any(holder.id.encode() in content for content, in select(data, "SELECT content FROM registrations"))

    assert is_registered()

    full.drop_frame(holder.disconnect)

    wait_until(lambda: not is_registered(), "the registration has ended")
    assert full.site.connect(holder.id, WireClient).stop("key") == b":0\r\n"
