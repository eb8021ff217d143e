# SPDX-License-Identifier: Apache-2.0
"""A client's connection over a socket that the test may cut.

It has no thread. A call returns when the broker has answered; messages that arrive meanwhile are queued. So a test knows
the order of events.
"""

import contextlib
import socket
import struct
import uuid

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.client import INVOKE
from support.message import Message
from support.packets import number, packet, packet_at, text
from support.process import PATIENCE

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREL, SUBSCRIBE, SUBACK = 1, 2, 3, 4, 6, 8, 9
PINGREQ, PINGRESP, DISCONNECT = 12, 13, 14

SUCCESS, NO_SUBSCRIBERS, PROTOCOL_ERROR, NOT_AUTHORIZED, KICKED = 0x00, 0x10, 0x82, 0x87, 0x98


class Disconnected(Exception):
    """The broker closed the connection; `reason` is the reason code of its DISCONNECT, or None."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


class Connection:
    def __init__(self, port, client_id=None, clean_start=True, session_expiry=0, keepalive=0, will=None,
                 will_properties=b"\x00", will_qos=1, username=None, password=None,
                 properties=b"", patience=PATIENCE, host="127.0.0.1"):
        """properties: further ones of CONNECT, encoded. patience: seconds for which a call waits for a packet."""
        self.id = client_id or f"client-{uuid.uuid4().hex[:12]}"
        self._socket = socket.create_connection((host, port), patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._packet_id = 0
        self._messages = []
        self._reason = None

        flags = clean_start << 1 | bool(will) << 2 | (will_qos if will else 0) << 3 | (password is not None) << 6 | (
            username is not None) << 7
        properties = b"\x11" + struct.pack("!I", session_expiry) + properties
        body = text(b"MQTT") + b"\x05" + bytes([flags]) + struct.pack("!H", keepalive)
        body += number(len(properties)) + properties + text(self.id.encode())
        if will:
            body += will_properties + text(will[0].encode()) + text(will[1])
        for credential in (username, password):
            body += b"" if credential is None else text(credential.encode())
        self.send(packet(CONNECT << 4, body))
        connack = self._wait_for(CONNACK)
        self.session_present = bool(connack[0] & 1)
        assert connack[1] == SUCCESS, f"connection refused: {connack[1]:#x}"

    # Packets

    def send(self, data):
        try:
            self._socket.sendall(data)
        except ConnectionError:
            raise Disconnected(self._reason) from None

    def set_patience(self, seconds):
        """Change `patience`. After a TimeoutError, the call can be repeated."""
        self._socket.settimeout(seconds)

    def _next_packet(self):
        """Read one packet: type, flags and body."""
        while True:
            complete = self._take_packet()
            if complete:
                return complete
            try:
                data = self._socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                raise Disconnected(self._reason)
            self._received += data

    def _take_packet(self):
        found = packet_at(self._received)
        if not found:
            return None
        head, body, end = found
        del self._received[:end]
        return head >> 4, head & 0xF, bytes(body)

    def _receive(self):
        """Read one packet and return its type and body. Queue and acknowledge a message."""
        return self._handle(*self._next_packet())

    def _handle(self, kind, flags, body):
        if kind == PUBLISH:
            self._queue_message(flags, body)
        elif kind == DISCONNECT:
            self._reason = body[0] if body else SUCCESS
        return kind, body

    def _wait_for(self, wanted):
        while True:
            kind, body = self._receive()
            if kind == wanted:
                return body

    def _queue_message(self, flags, body):
        topic_end = 2 + struct.unpack_from("!H", body)[0]
        at, qos = topic_end, flags >> 1 & 3
        if qos > 0:
            with contextlib.suppress(Disconnected):  # what the broker sent before it closed the connection is still read
                self.send(packet(PUBACK << 4, body[at:at + 2]))
            at += 2
        properties = Properties(PacketTypes.PUBLISH)
        _, length = properties.unpack(body[at:])

        def get(name):
            return getattr(properties, name, None)

        self._messages.append(Message(body[2:topic_end].decode(), body[at + length:], qos, bool(flags & 1),
                                      get("UserProperty") or [], get("CorrelationData"), get("ResponseTopic"),
                                      get("ContentType"), get("PayloadFormatIndicator"),
                                      get("MessageExpiryInterval")))

    # Actions of a client

    def _next_id(self):
        self._packet_id = self._packet_id % 0xFFFF + 1
        return struct.pack("!H", self._packet_id)

    def encode_publish(self, topic, payload=b"", qos=1, retain=False, user=(), **properties):
        packed = Properties(PacketTypes.PUBLISH)
        if user:
            packed.UserProperty = list(user)
        for name, value in properties.items():
            if value is not None:
                setattr(packed, name, value)
        body = text(topic.encode()) + (self._next_id() if qos else b"") + packed.pack() + payload
        return packet(PUBLISH << 4 | qos << 1 | retain, body)

    def publish(self, topic, payload=b"", **more):
        """Publish, and return the reason code of the PUBACK."""
        self.send(self.encode_publish(topic, payload, **more))
        return self.acknowledgement()

    def acknowledgement(self):
        """Return the reason code of the next PUBACK."""
        body = self._wait_for(PUBACK)
        return body[2] if len(body) > 2 else SUCCESS

    def request(self, **more):
        more.setdefault("ResponseTopic", "clients/c/replies")
        more.setdefault("payload", b"a request")
        return self.publish(INVOKE, **more)

    def subscribe(self, topic, qos=1):
        """Subscribe, and return the reason code of the SUBACK."""
        self.send(packet(SUBSCRIBE << 4 | 2, self._next_id() + b"\x00" + text(topic.encode()) + bytes([qos])))
        return self._wait_for(SUBACK)[-1]

    def ping(self):
        """Wait until the broker has read all packets of this client, and this client all that the broker sent before."""
        # Each iteration of mosquitto's loop reads one packet, and sends the messages that plugins published before. So
        # these messages arrive before the second PINGRESP.
        for _ in range(2):
            self.send(packet(PINGREQ << 4, b""))
            self._wait_for(PINGRESP)

    def message(self, topic=None):
        """Return the next message, or the next one on this topic."""
        while True:
            for at, message in enumerate(self._messages):
                if topic in (None, message.topic):
                    return self._messages.pop(at)
            self._receive()

    def messages(self):
        """Return all messages that the broker has sent until now."""
        self.ping()
        return self.arrived()

    def arrived(self):
        """Return the messages that have arrived during earlier calls, also after the end of the connection."""
        messages, self._messages = self._messages, []
        return messages

    def wait_until_closed(self):
        """Wait until the broker closes the connection. Return the reason code of its DISCONNECT, or None."""
        try:
            while True:
                self._receive()
        except Disconnected as end:
            return end.reason

    def disconnect(self, session_expiry=None):
        body = b"" if session_expiry is None else b"\x00\x05\x11" + struct.pack("!I", session_expiry)
        self.send(packet(DISCONNECT << 4, body))
        self.wait_until_closed()
        self._socket.close()

    def cut(self):
        """Close the socket with a reset and without DISCONNECT, as if the network had failed."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
