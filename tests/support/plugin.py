# SPDX-License-Identifier: Apache-2.0
"""A mosquitto with the companion plugin, and both who speak to it: clients, and a stand-in for statestored.

Nothing here has a thread. A call returns when the broker has answered, and what arrives meanwhile waits: so a test
knows what has happened before what.
"""

import os
import random
import re
import signal
import socket
import struct
import subprocess
import uuid
from pathlib import Path

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.broker import Broker
from support.client import INVOKE, notify_topic
from support.flood import number, packet, text
from support.message import Message
from support.process import BUILD, PATIENCE, wait_until

PLUGIN = BUILD / "server" / "plugin" / "mosquitto_statestore.so"

CONTROL = "$CONTROL/statestore/v1/"
SYS = "$SYS/statestore/v1/"
VERSION = b"2"

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, PINGREQ, PINGRESP, DISCONNECT = 1, 2, 3, 4, 8, 9, 12, 13, 14

SUCCESS, NO_SUBSCRIBERS, PROTOCOL_ERROR, NOT_AUTHORIZED, KICKED = 0x00, 0x10, 0x82, 0x87, 0x98


def runtime_of_sanitizers():
    """What a mosquitto that was built without them must load first for a plugin that was built with them."""
    needed = subprocess.run(["readelf", "-d", PLUGIN], capture_output=True, text=True, check=True).stdout
    if "libasan" not in needed:
        return []
    where = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return [where.stdout.strip()]


class PluginBroker(Broker):
    """`lines` are the configuration below what every broker has; change them and reload(). {port} is its port.

    With count_leaks the sanitizers, if the plugin was built with any, look for memory that was lost. mosquitto itself
    loses some with websockets, listeners of their own settings, and where it cannot start.
    """

    def __init__(self, directory, *lines, plugin=True, wrapper=(), preload=(), count_leaks=False):
        super().__init__(directory)
        self.lines = [*([f"plugin {PLUGIN}"] if plugin else []), *lines]
        self.first_lines = []
        self.wrapper = wrapper
        self.preload = [*runtime_of_sanitizers(), *preload]
        self.count_leaks = count_leaks

    def configure(self):
        listener = [] if any(line.startswith("listener") for line in self.lines) else [
            f"listener {self.port} 127.0.0.1"]
        anonymous = [] if any("allow_anonymous" in line for line in self.lines) else ["allow_anonymous true"]
        path = self.directory / "mosquitto.conf"
        path.write_text("\n".join([*self.first_lines, "user root", "set_tcp_nodelay true", "max_inflight_messages 0",
                                   "max_queued_messages 1000000", "persistence false", *listener, *anonymous,
                                   *(line.replace("{port}", str(self.port)) for line in self.lines), ""]))
        return path

    def _start_on_port(self):
        seen = len(self.log())
        environment = ["LD_PRELOAD=" + ":".join(map(str, self.preload))]
        if not self.count_leaks:
            environment.append(f"ASAN_OPTIONS={os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0")
        self.spawn(["env", *environment, *self.wrapper, "mosquitto", "-c", self.configure()])
        is_up = re.compile(r"mosquitto version \S+ running")
        wait_until(lambda: not self.running() or is_up.search(self.log(), seen), "mosquitto starts")
        return self.running()

    def starts(self):
        """Whether it does. Does not try other ports."""
        return self._start_on_port()

    def pause(self):
        """Returns when it has come to a halt."""
        self.child.send_signal(signal.SIGSTOP)
        state = Path(f"/proc/{self.child.pid}/stat")
        wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "mosquitto pauses")

    def resume(self):
        self.child.send_signal(signal.SIGCONT)

    def reload(self):
        self.configure()
        seen = len(self.log())
        self.child.send_signal(signal.SIGHUP)
        self.wait_for_log("reloading config", after=seen)


