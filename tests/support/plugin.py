# SPDX-License-Identifier: Apache-2.0
"""A mosquitto with the companion plugin, and its peers: clients, and a fake statestored."""

import os
import random
import re
import signal
import struct
import subprocess

import pytest

from support.broker import Broker
from support import companion
from support.client import INVOKE
from support.connection import DISCONNECT, SUCCESS, Connection
from support.flood import packet
from support.process import BUILD, wait_until

PLUGIN = BUILD / "server" / "plugin" / "mosquitto_statestore.so"

CONTROL = "$CONTROL/statestore/v1/"
SYS = "$SYS/statestore/v1/"
VERSION = b"6"


# Events and results of mosquitto's plugin interface
ACL_CHECK, BASIC_AUTH, EXTENDED_AUTH_START = 2, 3, 4
ACCEPT, DEFER = 0, 17

DECIDING = """
#include <string.h>
int mosquitto_callback_register(void *, int, int (*)(int, void *, void *), const void *, void *);
const char *mosquitto_client_id(const void *);
struct connect { void *future, *client; };
static int on_event(int event, void *data, void *userdata)
{ const char *client_id = mosquitto_client_id(((struct connect *)data)->client); (void)client_id; return DECISION; }
int mosquitto_plugin_version(int n, const int *versions) { return 5; }
int mosquitto_plugin_init(void *id, void **data, void *options, int n)
{ return mosquitto_callback_register(id, EVENT, on_event, 0, 0); }
int mosquitto_plugin_cleanup(void *data, void *options, int n) { return 0; }
"""


def build_plugin(directory, event, decision):
    """Build a plugin that decides this event with the value of a C expression. The expression can use client_id."""
    path = directory / f"decides-{event}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", f"-DEVENT={event}", f"-DDECISION={decision}", "-o", path, "-"],
                   input=DECIDING.encode(), check=True)
    return path


def sanitizer_libraries():
    """Return the sanitizer libraries that a mosquitto built without them must preload for a plugin built with them."""
    needed = subprocess.run(["readelf", "-d", PLUGIN], capture_output=True, text=True, check=True).stdout
    if "libasan" not in needed:
        return []
    where = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return [where.stdout.strip()]


class PluginBroker(Broker):
    """A broker with additional configuration `lines`, in which {port} is its port. reload() applies changes of `lines`.

    With count_leaks the sanitizers, if the plugin was built with any, report leaked memory. mosquitto itself leaks memory
    with websockets, with per_listener_settings, and if it cannot start.
    """

    def __init__(self, directory, *lines, plugin=True, wrapper=(), preload=(), count_leaks=False):
        super().__init__(directory)
        self.lines = [*([f"plugin {PLUGIN}"] if plugin else []), *lines]
        self.first_lines = []
        self.plugin_options = ["plugin_opt_undecided allow"]  # after each line that loads the plugin; `lines` may override it
        self.wrapper = wrapper
        self.preload = [*sanitizer_libraries(), *preload]
        self.count_leaks = count_leaks

    def configure(self):
        listener = [] if any(line.startswith("listener") for line in self.lines) else [
            f"listener {self.port} 127.0.0.1"]
        anonymous = [] if any("allow_anonymous" in line for line in self.lines) else ["allow_anonymous true"]
        lines = [part for line in self.lines
                 for part in ([line, *self.plugin_options] if line == f"plugin {PLUGIN}" else [line])]
        path = self.directory / "mosquitto.conf"
        path.write_text("\n".join([*self.first_lines, "user root", "set_tcp_nodelay true", "max_inflight_messages 0",
                                   "max_queued_messages 1000000", "persistence false", *listener, *anonymous,
                                   *(line.replace("{port}", str(self.port)) for line in lines), ""]))
        return path

    def starts(self):
        seen = len(self.log())
        environment = ["LD_PRELOAD=" + ":".join(map(str, self.preload))]
        if not self.count_leaks:
            environment.append(f"ASAN_OPTIONS={os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0")
        self.spawn(["env", *environment, *self.wrapper, "mosquitto", "-c", self.configure()])
        is_up = re.compile(r"mosquitto version \S+ running")
        wait_until(lambda: not self.running() or is_up.search(self.log(), seen), "mosquitto starts")
        return self.running()

    def reload(self):
        self.configure()
        seen = len(self.log())
        self.child.send_signal(signal.SIGHUP)
        self.wait_for_log("reloading config", after=seen)


