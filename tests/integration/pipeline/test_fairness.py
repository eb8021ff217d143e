# SPDX-License-Identifier: Apache-2.0
"""A client that floods the store does not delay the requests of other clients."""

import pytest

from support import resp
from support.process import PATIENCE

N_FLOOD = 200

# A few are answered while the rest of the flood is read; then every second answer is the other client's.
AT_MOST_BEFORE = 50


@pytest.fixture(params=["memory", "data directory", "plain broker"])
def store_site(request, make_site, tmp_path):
    site = make_site(plugin=request.param != "plain broker")
    site.start_store(*["--data-dir", tmp_path / "data"] if request.param == "data directory" else [])
    return site


def fill_with_keys_that_are_costly_to_match(site):
    """Each takes a while to be compared with a pattern of many stars that does not match it."""
    client = site.connect()
    answers = client.request_all(("SET", f"{n:04}" + "a" * 2000, "value") for n in range(200))
    assert {answer.payload for answer in answers} == {b"+OK\r\n"}


def test_a_request_behind_a_flood_of_costly_ones_is_answered_among_the_first(store_site):
    fill_with_keys_that_are_costly_to_match(store_site)
    flooder, other = store_site.connect(), store_site.connect()

    with store_site.store.paused():
        flood = [flooder.send("SCAN", "*a" * 9 + "b") for _ in range(N_FLOOD)]
        flooder.wait_until_sent()
        answer = other.send("GET", "key")
        other.wait_until_sent()

    assert answer.result(PATIENCE).payload == b"$-1\r\n"
    n_before = sum(scan.done() for scan in flood)
    assert n_before <= AT_MOST_BEFORE
    assert {scan.result(PATIENCE).payload[:1] for scan in flood} == {b"*"}


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
