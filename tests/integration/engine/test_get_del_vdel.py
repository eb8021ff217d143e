# SPDX-License-Identifier: Apache-2.0
"""GET, DEL and VDEL (PROTOCOL.md "Commands")."""

import pytest


def test_get_returns_the_value_and_its_version(client, key):
    version = client.request("SET", key, "value").ts

    reply = client.request("GET", key)

    assert reply.payload == b"$5\r\nvalue\r\n"
    assert reply.ts == version


def test_del_returns_the_version_of_the_deleted_value(client, key):
    version = client.request("SET", key, "value").ts

    reply = client.request("DEL", key)

    assert reply.payload == b":1\r\n"
    assert reply.ts == version
    assert client.request("GET", key).payload == b"$-1\r\n"


def test_vdel_of_the_present_value_returns_its_version(client, key):
    version = client.request("SET", key, "value").ts

    reply = client.request("VDEL", key, "value")

    assert reply.payload == b":1\r\n"
    assert reply.ts == version
    assert client.request("GET", key).payload == b"$-1\r\n"


@pytest.mark.parametrize("other", ["valu", "values", "VALUE", ""])
def test_vdel_of_another_value_deletes_nothing(client, key, other):
    version = client.request("SET", key, "value").ts

    reply = client.request("VDEL", key, other)

    assert reply.payload == b":-1\r\n"
    assert reply.ts == version
    assert client.request("GET", key).payload == b"$5\r\nvalue\r\n"


def test_vdel_matches_an_empty_value(client, key):
    client.request("SET", key, "")

    assert client.request("VDEL", key, "").payload == b":1\r\n"


@pytest.mark.parametrize("words, payload", [
    (["GET"], b"$-1\r\n"),
    (["DEL"], b":0\r\n"),
    (["VDEL", "value"], b":0\r\n"),
])
@pytest.mark.parametrize("ft", [None, "1:0:token"])
@pytest.mark.parametrize("deleted_before", [False, True])
def test_a_missing_key_is_no_error_and_has_no_version(client, key, words, payload, ft, deleted_before):
    if deleted_before:
        client.request("SET", key, "value")
        client.request("DEL", key)

    verb, *arguments = words
    reply = client.request(verb, key, *arguments, ft=ft)

    assert reply.payload == payload
    assert reply.status == "200"
    assert reply.prop("__ts") is None


@pytest.mark.parametrize("words, payload", [
    (["GET"], b"$5\r\nvalue\r\n"),
    (["DEL"], b":1\r\n"),
    (["VDEL", "value"], b":1\r\n"),
])
def test_only_set_needs_a_timestamp(client, key, words, payload):
    client.request("SET", key, "value")

    verb, *arguments = words
    assert client.request(verb, key, *arguments, ts=None).payload == payload


def test_keys_are_compared_exactly(client, key):
    client.request("SET", key, "value")

    for other in (key[:-1], key + "x", key.upper(), key + "\0"):
        assert client.request("GET", other).payload == b"$-1\r\n"
