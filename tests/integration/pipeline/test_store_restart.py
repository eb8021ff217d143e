# SPDX-License-Identifier: Apache-2.0
"""The store restarts, and the broker queues its requests meanwhile."""

import signal

import pytest

from support.load import finish_loads, start_loads
from support.process import PATIENCE
from support.wire_client import WireClient

N_MEANWHILE = 200

# Without data, a store resumes its session only with a given client id.
NAMED = "--client-id", "statestored"


def send_meanwhile(site):
    client = site.connect()
    return [client.send("SET", f"meanwhile-{n}", n) for n in range(N_MEANWHILE)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_store_stopped_under_load_loses_no_request(site, number):
    store = site.start_store(*NAMED)
    loads = start_loads(site)

    assert store.stop(number) == 0
    meanwhile = send_meanwhile(site)
    store.start()

    assert {future.result(PATIENCE).payload for future in meanwhile} == {b"+OK\r\n"}
    finish_loads(loads)


def test_a_request_that_arrives_with_the_signal_is_replied_to(site):
    store = site.start_store(*NAMED)
    client = site.connect()
    with store.paused():
        waiting = [client.send("SET", f"waiting-{n}", n) for n in range(N_MEANWHILE)]
        client.wait_until_sent()
        store.send_signal(signal.SIGTERM)

    assert store.wait() == 0
    store.start()

    assert {future.result(PATIENCE).payload for future in waiting} == {b"+OK\r\n"}


def test_a_store_killed_under_load_serves_the_waiting_requests(site):
    store = site.start_store(*NAMED)
    loads = start_loads(site)

    store.kill()
    meanwhile = send_meanwhile(site)
    store.start()

    assert {future.result(PATIENCE).payload for future in meanwhile} == {b"+OK\r\n"}
    for load in loads:
        load.repeat_requests_without_reply()
    finish_loads(loads)


def test_a_store_can_be_restarted_many_times(site):
    store = site.start_store(*NAMED)
    client = site.connect()
    for _ in range(5):
        assert store.stop() == 0
        waiting = client.send("SET", "key", "value")
        store.start()
        assert waiting.result(PATIENCE).payload == b"+OK\r\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_store_exits_with_0(site, number):
    assert site.start_store().stop(number) == 0


def test_a_retained_request_is_executed_once_when_it_arrives(site):
    store = site.start_store(*NAMED)
    client = site.connect(kind=WireClient)
    assert client.ask("SET", "key", "value", retain=True) == b"+OK\r\n"
    assert store.stop() == 0

    store.flags = ("--client-id", "another")  # a client id for which the broker has no session
    store.start()

    assert client.ask("GET", "key") == b"$-1\r\n"
    assert client.ask("GET", "key") == b"$-1\r\n"
