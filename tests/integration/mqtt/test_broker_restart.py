# SPDX-License-Identifier: Apache-2.0
"""The broker is restarted; the store reconnects."""

import pytest

from support import resp
from support.load import finish_loads, start_loads
from support.process import wait_until


def wait_until_served(client):
    """A broker without stored sessions drops requests until the store has subscribed again."""
    probes = []

    def probe():
        probes.append(client.send("GET", "probe"))
        return any(sent.done() for sent in probes)

    wait_until(probe, "the store serves requests again")


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_all_requests_get_replies_after_the_broker_was_restarted_under_load(site, end):
    store = site.start_store()
    loads = start_loads(site)

    getattr(site.broker, end)()
    site.broker.start_again()
    wait_until_served(site.connect())
    for load in loads:
        load.client.wait_until_reconnected()
        load.repeat_requests_without_reply()
    finish_loads(loads)

    assert store.running()
    for load in loads:
        values = load.client.request_all(("GET", load.key(number)) for number in load.replies)
        assert [resp.read(reply.payload) for reply in values] == [b"%d" % number for number in load.replies]


def test_stored_keys_survive_several_restarts_of_the_broker(site):
    site.start_store()
    client = site.connect()
    version = client.request("SET", "key", "value").ts

    for _ in range(3):
        site.broker.kill()
        site.broker.start_again()
        wait_until_served(client)

    reply = client.request("GET", "key")
    assert reply.payload == b"$5\r\nvalue\r\n"
    assert reply.ts == version


def test_a_key_expires_on_time_while_the_broker_is_down(site):
    site.start_store()
    client = site.connect()
    client.request("SET", "key", "value", "PX", "1")
    site.broker.kill()
    site.broker.start_again()
    wait_until_served(client)

    assert client.request("GET", "key").payload == b"$-1\r\n"


def test_registrations_end_with_their_connections(site):
    site.start_store()
    client = site.connect()
    client.watch("key")
    site.broker.kill()
    site.broker.start_again()
    wait_until_served(client)

    assert client.request("KEYNOTIFY", "key", "STOP").payload == b":0\r\n"


def test_a_store_stops_with_status_0_while_the_broker_is_down(site):
    store = site.start_store()
    seen = len(store.log())
    site.broker.kill()
    store.wait_for_log("no connection|refused|lost", after=seen)

    assert store.stop() == 0


def test_the_store_retries_when_a_reconnect_is_refused(site):
    store = site.start_store()
    site.broker.kill()
    site.broker.anonymous = False
    seen = len(store.log())
    site.broker.start_again()
    store.wait_for_log("authori", after=seen)

    site.broker.kill()
    site.broker.anonymous = True
    site.broker.start_again()

    wait_until_served(site.connect())
