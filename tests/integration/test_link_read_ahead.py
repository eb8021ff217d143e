# SPDX-License-Identifier: Apache-2.0
"""What the broker sends is read as it comes, many packets or a part of one at a time."""

from support.fake_broker import CONNACK_ACCEPTED, PUBACK

DISCONNECT_SERVER_BUSY = bytes.fromhex("e0 02 89 00")
BEGIN_OF_A_PUBLISH = bytes.fromhex("32 7f 00 05 68 65")


def take_up(fake_broker):
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    fake_broker.publish_something()
    fake_broker.receive_until(PUBACK)


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
