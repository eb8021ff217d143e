# SPDX-License-Identifier: Apache-2.0
"""Attacks of clients on the protocol between store and plugin: the lines of common/protocol/THREATS.md."""

import contextlib
import re
import struct
import urllib.request

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import companion, hlc, resp
from support.broker import free_port, passwords, refuses_response_topic, refuses_will, version
from support.client import INVOKE, notify_topic
from support.connection import NOT_AUTHORIZED, PUBREL, Disconnected
from support.packets import packet
from support.plugin import ACCEPT, ACL_CHECK, CONTROL, DENY, MESSAGE, PLUGIN, SYS, Peer, build_plugin
from support.process import wait_until
from support.store import Store
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


class Guarded:
    """A broker that authenticates and a store with a policy, as in conf/OPERATIONS.md."""

    def __init__(self, site, directory):
        self.site = site
        self.directory = directory
        self.http_port = free_port()
        (directory / "policy.conf").write_text(POLICY)
        (directory / "store-password").write_text(USERS["statestored"])

    def start_store(self, *flags):
        self.site.start_store("--user", "statestored", "--password-file", self.directory / "store-password",
                              "--policy", self.directory / "policy.conf", "--http-listen", f"127.0.0.1:{self.http_port}", *flags)
        return self

    def page(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/{path}") as reply:
            return reply.read().decode()

    def wait_until_dropped(self, n=1):
        """Wait until the store has dropped n requests that were not in a frame of the plugin."""
        line = f'statestore_dropped_total{{cause="outside_frame"}} {n}'
        wait_until(lambda: line in self.page("metrics"), line)

    def wait_until_not_taken(self, client, n=1):
        """Wait until the plugin has dropped n messages on the invoke topic. The next frame reports the number to the store."""
        line = f'statestore_plugin_refused_total{{cause="not_taken"}} {n}\n'
        wait_until(lambda: client.ask("GET", "settings/none") and line in self.page("metrics"), line)

    def connect(self, user, client_id=None, kind=WireClient, **more):
        return self.site.connect(client_id, kind, username=user, password=USERS[user], **more)


def authentication_lines(directory):
    return ["allow_anonymous false", f"password_file {passwords(directory, **USERS)}",
            "plugin_opt_statestored_username statestored"]


@pytest.fixture
def guarded(make_site, tmp_path):
    return Guarded(make_site(*authentication_lines(tmp_path)), tmp_path)


def will_properties(correlation, user, topic="clients/operator-1/replies"):
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.UserProperty, properties.ResponseTopic, properties.CorrelationData = user, topic, correlation
    return properties.pack()


def leave_will(guarded, payload, properties=b"\x00", topic=INVOKE, **more):
    """Have the broker publish a will of alice."""
    ghost = guarded.connect("alice", will=(topic, payload), will_properties=properties, **more)
    ghost.cut()
    guarded.site.broker.wait_until_disconnected(ghost.id)


def set_admin(user=()):
    """Return a request of the operator, with all properties that the store reads: payload and properties of a will."""
    stamped = [("__ts", str(hlc.Clock("alice").now())), ("__srcId", "operator-1"), *user]
    return resp.request("SET", "settings/admin", "alice"), will_properties(b"forged", stamped)


IDENTITY_OF_THE_OPERATOR = [("statestore-client-id", "operator-1"), ("statestore-username", "operator")]


# The store's session


def test_client_ids_that_begin_like_that_of_the_store_are_allowed(guarded):
    guarded.start_store()
    for client_id in ("statestored-2", "statestore", "Statestored"):
        assert guarded.connect("alice", client_id).ask("GET", "settings/admin") == b"$-1\r\n"


class Thief(WireClient):
    """Connects with the store's client id while the broker is about to send a message to the store."""

    def __init__(self, port, client_id, meanwhile, **more):
        self.meanwhile = meanwhile
        super().__init__(port, client_id, **more)

    def send(self, data):
        meanwhile, self.meanwhile = self.meanwhile, contextlib.nullcontext
        with meanwhile():
            super().send(data)


@pytest.mark.parametrize("topic", [SYS + "welcome", SYS + "frame"])
def test_a_taken_over_session_of_the_store_reveals_no_key(guarded, topic):
    """The plugin has the broker send WELCOME, or a frame, to the store's client id. In the same iteration of the broker's loop
    another client takes over the session, so it receives the message."""
    victim = Peer(guarded.site.broker.port, "statestored", username="statestored", password=USERS["statestored"])
    victim.serve()
    operator = guarded.connect("operator", "operator-1")
    secret, key, request = b"a secret value", companion.KEY_SIZE * b"k", None
    if topic == SYS + "frame":
        victim.hello()

    @contextlib.contextmanager
    def meanwhile():
        nonlocal request
        victim.ping()  # the broker has accepted the thief's connection
        operator.ping()  # the broker may read the most recent sender first
        if topic == SYS + "welcome":
            victim.ping()
        with guarded.site.broker.paused():
            if topic == SYS + "frame":
                request = operator.begin("SET", "settings/admin", secret)
            else:
                victim.n_hellos += 1
                victim.send(victim.encode_hello("instance", key))
            yield

    thief = guarded.connect("alice", "statestored", Thief, meanwhile=meanwhile)
    stolen = thief.message(topic).payload
    for text in secret, b"operator-1", key:
        assert text not in stolen
    for of_the_plugin in topic, SYS + "frame":
        assert thief.publish(of_the_plugin, stolen) == NOT_AUTHORIZED
    thief.disconnect()
    victim.cut()

    guarded.start_store()
    for of_the_plugin in topic, SYS + "frame":
        leave_will(guarded, stolen, topic=of_the_plugin)
    assert not request or operator.reply_to(request).payload == b"+OK\r\n"
    assert operator.ask("GET", "settings/admin") == (b"$14\r\n" + secret + b"\r\n" if request else b"$-1\r\n")
    for text in "dropped a frame", "malformed":
        assert text not in guarded.site.store.log()


def test_frames_of_clients_and_wills_are_not_processed(guarded):
    """Neither those to the store, nor those to the plugin."""
    guarded.start_store()
    alice, operator = guarded.connect("alice"), guarded.connect("operator", "operator-1")
    operator.ask("SET", "settings/admin", 1)
    alice.register("settings/admin")
    forged = {SYS + "frame": bytes(7) + b"\1" + bytes(100), SYS + "welcome": bytes(100), SYS + "plugin": b"another version",
              CONTROL + "hello": companion.hello(bytes(companion.KEY_SIZE), b"forged"),
              CONTROL + "frame": companion.frame(*(companion.reply(n, b"forged") for n in range(1, 20)), companion.end(20))}

    for topic, payload in forged.items():
        assert alice.publish(topic, payload, CorrelationData=b"1:1") == NOT_AUTHORIZED
        alice.send(alice.encode_publish(topic, payload, qos=0, CorrelationData=b"1:1"))
        for qos in (0, 1):
            with pytest.raises(Disconnected) if refuses_will(topic) else contextlib.nullcontext():
                leave_will(guarded, payload, will_properties(b"1:1", []), topic=topic, will_qos=qos)

    assert operator.ask("GET", "settings/admin") == b"$1\r\n1\r\n"
    assert alice.stop("settings/admin") == b"+OK\r\n"
    assert alice.messages() == operator.messages() == []
    for text in "dropped a frame", "malformed", "no connection to the broker", "another version":
        assert text not in guarded.site.store.log()


def test_two_stores_do_not_serve_at_once(guarded):
    guarded.start_store()
    first = guarded.site.store
    directory = guarded.directory / "second"
    directory.mkdir()
    flags = *first.flags, "--http-listen", f"127.0.0.1:{free_port()}"
    second = Store(directory, guarded.site.broker.port, flags).start()
    try:
        wait_until(lambda: "another statestored" in first.log() + second.log(), "a store logs the takeover")
    finally:
        second.stop()


# Copies of a request


def set_and_delete(operator):
    """Return copies of two executed requests, as payload and properties of a will. The second request has no timestamp and short
    Correlation Data: only its number in the frame identifies it."""
    stamp, correlation = operator.clock.now(), b"c" * 16
    assert operator.ask("SET", "settings/admin", 1, ts=stamp, correlation=correlation) == b"+OK\r\n"
    operator.publish(INVOKE, resp.request("DEL", "settings/admin"), ResponseTopic=operator.response_topic, CorrelationData=b"1")
    assert operator.reply_to(b"1").payload == b":1\r\n"
    stamped = [("__ts", str(stamp)), ("__srcId", operator.id)]
    return [(resp.request("SET", "settings/admin", 1), will_properties(correlation, stamped, operator.response_topic)),
            (resp.request("DEL", "settings/admin"), will_properties(b"1", [], operator.response_topic))]


@pytest.mark.parametrize("flags", [(), ("--data-dir", "data")], ids=["memory", "data"])
@pytest.mark.parametrize("restart", [None, "store", "broker"])
def test_a_copied_request_is_not_executed_again(guarded, tmp_path, flags, restart):
    guarded.start_store(*(tmp_path / flag if flag == "data" else flag for flag in flags))
    operator = guarded.connect("operator", "operator-1")
    copied = set_and_delete(operator)
    if restart == "store":
        guarded.site.store.kill()
        guarded.site.store.start()
    elif restart == "broker":
        seen = len(guarded.site.store.log())
        guarded.site.broker.kill()
        guarded.site.broker.start_again()
        guarded.site.store.wait_for_log("ready: serving", after=seen)
        operator = guarded.connect("operator", "operator-1")
    assert operator.ask("SET", "settings/admin", 2) == b"+OK\r\n"
    guarded.wait_until_not_taken(operator, 0)

    for payload, properties in copied:
        leave_will(guarded, payload, properties)

    n_sessions = 2 if restart == "store" and not flags else 1  # the broker keeps that of the former store
    guarded.wait_until_not_taken(operator, n_sessions * len(copied))
    assert operator.ask("GET", "settings/admin") == b"$1\r\n2\r\n"
    assert operator.messages() == []


def test_a_copy_is_not_executed_after_a_restart_of_a_store_with_data(guarded, tmp_path):
    """The broker publishes the wills while the store has a session, and no connection."""
    guarded.start_store("--data-dir", tmp_path / "data")
    operator = guarded.connect("operator", "operator-1")
    copied = set_and_delete(operator)
    operator.ask("SET", "settings/admin", 2)
    guarded.site.store.kill()
    for payload, properties in copied:
        leave_will(guarded, payload, properties)

    guarded.site.store.start()

    guarded.wait_until_not_taken(operator, 2)
    assert operator.ask("GET", "settings/admin") == b"$1\r\n2\r\n"


def test_no_client_of_the_stores_user_reads_requests(guarded):
    """Not even with the store's client id. So no client has a request that it could copy or change."""
    guarded.start_store("--client-id", "statestored")
    operator, spy = guarded.connect("operator"), guarded.connect("statestored", "spy")
    assert spy.subscribe(INVOKE) == 1
    assert operator.ask("SET", "settings/admin", 1) == b"+OK\r\n"
    assert spy.messages() == []

    guarded.site.store.kill()
    seen = guarded.site.broker.log()
    request = operator.begin("SET", "settings/admin", 2)
    operator.ping()
    spy = guarded.connect("statestored", "statestored", clean_start=False, session_expiry=3600)
    assert spy.session_present and spy.messages() == []
    spy.disconnect(session_expiry=3600)
    guarded.site.broker.wait_for_log(r"client statestored\b.* disconnected\.", after=len(seen))

    guarded.site.store.start()
    assert operator.reply_to(request).payload == b"+OK\r\n"


# Wills


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_is_not_executed(guarded, qos):
    """The plugin does not count a will at QoS 2: it cannot tell it from a request at QoS 2, which it has taken earlier."""
    guarded.start_store()
    operator = guarded.connect("operator", "operator-1")

    leave_will(guarded, *set_admin(), will_qos=qos)

    guarded.wait_until_not_taken(operator, int(qos < 2))
    assert operator.messages() == []
    assert operator.ask("GET", "settings/admin") == b"$-1\r\n"


@pytest.mark.parametrize("delay", [0, 1])
def test_retained_and_delayed_wills_are_not_executed(guarded, delay):
    guarded.start_store()
    payload, properties = set_admin()
    length, properties = properties[0], properties[1:]
    delayed = bytes([length + 5]) + b"\x18" + delay.to_bytes(4, "big") + properties
    guarded.connect("alice", will=(INVOKE, payload), will_properties=delayed, session_expiry=3600).cut()

    operator = guarded.connect("operator")
    guarded.wait_until_not_taken(operator)
    assert operator.ask("GET", "settings/admin") == b"$-1\r\n"


def test_a_will_with_the_payload_of_a_staged_request_is_not_executed(make_site, tmp_path):
    """A later plugin refuses each request of alice, after this plugin has copied it. The broker then publishes wills with the same
    payload, which may have its address."""
    refusing = build_plugin(tmp_path, MESSAGE, f'client_id && strcmp(client_id, "alice") == 0 ? {DENY} : {ACCEPT}')
    guarded = Guarded(make_site(*authentication_lines(tmp_path), f"plugin {refusing}"), tmp_path).start_store()
    alice, operator = guarded.connect("alice", "alice"), guarded.connect("operator", "operator-1")
    payload = resp.request("GET", "settings/" + "x" * 5000)
    properties = will_properties(b"1", [], alice.response_topic)

    for _ in range(20):
        ghost = guarded.connect("alice", will=(INVOKE, payload), will_properties=properties)
        alice.send(alice.encode_publish(INVOKE, payload, ResponseTopic=alice.response_topic, CorrelationData=b"1"))
        ghost.cut()
        assert alice.acknowledgement() == NOT_AUTHORIZED

    guarded.wait_until_not_taken(operator, 20)
    assert alice.messages() == []


# Requests whose replies the broker would refuse: it would close the store's connection, again after each reconnect


@pytest.mark.parametrize("qos", [0, 1])
def test_a_response_topic_of_many_levels_disconnects_its_sender(guarded, qos):
    """mosquitto accepts it as a property, but refuses a PUBLISH to a topic with more than 200 separators."""
    guarded.start_store()
    alice, operator = guarded.connect("alice"), guarded.connect("operator")

    alice.send(alice.encode_publish(INVOKE, resp.request("GET", "settings/none"), qos=qos, CorrelationData=b"1",
                                    ResponseTopic="clients/" + "a/" * 300))

    alice.wait_until_closed()
    assert operator.ask("GET", "settings/none") == b"$-1\r\n"
    assert "no connection to the broker" not in guarded.site.store.log()


def test_a_will_whose_response_topic_has_many_levels_is_dropped(guarded):
    guarded.start_store()
    operator = guarded.connect("operator")
    topic = "clients/" + "a/" * 300

    if refuses_response_topic(topic):
        with pytest.raises((AssertionError, Disconnected), match="refused: 0x82|^None$"):  # mosquitto 2.0 sends no CONNACK
            leave_will(guarded, b"", will_properties(b"1", [], topic), will_qos=0)
    else:
        leave_will(guarded, b"", will_properties(b"1", [], topic), will_qos=0)
        guarded.wait_until_not_taken(operator)

    assert operator.ask("GET", "settings/none") == b"$-1\r\n"
    assert "no connection to the broker" not in guarded.site.store.log()


def test_the_broker_counts_only_the_payloads_of_unread_replies(make_site, tmp_path):
    """All replies wait, although their Correlation Data exceeds the limits of the broker."""
    limits = "max_inflight_bytes 1000000", "max_queued_bytes 1000000"
    guarded = Guarded(make_site(*authentication_lines(tmp_path), *limits), tmp_path).start_store()
    alice, operator = guarded.connect("alice"), guarded.connect("operator")
    sent = [alice.begin("GET", "settings/none", correlation=n.to_bytes(65535, "big")) for n in range(60)]
    for _ in range(2 * len(sent)):  # the requests of both clients are served in turns
        operator.ask("GET", "settings/none")

    for correlation in sent:
        assert alice.reply_to(correlation).payload == b"$-1\r\n"


# Connections and publishing


def test_an_anonymous_client_cannot_connect_where_the_broker_refuses_it(guarded):
    guarded.start_store()
    for client_id in ("statestored", "other"):
        with pytest.raises(AssertionError, match="refused: 0x87"):
            guarded.site.connect(client_id, WireClient)


def test_an_anonymous_client_has_no_user_name_and_cannot_forge_one(make_site, tmp_path):
    lines = authentication_lines(tmp_path)
    guarded = Guarded(make_site("allow_anonymous true", *lines[1:]), tmp_path).start_store()
    anonymous = guarded.site.connect("operator", WireClient)

    assert anonymous.ask("GET", "settings/admin") == b"$-1\r\n"
    assert anonymous.ask("SET", "settings/admin", 1, user=IDENTITY_OF_THE_OPERATOR) == b"-ERR not authorized\r\n"
    assert guarded.site.connect("statestored", WireClient).subscribe(INVOKE) == NOT_AUTHORIZED


ACL = """\
user statestored
topic write clients/#
user operator
topic readwrite #
user alice
topic readwrite clients/alice/#
topic read cmd/#
"""


@pytest.fixture
def site_with_acl(make_site, tmp_path):
    """`guarded` with a running store, at a broker with access rules."""
    (tmp_path / "acl").write_text(ACL)
    return Guarded(make_site(*authentication_lines(tmp_path), f"acl_file {tmp_path / 'acl'}"), tmp_path).start_store()


def test_access_rules_that_deny_requests_apply_to_wills(site_with_acl):
    alice = site_with_acl.connect("alice", "alice")
    assert alice.request() == NOT_AUTHORIZED

    leave_will(site_with_acl, *set_admin())

    assert site_with_acl.connect("operator").ask("GET", "settings/admin") == b"$-1\r\n"
    assert 'cause="not_taken"} 0' in site_with_acl.page("metrics"), "the broker has not published the will"


@pytest.mark.skipif(version() >= (2, 1), reason="mosquitto 2.1 does not tell plugins of acl_file: OPERATIONS.md has what to write")
def test_no_reply_is_published_where_the_brokers_rules_may_deny_it(site_with_acl):
    operator, alice = site_with_acl.connect("operator"), site_with_acl.connect("alice", "alice")
    alice.subscribe("cmd/door")

    operator.begin("SET", "settings/admin", 1, response_topic="cmd/door")
    assert operator.acknowledgement() == NOT_AUTHORIZED
    assert operator.ask("GET", "settings/admin") == b"$-1\r\n"

    assert alice.messages() == []
    assert 'statestore_plugin_refused_total{cause="reply_denied"} 1' in site_with_acl.page("metrics")


def test_a_reply_goes_to_another_client_if_a_request_asks_for_it(guarded):
    guarded.start_store()
    operator, alice = guarded.connect("operator"), guarded.connect("alice")

    correlation = alice.begin("GET", "settings/none", response_topic=operator.response_topic)

    assert operator.reply_to(correlation).payload == b"$-1\r\n"


def test_a_request_through_a_listener_without_the_plugin_is_not_executed(make_site, tmp_path):
    other = free_port()
    site = make_site("listener {port} 127.0.0.1", "allow_anonymous true", f"plugin {PLUGIN}", f"listener {other} 127.0.0.1",
                     "allow_anonymous true", plugin=False, listeners=["per_listener_settings true"])
    guarded = Guarded(site, tmp_path)
    site.start_store("--http-listen", f"127.0.0.1:{guarded.http_port}")
    stranger = WireClient(other, "stranger")

    for qos in (0, 1, 2):
        stranger.send(stranger.encode_publish(INVOKE, resp.request("SET", "settings/admin", 1), qos=qos,
                                              ResponseTopic=stranger.response_topic, CorrelationData=b"1"))
    stranger.send(packet(PUBREL << 4 | 2, struct.pack("!H", 3)))

    client = site.connect(None, WireClient)
    guarded.wait_until_not_taken(client, 2)  # a message at QoS 2 is not counted
    assert client.ask("GET", "settings/admin") == b"$-1\r\n"
    assert stranger.messages() == []
    stranger.close()


def test_a_request_over_mqtt_3_is_dropped(guarded):
    """MQTT 3 has no properties, so the request has no Response Topic."""
    guarded.start_store()
    client = paho.Client(client_id="three", protocol=paho.MQTTv311)
    client.username_pw_set("operator", USERS["operator"])
    client.connect("127.0.0.1", guarded.site.broker.port)
    client.loop_start()
    client.publish(INVOKE, resp.request("DEL", "settings/admin"), qos=1).wait_for_publish(30)
    client.loop_stop()
    client.disconnect()

    wait_until(lambda: "no response topic" in guarded.site.store.log(), "the drop is logged")
    assert guarded.connect("operator").ask("GET", "settings/admin") == b"$-1\r\n"


def test_a_refused_request_is_logged_with_the_client_id_of_its_sender(guarded):
    guarded.start_store()
    alice = guarded.connect("alice", "alice-1")

    alice.send(alice.encode_publish(INVOKE, resp.request("GET", "settings/admin"), qos=0,
                                    user=[("__srcId", "operator-1"), *IDENTITY_OF_THE_OPERATOR], CorrelationData=b"1",
                                    ResponseTopic="clients/operator-1/replies"))

    guarded.site.store.wait_for_log(r'client="?alice-1"? .*reason="wrong qos"')
    assert "client=operator-1" not in guarded.site.store.log()


def test_access_rules_keep_replies_to_other_clients_secret(site_with_acl):
    """The store's policy applies to requests. Only the broker's rules decide which client receives a reply."""
    operator, alice = site_with_acl.connect("operator", "operator-1"), site_with_acl.connect("alice", "alice")
    for topic in ("clients/#", "#", "$share/group/clients/#"):
        alice.subscribe(topic)

    assert operator.ask("SET", "settings/admin", "a secret") == b"+OK\r\n"
    assert operator.ask("GET", "settings/admin") == b"$8\r\na secret\r\n"

    assert alice.messages() == []


# A plugin that precedes the companion plugin in mosquitto.conf


@pytest.fixture
def site_with_permissive_plugin(make_site, tmp_path):
    """The other plugin grants every access, so the broker does not ask the companion plugin."""
    other = build_plugin(tmp_path, ACL_CHECK, ACCEPT)
    allow, *lines = authentication_lines(tmp_path)
    return Guarded(make_site(allow, "max_inflight_bytes 1000000", f"plugin {other}", f"plugin {PLUGIN}", *lines,
                             plugin=False), tmp_path)


def test_if_an_earlier_plugin_grants_every_access_no_request_is_executed(site_with_permissive_plugin):
    """The plugin does not take the requests, and the store ignores them outside frames."""
    guarded = site_with_permissive_plugin
    guarded.start_store()
    alice, operator = guarded.connect("alice"), guarded.connect("operator", "operator-1")

    for _ in range(3):
        operator.begin("SET", "settings/admin", 1)
    leave_will(guarded, *set_admin())

    guarded.wait_until_dropped(4)
    executed = re.findall(r"^statestore_requests_total\{.*\} (\d+)$", guarded.page("metrics"), re.MULTILINE)
    assert set(executed) == {"0"}
    assert alice.messages() == operator.messages() == []
    guarded.site.store.wait_for_log("it was not in a frame of the plugin")


def test_if_an_earlier_plugin_grants_every_access_clients_read_requests(site_with_permissive_plugin):
    site_with_permissive_plugin.start_store()
    alice, operator = site_with_permissive_plugin.connect("alice"), site_with_permissive_plugin.connect("operator", "operator-1")

    assert alice.subscribe(INVOKE) == 1

    operator.begin("SET", "settings/admin", 1)
    assert alice.message(INVOKE).payload == resp.request("SET", "settings/admin", 1)


def test_if_an_earlier_plugin_grants_every_access_wills_forge_notifications(site_with_permissive_plugin):
    site_with_permissive_plugin.start_store()
    alice, operator = site_with_permissive_plugin.connect("alice"), site_with_permissive_plugin.connect("operator", "operator-1")
    operator.subscribe_to_notifications()
    topic = notify_topic("operator-1", "key")
    assert alice.publish(topic, b"forged by PUBLISH") == NOT_AUTHORIZED

    site_with_permissive_plugin.connect("alice", will=(topic, b"forged by a will")).cut()

    assert operator.message(topic).payload == b"forged by a will"


def test_a_store_that_requires_the_plugin_does_not_serve_without_it_after_a_backlog(site_with_permissive_plugin):
    """The SUBACKs do not show the plugin, and the banner waits behind the backlog. The store executes none of the requests."""
    site_with_permissive_plugin.start_store("--require-plugin", "on", "--client-id", "statestored")
    store, alice, operator = site_with_permissive_plugin.site.store, site_with_permissive_plugin.connect("alice"), site_with_permissive_plugin.connect("operator")
    store.kill()
    for _ in range(10):
        alice.begin("SET", "settings/admin", "v" * 3_000_000)
        alice.acknowledgement()

    store.start()
    operator.begin("GET", "settings/admin")

    site_with_permissive_plugin.wait_until_dropped(11)
    assert "; the broker has no plugin" not in store.log()
    assert alice.messages() == operator.messages() == []


# Keys that the policy does not grant


def test_pages_of_scan_do_not_reveal_the_names_of_keys_that_the_client_may_not_read(guarded):
    """A match that uses up the steps of a page would show whether a key begins with these letters."""
    guarded.start_store()
    operator, alice = guarded.connect("operator"), guarded.connect("alice")
    for n in range(3):
        assert operator.ask("SET", f"locks/{n}", "mine") == b"+OK\r\n"

    pattern = "locks/[" + "x" * 100_000 + "]*"
    assert len(resp.read(operator.ask("SCAN", pattern))) == 2, "there is a further page"
    assert resp.read(alice.ask("SCAN", pattern)) == [[]]


# A reader of the HTTP port


def test_the_http_port_shows_no_secret(guarded):
    guarded.start_store()
    operator = guarded.connect("operator", "operator-1")
    operator.ask("SET", "settings/admin", "a-value")

    for page in ("metrics", "healthz", "readyz", ""):
        try:
            text = guarded.page(page)
        except urllib.error.HTTPError:
            continue
        for secret in ("operator-1", "settings/admin", "a-value", *USERS.values()):
            assert secret not in text, page
