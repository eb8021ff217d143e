# SPDX-License-Identifier: Apache-2.0
"""The store reads packets that arrive together, in parts, or before a disconnect."""

import contextlib

from support.fake_broker import CONNACK_ACCEPTED, DISCONNECT, PUBACK, SUBSCRIBE, publish_packet, suback_packet

DISCONNECT_SERVER_BUSY = bytes.fromhex("e0 02 89 00")
BEGIN_OF_A_PUBLISH = bytes.fromhex("32 7f 00 05 68 65")
GRANTED, NOT_AUTHORIZED = b"\x01", b"\x87"
N_MANY = 2000


def accept_store(fake_broker):
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    fake_broker.publish_something()
    fake_broker.receive_until(PUBACK)


def expect_acknowledgements(fake_broker, identifiers):
    for identifier in identifiers:
        kind, body = fake_broker.receive()
        while kind != PUBACK:
            kind, body = fake_broker.receive()
        assert int.from_bytes(body[:2], "big") == identifier


def test_many_packets_in_one_read_are_all_served(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED + b"".join(publish_packet(n) for n in range(1, N_MANY + 1)))

    expect_acknowledgements(fake_broker, range(1, N_MANY + 1))


def test_packets_split_at_any_byte_are_read(fake_broker, store_of):
    """Each part is the rest of a packet, a whole packet, and the begin of a packet."""
    store_of(fake_broker.port).launch()
    accept_store(fake_broker)
    packet = publish_packet(1)
    for split in range(1, len(packet)):
        fake_broker.send(packet[:split])
        fake_broker.send(packet[split:] + publish_packet(2) + packet[:split])
        expect_acknowledgements(fake_broker, [1, 2])
        fake_broker.send(packet[split:])
        expect_acknowledgements(fake_broker, [1])


def test_large_packets_between_small_packets_are_read(fake_broker, store_of):
    """One is larger than the socket's buffer."""
    store_of(fake_broker.port).launch()
    accept_store(fake_broker)

    fake_broker.send(publish_packet(1) + publish_packet(2, b"x" * 20_000) + publish_packet(3)
                     + publish_packet(4, b"x" * 8_000_000) + publish_packet(5))

    expect_acknowledgements(fake_broker, [1, 2, 3, 4, 5])


def test_a_disconnect_among_many_packets_leaves_no_bytes_to_the_next_connection(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    many = b"".join(publish_packet(n) for n in range(1, N_MANY + 1))
    for _ in range(2):
        accept_store(fake_broker)
        with contextlib.suppress(ConnectionError):  # the store may close the connection before all bytes are sent
            fake_broker.send(many + DISCONNECT_SERVER_BUSY + many + BEGIN_OF_A_PUBLISH)

    accept_store(fake_broker)


def test_packets_after_a_refused_subscription_do_not_prevent_the_disconnect(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    banner, probe, invoke = (fake_broker.receive_until(SUBSCRIBE)[0] for _ in range(3))

    fake_broker.send(suback_packet(banner, GRANTED) + suback_packet(probe, GRANTED)
                     + suback_packet(invoke, NOT_AUTHORIZED) + publish_packet(1))

    fake_broker.receive_until(DISCONNECT)


def test_bytes_after_a_disconnect_do_not_belong_to_the_next_connection(fake_broker, store_of):
    store_of(fake_broker.port).launch()

    for _ in range(3):
        accept_store(fake_broker)
        fake_broker.send(DISCONNECT_SERVER_BUSY + BEGIN_OF_A_PUBLISH)


def test_a_packet_that_arrives_byte_by_byte_is_read(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    fake_broker.accept()
    for byte in CONNACK_ACCEPTED:
        fake_broker.send(bytes([byte]))
    fake_broker.publish_something()
    fake_broker.receive_until(PUBACK)
