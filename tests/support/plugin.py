# SPDX-License-Identifier: Apache-2.0
"""A mosquitto with the companion plugin, and its peers: clients, and a fake statestored."""

import contextlib
import functools
import itertools
import os
import random
import signal
import struct
import subprocess

import pytest

from support.broker import Broker
from support import companion
from support.client import INVOKE
from support.connection import DISCONNECT, SUCCESS, Connection, Disconnected
from support.packets import packet
from support.process import BUILD

PLUGIN = BUILD / "server" / "plugin" / "mosquitto_statestore.so"

CONTROL = "$CONTROL/statestore/v1/"
SYS = "$SYS/statestore/v1/"
VERSION = str(companion.VERSION).encode()


# Events and results of mosquitto's plugin interface
ACL_CHECK, MESSAGE = 2, 7
ACCEPT, DENY, DEFER = 0, 12, 17

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


def build_plugin(directory, event, decision, source=""):
    """Build a plugin that decides this event with the value of a C expression. The expression can use client_id, data, and
    what the C source defines."""
    path = directory / f"decides-{event}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", f"-DEVENT={event}", f"-DDECISION={decision}", "-o", path, "-"],
                   input=(source + DECIDING).encode(), check=True)
    return path


@functools.cache
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
                                   "max_queued_messages 1000000", "max_packet_size 268435455",
                                   "persistence false", *listener, *anonymous,
                                   *(line.replace("{port}", str(self.port)) for line in lines), ""]))
        return path

    def starts(self):
        seen = len(self.log())
        environment = ["LD_PRELOAD=" + ":".join(map(str, self.preload))]
        if not self.count_leaks:
            environment.append(f"ASAN_OPTIONS={os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0")
        self.spawn(["env", *environment, *self.wrapper, "mosquitto", "-c", self.configure()])
        return self.wait_until_running(seen)

    def reload(self):
        self.configure()
        seen = len(self.log())
        self.child.send_signal(signal.SIGHUP)
        self.wait_for_log("reloading config", after=seen)


class FrameMissing(Exception):
    """The plugin has skipped the number of a frame, because memory was short for a frame of the store."""


