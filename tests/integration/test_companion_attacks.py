# SPDX-License-Identifier: Apache-2.0
"""What clients can try against the protocol between store and plugin: each row of the table in common/companion.h."""

import subprocess
import threading
import time

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import hlc, resp
from support.broker import passwords
from support.client import INVOKE
from support.connection import Connection
from support.plugin import SYS
from support.process import wait_until
from support.wire_client import WireClient

POLICY = """
[operator]
access = readwrite
user = operator
pattern = *

[settings]
access = read
any = yes
pattern = settings/*
"""

USERS = {"statestored": "of the store", "operator": "of the operator", "alice": "of alice"}

# A plugin whose SUCCESS ends the authentication before any other plugin is asked.
ONE_THAT_ACCEPTS_EVERYBODY = """
int mosquitto_callback_register(void *, int, int (*)(int, void *, void *), const void *, void *);
int mosquitto_plugin_version(int n, const int *versions) { return 5; }
static int on_basic_auth(int event, void *event_data, void *data) { return 0; }
int mosquitto_plugin_init(void *id, void **data, void *options, int n)
{ return mosquitto_callback_register(id, 3, on_basic_auth, 0, 0); }
int mosquitto_plugin_cleanup(void *data, void *options, int n) { return 0; }
"""


class Guarded:
    """A broker that authenticates and a store with a policy, as the README's "In production" has them."""

    def __init__(self, site, directory, *flags):
        self.site = site
        self.directory = directory
        (directory / "policy.conf").write_text(POLICY)
        (directory / "store-password").write_text(USERS["statestored"])
        site.start_store("--user", "statestored", "--password-file", directory / "store-password",
                         "--policy", directory / "policy.conf", *flags)

    def connect(self, user, client_id=None, kind=WireClient, **more):
        return self.site.connect(client_id, kind, username=user, password=USERS[user], **more)


def rules_of_the_readme(directory):
    return ["allow_anonymous false", f"password_file {passwords(directory, **USERS)}",
            "plugin_opt_statestored_username statestored"]


@pytest.fixture
def guarded(make_site, tmp_path):
    return Guarded(make_site(*rules_of_the_readme(tmp_path)), tmp_path)


@pytest.fixture
def open_to_takeover(make_site, tmp_path):
    """Another plugin authenticates, before ours is asked."""
    other = tmp_path / "accepts.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", other, "-"],
                   input=ONE_THAT_ACCEPTS_EVERYBODY.encode(), check=True)
    site = make_site("plugin_opt_statestored_username statestored", plugin=False)
    site.broker.stop()
    plugin = site.broker.plugin_lines
    site.broker.lines = [f"plugin {other}", *plugin, *site.broker.lines]
    site.broker.start_again()
    return Guarded(site, tmp_path)


def sent_properties(message, **changed):
    """The properties of a will that repeats this message."""
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.UserProperty = changed.get("user", message.user)
    properties.ResponseTopic = changed.get("response_topic", message.response_topic)
    properties.CorrelationData = message.correlation
    return properties.pack()


def leave_will(guarded, payload, properties):
    """Alice's, which the broker publishes before it answers anybody who asks later."""
    ghost = guarded.connect("alice", will=(INVOKE, payload), will_properties=properties)
    ghost.cut()
    guarded.site.broker.wait_for_log(rf"[Cc]lient {ghost.id}\b.*(closed|disconnect)")


def send_large_requests(client, busy):
    """What the broker sends to the store waits behind them."""
    while not busy.is_set():
        client.request(payload=b"x" * 1000000)


def take_over(guarded, until, seconds=20):
    """Alice connects with the store's client id again and again. Returns all that the broker gives her."""
    stolen = []
    end = time.monotonic() + seconds
    busy = threading.Event()
    flood = threading.Thread(target=send_large_requests, args=(guarded.connect("alice"), busy))
    flood.start()
    while time.monotonic() < end and not until(stolen):
        try:
            thief = Connection(guarded.site.broker.port, "statestored", clean_start=False, session_expiry=3600,
                               username="alice", password=USERS["alice"])
        except (AssertionError, OSError):
            break  # refused
        try:
            while not until(stolen):
                thief._receive()
                stolen += thief._messages
                thief._messages.clear()
        except (Exception,):  # the store has its session back
            pass
        stolen += thief._messages
        thief._socket.close()
    busy.set()
    flood.join()
    return stolen


def has(topic):
    return lambda messages: any(message.topic == topic for message in messages)


def set_admin(operator_id, user):
    """A request in the operator's name, as the store would get it."""
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.UserProperty = [("__ts", str(hlc.Clock("alice").now())), ("__srcId", operator_id), *user]
    properties.ResponseTopic = "clients/alice-reads/answers"
    properties.CorrelationData = b"forged"
    return resp.request("SET", "settings/admin", "alice"), properties.pack()


def assert_not_set(guarded):
    """The store may be on its way back, and what it is asked meanwhile lost."""
    operator = guarded.connect("operator")
    operator._socket.settimeout(3)

    def answer():
        try:
            return operator.ask("GET", "settings/admin")
        except TimeoutError:
            return None
    assert wait_until(answer, "the store answers") == b"$-1\r\n"


def test_no_thief_of_the_stores_session_forges_the_operator(guarded):
    operator = guarded.connect("operator", "operator-1")
    assert operator.ask("SET", "settings/a", "1") == b"+OK\r\n"
    stolen = take_over(guarded, has(SYS + "welcome"))
    print([(m.topic, m.payload[:40]) for m in stolen])
    seals = [message.payload.decode(errors="replace").split("\n")[0] for message in stolen if message.topic == SYS + "welcome"]

    for seal in [*seals, "0" * 32]:
        leave_will(guarded, *set_admin("operator-1", [("statestore-seal", f"{seal}:1"),
                                                      ("statestore-client-id", "operator-1"),
                                                      ("statestore-username", "operator")]))

    assert_not_set(guarded)
