# SPDX-License-Identifier: Apache-2.0
"""A small client of the state store for tests. Copy it, or use your own client."""

import itertools
import queue
import time
import uuid
from urllib.parse import urlsplit

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

SERVICE = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"
PATIENCE = 30


def encode(words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def decode(payload):
    """Return a string as bytes, None for an absent value, or a number. Raise an error reply."""
    line, rest = payload.split(b"\r\n", 1)
    if line.startswith(b"-"):
        raise RuntimeError(line[1:].decode())
    if line.startswith(b":"):
        return int(line[1:])
    if line.startswith(b"$"):
        length = int(line[1:])
        return None if length < 0 else rest[:length]
    return line[1:]


class StateStore:
    def __init__(self, url):
        self.id = f"test-{uuid.uuid4().hex[:12]}"
        self.replies = f"clients/{self.id}/replies"
        self.notified = f"clients/{SERVICE}/{self.id.encode().hex().upper()}/command/notify/"
        self.pending = {}
        self.notifications = queue.Queue()
        self.counter = itertools.count()

        # paho-mqtt 2 requires the version of the callbacks; paho-mqtt 1 does not know the argument
        callbacks = getattr(mqtt, "CallbackAPIVersion", None)
        more = {"callback_api_version": callbacks.VERSION2} if callbacks else {}
        self.mqtt = mqtt.Client(client_id=self.id, protocol=mqtt.MQTTv5, **more)
        self.mqtt.on_message = self._receive
        subscribed = queue.Queue()
        self.mqtt.on_subscribe = lambda *_: subscribed.put(True)
        where = urlsplit(url)
        self.mqtt.connect(where.hostname, where.port or 1883)
        self.mqtt.subscribe([(self.replies, 1), (self.notified + "+", 1)])
        self.mqtt.loop_start()
        subscribed.get(timeout=PATIENCE)

    def close(self):
        self.mqtt.disconnect()
        self.mqtt.loop_stop()

    def _receive(self, _client, _userdata, message):
        if message.topic == self.replies:
            reply = self.pending.pop(getattr(message.properties, "CorrelationData", None), None)
            if reply:  # otherwise it is a repeated reply, or has other Correlation Data
                reply.put(message.payload)
            return
        key = bytes.fromhex(message.topic[len(self.notified):]).decode()
        self.notifications.put((key, b"DELETE" if message.payload == encode(["NOTIFY", "DELETE"]) else b"SET"))

    def ask(self, *words, topic=f"{SERVICE}/command/invoke"):
        properties = Properties(PacketTypes.PUBLISH)
        properties.ResponseTopic = self.replies
        properties.CorrelationData = uuid.uuid4().bytes
        properties.UserProperty = [("__ts", f"{time.time_ns() // 1_000_000}:{next(self.counter)}:{self.id}"),
                                   ("__srcId", self.id)]
        reply = self.pending[properties.CorrelationData] = queue.Queue()
        self.mqtt.publish(topic, encode(words), qos=1, properties=properties)
        return decode(reply.get(timeout=PATIENCE))

    def control(self, *words):
        """Send a control request to a double that was started with --control: the words of `statestorectl test`."""
        return self.ask(*words, topic=f"{SERVICE}/control/invoke")

    def set(self, key, value):
        return self.ask("SET", key, value)

    def get(self, key):
        return self.ask("GET", key)

    def take_lease(self, key, owner, seconds):
        """Try to take the lease, and return whether the owner has it."""
        return self.ask("SET", key, owner, "NX", "PX", seconds * 1000) == b"OK"

    def watch(self, key):
        self.ask("KEYNOTIFY", key)

    def next_notification(self):
        return self.notifications.get(timeout=PATIENCE)
