# SPDX-License-Identifier: Apache-2.0
"""The two dialects differ in exactly four places (PROTOCOL.md "Dialects")."""

import pytest

from support.hlc import Hlc

both = pytest.mark.parametrize("dialect", ["sdk", "document"])

NOT_MET = {"sdk": b":-1\r\n", "document": b"-1\r\n"}
DELETED = {"sdk": b"*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n", "document": b"*2\r\n$6\r\nNOTIFY\r\n$3\r\nDEL\r\n"}
LOWER = {
    "sdk": b"-ERR the request fencing token is a lower version than the fencing token protecting the resource\r\n",
    "document": b"-ERR the request fencing token is a lower version that the fencing token protecting the resource\r\n",
}


@both
@pytest.mark.parametrize("words", [["SET", "new", "NX"], ["SET", "new", "NEX"], ["VDEL", "new"]])
def test_a_condition_not_met(client, key, dialect, words):
    version = client.request("SET", key, "old").ts
    verb, *arguments = words

    reply = client.request(verb, key, *arguments)

    assert reply.payload == NOT_MET[dialect]
    assert reply.status == "200"
    assert reply.ts == version


@both
@pytest.mark.parametrize("removal", [["DEL"], ["VDEL", "value"], None])
def test_a_delete_notification(client, key, dialect, removal):
    client.watch(key)
    client.request("SET", key, "value", *([] if removal else ["PX", "1"]))
    assert client.notification()

    if removal:
        verb, *arguments = removal
        client.request(verb, key, *arguments)

    assert client.notification().payload == DELETED[dialect]


@both
def test_a_fencing_token_that_is_too_low(client, key, dialect):
    client.request("SET", key, "value", ft="5:0:n")

    assert client.request("SET", key, "value", ft="4:0:n").payload == LOWER[dialect]


@both
def test_the_text_of_a_version(client, key, dialect):
    client.watch(key)
    texts = [client.request(*words).prop("__ts")
             for words in (["SET", key, "value"], ["GET", key], ["SET", key, "new", "NX"], ["VDEL", key, "new"],
                           ["KEYNOTIFY", key], ["DEL", key])]
    texts += [client.notification().prop("__ts") for _ in range(2)]

    for text in texts:
        version = Hlc.parse(text)
        assert text == (version.padded() if dialect == "sdk" else str(version))


@both
def test_all_other_replies_are_equal_in_both_dialects(client, key, dialect):
    replies = [client.request(*words) for words in (
        ["SET", key, "value", "NX"],
        ["GET", key],
        ["VDEL", key, "value"],
        ["GET", key],
        ["DEL", key],
        ["KEYNOTIFY", key],
        ["KEYNOTIFY", key, "STOP"],
        ["KEYNOTIFY", key, "STOP"],
        ["set", key, "value"],
    )]

    assert [reply.payload for reply in replies] == [
        b"+OK\r\n",
        b"$5\r\nvalue\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b":0\r\n",
        b"+OK\r\n",
        b"+OK\r\n",
        b":0\r\n",
        b"-ERR unknown command\r\n",
    ]
    assert {reply.status for reply in replies} == {"200"}


@both
def test_both_read_padded_and_unpadded_clocks(client, key, dialect):
    now = client.clock.now()

    assert client.request("SET", key, "value", ts=now, ft="5:0:n").payload == b"+OK\r\n"
    assert client.request("SET", key, "value", ts=now.padded(), ft="000000000000005:00000:n").payload == b"+OK\r\n"
