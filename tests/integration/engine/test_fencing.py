# SPDX-License-Identifier: Apache-2.0
"""Fencing tokens (PROTOCOL.md "Errors", rows 11 and 12)."""

import pytest

from support.message import error

OK = b"+OK\r\n"
REQUIRED = error("a fencing token is required for this request")
LOWER = error("the request fencing token is a lower version than the fencing token protecting the resource")

TOKEN = "1696374425000:5:B"

OLDER = ["1696374424999:9:Z", "1696374425000:4:Z", "1696374425000:5:A", "001696374425000:00004:B", "0:0:n"]
NOT_OLDER = ["1696374425000:5:B", "001696374425000:00005:B", "1696374425000:5:C", "1696374425000:6:A",
             "1696374425001:0:A", "1696374425000:5:Ba"]


@pytest.fixture
def fenced(client, key):
    assert client.request("SET", key, "value", ft=TOKEN).payload == OK
    return key


CHANGES = [["SET", "new"], ["DEL"], ["VDEL", "value"], ["VDEL", "other"], ["SET", "new", "NX"], ["SET", "new", "NEX"]]


@pytest.mark.parametrize("change", CHANGES)
def test_a_fenced_key_is_not_changed_without_a_token(client, fenced, change):
    verb, *arguments = change

    reply = client.request(verb, fenced, *arguments)

    assert reply.payload == REQUIRED
    assert client.request("GET", fenced).payload == b"$5\r\nvalue\r\n"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("older", OLDER)
def test_a_fenced_key_is_not_changed_with_an_older_token(client, fenced, change, older):
    verb, *arguments = change

    reply = client.request(verb, fenced, *arguments, ft=older)

    assert reply.payload == LOWER
    assert client.request("GET", fenced).payload == b"$5\r\nvalue\r\n"


@pytest.mark.parametrize("change, payload", [
    (["SET", "new"], OK),
    (["DEL"], b":1\r\n"),
    (["VDEL", "value"], b":1\r\n"),
])
@pytest.mark.parametrize("token", NOT_OLDER)
def test_a_fenced_key_is_changed_with_its_token_or_a_newer_one(client, fenced, change, payload, token):
    verb, *arguments = change

    assert client.request(verb, fenced, *arguments, ft=token).payload == payload


def test_a_set_with_a_newer_token_raises_the_keys_token(client, fenced):
    client.request("SET", fenced, "new", ft="1696374425000:6:A")

    assert client.request("SET", fenced, "newer", ft=TOKEN).payload == LOWER


def test_a_token_on_an_unfenced_key_fences_it(client, key):
    client.request("SET", key, "value")
    client.request("SET", key, "value", ft=TOKEN)

    assert client.request("SET", key, "value").payload == REQUIRED


def test_an_unfenced_key_is_deleted_with_or_without_a_token(client, key):
    for ft in (None, TOKEN):
        client.request("SET", key, "value")
        assert client.request("DEL", key, ft=ft).payload == b":1\r\n"


@pytest.mark.parametrize("removal", [["DEL"], ["VDEL", "value"]])
def test_a_token_ends_when_its_key_is_deleted(client, fenced, removal):
    verb, *arguments = removal
    client.request(verb, fenced, *arguments, ft="1696374425001:0:A")

    assert client.request("SET", fenced, "again").payload == OK
    assert client.request("DEL", fenced).payload == b":1\r\n"


def test_a_token_ends_when_its_key_expires(client, key):
    client.watch(key)
    client.request("SET", key, "value", "PX", "30", ft=TOKEN)
    assert client.notification().payload.endswith(b"VALUE\r\n$5\r\nvalue\r\n")
    assert client.notification().payload.endswith(b"DELETE\r\n")

    assert client.request("SET", key, "again").payload == OK


@pytest.mark.parametrize("unmet", [["SET", "new", "NX"], ["SET", "new", "NEX", "other"], ["VDEL", "other"]])
def test_a_request_whose_condition_is_not_met_keeps_the_token(client, fenced, unmet):
    verb, *arguments = unmet
    assert client.request(verb, fenced, *arguments, ft="1696374425001:0:A").payload == b":-1\r\n"

    assert client.request("SET", fenced, "new", ft=TOKEN).payload == OK


def test_get_and_keynotify_need_no_token(client, fenced):
    assert client.request("GET", fenced).payload == b"$5\r\nvalue\r\n"
    assert client.request("GET", fenced, ft="0:0:n").payload == b"$5\r\nvalue\r\n"
    assert client.request("KEYNOTIFY", fenced).payload == OK
    assert client.request("KEYNOTIFY", fenced, "STOP", ft="0:0:n").payload == OK


def test_the_version_of_a_lock_fences_other_keys(client, key):
    first = client.request("SET", key + "-lock", "first").ts
    client.request("DEL", key + "-lock")
    second = client.request("SET", key + "-lock", "second").ts

    assert client.request("SET", key, "1", ft=second).payload == OK
    assert client.request("SET", key, "2", ft=first).payload == LOWER
    assert client.request("SET", key, "3", ft=second).payload == OK
