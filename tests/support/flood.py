# SPDX-License-Identifier: Apache-2.0
"""A fast client on a plain socket, for tens of thousands of requests: paho takes 0.7 ms for a request and its reply."""

import socket
import struct

from support import resp
from support.client import INVOKE
from support.packets import number, number_at, packet, packet_at, text
from support.process import PATIENCE

PUBLISH, PUBACK, SUBACK, CONNACK = 3, 4, 9, 2
AT_ONCE = 5000
MARK = b"flood"


class Flood:
    def __init__(self, port, client_id):
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._received = b""
        self._replies = {}
        self._response_topic = f"clients/{client_id}/replies".encode()
        self._send(packet(0x10, text(b"MQTT") + b"\x05\x02\x00\x00" + b"\x00" + text(client_id.encode())))
        self._receive_until(CONNACK)
        self._send(packet(0x82, b"\x00\x01" + b"\x00" + text(self._response_topic) + b"\x01"))
        self._receive_until(SUBACK)

    def close(self):
        self._socket.close()

    def _send(self, data):
        self._socket.sendall(data)

    def _read(self):
        """Read once. Return the types of all complete packets. Note and acknowledge replies."""
        data = self._socket.recv(1 << 20)
        assert data, "the broker closed the connection"
        data = self._received + data
        at, kinds, acknowledged = 0, [], b""
        while found := packet_at(data, at):
            head, body, at = found
            kinds.append(head >> 4)
            if head >> 4 == PUBLISH:
                acknowledged += self._note(body)
        self._received = data[at:]
        self._send(acknowledged)
        return kinds

    def _note(self, body):
        """Note the payload of a reply by the number of its request. Return the PUBACK."""
        topic_end = 2 + struct.unpack_from("!H", body)[0]
        length, properties = number_at(body, topic_end + 2)
        mark = body.index(MARK, properties) + len(MARK)
        self._replies[struct.unpack_from("!I", body, mark)[0]] = body[properties + length:]
        return packet(0x40, body[topic_end:topic_end + 2])

    def _receive_until(self, wanted, n_wanted=1):
        while n_wanted > 0:
            n_wanted -= self._read().count(wanted)

    def send(self, n_requests, *words, ts=None):
        """Send the request this many times, and wait for all PUBACKs. A SET needs a timestamp."""
        payload = resp.request(*words)
        user = b"" if ts is None else b"\x26" + text(b"__ts") + text(str(ts).encode())
        for first in range(0, n_requests, AT_ONCE):
            part = range(first, min(first + AT_ONCE, n_requests))
            self._send(b"".join(self._request(user, payload, n) for n in part))
            self._receive_until(PUBACK, len(part))

    def _request(self, user, payload, n):
        properties = b"\x08" + text(self._response_topic) + b"\x09" + text(MARK + struct.pack("!I", n)) + user
        packet_id = struct.pack("!H", n % AT_ONCE + 1)
        return packet(0x32, text(INVOKE.encode()) + packet_id + number(len(properties)) + properties + payload)

    def receive_replies(self, n_replies):
        """Receive this many replies, without counting duplicates. Return each reply's payload by the request's number."""
        while len(self._replies) < n_replies:
            try:
                self._read()
            except TimeoutError:
                raise AssertionError(f"{len(self._replies)} of {n_replies} requests got a reply") from None
        return self._replies
