# SPDX-License-Identifier: Apache-2.0
"""The plugin stamps on each request who sent it, and nobody else can."""

import struct

import pytest

from support.client import INVOKE, SERVICE, notify_topic
from support.flood import number, packet, text
from support.message import Message
from support.connection import NOT_AUTHORIZED, PROTOCOL_ERROR, SUCCESS, Disconnected
from support.plugin import peer, site, site_with  # noqa: F401 fixtures

STAMPS = ("statestore-seal", "statestore-client-id", "statestore-username")


def stamps(request):
    return [(name, value) for name, value in request.user if name.startswith("statestore-")]


def test_a_request_bears_its_senders_client_id_and_the_seal_that_welcome_gave(site, peer):
    client = site.connect("a client")

    client.request()

    seal, connection = stamps(peer.next_request())
    assert seal[0] == "statestore-seal"
    assert seal[1].split(":")[0] == peer.seal
    assert connection == ("statestore-client-id", "a client")


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


def test_a_request_without_any_properties_is_stamped_as_well(site, peer):
    client = site.connect()

    client.publish(INVOKE)

    assert peer.next_request().prop("statestore-client-id") == client.id


@pytest.mark.parametrize("n_others", [0, 1, 100])
def test_forged_stamps_are_taken_out_and_nothing_else_is(site, peer, n_others):
    client = site.connect()
    others = [(f"other-{n}", "x") for n in range(n_others)]
    forged = [("statestore-seal", f"{peer.seal}:1"), ("statestore-client-id", "somebody else"),
              ("statestore-username", "root"), ("statestore-", ""), ("statestore-whatever-comes", "true")]

    client.request(user=[*forged[:2], *others, *forged[2:]], CorrelationData=b"\0\1", ContentType="text")

    request = peer.next_request()
    assert [name for name, _ in stamps(request)] == ["statestore-seal", "statestore-client-id"]
    assert request.prop("statestore-client-id") == client.id
    assert [pair for pair in request.user if pair[0] not in STAMPS] == others
    assert (request.correlation, request.content_type) == (b"\0\1", "text")


def test_names_that_only_resemble_a_stamp_are_left_alone(site, peer):
    client = site.connect()
    user = [("statestore", "1"), ("Statestore-seal", "2"), ("x-statestore-seal", "3")]

    client.request(user=user)

    assert peer.next_request().user[:3] == user


def test_forged_stamps_among_more_properties_than_it_sorts_through_are_refused(site, peer):
    client = site.connect()

    assert client.request(user=[("statestore-seal", "1")] + [("name", "value")] * 1000) == 0x87
    assert client.request(user=[("name", "value")] * 1000) == 0

    assert stamps(peer.next_request())[1] == ("statestore-client-id", client.id)


def test_a_connection_keeps_its_number_and_the_next_one_has_another(site, peer):
    client = site.connect("client")
    first = peer.number_of(client)
    assert peer.number_of(client) == first
    client.disconnect()

    assert peer.number_of(site.connect("client")) != first
    assert peer.number_of(site.connect("other")) != first


def test_a_restarted_broker_has_another_seal_and_gives_no_number_again(site):
    numbers, seals = set(), set()
    for _ in range(3):
        peer = site.served()
        seals.add(peer.seal)
        numbers |= {peer.number_of(site.connect()) for _ in range(3)}
        site.broker.stop()
        site.broker.start_again()

    assert len(seals) == 3
    assert len(numbers) == 9
    assert all(0 < int(number) < 1 << 63 for number in numbers)


def test_a_will_bears_no_seal_that_is_worth_anything(site, peer):
    forger = site.connect("forger", will=(INVOKE, b"a will"),
                          will_properties=b"\x26\x26\x00\x0fstatestore-seal\x00\x12" + peer.seal[:16].encode() + b":1")
    peer.number_of(forger)

    forger.cut()

    will = peer.next_request()
    assert will.payload == b"a will"
    assert all(not value.startswith(peer.seal) for name, value in stamps(will))


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
        assert stamps(request)[1:] == [("statestore-client-id", client.id)]


def test_a_request_is_never_retained(site, peer):
    client = site.connect()

    client.request(retain=True)

    assert not peer.next_request().retain
    assert site.served("statestored").messages() == []


@pytest.mark.parametrize("qos", [0, 2])
def test_requests_of_another_qos_are_stamped_too(site, peer, qos):
    client = site.connect()

    client.send(client.encode_publish(INVOKE, qos=qos))
    if qos == 2:
        client.send(b"\x62\x02\x00\x01")  # PUBREL

    assert peer.next_request().prop("statestore-client-id") == client.id


@pytest.mark.parametrize("topic", [INVOKE, f"clients/{SERVICE}", f"clients/{SERVICE}/x/command/notify/y",
                                   f"clients/{SERVICE}x", "a/+", "a/#", "", "$SYS/x"])
def test_a_forbidden_response_topic_disconnects_its_sender_and_nobody_else(site, peer, topic):
    offender, neighbour = site.connect("offender"), site.connect()

    with pytest.raises(Disconnected) as end:
        offender.request(ResponseTopic=topic)

    assert end.value.reason == PROTOCOL_ERROR
    assert peer.number_of(neighbour)
    assert peer.messages() == [], "the request was not seen"


def test_a_missing_response_topic_is_statestoreds_business(site, peer):
    client = site.connect()

    client.publish(INVOKE, b"no answer wanted")

    assert peer.next_request().response_topic is None


def test_messages_on_other_topics_are_left_alone(site, peer):
    client = site.connect()
    client.subscribe("other")

    client.publish("other", ResponseTopic=f"clients/{SERVICE}/x", user=[("statestore-seal", "x")])

    message = client.message()
    assert message.user == [("statestore-seal", "x")]
    assert message.response_topic == f"clients/{SERVICE}/x"
