# SPDX-License-Identifier: Apache-2.0
"""A mosquitto with the companion plugin, and what speaks to it: clients, and a stand-in for statestored."""

import os
import random
import re
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from support.broker import Broker
from support import companion
from support.client import INVOKE, notify_topic
from support.connection import DISCONNECT, SUCCESS, Connection
from support.flood import packet
from support.process import BUILD, wait_until

PLUGIN = BUILD / "server" / "plugin" / "mosquitto_statestore.so"

CONTROL = "$CONTROL/statestore/v1/"
SYS = "$SYS/statestore/v1/"
VERSION = b"3"


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


class Peer(Connection):
    """Speaks statestored's side."""

    def __init__(self, port, client_id="statestored", **more):
        super().__init__(port, client_id, **more)
        self.mac_key = None
        self.last_request = None
        self.is_guarded = None
        self.run = random.getrandbits(64)
        self.sequence = 0

    def numbered(self, first):
        """A pair of numbers, the second of which is the next in sequence."""
        self.sequence += 1
        return f"{first}:{self.sequence}".encode()

    def hello(self, instance="instance-1"):
        """Returns the numbers of the tracked connections that are alive."""
        correlation = self.numbered(self.run)
        key = os.urandom(companion.KEY_SIZE)
        assert self.publish(CONTROL + "hello", key + instance.encode(), CorrelationData=correlation) == SUCCESS
        welcome = None
        while not welcome or welcome.correlation != correlation:
            welcome = self.message(SYS + "welcome")
        text = companion.open_box(welcome.payload, key)
        self.mac_key = text[:companion.KEY_SIZE]
        sequence, guard, *numbers, end = text[companion.KEY_SIZE:].decode().split("\n")
        assert end == ""
        self.last_request = int(sequence)
        self.is_guarded = {"guarded": True, "unguarded": False, "fixed": False}[guard]
        return set(numbers)

    def serve(self):
        assert self.subscribe(INVOKE) == 1

    def next_request(self):
        return self.message(INVOKE)

    def number_of(self, client):
        """Has it send a request; the connection number that the plugin vouches for."""
        assert client.request() == SUCCESS
        return str(companion.verified(self.next_request(), self.mac_key).connection)

    def track(self, connection):
        assert self.publish(CONTROL + "track", connection.encode()) == SUCCESS

    def untrack(self, connection):
        assert self.publish(CONTROL + "untrack", connection.encode()) == SUCCESS

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
    peer.ping()  # the broker may read the most recent sender first
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
