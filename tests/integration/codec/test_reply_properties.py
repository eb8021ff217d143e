# SPDX-License-Identifier: Apache-2.0
"""The properties of every reply (PROTOCOL.md "Replies")."""

import uuid

import pytest

from support.broker import version
from support.hlc import Hlc

# For each row of the command table: earlier requests, the request, whether the reply has a version.
CASES = {
    "SET done": ([], ["SET", "v"], True),
    "SET not met": ([["SET", "v"]], ["SET", "w", "NX"], True),
    "GET found": ([["SET", "v"]], ["GET"], True),
    "GET not found": ([], ["GET"], False),
    "DEL deleted": ([["SET", "v"]], ["DEL"], True),
    "DEL not found": ([], ["DEL"], False),
    "VDEL deleted": ([["SET", "v"]], ["VDEL", "v"], True),
    "VDEL not found": ([], ["VDEL", "v"], False),
    "VDEL differs": ([["SET", "v"]], ["VDEL", "w"], True),
    "KEYNOTIFY": ([], ["KEYNOTIFY"], True),
    "KEYNOTIFY again": ([["KEYNOTIFY"]], ["KEYNOTIFY"], True),
    "KEYNOTIFY GET": ([], ["KEYNOTIFY", "GET"], True),
    "STOP registered": ([["KEYNOTIFY"]], ["KEYNOTIFY", "STOP"], True),
    "STOP not registered": ([], ["KEYNOTIFY", "STOP"], False),
    "SCAN": ([["SET", "v"]], ["SCAN"], False),
    "error": ([], ["FOO"], False),
}


@pytest.mark.parametrize("before, words, has_version", CASES.values(), ids=CASES.keys())
def test_every_reply_has_exactly_these_properties(client, key, before, words, has_version):
    for verb, *arguments in before:
        client.request(verb, key, *arguments)
    correlation = uuid.uuid4().bytes
    verb, *arguments = words

    reply = client.request(verb, key, *arguments, correlation=correlation)

    assert reply.correlation == correlation
    assert reply.topic == client.response_topic
    assert reply.qos == 1
    assert not reply.retain
    assert reply.format_indicator in (0, None), "0, which a broker may omit because it is the default"
    assert reply.content_type == "application/octet-stream"
    assert reply.response_topic is None
    assert reply.expiry is None, "the request had no expiry"
    assert reply.prop("__stat") == "200"
    assert reply.prop("__protVer") == "1.0"
    assert reply.prop("__srcId") == "StateStore"
    names = sorted(name for name, _ in reply.user)
    assert names == sorted(["__stat", "__protVer", "__srcId"] + ["__ts"] * has_version)


@pytest.mark.parametrize("correlation", [
    b"1",
    b"1234",
    bytes(range(256)),
    b"\0",
    b"\r\n",
    b"\xff\xfe\xfd",
    b"",
    b"long" * 16383,
], ids=lambda correlation: f"{len(correlation)} bytes")
def test_correlation_data_is_returned_unchanged(client, key, correlation):
    assert client.request("GET", key, correlation=correlation).correlation == correlation


def test_a_reply_has_the_remaining_expiry_of_its_request(client, key):
    reply = client.request("SET", key, "value", expiry=10_000)

    assert 9_900 <= reply.expiry <= 10_000


@pytest.mark.parametrize("expiry", [0xFFFFFFFE, 0xFFFFFFFF])
def test_the_largest_expiry_is_preserved(client, key, expiry):
    reply = client.request("GET", key, expiry=expiry)

    if version() >= (2, 1) and expiry == 0xFFFFFFFF:
        assert reply.expiry is None, "the broker removes it: the message does not expire"
    else:
        assert reply.expiry >= expiry - 100


def test_the_version_of_keynotify_is_the_present_time(client, key):
    before = client.request("SET", key, "value").ts
    ts = client.clock.now()

    registered = client.request("KEYNOTIFY", key, ts=ts).ts
    stopped = client.request("KEYNOTIFY", key, "STOP").ts
    after = client.request("SET", key, "value").ts

    assert before < registered < stopped < after
    assert ts < registered


def test_versions_are_padded_and_have_the_stores_node_id(client, key):
    text = client.request("SET", key, "value").prop("__ts")

    assert text == Hlc.parse(text).padded()
    assert Hlc.parse(text).node == "StateStore"


def test_the_node_id_is_the_configured_one(site):
    site.start_store("--node-id", "Edge 7/é")

    reply = site.connect().request("SET", "key", "value")

    assert reply.prop("__srcId") == "Edge 7/é"
    assert reply.ts.node == "Edge 7/é"
