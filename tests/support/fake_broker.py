# SPDX-License-Identifier: Apache-2.0
"""A broker that says what the test tells it to, one connection at a time."""

import socket
import struct

from support.client import INVOKE
from support.process import PATIENCE

CONNECT, PUBLISH, PUBACK, SUBSCRIBE, DISCONNECT = 1, 3, 4, 8, 14

CONNACK_ACCEPTED = bytes.fromhex("20 03 00 00 00")
CONNACK_OF_A_BROKER_WITHOUT_MQTT_5 = bytes.fromhex("20 02 00 01")


def publish_packet(identifier):
    """A QoS 1 message that asks for nothing."""
    body = struct.pack("!H", len(INVOKE)) + INVOKE.encode() + struct.pack("!H", identifier) + b"\x00"
    return bytes([0x32, len(body)]) + body


def suback_packet(subscribe_body, reason):
    """The reason is the same for each of the topics."""
    assert subscribe_body[2] == 0, "no properties expected"
    n_topics, rest = 0, subscribe_body[3:]
    while rest:
        rest = rest[2 + struct.unpack("!H", rest[:2])[0] + 1:]
        n_topics += 1
    return bytes([0x90, 3 + n_topics]) + subscribe_body[:2] + b"\x00" + reason * n_topics


class FakeBroker:
    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        self._peer = None

    def close(self):
        self._listener.close()
        if self._peer:
            self._peer.close()

    def accept(self):
        self._peer, _ = self._listener.accept()
        self._peer.settimeout(PATIENCE)
        self._peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert self.receive()[0] == CONNECT

    def send(self, data):
        self._peer.sendall(data)

    def receive(self):
        """The next packet's type and body."""
        head = self._read(1)[0]
        length = shift = 0
        while True:
            byte = self._read(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return head >> 4, self._read(length)

    def _read(self, length):
        data = b""
        while len(data) < length:
            part = self._peer.recv(length - len(data))
            assert part, "the store closed the connection"
            data += part
        return data

    def receive_until(self, wanted):
        """The bodies of the SUBSCRIBEs that come before the first packet of the wanted type, itself included."""
        subscribes = []
        while True:
            kind, body = self.receive()
            if kind == SUBSCRIBE:
                subscribes.append(body)
            if kind == wanted:
                return subscribes

    def publish_something(self):
        """What asks for nothing, but whose PUBACK shows that the store has read this far."""
        self.send(publish_packet(1))

    def confirm(self, subscribe_body):
        """QoS 1 granted to each of the topics."""
        self.send(suback_packet(subscribe_body, b"\x01"))
