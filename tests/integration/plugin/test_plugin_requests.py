# SPDX-License-Identifier: Apache-2.0
"""The plugin takes each request once, with its sender's identity, and nothing else that is published to the invoke topic."""

import struct

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.broker import free_port, refuses_response_topic
from support.client import INVOKE, SERVICE, notify_topic
from support.connection import KICKED, NO_SUBSCRIBERS, NOT_AUTHORIZED, PROTOCOL_ERROR, SUCCESS, Connection
from support.packets import number, packet, text
from support.plugin import PLUGIN, build_plugin, peer, site, site_with  # noqa: F401 fixtures

PUBREL = b"\x62\x02"


# Identity and content


@pytest.mark.parametrize("username", [None, "someone", "\u00e4 \u4e16/+#:", "x" * 1000], ids=lambda name: len(name or ""))
@pytest.mark.parametrize("client_id", ["a/:\u00e4", " ", "statestore-mac", "y" * 5000], ids=len)
def test_client_ids_and_user_names_can_be_any_text(site, peer, client_id, username):
    client = site.connect(client_id, username=username)

    client.request()

    request = peer.next_request()
    assert (request.client_id, request.username) == (client_id, username)


@pytest.mark.parametrize("more", [{}, {"ResponseTopic": None}, {"CorrelationData": b""}, {"CorrelationData": b"\0" * 65535},
                                  {"payload": b""}, {"payload": b"x" * 1000000},
                                  {"user": [("", ""), ("a", ""), ("", "a"), ("a", "b"), ("a", "b")]},
                                  {"user": [("statestore-client-id", "another client"), ("statestore-mac", "1:1:00")]},
                                  {"ContentType": "text", "PayloadFormatIndicator": 1}],
                         ids=lambda more: "-".join(more) or "nothing")
def test_a_request_reaches_the_store_as_it_was_published(site, peer, more):
    client = site.connect()

    assert client.request(**more) == SUCCESS

    request = peer.next_request()
    assert (request.client_id, request.qos) == (client.id, 1)
    assert request.payload == more.get("payload", b"a request")
    assert request.response_topic == more.get("ResponseTopic", "clients/c/replies")
    assert request.correlation == more.get("CorrelationData")
    assert request.user == more.get("user", [])


def test_a_request_without_properties_reaches_the_store(site, peer):
    site.connect("client").publish(INVOKE)

    request = peer.next_request()
    assert (request.client_id, request.response_topic, request.correlation, request.user) == ("client", None, None, [])


def test_a_request_with_too_many_properties_is_refused(site, peer):
    client = site.connect()
    for user in ([("", "")] * 1024, [("", "")] * 100000):
        assert client.request(payload=b"too many", user=user) == NOT_AUTHORIZED

    assert client.request(payload=b"the maximum", user=[("", "")] * 1023) == SUCCESS
    assert peer.next_request().payload == b"the maximum"


def test_a_request_with_more_than_64_kib_of_user_properties_is_refused(site, peer):
    client = site.connect()
    for user in ([("nn", "v" * 65535)], [("name", "v" * 65000)] * 100):
        assert client.request(payload=b"too large", user=user) == NOT_AUTHORIZED

    for user in ([("n", "v" * 65535)], [("", "v" * 32768)] * 2):
        assert client.request(payload=b"the maximum", user=user) == SUCCESS
        request = peer.next_request()
        assert (request.payload, request.user) == (b"the maximum", user)


def test_a_request_may_have_correlation_data_and_a_response_topic_of_any_length(site, peer):
    topic, correlation = "t" * 65535, bytes(65535)

    assert site.connect().request(ResponseTopic=topic, CorrelationData=correlation) == SUCCESS

    request = peer.next_request()
    assert (request.response_topic, request.correlation) == (topic, correlation)


LONG_NAMES = """
#include <string.h>
int mosquitto_set_username(void *, const char *);
static int name(void *client, int length)
{ static char text[65537]; memset(text, 'u', length); text[length] = 0; return mosquitto_set_username(client, text); }
"""


