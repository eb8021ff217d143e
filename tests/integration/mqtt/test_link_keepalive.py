# SPDX-License-Identifier: Apache-2.0
"""The store closes a connection that is silent beyond the keepalive, even if no peer has closed it."""

import contextlib
import socket
import struct

import pytest

from support.fake_broker import CONNACK_ACCEPTED, FakeBroker
from support.wire_client import WireClient, was_set

KEEPALIVE = "--keepalive", "5s"

# In CONNECT the keepalive follows the protocol name, the version and the flags.
KEEPALIVE_OFFSET = 8


def test_the_store_announces_its_keepalive(fake_broker, store_of):
    store = store_of(fake_broker.port)
    store.flags = KEEPALIVE
    store.launch()

    assert struct.unpack_from("!H", fake_broker.accept(), KEEPALIVE_OFFSET) == (5,)


def test_a_half_open_connection_is_detected_and_no_request_is_lost(make_site, proxy_of):
    site = make_site()
    proxy = proxy_of(site)
    store = site.start_store("--port", proxy.port, *KEEPALIVE)
    holder, leaves, writer = (site.connect(kind=WireClient) for _ in range(3))
    holder.register("key")
    leaves.register("key")

    seen = len(store.log())
    proxy.swallow()
    changes = [writer.begin("SET", "key", n) for n in range(100)]
    leaves.disconnect()
    store.wait_for_log("no connection to the broker", after=seen)

    assert {writer.reply_to(change).payload for change in changes} == {b"+OK\r\n"}
    assert holder.changes() == [was_set(n) for n in range(100)]
    again = site.connect(leaves.id, WireClient)
    assert again.stop("key") == b":0\r\n"
    assert writer.still_works()


@contextlib.contextmanager
def silent_broker():
    broker = FakeBroker()
    try:
        yield broker.port
    finally:
        broker.close()


@contextlib.contextmanager
def broker_that_does_not_accept():
    """The second connection at a full backlog is never accepted."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, socket.socket() as first:
        first.connect(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.parametrize("stuck", [silent_broker, broker_that_does_not_accept], ids=lambda way: way.__name__)
def test_a_broker_that_does_not_respond_is_skipped(make_site, stuck):
    site = make_site()
    with stuck() as port:
        store = site.launch_store("--host", f"127.0.0.1:{port},127.0.0.1:{site.broker.port}", *KEEPALIVE)
        store.wait_for_log(f"ready: serving 127.0.0.1:{site.broker.port} ")


def test_a_broker_that_does_not_acknowledge_subscriptions_is_skipped(make_site, fake_broker):
    site = make_site()
    store = site.launch_store("--host", f"127.0.0.1:{fake_broker.port},127.0.0.1:{site.broker.port}", *KEEPALIVE)

    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    fake_broker.wait_until_closed()
    fake_broker.close_connection()

    store.wait_for_log("no SUBACK in time")
    store.wait_for_log(f"ready: serving 127.0.0.1:{site.broker.port} ")


def test_an_idle_connection_is_kept(make_site):
    """The test takes longer than the broker waits for a silent client: 1.5 times the keepalive. The store may ping a second
    late, and has half the keepalive to spare."""
    keepalive_s = 15
    site = make_site()
    store = site.start_store("--keepalive", f"{keepalive_s}s")
    client = site.connect(kind=WireClient)
    client.ask("SET", "key", "value", "PX", round(1.5 * keepalive_s * 1000) + 500)
    client.register("key")

    assert client.notification()

    assert "no connection" not in store.log()