class Disconnected(Exception):
    """The broker closed the connection; `reason` is what its DISCONNECT said, or None."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


class Connection:
    def __init__(self, port, client_id=None, clean_start=True, session_expiry=0, keepalive=0, will=None,
                 will_properties=b"\x00", username=None, password=None):
        self.id = client_id or f"client-{uuid.uuid4().hex[:12]}"
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._packet_id = 0
        self._messages = []
        self._reason = None

        flags = clean_start << 1 | bool(will) << 2 | bool(will) << 3 | (password is not None) << 6 | (
            username is not None) << 7
        properties = b"\x11" + struct.pack("!I", session_expiry)
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
        self._socket.sendall(data)

    def _next_packet(self):
        """Type, flags and body."""
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
        length = shift = 0
        for at, byte in enumerate(self._received[1:5], 2):
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            return None
        if len(self._received) < at + length:
            return None
        head, body = self._received[0], self._received[at:at + length]
        self._received = self._received[at + length:]
        return head >> 4, head & 0xF, body

    def _receive(self):
        """Takes one packet, keeps or confirms it where it is a message, and returns its type and body."""
        return self._handle(*self._next_packet())

    def _handle(self, kind, flags, body):
        if kind == PUBLISH:
            self._keep(flags, body)
        elif kind == DISCONNECT:
            self._reason = body[0] if body else SUCCESS
        return kind, body

    def _wait_for(self, wanted):
        while True:
            kind, body = self._receive()
            if kind == wanted:
                return body

    def _keep(self, flags, body):
        topic_end = 2 + struct.unpack_from("!H", body)[0]
        at, qos = topic_end, flags >> 1 & 3
        if qos > 0:
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

    # What a client does

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
        """Returns the PUBACK's reason code."""
        self.send(self.encode_publish(topic, payload, **more))
        return self.acknowledgement()

    def acknowledgement(self):
        """The next PUBACK's reason code."""
        body = self._wait_for(PUBACK)
        return body[2] if len(body) > 2 else SUCCESS

    def request(self, **more):
        more.setdefault("ResponseTopic", "clients/somebody/answers")
        return self.publish(INVOKE, b"a request", **more)

    def subscribe(self, topic, qos=1):
        """Returns the SUBACK's reason code."""
        self.send(packet(SUBSCRIBE << 4 | 2, self._next_id() + b"\x00" + text(topic.encode()) + bytes([qos])))
        return self._wait_for(SUBACK)[-1]

    def ping(self):
        """Returns when the broker has seen all that was sent, and all that it had sent is here."""
        for _ in range(2):  # it works off what plugins publish once a turn, and takes a packet a turn
            self.send(packet(PINGREQ << 4, b""))
            self._wait_for(PINGRESP)

    def message(self, topic=None):
        """The next one, or the next one on this topic."""
        while True:
            for at, message in enumerate(self._messages):
                if topic in (None, message.topic):
                    return self._messages.pop(at)
            self._receive()

    def messages(self):
        """All that the broker has sent until now."""
        self.ping()
        messages, self._messages = self._messages, []
        return messages

    def wait_until_closed(self):
        """Returns the reason that the broker gave, None where it gave none."""
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
        """As when the network fails: no DISCONNECT. The broker sees a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()


class Peer(Connection):
    """Speaks statestored's side."""

    def __init__(self, port, client_id="statestored", **more):
        super().__init__(port, client_id, **more)
        self.seal = None
        self.run = random.getrandbits(64)
        self.sequence = 0

    def numbered(self, first):
        """A pair of numbers, the second of which is the next in sequence."""
        self.sequence += 1
        return f"{first}:{self.sequence}".encode()

    def hello(self, instance="instance-1"):
        """Returns the numbers of those who are held."""
        correlation = self.numbered(self.run)
        assert self.publish(CONTROL + "hello", instance.encode(), CorrelationData=correlation) == SUCCESS
        welcome = None
        while not welcome or welcome.correlation != correlation:
            welcome = self.message(SYS + "welcome")
        seal, *numbers, end = welcome.payload.decode().split("\n")
        assert end == ""
        self.seal = seal
        return set(numbers)

    def serve(self):
        assert self.subscribe(INVOKE) == 1

    def next_request(self):
        return self.message(INVOKE)

    def number_of(self, client):
        """Has it send a request; the connection number that the plugin stamps on it."""
        assert client.request() == SUCCESS
        seal, connection = self.next_request().prop("statestore-seal").split(":")
        assert seal == self.seal
        return connection

    def hold(self, connection):
        assert self.publish(CONTROL + "hold", connection.encode()) == SUCCESS

    def release(self, connection):
        assert self.publish(CONTROL + "release", connection.encode()) == SUCCESS

    def encode_delivery(self, client_id, key, payload, connection, **more):
        return self.encode_publish(CONTROL + "deliver", payload, ResponseTopic=notify_topic(client_id, key),
                                   CorrelationData=self.numbered(connection), **more)

    def deliver(self, client_id, key, payload=b"a notification", *, connection, **more):
        self.send(self.encode_delivery(client_id, key, payload, connection, **more))
        assert self.acknowledgement() == SUCCESS

    def next_told(self, what):
        return self.message(SYS + what).payload.decode()

    def told(self, what):
        """All that it was told of this kind until now."""
        return [message.payload.decode() for message in self.messages() if message.topic == SYS + what]


class Site:
    def __init__(self, broker):
        self.broker = broker
        self.connections = []

    def connect(self, client_id=None, **more):
        self.connections.append(Connection(self.broker.port, client_id, **more))
        return self.connections[-1]

    def peer(self, client_id="statestored", **more):
        self.connections.append(Peer(self.broker.port, client_id, **more))
        return self.connections[-1]

    def served(self, client_id="statestored", **more):
        """A statestored that has said hello and takes requests."""
        peer = self.peer(client_id, **more)
        peer.hello()
        peer.serve()
        return peer

    def close(self):
        for connection in self.connections:
            connection._socket.close()
        if self.broker.running():
            assert self.broker.stop() == 0, self.broker.log()


def leave_while_notified(site, peer, client, connection):
    """The broker reads a notification, and the client's DISCONNECT before it has sent it on."""
    client.ping()
    peer.ping()  # whom it has heard last it may hear first
    site.broker.pause()
    peer.send(peer.encode_delivery(client.id, "key", b"payload", connection))
    client.send(packet(DISCONNECT << 4, b"\x00\x05\x11" + struct.pack("!I", 1000)))
    site.broker.resume()
    client.wait_until_closed()
    peer.ping()


@pytest.fixture
def site_with(tmp_path):
    """Starts a broker with these lines in its configuration."""
    sites = []

    def start(*lines, **more):
        directory = tmp_path / f"broker-{len(sites)}"
        directory.mkdir()
        sites.append(Site(PluginBroker(directory, *lines, **more).start()))
        return sites[-1]

    try:
        yield start
    finally:
        for site in sites:
            site.close()


@pytest.fixture
def site(site_with):
    return site_with()


@pytest.fixture
def peer(site):
    return site.served()
