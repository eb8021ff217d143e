# SPDX-License-Identifier: Apache-2.0
"""A broker with a maximum packet size: the store refuses values and replies that could not be sent."""

import pytest

from support import resp
from support.message import error
from support.wire_client import WireClient, was_set

MAX = 3000
VALUE_TOO_LARGE = error("the value is too large")
REPLY_TOO_LARGE = error("the reply is too large")
OK = b"+OK\r\n"


@pytest.fixture(params=[True, False], ids=["with the plugin", "without"])
def site(make_site, request):
    site = make_site(f"max_packet_size {MAX}", plugin=request.param)
    site.start_store()
    return site


@pytest.fixture
def plugin_site(make_site):
    site = make_site(f"max_packet_size {MAX}")
    site.start_store()
    return site


def connect(site, client_id=None):
    return site.connect(client_id, kind=WireClient)


def largest_value(client, key):
    """The length of the largest value that is accepted for this key."""
    accepted, refused = 0, MAX
    while refused - accepted > 1:
        length = (accepted + refused) // 2
        reply = client.ask("SET", key, "v" * length)
        assert reply in (OK, VALUE_TOO_LARGE)
        accepted, refused = (length, refused) if reply == OK else (accepted, length)
    return accepted


@pytest.mark.parametrize("key", ["k", "k" * 500])
def test_every_value_that_is_accepted_is_notified_and_read(site, key):
    writer, watcher = connect(site), connect(site, "w" * 128)
    watcher.subscribe_to_notifications()
    length = largest_value(writer, key)
    value = b"v" * length

    watcher.register(key)
    assert writer.ask("SET", key, value) == OK

    assert watcher.changes() == [was_set(value)]
    assert resp.read(watcher.ask("GET", key)) == value
    # the limit assumes the longest topic, properties and numbers, so it is only slightly below the packet size
    assert length > MAX - 2 * len(key) - 900


def test_the_limit_of_values_does_not_depend_on_watchers(site):
    writer, watcher = connect(site), connect(site)
    length = largest_value(writer, "key")
    watcher.subscribe_to_notifications()
    watcher.register("key")

    assert writer.ask("SET", "key", "v" * (length + 1)) == VALUE_TOO_LARGE
    assert writer.ask("GET", "key") == resp.blob("v" * length)
    assert watcher.changes() == []
    assert writer.ask("SET", "key", "v" * length) == OK
    assert watcher.changes() == [was_set("v" * length)]


def test_a_watcher_with_a_long_client_id_is_notified_with_the_plugin(plugin_site):
    """The plugin composes the topic, and the broker's maximum applies only to packets that it receives."""
    writer, watcher, huge = connect(plugin_site), connect(plugin_site), connect(plugin_site, "h" * 400)
    watcher.register("key")
    huge.register("key")
    length = largest_value(writer, "another")

    assert writer.ask("SET", "key", "v" * length) == OK

    assert watcher.changes() == [was_set("v" * length)]
    assert huge.changes() == [was_set("v" * length)]


def test_long_client_ids_do_not_close_the_stores_connection(plugin_site):
    """The broker closes a connection that sends a packet above the maximum by a single byte."""
    writer = connect(plugin_site)
    length = largest_value(writer, "key")
    n_before = plugin_site.broker.log().count("as statestored")

    for n in range(120, 220):
        connect(plugin_site, "h" * n).register("key")
    assert writer.ask("SET", "key", "v" * length) == OK

    assert writer.still_works()
    assert plugin_site.broker.log().count("as statestored") == n_before


def test_a_reply_that_is_too_large_is_an_error(site):
    client = connect(site)
    length = largest_value(client, "key")
    client.ask("SET", "key", "v" * length)
    client.subscribe(client.response_topic + "/#")

    reply = client.reply_to(client.begin("GET", "key", response_topic=client.response_topic + "/" + "t" * 1000))

    assert reply.payload == REPLY_TOO_LARGE
    assert reply.prop("__ts") is None


def test_a_scan_lists_all_keys_in_pages_that_fit(site):
    client = connect(site)
    keys = {f"key-{n:03}-{'x' * 100}".encode() for n in range(100)}
    for key in keys:
        client.ask("SET", key, "")

    listed, token = [], ()
    while True:
        page = resp.read(client.ask("SCAN", "*", *token))
        listed += page[0]
        if len(page) == 1:
            break
        token = page[1:]

    assert len(listed) == len(keys) and set(listed) == keys


def test_the_limit_follows_the_broker_after_a_reconnect(make_site, tmp_path):
    site = make_site()
    site.start_store("--data-dir", tmp_path / "data")
    assert connect(site).ask("SET", "key", "v" * 10000) == OK

    seen = len(site.store.log())
    site.broker.lines.append(f"max_packet_size {MAX}")
    site.broker.kill()
    site.broker.start_again()
    site.store.wait_for_log("ready: ", after=seen)
    client = connect(site)

    assert client.ask("GET", "key") == REPLY_TOO_LARGE
    assert client.ask("SET", "key", "v" * (MAX - 300)) == VALUE_TOO_LARGE
    assert client.ask("DEL", "key") == b":1\r\n"