def test_a_request_with_a_user_name_of_more_than_65535_bytes_is_refused(site_with, tmp_path):
    """MQTT does not limit a user name that the broker takes from a certificate, or from a plugin, as here."""
    naming = build_plugin(tmp_path, 3, "strncmp(client_id, \"u-\", 2) ? 0 : name(((struct connect *)data)->client, "
                          "client_id[2] == 'l' ? 65536 : 65535)", LONG_NAMES)  # MOSQ_EVT_BASIC_AUTH
    site = site_with(f"plugin {naming}")
    peer, client = site.served(), site.connect("u-long")

    assert client.request() == NOT_AUTHORIZED
    assert site.connect("u-maximum").request() == SUCCESS

    assert peer.next_request().username == "u" * 65535


def encode_aliased(client, alias, topic, payload, properties=b""):
    """Encode a PUBLISH with a topic alias. The broker replaces an empty topic by the topic of the alias."""
    properties = b"\x23" + struct.pack("!H", alias) + properties
    return packet(0x32, text(topic.encode()) + client._next_id() + number(len(properties)) + properties + payload)


def test_requests_by_topic_alias_are_taken(site, peer):
    client = site.connect()

    client.send(encode_aliased(client, 1, INVOKE, b"first") + encode_aliased(client, 1, "", b"second"))
    client.send(encode_aliased(client, 2, notify_topic("a", "b"), b"x") + encode_aliased(client, 2, "", b"x"))

    assert [client.acknowledgement() for _ in range(4)] == [SUCCESS] * 2 + [NOT_AUTHORIZED] * 2
    assert [peer.next_request().payload for _ in range(2)] == [b"first", b"second"]


@pytest.mark.parametrize("qos", [0, 2])
def test_of_a_request_at_another_qos_only_the_address_of_the_reply_reaches_the_store(site, peer, qos):
    client = site.connect()

    client.send(client.encode_publish(INVOKE, b"x" * 100_000, qos=qos, user=[("a", "b")], CorrelationData=b"1",
                                      ResponseTopic="clients/c/replies", ContentType="x" * 60_000))
    if qos == 2:
        client.send(PUBREL + b"\x00\x01")

    request = peer.next_request()
    assert (request.qos, request.payload, request.user) == (qos, b"", [])
    assert (request.correlation, request.response_topic) == (b"1", "clients/c/replies")
    assert peer.take_records() == [], "the delivery at PUBREL adds nothing"
    assert peer.frames[-1].n_dropped == 0


def test_a_request_is_never_retained(site, peer):
    site.connect().request(retain=True)
    assert peer.next_request()

    listener = site.served("statestored")
    assert listener.take_records() == [] and listener.messages() == []


# Connections


def test_each_connection_has_a_constant_number_of_its_own(site, peer):
    client = site.connect("client")
    first = peer.number_of(client)
    assert peer.number_of(client) == first
    client.disconnect()

    assert peer.number_of(site.connect("client")) != first
    assert peer.number_of(site.connect("other")) != first


def test_a_broker_restart_has_a_new_run_and_reuses_no_number(site):
    numbers, runs = set(), set()
    for _ in range(3):
        peer = site.served()
        runs.add(peer.welcome.broker_run)
        numbers |= {peer.number_of(site.connect()) for _ in range(3)}
        assert peer.frames[-1].first <= 3
        site.broker.stop()
        site.broker.start_again()

    assert len(runs) == 3
    assert len(numbers) == 9
    assert all(0 < int(number) < 1 << 63 for number in numbers)


# What the PUBACK says, and who receives what


def test_no_client_and_not_the_store_receives_a_request_from_the_broker(site, peer):
    listener = site.connect()
    for topic in ("#", "+/#", SERVICE + "/#"):
        listener.subscribe(topic)
    peer.subscribe("#")

    site.connect().request()

    assert peer.next_request()
    assert peer.messages() == listener.messages() == []


def test_without_a_session_of_the_store_a_request_is_not_taken(site):
    client = site.connect()
    assert client.request() == NO_SUBSCRIBERS

    peer = site.served()

    assert peer.take_records() == []


def test_a_request_of_the_broker_s_start_waits_for_the_store(site):
    """The store has a session, and was never connected while the plugin was loaded: it has sent no HELLO."""
    session = site.connect("statestored", session_expiry=1000)
    session.subscribe(INVOKE)
    client = site.connect()
    assert client.request(payload=b"before HELLO") == SUCCESS
    session.cut()
    assert client.request(payload=b"without a connection") == SUCCESS

    peer = site.peer(clean_start=False, session_expiry=1000)
    peer.hello()

    assert [peer.next_request().payload for _ in range(2)] == [b"before HELLO", b"without a connection"]


