# SPDX-License-Identifier: Apache-2.0
"""A client that floods the store does not delay the requests of other clients."""

import pytest

from support import resp
from support.process import PATIENCE
from support.wire_client import WireClient

N_FLOOD = 200

# The store replies to a few requests while it reads the rest of the flood. Then every second reply is the other client's.
AT_MOST_BEFORE = 50


@pytest.fixture(params=["memory", "data directory", "plain broker"])
def store_site(request, make_site, tmp_path):
    site = make_site(plugin=request.param != "plain broker")
    site.start_store(*["--data-dir", tmp_path / "data"] if request.param == "data directory" else [])
    return site


def fill_with_keys_that_are_costly_to_match(site):
    """Comparing each key with a pattern of many stars that does not match takes long."""
    client = site.connect()
    replies = client.request_all(("SET", f"{n:04}" + "a" * 2000, "value") for n in range(200))
    assert {reply.payload for reply in replies} == {b"+OK\r\n"}


def test_a_request_behind_a_flood_of_costly_ones_gets_one_of_the_first_replies(store_site):
    """The flooder receives the replies to both clients, so that one connection shows their order."""
    fill_with_keys_that_are_costly_to_match(store_site)
    flooder, other = (store_site.connect(kind=WireClient) for _ in range(2))
    flooder.subscribe(other.response_topic)

    with store_site.store.paused():
        for _ in range(N_FLOOD):
            flooder.begin("SCAN", "*a" * 9 + "b")
        flooder.ping()
        other.begin("GET", "key")
        other.ping()
    replies = [flooder.message() for _ in range(N_FLOOD + 1)]

    n_before = [reply.topic for reply in replies].index(other.response_topic)
    assert n_before <= AT_MOST_BEFORE
    assert replies.pop(n_before).payload == b"$-1\r\n"
    assert {reply.payload[:1] for reply in replies} == {b"*"}


def test_the_order_of_each_clients_requests_is_kept_in_a_flood(store_site):
    fill_with_keys_that_are_costly_to_match(store_site)
    flooder, others = store_site.connect(), [store_site.connect() for _ in range(4)]

    with store_site.store.paused():
        flood = [flooder.send("SCAN", "*a" * 9 + "b") for _ in range(50)]
        flooder.wait_until_sent()
        pairs = [(other.send("SET", other.id, n), other.send("GET", other.id)) for n in range(50) for other in others]
        for other in others:
            other.wait_until_sent()

    for n, (stored, read) in enumerate(pairs):
        assert stored.result(PATIENCE).payload == b"+OK\r\n"
        assert resp.read(read.result(PATIENCE).payload) == b"%d" % (n // len(others))
    assert {scan.result(PATIENCE).payload[:1] for scan in flood} == {b"*"}
