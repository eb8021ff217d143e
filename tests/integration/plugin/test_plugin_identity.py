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
from support.connection import NOT_AUTHORIZED, PROTOCOL_ERROR, SUCCESS, Disconnected
from support.plugin import peer, site, site_with  # noqa: F401 fixtures

RESERVED = ("statestore-mac", "statestore-client-id", "statestore-username")


def identity(peer):
    """Of the next request, which the plugin vouches for."""
    return companion.verified(peer.next_request(), peer.mac_key)


def reserved(message):
    return [(name, value) for name, value in message.user if name.startswith("statestore-")]


def test_a_request_bears_its_senders_identity_and_a_mac_under_the_key_that_welcome_gave(site, peer):
    client = site.connect("a client")

    client.request()

    sender = identity(peer)
    assert (sender.client_id, sender.username) == ("a client", None)
    assert sender.sequence == peer.last_request + 1


@pytest.mark.parametrize("username", ["someone", "\u00e4 \u4e16/+#:", "x" * 1000], ids=len)
@pytest.mark.parametrize("client_id", ["a/+#:\u00e4", " ", "statestore-mac", "y" * 5000], ids=len)
def test_client_ids_and_user_names_of_any_text_are_vouched_for(site, peer, client_id, username):
    client = site.connect(client_id, username=username)

    client.request()

    sender = identity(peer)
    assert (sender.client_id, sender.username) == (client_id, username)


@pytest.mark.parametrize("more", [{}, {"ResponseTopic": None}, {"CorrelationData": b""}, {"CorrelationData": b"\0" * 65535},
                                  {"payload": b""}, {"payload": b"x" * 1000000},
                                  {"user": [("", ""), ("a", ""), ("", "a"), ("a", "b"), ("a", "b")]},
                                  {"ContentType": "text", "PayloadFormatIndicator": 1}],
                         ids=lambda more: "-".join(more) or "nothing")
def test_the_mac_covers_what_is_there_and_what_is_not(site, peer, more):
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
def test_a_request_that_somebody_has_changed_bears_no_right_mac(site, peer, part):
    client = site.connect()
    client.request(CorrelationData=b"1", user=[("__ts", "1")])
    message = peer.next_request()
    companion.verified(message, peer.mac_key)

    change = CHANGES[part] + reserved(message) if part == "user" else CHANGES[part]
    with pytest.raises(companion.Forged):
        companion.verified(dataclasses.replace(message, **{part: change}), peer.mac_key)


def test_sequences_grow_over_all_clients(site, peer):
    clients = [site.connect() for _ in range(3)]
    for client in clients * 3:
        client.request()

    first = peer.last_request + 1
    assert [identity(peer).sequence for _ in range(9)] == list(range(first, first + 9))
    peer.hello()
    assert peer.last_request == first + 8


def test_everything_else_of_a_request_is_left_as_it_was(site, peer):
    client = site.connect()

    client.publish(INVOKE, b"payload", ResponseTopic="answers", CorrelationData=b"\0\1", ContentType="text",
                   PayloadFormatIndicator=1, MessageExpiryInterval=1000, user=[("__ts", "1"), ("", ""), ("__ts", "2")])

    request: Message = peer.next_request()
    assert request.payload == b"payload"
    assert request.response_topic == "answers"
    assert request.correlation == b"\0\1"
    assert request.content_type == "text"
    assert request.format_indicator == 1
    assert 900 < request.expiry <= 1000
    assert request.user[:3] == [("__ts", "1"), ("", ""), ("__ts", "2")]


def test_a_request_without_any_properties_is_vouched_for_as_well(site, peer):
    client = site.connect()

    client.publish(INVOKE)

    assert identity(peer).client_id == client.id


