# SPDX-License-Identifier: Apache-2.0
"""Thousands of outstanding requests: no reply is lost, and each belongs to its request."""

import socket

import pytest

from support import resp
from support.broker import Broker
from support.flood import Flood
from support.process import PATIENCE
from support.site import Site
from support.sockets import sockets_of

N_REQUESTS = 5000


@pytest.mark.not_sanitized("the next test has as many outstanding requests")
def test_5000_requests_outstanding_at_once_all_get_replies(site):
    site.start_store()
    client = site.connect()

    stored = client.request_all(("SET", f"key-{n}", f"value-{n}") for n in range(N_REQUESTS))
    assert {reply.payload for reply in stored} == {b"+OK\r\n"}

    read = client.request_all(("GET", f"key-{n}") for n in range(N_REQUESTS))
    assert [resp.read(reply.payload) for reply in read] == [b"value-%d" % n for n in range(N_REQUESTS)]
    assert [reply.ts for reply in read] == [reply.ts for reply in stored]


def test_a_broker_with_default_limits_loses_no_request(tmp_path):
    site = Site(tmp_path, Broker(tmp_path, limits=""))
    try:
        store = site.start_store()
        client = site.connect()

        with store.paused():
            pending = [client.send("GET", f"key-{n}") for n in range(N_REQUESTS)]
            client.wait_until_sent()

        assert {reply.result(PATIENCE).payload for reply in pending} == {b"$-1\r\n"}
    finally:
        site.close()


def test_nagles_algorithm_is_off(site):
    """Nagle's algorithm would delay each reply that follows another one by 40 ms."""
    store = site.start_store()

    # skip the internal pair of Unix sockets of libmosquitto
    connection, = (each for each in sockets_of(store.child.pid) if each.family == socket.AF_INET)

    with connection:
        assert connection.getpeername() == ("127.0.0.1", site.broker.port)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.not_sanitized("test_broker_limits has as many waiting requests")
def test_more_waiting_requests_than_packet_ids_all_get_replies(site):
    store = site.start_store("--client-id", "statestored")
    assert store.stop() == 0
    flood = Flood(site.broker.port, "flood")
    try:
        flood.send(80_000, "GET", "key")

        store.start()

        replies = flood.receive_replies(80_000)
    finally:
        flood.close()
    assert set(replies.values()) == {b"$-1\r\n"}


def test_a_watcher_misses_none_of_thousands_of_changes(site):
    site.start_store()
    watcher, writer = site.connect(), site.connect()
    watcher.watch("key")

    writer.request_all(("SET", "key", n) for n in range(2000))

    values = [resp.read(watcher.notification().payload)[-1] for _ in range(2000)]
    assert values == [b"%d" % n for n in range(2000)]


def test_thousands_of_watchers_of_one_key_are_each_notified(site):
    site.start_store()
    client = site.connect()
    client.subscribe("clients/statestore/#")
    for future in [client.send("KEYNOTIFY", "key", source=f"watcher-{n}") for n in range(2000)]:
        assert future.result(PATIENCE).payload == b"+OK\r\n"

    client.request("SET", "key", "value")

    assert len({client.notification().topic for _ in range(2000)}) == 2000
