# SPDX-License-Identifier: Apache-2.0
"""The plugin adds the sender's identity to each request, and no client can forge it."""

import dataclasses
import struct

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import companion
from support.client import INVOKE, SERVICE, notify_topic
from support.flood import number, packet, text
from support.message import Message
from support.connection import KICKED, NOT_AUTHORIZED, SUCCESS
from support.plugin import peer, site, site_with  # noqa: F401 fixtures

RESERVED = ("statestore-mac", "statestore-client-id", "statestore-username")


def identity(peer):
    """Return the identity of the next request; its MAC must be valid."""
    return companion.verified(peer.next_request(), peer.mac_key)


def reserved(message):
    return [(name, value) for name, value in message.user if name.startswith("statestore-")]


def test_a_request_has_its_senders_identity_and_a_mac_under_the_key_of_welcome(site, peer):
    client = site.connect("a client")

    client.request()

    sender = identity(peer)
    assert (sender.client_id, sender.username) == ("a client", None)
    assert sender.sequence == peer.last_request + 1


@pytest.mark.parametrize("username", ["someone", "\u00e4 \u4e16/+#:", "x" * 1000], ids=len)
@pytest.mark.parametrize("client_id", ["a/+#:\u00e4", " ", "statestore-mac", "y" * 5000], ids=len)
def test_client_ids_and_user_names_can_be_any_text(site, peer, client_id, username):
    client = site.connect(client_id, username=username)

    client.request()

    sender = identity(peer)
    assert (sender.client_id, sender.username) == (client_id, username)


@pytest.mark.parametrize("more", [{}, {"ResponseTopic": None}, {"CorrelationData": b""}, {"CorrelationData": b"\0" * 65535},
                                  {"payload": b""}, {"payload": b"x" * 1000000},
                                  {"user": [("", ""), ("a", ""), ("", "a"), ("a", "b"), ("a", "b")]},
                                  {"ContentType": "text", "PayloadFormatIndicator": 1}],
                         ids=lambda more: "-".join(more) or "nothing")
def test_the_mac_covers_present_and_absent_parts(site, peer, more):
    client = site.connect()

    assert client.request(**more) == SUCCESS

    assert identity(peer).client_id == client.id


CHANGES = {
    "payload": b"another",
    "response_topic": "another/topic",
    "correlation": b"another",
    "user": [("__ts", "2")],
}


@pytest.mark.parametrize("part", CHANGES)
def test_the_mac_of_a_changed_request_is_invalid(site, peer, part):
    client = site.connect()
    client.request(CorrelationData=b"1", user=[("__ts", "1")])
    message = peer.next_request()
    companion.verified(message, peer.mac_key)

    change = CHANGES[part] + reserved(message) if part == "user" else CHANGES[part]
    with pytest.raises(companion.Forged):
        companion.verified(dataclasses.replace(message, **{part: change}), peer.mac_key)


def test_no_sequence_is_used_twice_with_one_mac_key(site, peer):
    """Two requests with the same sequence would reveal how to forge a third."""
    clients = [site.connect() for _ in range(3)]
    mac_key, first = peer.mac_key, peer.last_request + 1
    for client in clients * 3:
        client.request()
    assert [identity(peer).sequence for _ in range(9)] == list(range(first, first + 9))

    peer.hello()
    assert peer.last_request == first + 8
    site.broker.reload()
    peer.hello("another instance")
    clients[0].request()

    assert (peer.mac_key, identity(peer).sequence) == (mac_key, first + 9)


def test_other_parts_of_a_request_are_unchanged(site, peer):
    client = site.connect()

    client.publish(INVOKE, b"payload", ResponseTopic="replies", CorrelationData=b"\0\1", ContentType="text",
                   PayloadFormatIndicator=1, MessageExpiryInterval=1000, user=[("__ts", "1"), ("", ""), ("__ts", "2")])

    request: Message = peer.next_request()
    assert request.payload == b"payload"
    assert request.response_topic == "replies"
    assert request.correlation == b"\0\1"
    assert request.content_type == "text"
    assert request.format_indicator == 1
    assert 900 < request.expiry <= 1000
    assert request.user[:3] == [("__ts", "1"), ("", ""), ("__ts", "2")]


