# SPDX-License-Identifier: Apache-2.0
"""The store reads packets that arrive together, in parts, or before a disconnect."""

from support.fake_broker import CONNACK_ACCEPTED, DISCONNECT, PUBACK, SUBSCRIBE, publish_packet, suback_packet

DISCONNECT_SERVER_BUSY = bytes.fromhex("e0 02 89 00")
BEGIN_OF_A_PUBLISH = bytes.fromhex("32 7f 00 05 68 65")
GRANTED, NOT_AUTHORIZED = b"\x01", b"\x87"
N_MANY = 2000


def take_up(fake_broker):
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    fake_broker.publish_something()
    fake_broker.receive_until(PUBACK)


def test_many_packets_that_come_at_once_and_nothing_after_them(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED + b"".join(publish_packet(n) for n in range(1, N_MANY + 1)))

    for n in range(1, N_MANY + 1):
        kind, body = fake_broker.receive()
        while kind != PUBACK:
            kind, body = fake_broker.receive()
        assert int.from_bytes(body[:2], "big") == n


def test_packets_behind_the_one_for_which_we_leave_do_not_keep_us_from_saying_so(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    plugin = fake_broker.receive_until(SUBSCRIBE)[0]
    invoke = fake_broker.receive_until(SUBSCRIBE)[0]

    fake_broker.send(suback_packet(plugin, GRANTED) + suback_packet(invoke, NOT_AUTHORIZED) + publish_packet(1))

    fake_broker.receive_until(DISCONNECT)


def test_what_came_behind_a_disconnect_is_not_the_next_connections(fake_broker, store_of):
    store_of(fake_broker.port).launch()

    for _ in range(3):
        take_up(fake_broker)
        fake_broker.send(DISCONNECT_SERVER_BUSY + BEGIN_OF_A_PUBLISH)


def test_a_packet_that_comes_byte_by_byte(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    fake_broker.accept()
    for byte in CONNACK_ACCEPTED:
        fake_broker.send(bytes([byte]))
    fake_broker.publish_something()
    fake_broker.receive_until(PUBACK)
