# SPDX-License-Identifier: Apache-2.0
"""A message in the store's session that is not valid in MQTT: libmosquitto closes the connection, and the broker repeats the
message on the next connection."""

import struct

import pytest

from support import resp
from support.client import INVOKE
from support.fake_broker import CONNACK_ACCEPTED, DISCONNECT, PUBACK, PUBLISH, SUBSCRIBE, publish_packet
from support.packets import packet, text

CONNACK_SESSION_PRESENT = bytes.fromhex("20 03 01 00 00")
MALFORMED_CONNACK = bytes.fromhex("20 01 00")
DISCONNECT_SHUTTING_DOWN = bytes.fromhex("e0 02 8b 00")
DISCONNECT_PROTOCOL_ERROR = bytes.fromhex("e0 02 82 00")
BEGIN_OF_A_PUBLISH = bytes.fromhex("32 7f 00 05 68 65")
SESSION_EXPIRY_ZERO = bytes.fromhex("11 00 00 00 00")  # property of CONNECT

N_FAULTS = 3  # malformed messages in succession after which the store ends its session: FAULTS_MAX in link.c


def invocation(properties, topic=INVOKE.encode(), payload=b""):
    return packet(0x32, text(topic) + struct.pack("!H", 9) + bytes([len(properties)]) + properties + payload)


MALFORMED = {
    "control character in a user property": invocation(b"\x26" + text(b"name") + text(b"a\x01b")),
    "noncharacter in a user property": invocation(b"\x26" + text(b"name") + text("\uffff".encode())),
    "invalid UTF-8 in a user property": invocation(b"\x26" + text(b"name") + text(b"\xff")),
    "control character in Response Topic": invocation(b"\x08" + text(b"clients/\x7f")),
    "invalid UTF-8 in Content Type": invocation(b"\x03" + text(b"\xff")),
    "invalid UTF-8 in the topic": invocation(b"", topic=b"\xff"),
    "two Content Types": invocation((b"\x03" + text(b"a")) * 2),
    "property of CONNACK": invocation(b"\x13\x00\x01"),
    "incomplete properties": packet(0x32, text(INVOKE.encode()) + struct.pack("!H", 9) + b"\x7f"),
}
ONE_MALFORMED = next(iter(MALFORMED.values()))


def fail(fake_broker, malformed=ONE_MALFORMED):
    """The malformed message arrives together with CONNACK, and the store closes the connection."""
    assert SESSION_EXPIRY_ZERO not in fake_broker.accept()
    fake_broker.send(CONNACK_SESSION_PRESENT + malformed)
    fake_broker.wait_until_closed()


def expect_end_of_session(fake_broker, malformed=ONE_MALFORMED):
    """The broker drops the session of a connection with this property when the connection ends."""
    assert SESSION_EXPIRY_ZERO in fake_broker.accept()
    fake_broker.send(CONNACK_SESSION_PRESENT + malformed)
    fake_broker.wait_until_closed()
    fake_broker.close_connection()


def expect_service(fake_broker, connack):
    assert SESSION_EXPIRY_ZERO not in fake_broker.accept()
    fake_broker.send(connack)
    fake_broker.publish_something()
    assert fake_broker.receive_until(PUBACK)


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_message_in_the_session_is_discarded_with_the_session(fake_broker, store_of, malformed):
    store = store_of(fake_broker.port).launch()
    for _ in range(N_FAULTS):
        fail(fake_broker, malformed)

    expect_end_of_session(fake_broker, malformed)

    expect_service(fake_broker, CONNACK_ACCEPTED)
    store.wait_for_log("level=error msg=\"the broker passes on a message that is not valid in MQTT")


def test_the_session_ends_if_no_message_follows(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    for _ in range(N_FAULTS):
        fail(fake_broker)

    assert SESSION_EXPIRY_ZERO in fake_broker.accept()
    fake_broker.send(CONNACK_SESSION_PRESENT)
    assert fake_broker.receive()[0] == DISCONNECT
    fake_broker.close_connection()

    expect_service(fake_broker, CONNACK_ACCEPTED)


def test_malformed_messages_on_established_connections_end_the_session_too(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    for _ in range(N_FAULTS):
        expect_service(fake_broker, CONNACK_SESSION_PRESENT)
        fake_broker.send(ONE_MALFORMED)
        fake_broker.wait_until_closed()

    expect_end_of_session(fake_broker)


def test_after_the_end_of_the_session_faults_are_counted_from_zero(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    for _ in range(2):
        for _ in range(N_FAULTS):
            fail(fake_broker)
        expect_end_of_session(fake_broker)


def test_if_a_connection_fails_the_next_one_ends_the_session(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    for _ in range(N_FAULTS):
        fail(fake_broker)

    fake_broker.accept()
    fake_broker.close_connection()

    expect_end_of_session(fake_broker)


def test_faults_that_are_not_in_succession_do_not_end_the_session(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    for _ in range(N_FAULTS - 1):
        fail(fake_broker)
    fake_broker.accept()
    fake_broker.send(CONNACK_SESSION_PRESENT)
    fake_broker.receive_until(SUBSCRIBE)
    fake_broker.close_connection()
    fail(fake_broker)

    expect_service(fake_broker, CONNACK_SESSION_PRESENT)


ENDS = {
    "closed": CONNACK_SESSION_PRESENT,
    "closed before CONNACK": b"",
    "malformed CONNACK": MALFORMED_CONNACK,
    "broker is shutting down": CONNACK_SESSION_PRESENT + DISCONNECT_SHUTTING_DOWN,
    "broker reports a protocol error": CONNACK_SESSION_PRESENT + DISCONNECT_PROTOCOL_ERROR,
    "closed within a packet": CONNACK_SESSION_PRESENT + publish_packet(1) + BEGIN_OF_A_PUBLISH,
}


@pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_broker_that_restarts_does_not_lose_the_session(fake_broker, store_of, end, resets):
    store_of(fake_broker.port).launch()
    for _ in range(N_FAULTS):
        fake_broker.accept()
        fake_broker.send(end)
        fake_broker.close_connection(resets)

    expect_service(fake_broker, CONNACK_SESSION_PRESENT)


def test_a_reply_survives_the_end_of_the_session(fake_broker, store_of):
    store = store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    fake_broker.publish_something()
    for body in fake_broker.receive_until(PUBACK):
        fake_broker.confirm(body)
    store.wait_until_ready()
    fake_broker.send(invocation(b"\x08" + text(b"clients/id/replies") + b"\x09" + text(b"correlation"),
                                payload=resp.request("GET", "key")))
    fake_broker.receive_until(PUBLISH)
    fake_broker.send(ONE_MALFORMED)
    fake_broker.wait_until_closed()
    for _ in range(N_FAULTS - 1):
        fail(fake_broker)
    expect_end_of_session(fake_broker)

    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)

    fake_broker.receive_until(PUBLISH)