@pytest.mark.parametrize("topic", [INVOKE, f"clients/{SERVICE}", f"clients/{SERVICE}/x/command/notify/y",
                                   f"clients/{SERVICE}x", "a/+", "a/#", "", "$SYS/x", "a" + 100 * "/a"], ids=lambda topic: topic[:40])
def test_a_forbidden_response_topic_disconnects_only_its_sender(site, peer, topic):
    offender, neighbour = site.connect("offender"), site.connect()

    if refuses_response_topic(topic):
        offender.send(offender.encode_publish(INVOKE, ResponseTopic=topic))
        assert offender.wait_until_closed() == PROTOCOL_ERROR
    else:
        assert offender.request(ResponseTopic=topic) == NOT_AUTHORIZED
        assert offender.wait_until_closed() == KICKED
    assert peer.number_of(neighbour)
    assert peer.take_records() == [], "the store does not receive the request"


# What is not a request


def will_of(request_payload, delay=0):
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.ResponseTopic, properties.CorrelationData, properties.WillDelayInterval = "clients/c/replies", b"1", delay
    return {"will": (INVOKE, request_payload), "will_properties": properties.pack()}


def test_a_will_is_dropped_and_counted(site, peer):
    client = site.connect()
    client.request(payload=b"the same payload")
    assert peer.next_request()

    site.connect("forger", **will_of(b"the same payload")).cut()
    site.broker.wait_until_disconnected("forger")
    site.broker.wait_for_log("a message on the invoke topic is dropped")

    client.request(payload=b"another")
    assert peer.next_request().payload == b"another"
    peer.send_frame()
    assert peer.next_frame().n_dropped == 1


def n_dropped(peer):
    peer.send_frame()
    return peer.next_frame().n_dropped


@pytest.mark.parametrize("delay", [0, 1])
def test_a_will_with_the_staged_payload_is_not_taken(site_with, tmp_path, delay):
    """A later plugin refuses each request, and the broker then publishes a will. The broker uses the address of the payload
    again: it has the same size. A delayed will is published in the same iteration of the broker's loop as requests."""
    refusing = build_plugin(tmp_path, 7, 12)  # MOSQ_EVT_MESSAGE, MOSQ_ERR_ACL_DENIED
    site = site_with(f"plugin {refusing}")
    peer, client = site.served(), site.connect()
    payload = b"x" * 5000
    forgers = [site.connect(f"forger-{n}", session_expiry=1000, **will_of(payload, delay)) for n in range(20)]

    for forger in forgers:
        forger.cut()
    while n_dropped(peer) < len(forgers):
        client.send(b"".join(client.encode_publish(INVOKE, payload) for _ in range(10)))
        assert {client.acknowledgement() for _ in range(10)} == {NOT_AUTHORIZED}

    assert peer.take_records() == []


def test_a_request_that_a_later_plugin_refuses_is_not_taken(site_with, tmp_path):
    site = site_with(f"plugin {build_plugin(tmp_path, 7, 12)}")
    peer, client = site.served(), site.connect()

    assert client.request() == NOT_AUTHORIZED

    assert peer.take_records() == []


def test_a_message_through_a_listener_without_the_plugin_is_dropped(site_with):
    port = free_port()
    site = site_with("per_listener_settings true", "listener {port} 127.0.0.1", f"plugin {PLUGIN}", "allow_anonymous true",
                     f"listener {port} 127.0.0.1", "allow_anonymous true", plugin=False)
    peer = site.served()
    with_plugin, without = site.connect(), Connection(port)
    site.connections.append(without)

    assert without.request(payload=b"dropped") == SUCCESS
    assert with_plugin.request(payload=b"taken") == SUCCESS

    assert peer.next_request().payload == b"taken"
    assert peer.frames[-1].n_dropped == 1


# Other messages


def test_messages_on_other_topics_are_unchanged(site, peer):
    client = site.connect()
    client.subscribe("other")

    client.publish("other", ResponseTopic=f"clients/{SERVICE}/x", user=[("statestore-mac", "x")])

    message = client.message()
    assert message.user == [("statestore-mac", "x")]
    assert message.response_topic == f"clients/{SERVICE}/x"
