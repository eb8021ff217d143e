# SPDX-License-Identifier: Apache-2.0
"""A broker with one connection at a time. It sends only what the test tells it to send, including the messages of the
plugin."""

import contextlib
import socket
import struct

from support.client import INVOKE
from support.packets import packet, read_packet, text
from support.process import PATIENCE

CONNECT, PUBLISH, PUBACK, SUBSCRIBE, DISCONNECT = 1, 3, 4, 8, 14

CONNACK_ACCEPTED = bytes.fromhex("20 03 00 00 00")
CONNACK_OF_A_BROKER_WITHOUT_MQTT_5 = bytes.fromhex("20 02 00 01")


def publish_packet(identifier, payload=b""):
    """Return a QoS 1 message without a request."""
    return packet(0x32, text(INVOKE.encode()) + struct.pack("!H", identifier) + b"\x00" + payload)


def suback_packet(subscribe_body, reason):
    """Return a SUBACK with this reason code for each topic."""
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
        """Accept a connection, and return the body of its CONNECT."""
        self._peer, _ = self._listener.accept()
        self._peer.settimeout(PATIENCE)
        self._peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kind, body = self.receive()
        assert kind == CONNECT
        return body

    def close_connection(self, resets=False):
        """resets: with RST instead of FIN."""
        if resets:
            self._peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._peer.close()

    def wait_until_closed(self):
        """Wait until the store closes the connection."""
        with contextlib.suppress(ConnectionError):
            while self._peer.recv(1 << 16):
                pass

    def send(self, data):
        self._peer.sendall(data)

    def receive(self):
        """Return type and body of the next packet."""
        head, body = read_packet(self._read)
        return head >> 4, body

    def _read(self, length):
        data = b""
        while len(data) < length:
            part = self._peer.recv(length - len(data))
            assert part, "the store closed the connection"
            data += part
        return data

    def receive_until(self, wanted):
        """Receive packets up to and including the first one of the wanted type. Return the bodies of the SUBSCRIBEs."""
        subscribes = []
        while True:
            kind, body = self.receive()
            if kind == SUBSCRIBE:
                subscribes.append(body)
            if kind == wanted:
                return subscribes

    def publish_something(self):
        """Send a message that is no request. When its PUBACK arrives, the store has read all earlier packets."""
        self.send(publish_packet(1))

    def error(self):
        """Return the pending error of the connection, or 0. A store that closes it with unread bytes resets it."""
        return self._peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def confirm(self, subscribe_body):
        """Acknowledge a SUBSCRIBE: QoS 1 is granted for each topic."""
        self.send(suback_packet(subscribe_body, b"\x01"))