def test_a_request_without_properties_gets_a_mac(site, peer):
    client = site.connect()

    client.publish(INVOKE)

    assert identity(peer).client_id == client.id


@pytest.mark.parametrize("n_others", [0, 1, 100])
def test_only_forged_identity_properties_are_removed(site, peer, n_others):
    client = site.connect()
    others = [(f"other-{n}", "x") for n in range(n_others)]
    forged = [("statestore-mac", "1:1:" + "0" * 32), ("statestore-client-id", "another client"),
              ("statestore-username", "root"), ("statestore-", ""), ("statestore-unknown", "true")]

    client.request(user=[*forged[:2], *others, *forged[2:]], CorrelationData=b"\0\1", ContentType="text")

    request = peer.next_request()
    assert companion.verified(request, peer.mac_key).client_id == client.id
    assert [pair for pair in request.user if pair[0] not in RESERVED] == others
    assert (request.correlation, request.content_type) == (b"\0\1", "text")


def test_properties_with_similar_names_are_unchanged(site, peer):
    client = site.connect()
    user = [("statestore", "1"), ("Statestore-mac", "2"), ("x-statestore-mac", "3")]

    client.request(user=user)

    assert peer.next_request().user[:3] == user


def test_forged_identity_properties_among_too_many_others_are_refused(site, peer):
    client = site.connect()

    assert client.request(user=[("statestore-mac", "1")] + [("name", "value")] * 1000) == 0x87
    assert client.request(user=[("name", "value")] * 1000) == 0

    assert identity(peer).client_id == client.id


def test_a_request_with_too_many_properties_is_refused(site, peer):
    """An empty property takes five bytes of the packet, and twenty times as much memory in the store."""
    client = site.connect()
    for user in ([("", "")] * 1024, [("", "")] * 100000):
        assert client.request(payload=b"too many", user=user) == NOT_AUTHORIZED

    assert client.request(payload=b"the maximum", user=[("", "")] * 1023) == SUCCESS
    assert peer.next_request().payload == b"the maximum"


def test_a_request_with_more_than_64_kib_of_user_properties_is_refused(site, peer):
    """While a request waits for the store, max_queued_bytes of mosquitto counts only its payload."""
    client = site.connect()
    for user in ([("nn", "v" * 65535)], [("", "v" * 32768)] * 2 + [("n", "")], [("name", "v" * 65000)] * 100):
        assert client.request(payload=b"too large", user=user) == NOT_AUTHORIZED

    for user in ([("n", "v" * 65535)], [("", "v" * 32768)] * 2):
        assert client.request(payload=b"the maximum", user=user) == SUCCESS
        assert peer.next_request().payload == b"the maximum"


def test_a_request_may_have_correlation_data_and_a_response_topic_of_any_length(site, peer):
    topic, correlation = "t" * 65535, bytes(65535)

    assert site.connect().request(ResponseTopic=topic, CorrelationData=correlation) == SUCCESS

    request = peer.next_request()
    assert (request.response_topic, request.correlation) == (topic, correlation)


def test_each_connection_has_a_constant_number_of_its_own(site, peer):
    client = site.connect("client")
    first = peer.number_of(client)
    assert peer.number_of(client) == first
    client.disconnect()

    assert peer.number_of(site.connect("client")) != first
    assert peer.number_of(site.connect("other")) != first


def test_a_broker_restart_changes_the_mac_key_and_reuses_no_number(site):
    numbers, keys = set(), set()
    for _ in range(3):
        peer = site.served()
        keys.add(peer.mac_key)
        numbers |= {peer.number_of(site.connect()) for _ in range(3)}
        site.broker.stop()
        site.broker.start_again()

    assert len(keys) == 3
    assert len(numbers) == 9
    assert all(0 < int(number) < 1 << 63 for number in numbers)


def test_a_will_that_copies_a_request_has_the_same_sequence(site, peer):
    """The MAC of the copy is valid, so the store recognizes the copy by its sequence."""
    client = site.connect()
    client.request(CorrelationData=b"1")
    request = peer.next_request()
    sender = companion.verified(request, peer.mac_key)
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.UserProperty, properties.ResponseTopic = request.user, request.response_topic
    properties.CorrelationData = request.correlation

    site.connect("forger", will=(INVOKE, request.payload), will_properties=properties.pack()).cut()

    copy = identity(peer)
    assert copy == sender
    client.request()
    assert identity(peer).sequence == sender.sequence + 1