class Peer(Connection):
    """A fake statestored: a connection that speaks the companion protocol with the plugin."""

    def __init__(self, port, client_id="statestored", **more):
        super().__init__(port, client_id, **more)
        self.mac_key = None
        self.last_request = None
        self.is_guarded = None  # of struct companion_welcome
        self.delivered = None
        self.run = random.getrandbits(64)
        self.n_hellos = 0
        self.sequence = 0

    def hello(self, instance="instance-1"):
        """Return the numbers of the tracked connections that are open."""
        self.n_hellos += 1
        correlation = f"{self.run}:{self.n_hellos}".encode()
        key = os.urandom(companion.KEY_SIZE)
        assert self.publish(CONTROL + "hello", key + instance.encode(), CorrelationData=correlation) == SUCCESS
        welcome = None
        while not welcome or welcome.correlation != correlation:
            welcome = self.message(SYS + "welcome")
        text = companion.open_box(welcome.payload, key)
        self.mac_key = text[:companion.KEY_SIZE]
        sequence, guard, delivered, *numbers, end = text[companion.KEY_SIZE:].decode().split("\n")
        assert end == ""
        self.last_request = int(sequence)
        self.delivered = int(delivered)
        self.sequence = max(self.sequence, self.delivered)
        self.is_guarded = {"guarded": True, "unguarded": False}[guard]
        return set(numbers)

    def serve(self):
        assert self.subscribe(INVOKE) == 1

    def next_request(self):
        return self.message(INVOKE)

    def number_of(self, client):
        """Have the client send a request, and return the connection number that the plugin has verified."""
        assert client.request() == SUCCESS
        return str(companion.verified(self.next_request(), self.mac_key).connection)

    def track(self, connection):
        assert self.publish(CONTROL + "track", connection.encode()) == SUCCESS

    def untrack(self, connection):
        assert self.publish(CONTROL + "untrack", connection.encode()) == SUCCESS

    def encode_delivery(self, key, recipients, payload=b"a notification", *, frame=None, **more):
        """Encode a DELIVER of the next change. frame: arguments of companion.frame() that replace the usual ones."""
        frame = {"sequence": self.sequence + 1} | (frame or {})
        self.sequence = frame["sequence"]
        data = companion.frame(key=key.encode(), recipients=recipients, payload=payload, **frame)
        return self.encode_publish(CONTROL + "deliver", data, **more)

    def deliver(self, key, *recipients, **more):
        self.send(self.encode_delivery(key, recipients, **more))
        assert self.acknowledgement() == SUCCESS

    def next_report(self, what):
        return self.message(SYS + what).payload.decode()

    def reports(self, what):
        """Return all messages of this kind until now."""
        return [message.payload.decode() for message in self.messages() if message.topic == SYS + what]


class Site:
    """A broker with the plugin, and connections that speak MQTT packet by packet. support.site.Site has a store, and clients of
    the state store protocol."""

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
        """Return a fake statestored that has sent HELLO and receives requests."""
        peer = self.peer(client_id, **more)
        peer.hello()
        peer.serve()
        return peer

    def close(self):
        for connection in self.connections:
            connection._socket.close()
        if self.broker.running():
            assert self.broker.stop() == 0, self.broker.log()


def disconnect_while_notified(site, peer, client, connection):
    """Have the broker read a notification, and then the client's DISCONNECT before it has delivered the notification."""
    client.ping()
    peer.ping()  # the broker may read the most recent sender first
    with site.broker.paused():
        peer.send(peer.encode_delivery("key", [connection]))
        client.send(packet(DISCONNECT << 4, b"\x00\x05\x11" + struct.pack("!I", 1000)))
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
