# SPDX-License-Identifier: Apache-2.0
"""Few messages wait for their PUBACK, because they delay the messages to all other clients. Meanwhile the store reads the
requests of all clients, and then serves the clients in turn."""

import struct

import pytest

from support import resp
from support.client import INVOKE
from support.fake_broker import CONNACK_ACCEPTED, PUBACK, PUBLISH, SUBSCRIBE
from support.packets import number, packet, text

ROOM_MESSAGES, ROOM_BYTES = 256, 1 << 20  # LINK_ROOM_MESSAGES, LINK_ROOM_BYTES
BATCH_MESSAGES = 256  # PIPELINE_BATCH_MESSAGES_MAX

CORRELATION_DATA = b"\x09" + text(b"1234")


class Wire:
    """A broker without the plugin that acknowledges the replies of the store when the test says so."""

    def __init__(self, fake_broker):
        self._broker = fake_broker
        self._n_sent = 0
        self._n_acknowledged = 0
        self.n_confirmed = 0  # replies that the test has acknowledged
        self.replies = []  # (packet identifier, client)
        fake_broker.accept()
        fake_broker.send(CONNACK_ACCEPTED)

    def request(self, client, *words):
        properties = b"\x08" + text(f"clients/{client}/replies".encode()) + CORRELATION_DATA
        properties += b"\x26" + text(b"__ts") + text(b"0:0:" + client.encode())
        properties += b"\x26" + text(b"__srcId") + text(client.encode())
        self._n_sent += 1
        return packet(0x32, text(INVOKE.encode()) + struct.pack("!H", self._n_sent) + number(len(properties))
                      + properties + resp.request(*words))

    def send(self, *requests):
        self._broker.send(b"".join(requests))

    def _receive(self):
        kind, body = self._broker.receive()
        if kind == SUBSCRIBE:
            self._broker.confirm(body)
        elif kind == PUBACK:
            self._n_acknowledged += 1
        elif kind == PUBLISH:
            end = 2 + struct.unpack_from("!H", body)[0]
            self.replies.append((body[end:end + 2], body[2:end].decode().split("/")[1]))

    def receive_replies(self, n):
        while len(self.replies) < n:
            self._receive()

    def read_everything(self):
        """Return when the store has read all requests, and has published what it publishes without another PUBACK."""
        for _ in range(10):
            self.send(self.request("mark", "GET", "nothing"))
            while self._n_acknowledged < self._n_sent:
                self._receive()

    def acknowledge(self, n):
        """Acknowledge the next n replies."""
        for identifier, _ in self.replies[self.n_confirmed:self.n_confirmed + n]:
            self._broker.send(packet(0x40, identifier))
        self.n_confirmed += n


@pytest.fixture
def wire(fake_broker, store_of):
    store_of(fake_broker.port).launch()
    return Wire(fake_broker)


def test_replies_of_one_client_take_a_limited_part_of_the_output(wire):
    wire.send(*(wire.request("flood", "GET", "key") for _ in range(2000)))
    wire.receive_replies(ROOM_MESSAGES)
    wire.read_everything()
    assert len(wire.replies) == ROOM_MESSAGES

    wire.acknowledge(100)
    wire.receive_replies(ROOM_MESSAGES + 100)
    wire.read_everything()
    assert len(wire.replies) == ROOM_MESSAGES + 100


def test_bytes_of_replies_that_wait_for_their_acknowledgement_are_limited(wire):
    value = b"x" * (ROOM_BYTES // 2)
    wire.send(wire.request("flood", "SET", "key", value), *(wire.request("flood", "GET", "key") for _ in range(20)))
    wire.receive_replies(3)
    wire.read_everything()
    assert [client for _, client in wire.replies] == ["flood"] * 3  # +OK, and the value twice

    wire.acknowledge(3)
    wire.receive_replies(5)
    wire.read_everything()
    assert [client for _, client in wire.replies[3:]].count("flood") == 2


def test_a_request_that_arrives_while_there_is_no_room_is_in_the_next_batch(wire):
    """The replies of one batch may wait for room already. The next batch has the request of the other client."""
    wire.send(*(wire.request("flood", "GET", "key") for _ in range(5 * ROOM_MESSAGES)))
    wire.receive_replies(ROOM_MESSAGES)
    wire.send(wire.request("other", "GET", "key"))
    wire.read_everything()

    while "other" not in [client for _, client in wire.replies[ROOM_MESSAGES:]]:
        wire.acknowledge(1)
        wire.receive_replies(ROOM_MESSAGES + wire.n_confirmed)

    assert wire.n_confirmed <= BATCH_MESSAGES + 3  # the first round of the next batch: flood, mark, other
