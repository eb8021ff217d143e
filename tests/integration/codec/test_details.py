# SPDX-License-Identifier: Apache-2.0
"""The details of a key in the reply to GET (PROTOCOL.md "Details of a key"), with the plugin and without."""

import pytest

NAMES = "details", "expires_in_ms", "__ft"


@pytest.fixture(params=["plain", "plugin"])
def any_client(request):
    """A client of a store with a plain broker, and of one with the plugin."""
    return request.getfixturevalue("shared" if request.param == "plain" else "shared_plugin_site").connect()


def details(client, *words, asked="1"):
    reply = client.request(*words, user=[("details", asked)])
    names = [name for name, _ in reply.user if name in NAMES]
    assert len(names) == len(set(names))
    return [reply.prop(name) for name in NAMES]


def test_details_are_lifetime_and_token(any_client, key):
    token = any_client.clock.now()
    version = any_client.request("SET", key, "me", "PX", 60000, ft=token).ts

    asked, expires_in_ms, fence = details(any_client, "GET", key)
    assert asked == "1" and fence == token.padded()
    assert 0 < int(expires_in_ms) <= 60000

    reply = any_client.request("GET", key, user=[("details", "1")])
    assert (reply.payload, reply.ts) == (b"$2\r\nme\r\n", version)


def test_a_lifetime_and_a_token_that_the_key_does_not_have_are_absent(any_client, key):
    any_client.request("SET", key, "value")
    assert details(any_client, "GET", key) == ["1", None, None]

    any_client.request("SET", key, "value", "PX", 60000)
    assert details(any_client, "GET", key)[2] is None
    any_client.request("SET", key, "value", ft=any_client.clock.now())
    assert details(any_client, "GET", key)[:2] == ["1", None]


@pytest.mark.parametrize("asked", ["0", "", "2", "01", "true"])
def test_any_other_value_is_ignored(any_client, key, asked):
    any_client.request("SET", key, "value", "PX", 60000, ft=any_client.clock.now())

    assert details(any_client, "GET", key, asked=asked) == [None, None, None]


def test_a_missing_key_and_other_commands_have_no_details(any_client, key):
    assert details(any_client, "GET", key) == [None, None, None]

    assert details(any_client, "SET", key, "value", "PX", 60000) == [None, None, None]
    assert details(any_client, "KEYNOTIFY", key) == [None, None, None]
    assert details(any_client, "SCAN", key) == [None, None, None]
    assert details(any_client, "DEL", key) == [None, None, None]


def test_details_count_towards_the_size_of_the_reply(make_site):
    site = make_site("max_packet_size 2000", plugin=False)
    site.start_store()
    client = site.connect()
    topic = f"clients/{client.id}/{'t' * 600}"
    client.subscribe(topic)
    client.request("SET", "key", "v" * 700, ft=f"{client.clock.now()}{'n' * 600}")

    reply = client.request("GET", "key", response_topic=topic, user=[("details", "1")])
    assert reply.payload == b"-ERR the reply is too large\r\n"
    assert client.request("GET", "key", response_topic=topic).payload.endswith(b"v\r\n")
