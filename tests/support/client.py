# SPDX-License-Identifier: Apache-2.0
"""A client of the state store protocol, over paho.

The test's thread sends and waits, and paho's thread receives. A sent request returns a future. Messages that are neither
an expected reply nor a notification are in `others`.
"""

import queue
import socket
import threading
import uuid
from collections import defaultdict, deque
from concurrent.futures import Future

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import hlc, resp
from support.message import Message
from support.process import PATIENCE, wait_until

SERVICE = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"
INVOKE = f"{SERVICE}/command/invoke"
NOTIFY_PREFIX = f"clients/{SERVICE}/"

# Default of an argument: the value that a well-behaved client sends. None leaves the property out.
USUAL = object()


def base16(data):
    return resp.to_bytes(data).hex().upper()


def notify_topic(client_id, key):
    return f"{NOTIFY_PREFIX}{base16(client_id)}/command/notify/{base16(key)}"


def reply_topic(client_id):
    """The response topic that the published protocol recommends."""
    return f"clients/{client_id}/services/statestore/_any_/command/invoke/response"


class Client:
    """A client that was written from the published description of the protocol."""

    reply_topic = staticmethod(reply_topic)
    SUBSCRIPTION = {}  # paho's options, other than the QoS

    def __init__(self, port, client_id, username=None, password=None, tls=None):
        """tls: arguments of paho's tls_set(), or None for a connection without TLS."""
        self.id = client_id
        self.clock = hlc.Clock(client_id)
        self.response_topic = self.reply_topic(client_id)
        self.notifications = queue.SimpleQueue()
        self.others = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = defaultdict(deque)  # (response topic, correlation data) -> futures, oldest first
        self._topics = []
        self._subscribing = {}  # packet id -> future
        self._connected = Future()
        self._resubscribe_id = None  # packet id of the SUBSCRIBE after a reconnect
        self._reconnected = threading.Event()
        self._paho = self._make_paho()
        self._paho.username_pw_set(username, password)
        if tls:
            self._paho.tls_set(**tls)
        properties = Properties(PacketTypes.CONNECT)
        properties.ReceiveMaximum = 65535  # without this property the broker applies its own limit
        keepalive = 3600 if tls else 0  # the broker waits for a slow test; paho limits the handshake of TLS by it, too
        self._paho.connect("127.0.0.1", port, keepalive=keepalive, properties=properties)
        self._paho.loop_start()
        self._connected.result(PATIENCE)
        self.subscribe(self.response_topic)

    def _make_paho(self):
        client = paho.Client(self.id, protocol=paho.MQTTv5)
        client.max_inflight_messages_set(0)  # no limit, so that paho sends each request at once
        client.max_queued_messages_set(0)
        client.reconnect_delay_set(min_delay=0.02, max_delay=0.1)
        client.on_socket_open = lambda _client, _data, sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def close(self):
        self._paho.disconnect()
        self._paho.loop_stop()

    # Subscribing

    def subscribe(self, topic):
        """Subscribe, and wait for the SUBACK. Subscribes again after a reconnect."""
        done = Future()
        with self._lock:
            self._topics.append(topic)
            _, packet_id = self._paho.subscribe(self._subscriptions([topic]))
            self._subscribing[packet_id] = done
        assert done.result(PATIENCE)[0].value <= 2, f"the broker refused to subscribe to {topic}"

    def _on_connect(self, _client, _data, _flags, reason, _properties):
        if reason.value != 0:
            return
        if not self._connected.done():
            self._connected.set_result(None)
        elif self._topics:
            _, self._resubscribe_id = self._paho.subscribe(self._subscriptions(self._topics))

    def _subscriptions(self, topics):
        return [(topic, paho.SubscribeOptions(qos=1, **self.SUBSCRIPTION)) for topic in topics]

    def _on_subscribe(self, _client, _data, packet_id, reasons, _properties):
        with self._lock:
            done = self._subscribing.pop(packet_id, None)
        if done:
            done.set_result(reasons)
        if packet_id == self._resubscribe_id:
            self._reconnected.set()

    def wait_until_reconnected(self):
        """Wait until the client has lost its first connection, has reconnected, and has subscribed again."""
        assert self._reconnected.wait(PATIENCE), f"{self.id} did not come back"

    # Requests

    def request(self, *words, **properties):
        """Send one request and return its reply."""
        return self.send(*words, **properties).result(PATIENCE)

    def request_all(self, requests):
        """Send all requests at once, each a sequence of words, and return their replies in that order."""
        return [future.result(PATIENCE) for future in [self.send(*words) for words in requests]]

    def send(self, *words, payload=None, ts=USUAL, ft=None, source=USUAL, correlation=USUAL, response_topic=USUAL,
             qos=1, expiry=None, protocol=None, user=(), topic=INVOKE, **more):
        """Sends a request and returns the future of its reply.

        The payload is made of the words unless given. ts, ft, source and protocol become __ts, __ft, __srcId and
        __protVer; None leaves a property out. more: other MQTT properties, under paho's names.
        """
        correlation = uuid.uuid4().bytes if correlation is USUAL else correlation
        response_topic = self.response_topic if response_topic is USUAL else response_topic
        named = [("__ts", self.clock.now() if ts is USUAL else ts), ("__ft", ft),
                 ("__srcId", self.id if source is USUAL else source), ("__protVer", protocol)]

        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = [(name, str(value)) for name, value in named if value is not None] + list(user)
        if correlation is not None:
            properties.CorrelationData = correlation
        if response_topic is not None:
            properties.ResponseTopic = response_topic
        if expiry is not None:
            properties.MessageExpiryInterval = expiry
        for name, value in more.items():
            setattr(properties, name, value)

        reply = Future()
        with self._lock:
            self._waiting[response_topic, correlation].append(reply)
        self._paho.publish(topic, resp.request(*words) if payload is None else payload, qos, properties=properties)
        return reply

    def wait_until_sent(self):
        """Wait until the broker has acknowledged all sent messages."""
        wait_until(lambda: not self._paho._out_messages, "all is acknowledged")

    # Replies

    def _on_message(self, _client, _data, paho_message):
        message = Message.from_paho(paho_message)
        if message.topic.startswith(NOTIFY_PREFIX):
            self.notifications.put(message)
            return
        with self._lock:
            waiting = self._waiting.get((message.topic, message.correlation))
            reply = waiting.popleft() if waiting else None
        if reply:
            reply.set_result(message)
        else:
            self.others.put(message)

    # Notifications

    def watch(self, *keys):
        """Register for notifications of these keys, in the order of the protocol: SUBSCRIBE, then KEYNOTIFY."""
        topic = f"{NOTIFY_PREFIX}{base16(self.id)}/command/notify/+"
        if topic not in self._topics:
            self.subscribe(topic)
        for reply in self.request_all(("KEYNOTIFY", key) for key in keys):
            assert reply.payload == b"+OK\r\n"

    def notification(self):
        """Return the next notification of any key."""
        return self.notifications.get(timeout=PATIENCE)

    def next_change(self):
        """Return the words after NOTIFY of the next notification of any key."""
        return resp.read(self.notification().payload)[1:]
