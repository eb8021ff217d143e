# SPDX-License-Identifier: Apache-2.0
"""Records what clients send to a broker, and compares it with the table of published clients."""

import re
import socket
import struct
import threading

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.client import INVOKE, base16
from support.packets import packets

CONNECT, PUBLISH, SUBSCRIBE = 1, 3, 8
CHUNK = 1 << 16
HLC = re.compile(r"\d{15}:\d{5}:\S+")
CORRELATION_BYTES = 16


class Recorder:
    """Forwards the connections to its port. recorded() returns what has been sent over each of them."""

    def __init__(self, target, port=0):
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self._recorded = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def recorded(self):
        return [bytes(data) for data in self._recorded]

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._recorded.append(bytearray())
            for ends in (near, far, self._recorded[-1]), (far, near, bytearray()):
                threading.Thread(target=self._forward, args=ends, daemon=True).start()

    @staticmethod
    def _forward(source, sink, record):
        sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while data := source.recv(CHUNK):
                record += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def text_at(body, at):
    end = at + 2 + struct.unpack_from("!H", body, at)[0]
    return body[at + 2:end].decode(), end


class Sent:
    """What one client has sent, with its names replaced by {id}, {hex} and {hlc}."""

    def __init__(self, data):
        self.client_id = None
        self.subscriptions = set()  # (filter, options)
        self.requests = []  # dictionaries
        for head, body in packets(data):
            kind = head >> 4
            if kind == CONNECT:
                self.client_id, _ = text_at(body, 10 + Properties(PacketTypes.CONNECT).unpack(body[10:])[1])
            elif kind == SUBSCRIBE:
                self._subscribe(body)
            elif kind == PUBLISH:
                self._publish(head & 0xF, body)

    def _general(self, text):
        """Replace the names of this client in a text, which is one, or has one in a level of a topic."""
        if text is None:
            return None
        levels = {self.client_id: "{id}", base16(self.client_id): "{hex}"}
        return HLC.sub("{hlc}", "/".join(levels.get(level, level) for level in text.split("/")))

    def _subscribe(self, body):
        at = 2 + Properties(PacketTypes.SUBSCRIBE).unpack(body[2:])[1]
        while at < len(body):
            topic, at = text_at(body, at)
            self.subscriptions.add((self._general(topic), body[at]))
            at += 1

    def _publish(self, flags, body):
        topic, at = text_at(body, 0)
        if topic != INVOKE:
            return
        properties = Properties(PacketTypes.PUBLISH)
        properties.unpack(body[at + 2:])
        found = dict(vars(properties))
        for name in ("packetType", "types", "names", "properties"):
            found.pop(name, None)
        found["flags"] = flags & ~8  # without DUP
        found["UserProperty"] = [(name, self._general(value)) for name, value in found.get("UserProperty", [])
                                 if name != "__ft"]
        found["ResponseTopic"] = self._general(found.get("ResponseTopic"))
        found["CorrelationData"] = len(found.get("CorrelationData", b""))
        found["MessageExpiryInterval"] = found.get("MessageExpiryInterval", 0) > 0  # the program gives the value
        self.requests.append(found)


def differences(published, recorded):
    """Return texts that say how the recorded connections differ from a row of the table."""
    user = list(published.user)
    request = {"flags": 2, "UserProperty": user if published.user_is_ordered else sorted(user),
               "ResponseTopic": published.response_topic, "CorrelationData": CORRELATION_BYTES,
               "MessageExpiryInterval": True, "ContentType": published.content_type,
               "PayloadFormatIndicator": published.format_indicator}
    request = {name: value for name, value in request.items() if value is not None}
    options = 1 | published.no_local << 2 | published.retain_as_published << 3
    subscriptions = {(topic, options) for topic in (published.response_topic, published.notify_filter) if topic}

    found, n_requests, texts = set(), 0, set()
    for sent in map(Sent, recorded):
        found |= sent.subscriptions
        for one in sent.requests:
            n_requests += 1
            if not published.user_is_ordered:
                one["UserProperty"].sort()
            texts |= {f"{name}: {one.get(name)} instead of {request.get(name)}" for name in {*one, *request}
                      if one.get(name) != request.get(name)}
    if not n_requests:
        texts.add("no request was recorded")
    texts |= {f"subscription: {topic} with options {number:#x} is not in the table" for topic, number in found - subscriptions}
    texts |= {f"subscription: {topic} with options {number:#x} was not sent" for topic, number in subscriptions - found}
    return sorted(texts)