def encode_aliased(client, alias, topic, payload, properties=b""):
    """Encode a PUBLISH with a topic alias. The broker replaces an empty topic by the topic of the alias."""
    properties = b"\x23" + struct.pack("!H", alias) + properties
    return packet(0x32, text(topic.encode()) + client._next_id() + number(len(properties)) + properties + payload)


def test_requests_by_topic_alias_get_an_identity(site, peer):
    client = site.connect()
    forged = b"\x26" + text(b"statestore-client-id") + text(b"another client")

    client.send(encode_aliased(client, 1, INVOKE, b"first") + encode_aliased(client, 1, "", b"second", forged))
    client.send(encode_aliased(client, 2, notify_topic("a", "b"), b"x") + encode_aliased(client, 2, "", b"x"))

    assert [client.acknowledgement() for _ in range(4)] == [SUCCESS] * 2 + [NOT_AUTHORIZED] * 2
    for payload in (b"first", b"second"):
        request = peer.next_request()
        assert (request.topic, request.payload) == (INVOKE, payload)
        assert companion.verified(request, peer.mac_key).client_id == client.id


def test_a_request_is_never_retained(site, peer):
    client = site.connect()

    client.request(retain=True)

    assert not peer.next_request().retain
    assert site.served("statestored").messages() == []


@pytest.mark.parametrize("user", [[], [("statestore-mac", "1:1:" + "0" * 32)],
                                  [("a", "b"), ("statestore-client-id", "x"), ("c", "d")]], ids=len)
@pytest.mark.parametrize("qos", [0, 2])
def test_of_a_request_at_another_qos_only_the_address_of_the_reply_reaches_the_store(site, peer, qos, user):
    client = site.connect()

    client.send(client.encode_publish(INVOKE, b"x" * 100_000, qos=qos, user=user, CorrelationData=b"1",
                                      ResponseTopic="clients/c/replies", ContentType="x" * 60_000))
    if qos == 2:
        client.send(b"\x62\x02\x00\x01")  # PUBREL

    request = peer.next_request()
    assert (request.payload, request.user, request.content_type) == (b"", [], None)
    assert (request.correlation, request.response_topic) == (b"1", "clients/c/replies")


def test_a_request_at_qos_2_with_a_long_reply_address_is_refused(site, peer):
    client = site.connect()

    client.send(client.encode_publish(INVOKE, qos=2, CorrelationData=b"1" * 1025) + b"\x62\x02\x00\x01")
    client.send(client.encode_publish(INVOKE, qos=2, CorrelationData=b"2" * 1024) + b"\x62\x02\x00\x02")

    assert peer.next_request().correlation == b"2" * 1024


@pytest.mark.parametrize("topic", [INVOKE, f"clients/{SERVICE}", f"clients/{SERVICE}/x/command/notify/y",
                                   f"clients/{SERVICE}x", "a/+", "a/#", "", "$SYS/x", "a" + 100 * "/a"], ids=lambda topic: topic[:40])
def test_a_forbidden_response_topic_disconnects_only_its_sender(site, peer, topic):
    offender, neighbour = site.connect("offender"), site.connect()

    assert offender.request(ResponseTopic=topic) == NOT_AUTHORIZED

    assert offender.wait_until_closed() == KICKED
    assert peer.number_of(neighbour)
    assert peer.messages() == [], "the store does not receive the request"


def test_a_request_without_a_response_topic_reaches_the_store(site, peer):
    client = site.connect()

    client.publish(INVOKE, b"no reply requested")

    assert peer.next_request().response_topic is None


def test_messages_on_other_topics_are_unchanged(site, peer):
    client = site.connect()
    client.subscribe("other")

    client.publish("other", ResponseTopic=f"clients/{SERVICE}/x", user=[("statestore-mac", "x")])

    message = client.message()
    assert message.user == [("statestore-mac", "x")]
    assert message.response_topic == f"clients/{SERVICE}/x"