@pytest.mark.parametrize("n_others", [0, 1, 100])
def test_forged_identity_properties_are_taken_out_and_nothing_else_is(site, peer, n_others):
    client = site.connect()
    others = [(f"other-{n}", "x") for n in range(n_others)]
    forged = [("statestore-mac", "1:1:" + "0" * 32), ("statestore-client-id", "somebody else"),
              ("statestore-username", "root"), ("statestore-", ""), ("statestore-whatever-comes", "true")]

    client.request(user=[*forged[:2], *others, *forged[2:]], CorrelationData=b"\0\1", ContentType="text")

    request = peer.next_request()
    assert companion.verified(request, peer.mac_key).client_id == client.id
    assert [pair for pair in request.user if pair[0] not in RESERVED] == others
    assert (request.correlation, request.content_type) == (b"\0\1", "text")


def test_names_that_only_resemble_reserved_ones_are_left_alone(site, peer):
    client = site.connect()
    user = [("statestore", "1"), ("Statestore-mac", "2"), ("x-statestore-mac", "3")]

    client.request(user=user)

    assert peer.next_request().user[:3] == user


def test_forged_identity_properties_among_more_than_it_copies_are_refused(site, peer):
    client = site.connect()

    assert client.request(user=[("statestore-mac", "1")] + [("name", "value")] * 1000) == 0x87
    assert client.request(user=[("name", "value")] * 1000) == 0

    assert identity(peer).client_id == client.id


def test_a_request_with_more_properties_than_memory_is_spent_on_is_refused(site, peer):
    """An empty one takes five bytes of the packet, and twenty times as much in the store."""
    client = site.connect()
    for user in ([("", "")] * 1024, [("", "")] * 100000):
        assert client.request(payload=b"too many", user=user) == NOT_AUTHORIZED

    assert client.request(payload=b"as many as may be", user=[("", "")] * 1023) == SUCCESS
    assert peer.next_request().payload == b"as many as may be"


def test_a_connection_keeps_its_number_and_the_next_one_has_another(site, peer):
    client = site.connect("client")
    first = peer.number_of(client)
    assert peer.number_of(client) == first
    client.disconnect()

    assert peer.number_of(site.connect("client")) != first
    assert peer.number_of(site.connect("other")) != first


def test_a_restarted_broker_has_another_mac_key_and_gives_no_number_again(site):
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


def test_a_will_that_copies_a_request_is_no_newer_than_it(site, peer):
    """What it bears was right once: the store tells it by its sequence."""
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
    """The broker has the topic where it is empty."""
    properties = b"\x23" + struct.pack("!H", alias) + properties
    return packet(0x32, text(topic.encode()) + client._next_id() + number(len(properties)) + properties + payload)


def test_a_topic_alias_hides_nothing(site, peer):
    client = site.connect()
    forged = b"\x26" + text(b"statestore-client-id") + text(b"somebody else")

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
def test_requests_of_another_qos_bear_no_identity(site, peer, qos, user):
    client = site.connect()

    client.send(client.encode_publish(INVOKE, qos=qos, user=user))
    if qos == 2:
        client.send(b"\x62\x02\x00\x01")  # PUBREL

    request = peer.next_request()
    assert reserved(request) == []
    assert request.user == [pair for pair in user if pair[0] in "ac"]


@pytest.mark.parametrize("topic", [INVOKE, f"clients/{SERVICE}", f"clients/{SERVICE}/x/command/notify/y",
                                   f"clients/{SERVICE}x", "a/+", "a/#", "", "$SYS/x"])
def test_a_forbidden_response_topic_disconnects_its_sender_and_nobody_else(site, peer, topic):
    offender, neighbour = site.connect("offender"), site.connect()

    with pytest.raises(Disconnected) as end:
        offender.request(ResponseTopic=topic)

    assert end.value.reason == PROTOCOL_ERROR
    assert peer.number_of(neighbour)
    assert peer.messages() == [], "the request was not seen"


def test_a_request_without_a_response_topic_reaches_the_store(site, peer):
    client = site.connect()

    client.publish(INVOKE, b"no answer wanted")

    assert peer.next_request().response_topic is None


def test_messages_on_other_topics_are_left_alone(site, peer):
    client = site.connect()
    client.subscribe("other")

    client.publish("other", ResponseTopic=f"clients/{SERVICE}/x", user=[("statestore-mac", "x")])

    message = client.message()
    assert message.user == [("statestore-mac", "x")]
    assert message.response_topic == f"clients/{SERVICE}/x"