class Peer(Connection):
    """A fake statestored: a connection that speaks the companion protocol with the plugin.

    It reports the end of each record when it arrives, unless ends_at_once is False.
    """

    def __init__(self, port, client_id="statestored", **more):
        self.frame_key = None
        self.n_frames = 0  # the number of the last frame
        self.frames = []  # since HELLO
        self.records = []  # that have arrived, and were not taken
        self.ends_at_once = True
        self.tracking = {}  # client id: flags of the replies to its requests
        super().__init__(port, client_id, **more)
        self.welcome = None
        self.run = random.getrandbits(64)
        self.n_hellos = 0
        self.sequence = 0

    # Receiving

    def _queue_message(self, flags, body):
        super()._queue_message(flags, body)
        if self._messages[-1].topic == SYS + "welcome":
            self._messages = [message for message in self._messages if message.topic != SYS + "frame"]  # of an earlier HELLO
        elif self._messages[-1].topic == SYS + "frame" and self.frame_key:
            self._take_frame(self._messages.pop())

    def _take_frame(self, message):
        """Every frame can be decrypted. None is missing, unless memory is short in the plugin."""
        assert (message.qos, message.retain, message.user) == (0, False, [])
        frame = companion.read_frame(companion.open_box(message.payload, self.frame_key))
        self.n_frames += 1
        if frame.number == self.n_frames + 1:
            raise FrameMissing
        assert frame.number == self.n_frames
        self.frames.append(frame)
        self.records += frame.records
        if frame.records and self.ends_at_once:
            replies = [companion.reply(record.number, None, **self.tracking[record.client_id]) for record in frame.records
                       if record.is_request and record.client_id in self.tracking]
            with contextlib.suppress(Disconnected):
                self.send_frame(*replies, companion.end(frame.records[-1].number))

    def next_record(self, is_request=None):
        """Return the next record, or the next one of this kind. Others stay."""
        while True:
            for at, record in enumerate(self.records):
                if is_request in (None, record.is_request):
                    return self.records.pop(at)
            self._receive()

    def next_frame(self):
        """Return the next frame that arrives."""
        n = len(self.frames)
        while len(self.frames) == n:
            self._receive()
        return self.frames[-1]

    def next_request(self, client=None):
        while True:
            request = self.next_record(True)
            if client is None or request.client_id == client.id:
                return request

    def next_disconnect(self):
        """Return the number of the connection whose end is reported next."""
        return self.next_record(False).connection

    def take_records(self):
        """Return all records until now."""
        self.ping()
        records, self.records = self.records, []
        return records

    def disconnects(self):
        """Return the connections whose end was reported until now."""
        return [record.connection for record in self.take_records() if not record.is_request]

    # Sending

    served_broker_run = 0  # in HELLO

    def encode_hello(self, instance, key, **more):
        hello = companion.hello(key, instance.encode(), self.run, self.n_hellos, served_broker_run=self.served_broker_run)
        return self.encode_publish(CONTROL + "hello", hello, **more)

    def hello(self, instance="instance-1"):
        """Begin to serve. Return the numbers of the open connections that are tracked and whose requests have ended."""
        self.n_hellos += 1
        key = os.urandom(companion.KEY_SIZE)
        self.frame_key = None
        self.send(self.encode_hello(instance, key))
        self.welcome = None
        while not self.welcome:
            message = self.message(SYS + "welcome")
            assert message.qos == 0
            with contextlib.suppress(companion.Forged):  # the reply to an earlier HELLO
                self.welcome = companion.welcome(companion.open_box(message.payload, key))
        self.sequence = max(self.sequence, self.welcome.published)
        self.frame_key, self.n_frames, self.frames, self.records = companion.frame_key(key), 0, [], []
        early = [message for message in self._messages if message.topic == SYS + "frame"]
        self._messages = [message for message in self._messages if message.topic != SYS + "frame"]
        for message in early:
            self._take_frame(message)
        self.end(0)
        return self.welcome.idle

    def serve(self):
        assert self.subscribe(INVOKE) == 1

    def send_frame(self, *records):
        self.send(self.encode_frame(*records))

    def encode_frame(self, *records):
        return self.encode_publish(CONTROL + "frame", companion.frame(*records), qos=0)

    def end(self, number, work_ns=0):
        self.send_frame(companion.end(number, work_ns))

    def answer(self, record, payload=b"+OK\r\n", work_ns=0, **more):
        """Reply to a request, and report its end."""
        self.send_frame(companion.reply(record.number, payload, **more), companion.end(record.number, work_ns))

    def number_of(self, client):
        """Have the client send a request, and return the number of its connection."""
        assert client.request() == SUCCESS
        return self.next_request(client).connection

    def track(self, client, **more):
        """Have the client send a request, and reply that its connection is tracked. Return the number of the connection."""
        ends_at_once, self.ends_at_once = self.ends_at_once, True
        self.tracking[client.id] = more or {"tracked": True}
        try:
            assert client.request() == SUCCESS
            connection = self.next_request(client).connection
            self.ping()
        finally:
            self.ends_at_once = ends_at_once
            del self.tracking[client.id]
        return connection

    def untrack(self, client):
        return self.track(client, untracked=True)

    def kick(self, connection):
        self.send_frame(companion.kick(connection))

    def encode_notification(self, key, recipients, payload=b"a notification", **more):
        """Encode a frame with a notification of the next change. more: arguments of companion.notification()."""
        self.sequence = more.pop("sequence", self.sequence + 1)
        return self.encode_frame(companion.notification(self.sequence, key.encode(), recipients, payload, **more))

    def notify(self, key, *recipients, **more):
        self.send(self.encode_notification(key, recipients, **more))
        self.ping()


class Site:
    """A broker with the plugin, and connections that speak MQTT packet by packet. support.site.Site has a store, and clients of
    the state store protocol."""

    def __init__(self, broker):
        self.broker = broker
        self.connections = []

    def connect(self, client_id=None, **more):
        self.connections.append(Connection(self.broker.port, client_id, **more))
        return self.connections[-1]

    def peer(self, client_id="statestored", kind=Peer, **more):
        self.connections.append(kind(self.broker.port, client_id, **more))
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
        peer.send(peer.encode_notification("key", [connection]))
        client.send(packet(DISCONNECT << 4, b"\x00\x05\x11" + struct.pack("!I", 1000)))
    client.wait_until_closed()
    peer.ping()


@pytest.fixture
def site_with(until_end, tmp_path):
    """Starts a broker with these lines in its configuration."""
    numbers = itertools.count()

    def start(*lines, **more):
        directory = tmp_path / f"broker-{next(numbers)}"
        directory.mkdir()
        return until_end(Site(PluginBroker(directory, *lines, **more).start()))

    return start


@pytest.fixture
def site(site_with):
    return site_with()


@pytest.fixture
def peer(site):
    return site.served()
