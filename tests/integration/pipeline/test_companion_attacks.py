# SPDX-License-Identifier: Apache-2.0
"""Attacks of clients on the protocol between store and plugin: the lines of common/protocol/THREATS.md."""

import re
import urllib.request

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import companion, hlc, resp, stored
from support.broker import free_port, passwords
from support.client import INVOKE, notify_topic
from support.connection import NOT_AUTHORIZED
from support.message import Message
from support.plugin import ACCEPT, ACL_CHECK, BASIC_AUTH, CONTROL, PLUGIN, SYS, Peer, build_plugin
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

RANDOM_CLIENT_ID = "statestored-" + "0a" * 16

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

    def wait_until_dropped(self, reason, n=1):
        line = f'statestore_dropped_total{{cause="{reason}"}} {n}'
        wait_until(lambda: line in self.page("metrics"), line)

    def spy(self):
        """Connect a client that receives every request, like an attacker who reads the store's session."""
        spy = self.connect("statestored", "spy")
        assert spy.subscribe(INVOKE) == 1
        return spy

    def connect(self, user, client_id=None, kind=WireClient, **more):
        return self.site.connect(client_id, kind, username=user, password=USERS[user], **more)


def authentication_lines(directory):
    return ["allow_anonymous false", f"password_file {passwords(directory, **USERS)}",
            "plugin_opt_statestored_username statestored"]


@pytest.fixture
def guarded(make_site, tmp_path):
    return Guarded(make_site(*authentication_lines(tmp_path)), tmp_path)


def make_unguarded(make_site, directory, *lines):
    """Another plugin accepts each CONNECT, so the broker does not call the companion plugin."""
    other = build_plugin(directory, BASIC_AUTH, ACCEPT)
    return Guarded(make_site(f"plugin {other}", f"plugin {PLUGIN}", "plugin_opt_statestored_username statestored",
                             "plugin_opt_undecided allow", *lines, plugin=False), directory)


@pytest.fixture
def unguarded(make_site, tmp_path):
    return make_unguarded(make_site, tmp_path)


def will_properties(message):
    """Return the properties of a will that repeats this message."""
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.UserProperty = message.user
    properties.ResponseTopic = message.response_topic
    properties.CorrelationData = message.correlation
    return properties.pack()


def leave_will(guarded, payload, properties, **more):
    """Have the broker publish a will of alice."""
    ghost = guarded.connect("alice", will=(INVOKE, payload), will_properties=properties, **more)
    ghost.cut()
    guarded.site.broker.wait_for_log(rf"[Cc]lient {ghost.id}\b.*(closed|disconnect)")


def set_admin(user):
    """Return a forged request of the operator, with all properties that the store reads."""
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.UserProperty = [("__ts", str(hlc.Clock("alice").now())), ("__srcId", "operator-1"), *user]
    properties.ResponseTopic = "clients/operator-1/replies"
    properties.CorrelationData = b"forged"
    return resp.request("SET", "settings/admin", "alice"), properties.pack()


def identity_of_the_operator(mac):
    return [("statestore-mac", mac), ("statestore-client-id", "operator-1"),
            ("statestore-username", "operator")]


def delete_admin(operator):
    """The request has no timestamp and short Correlation Data, so only its sequence number identifies a copy."""
    operator.publish(INVOKE, resp.request("DEL", "settings/admin"), ResponseTopic=operator.response_topic,
                     CorrelationData=b"1")
    return operator.reply_to(b"1").payload


# The store's session


@pytest.mark.parametrize("is_running", [True, False], ids=["store runs", "store does not run yet"])
def test_no_other_user_connects_with_the_stores_client_id(guarded, is_running):
    if is_running:
        guarded.start_store()
    for more in ({"user": "alice"}, {"user": "operator"}):
        for clean_start in (True, False):
            with pytest.raises(AssertionError, match="refused: 0x87"):
                guarded.connect(client_id="statestored", clean_start=clean_start, **more)

    if not is_running:
        guarded.start_store()
    assert guarded.connect("operator").ask("SET", "settings/admin", 1) == b"+OK\r\n"
    assert "another client has connected with our client id" not in guarded.site.store.log()
    for user in ("alice", "operator"):
        assert ("CONNECT refused: the client has the store's client id, but not its user name: "
                f"client_id=statestored username={user}") in guarded.site.broker.log()


def test_client_ids_with_the_stores_id_as_prefix_are_allowed(guarded):
    guarded.start_store()
    for client_id in ("statestored-2", "statestore", "Statestored"):
        assert guarded.connect("alice", client_id).ask("GET", "settings/admin") == b"$-1\r\n"


def stolen_messages(guarded):
    """Break the store's connection before it acknowledges the plugin's messages; alice then takes over its session."""
    victim = Peer(guarded.site.broker.port, "statestored", clean_start=False, session_expiry=3600,
                  username="statestored", password=USERS["statestored"])
    assert victim.subscribe(INVOKE) == 1
    hello = victim.encode_publish(CONTROL + "hello", companion.KEY_SIZE * b"k" + b"instance",
                                  CorrelationData=b"%d:1" % victim.run)
    victim.send(hello)
    victim.acknowledgement()
    seen = guarded.site.broker.log()
    victim.cut()
    guarded.site.broker.wait_for_log(r"[Cc]lient statestored\b.*(closed|disconnect)", after=len(seen))
    thief = guarded.connect("alice", "statestored", clean_start=False, session_expiry=3600)
    stolen = thief.messages()
    thief.cut()
    return stolen


def test_a_taken_over_session_of_the_store_reveals_no_key(unguarded):
    stolen = stolen_messages(unguarded)
    [welcome] = [message for message in stolen if message.topic == SYS + "welcome"]
    unguarded.start_store()
    operator = unguarded.connect("operator", "operator-1")

    line = "".join(char for char in welcome.payload.split(b"\n")[0].decode("latin-1") if "!" <= char <= "~")
    wills = [line + ":1", "1:1:" + "0" * 32, "1:1:" + line[:32]]
    for proof in wills:
        leave_will(unguarded, *set_admin(identity_of_the_operator(proof)))

    assert operator.ask("GET", "settings/admin") == b"$-1\r\n"
    unguarded.wait_until_dropped("unverified", len(wills))
    assert b"forged" not in {message.correlation for message in operator.messages()}


def client_ids(store):
    """Return the client ids of the store in the order in which it used them."""
    return re.findall(r'ready: serving .* as \\"([^"\\]*)', store.log())


@pytest.mark.parametrize("is_named", [False, True], ids=["user name", "client id"])
def test_a_store_that_follows_the_advice_in_its_log_is_not_interrupted(make_site, tmp_path, is_named):
    """The options of the plugin name the store's client id, or only its user name. Another user cannot know the new client id."""
    named = "plugin_opt_statestored_client_id statestored"
    unguarded = make_unguarded(make_site, tmp_path, "log_dest stderr", "log_dest topic", *([named] if is_named else []))
    store, broker = unguarded.start_store().site.store, unguarded.site.broker
    line, client_id = re.search(r"is not guarded.*(client-id = (statestored-[0-9a-f]{32}));", store.log()).groups()
    assert "statestore_client_id_guarded 0" in unguarded.page("metrics")
    unguarded.connect("alice", "statestored")
    store.wait_for_log("no connection to the broker")

    store.stop()
    (tmp_path / "statestored.conf").write_text(f"[broker]\n{line}\n")
    store.flags = (*store.flags, "--config", tmp_path / "statestored.conf")
    if is_named:
        broker.stop()
        broker.lines = [f"plugin_opt_statestored_client_id {client_id}" if line == named else line for line in broker.lines]
        broker.start_again()
    reader = unguarded.connect("alice", "reader")
    reader.subscribe("$SYS/broker/log/#", 0)
    seen = len(store.log())
    store.start()
    operator = unguarded.connect("operator")
    assert operator.ask("SET", "settings/admin", 1) == b"+OK\r\n"
    for guessed in "statestored", "statestored-" + "0" * 32:
        unguarded.connect("alice", guessed).disconnect()

    assert operator.ask("GET", "settings/admin") == b"$1\r\n1\r\n"
    assert client_ids(store)[-1] == client_id
    assert "statestore_client_id_guarded 1" in unguarded.page("metrics")
    for text in "not guarded", "no connection to the broker":
        assert text not in store.log()[seen:]
    lines = b"\n".join(message.payload for message in reader.messages())
    assert operator.id.encode() in lines
    assert client_id.encode() not in lines


@pytest.mark.parametrize("is_named", [False, True], ids=["user name", "client id"])
def test_the_published_log_does_not_contain_the_random_client_id(make_site, tmp_path, is_named):
    """Neither before HELLO tells the plugin the client id, nor after the end of the connection."""
    named = [f"plugin_opt_statestored_client_id {RANDOM_CLIENT_ID}"] if is_named else []
    unguarded = make_unguarded(make_site, tmp_path, "log_dest stderr", "log_dest topic", *named)
    alice = unguarded.connect("alice")
    alice.subscribe("$SYS/broker/log/#", 0)

    unguarded.start_store("--client-id", RANDOM_CLIENT_ID)
    unguarded.connect("operator", "operator-1").disconnect()
    unguarded.site.store.kill()
    unguarded.site.broker.wait_for_log(f"Client {RANDOM_CLIENT_ID} .*(closed|disconnect)")
    unguarded.site.store.start()

    lines = b"\n".join(message.payload for message in alice.messages())
    assert b"operator-1" in lines
    assert b"statestored-" not in lines
    assert f"as {RANDOM_CLIENT_ID} " in unguarded.site.broker.log()


@pytest.mark.parametrize("is_guarded, client_id", [(True, "statestored"), (False, "statestored"), (False, RANDOM_CLIENT_ID)],
                         ids=["guarded", "unguarded", "random"])
def test_no_client_hides_its_lines_in_the_published_log(make_site, tmp_path, is_guarded, client_id):
    """Neither with a client id like the store's, nor with one like a random client id of a store."""
    lines = ["log_dest stderr", "log_dest topic"]
    guarded = (Guarded(make_site(*authentication_lines(tmp_path), *lines), tmp_path) if is_guarded else
               make_unguarded(make_site, tmp_path, *lines)).start_store("--client-id", client_id)
    operator = guarded.connect("operator")
    operator.subscribe("$SYS/broker/log/N", 0)
    client_ids_of_alice = "statestored-intruder", "statestored-" + "0" * 32

    for client_id in client_ids_of_alice:
        guarded.connect("alice", client_id)

    published = b"\n".join(message.payload for message in operator.messages())
    for client_id in client_ids_of_alice:
        assert client_id.encode() in published


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "not named"])
def test_after_a_broker_restart_another_client_id_of_the_store_is_protected_if_the_options_name_it(make_site, tmp_path, is_named):
    lines = ["plugin_opt_statestored_client_id mystore"] if is_named else []
    guarded = Guarded(make_site(*authentication_lines(tmp_path), *lines), tmp_path).start_store("--client-id", "mystore")
    broker = guarded.site.broker
    assert ("another user can take the store's client id" in broker.log()) == (not is_named)
    with pytest.raises(AssertionError, match="refused: 0x87"):
        guarded.connect("alice", "mystore")
    guarded.site.store.kill()
    broker.kill()
    broker.start_again()

    if is_named:
        with pytest.raises(AssertionError, match="refused: 0x87"):
            guarded.connect("alice", "mystore")
    else:
        guarded.connect("alice", "mystore").ping()


@pytest.mark.parametrize("client_id", ["statestored", "chosen", "statestored-2"])
def test_an_unguarded_client_id_is_kept_with_a_warning(unguarded, client_id):
    unguarded.start_store("--client-id", client_id)
    assert rf'client id \"{client_id}\" is not guarded' in unguarded.site.store.log()
    assert unguarded.connect("operator").ask("SET", "settings/admin", 1) == b"+OK\r\n"
    assert client_ids(unguarded.site.store) == [client_id]


def test_an_unguarded_client_id_is_logged_once_and_not_at_each_connection(make_site):
    site = make_site()
    store = site.start_store()
    for _ in range(2):
        seen = len(store.log())
        site.broker.stop()
        site.broker.start_again()
        store.wait_for_log("ready: ", after=seen)
        assert site.connect().request("GET", "key").payload == b"$-1\r\n"  # the reply comes after the store has logged

    assert store.log().count("is not guarded") == 1


def test_two_stores_with_client_ids_of_their_own_do_not_serve_at_once(unguarded):
    unguarded.start_store()
    first = unguarded.site.store
    directory = unguarded.directory / "second"
    directory.mkdir()
    flags = *first.flags, "--client-id", RANDOM_CLIENT_ID, "--http-listen", f"127.0.0.1:{free_port()}"
    second = Store(directory, unguarded.site.broker.port, flags).start()
    try:
        wait_until(lambda: "another statestored" in first.log() + second.log(), "a store logs the takeover")
    finally:
        second.stop()


def test_a_store_whose_client_id_is_guarded_logs_no_warning(guarded):
    guarded.start_store()
    assert guarded.connect("operator").ask("GET", "settings/admin") == b"$-1\r\n"
    assert "not guarded" not in guarded.site.store.log()
    assert "another user can take the store's client id" not in guarded.site.broker.log()


# Copies of a request


@pytest.mark.parametrize("flags", [(), ("--data-dir", "data")], ids=["memory", "data"])
@pytest.mark.parametrize("restart", [None, "store", "broker"])
def test_a_copied_request_is_not_executed_again(guarded, tmp_path, flags, restart):
    guarded.start_store(*(tmp_path / flag if flag == "data" else flag for flag in flags))
    operator, spy = guarded.connect("operator"), guarded.spy()
    assert operator.ask("SET", "settings/admin", 1) == b"+OK\r\n"
    assert delete_admin(operator) == b":1\r\n"
    copied = spy.message(INVOKE), spy.message(INVOKE)
    if restart == "store":
        guarded.site.store.kill()
        guarded.site.store.start()
    elif restart == "broker":
        seen = len(guarded.site.store.log())
        guarded.site.broker.kill()
        guarded.site.broker.start_again()
        guarded.site.store.wait_for_log("ready: serving", after=seen)
    operator = guarded.connect("operator")
    assert operator.ask("SET", "settings/admin", 2) == b"+OK\r\n"

    for message in copied:
        leave_will(guarded, message.payload, will_properties(message))

    guarded.wait_until_dropped("unverified" if restart == "broker" else "repeated", 2)
    assert operator.ask("GET", "settings/admin") == b"$1\r\n2\r\n"


def test_a_copy_is_not_executed_after_a_restart_of_a_store_with_data(guarded, tmp_path):
    guarded.start_store("--data-dir", tmp_path / "data")
    operator, spy = guarded.connect("operator"), guarded.spy()
    operator.ask("SET", "settings/admin", 1)
    assert delete_admin(operator) == b":1\r\n"
    _, copied = spy.message(INVOKE), spy.message(INVOKE)
    operator.ask("SET", "settings/admin", 2)
    guarded.site.store.kill()
    leave_will(guarded, copied.payload, will_properties(copied))

    guarded.site.store.start()

    assert operator.ask("GET", "settings/admin") == b"$1\r\n2\r\n"
    guarded.wait_until_dropped("repeated")


@pytest.mark.parametrize("part", ["payload", "user", "response_topic", "correlation"])
def test_a_changed_request_is_not_executed(guarded, part):
    """Alice changes a request of the operator that the store has not received yet."""
    guarded.start_store()
    operator, spy = guarded.connect("operator", "operator-1"), guarded.spy()
    with guarded.site.store.paused():
        operator.begin("SET", "settings/admin", 1)
        message = spy.message(INVOKE)
        changed = {"payload": resp.request("SET", "settings/admin", "alice"), "user": message.user[1:],
                   "response_topic": "clients/alice/replies", "correlation": b"another"}
        setattr(message, part, changed[part])
        leave_will(guarded, message.payload, will_properties(message))

    guarded.wait_until_dropped("unverified")
    assert operator.ask("GET", "settings/admin") == b"$1\r\n1\r\n"


# Wills


@pytest.mark.parametrize("user", [[], identity_of_the_operator("1:1:" + "0" * 32)], ids=["plain", "forged"])
def test_a_will_is_not_executed(guarded, user):
    guarded.start_store()
    operator = guarded.connect("operator", "operator-1")

    leave_will(guarded, *set_admin(user))

    guarded.wait_until_dropped("unverified")
    assert operator.ask("GET", "settings/admin") == b"$-1\r\n"


@pytest.mark.parametrize("delay", [0, 1])
def test_retained_and_delayed_wills_are_not_executed(guarded, delay):
    guarded.start_store()
    payload, properties = set_admin([])
    length, properties = properties[0], properties[1:]
    delayed = bytes([length + 5]) + b"\x18" + delay.to_bytes(4, "big") + properties
    guarded.connect("alice", will=(INVOKE, payload), will_properties=delayed, session_expiry=3600).cut()

    guarded.wait_until_dropped("unverified")
    assert guarded.connect("operator").ask("GET", "settings/admin") == b"$-1\r\n"


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
    """The plugin does not see wills. The store replies to one at QoS 0 with an error."""
    guarded.start_store()
    operator = guarded.connect("operator")
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.ResponseTopic, properties.CorrelationData = "clients/" + "a/" * 300, b"1"

    leave_will(guarded, b"", properties.pack(), will_qos=0)

    guarded.site.store.wait_for_log("response topic")
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
    assert anonymous.ask("SET", "settings/admin", 1, user=identity_of_the_operator("1:1:" + "0" * 32)) == \
        b"-ERR not authorized\r\n"
    with pytest.raises(AssertionError, match="refused: 0x87"):
        guarded.site.connect("statestored", WireClient)


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

    leave_will(site_with_acl, *set_admin([]))

    assert site_with_acl.connect("operator").ask("GET", "settings/admin") == b"$-1\r\n"
    assert 'cause="unverified"} 0' in site_with_acl.page("metrics")


def test_replies_are_published_only_where_the_broker_lets_the_store_publish(site_with_acl):
    operator, alice = site_with_acl.connect("operator"), site_with_acl.connect("alice", "alice")
    alice.subscribe("cmd/door")

    operator.begin("SET", "settings/admin", 1, response_topic="cmd/door")
    assert operator.ask("GET", "settings/admin") == b"$1\r\n1\r\n"

    assert alice.messages() == []


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

    stranger.begin("SET", "settings/admin", 1)

    guarded.wait_until_dropped("unverified")
    assert site.connect(None, WireClient).ask("GET", "settings/admin") == b"$-1\r\n"
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


def test_a_refused_request_without_a_mac_is_logged_without_a_client_id(guarded):
    guarded.start_store()
    alice = guarded.connect("alice")

    alice.send(alice.encode_publish(INVOKE, resp.request("GET", "settings/admin"), qos=0,
                                    user=[("__srcId", "operator-1")], CorrelationData=b"1",
                                    ResponseTopic="clients/operator-1/replies"))

    guarded.site.store.wait_for_log(r'client="" .*reason="wrong qos"')
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


def test_if_an_earlier_plugin_grants_every_access_clients_read_requests(site_with_permissive_plugin):
    site_with_permissive_plugin.start_store()
    alice, operator = site_with_permissive_plugin.connect("alice"), site_with_permissive_plugin.connect("operator", "operator-1")

    assert alice.subscribe(INVOKE) == 1

    operator.ask("SET", "settings/admin", 1)
    assert alice.message(INVOKE).prop("statestore-client-id") == "operator-1"


def test_if_an_earlier_plugin_grants_every_access_wills_forge_notifications(site_with_permissive_plugin):
    site_with_permissive_plugin.start_store()
    alice, operator = site_with_permissive_plugin.connect("alice"), site_with_permissive_plugin.connect("operator", "operator-1")
    operator.subscribe_to_notifications()
    topic = notify_topic("operator-1", "key")
    assert alice.publish(topic, b"forged by PUBLISH") == NOT_AUTHORIZED

    site_with_permissive_plugin.connect("alice", will=(topic, b"forged by a will")).cut()

    assert operator.message(topic).payload == b"forged by a will"


def test_a_store_that_requires_the_plugin_does_not_serve_without_it_after_a_backlog(site_with_permissive_plugin):
    """The SUBACKs do not show the plugin, and the banner waits behind the backlog."""
    site_with_permissive_plugin.start_store("--require-plugin", "on")
    store, alice, operator = site_with_permissive_plugin.site.store, site_with_permissive_plugin.connect("alice"), site_with_permissive_plugin.connect("operator")
    store.kill()
    for _ in range(10):
        alice.begin("SET", "settings/admin", "v" * 3_000_000)
        alice.acknowledgement()

    store.start()

    assert operator.ask("GET", "settings/admin") == b"$-1\r\n"
    assert "identity claimed" not in store.log()


# A reader of the disk


def leave_forged_will(guarded, key, connection, sequence):
    """Have a will publish a request of the operator with a MAC under a key read from the disk."""
    user = [("__ts", str(hlc.Clock("alice").now())), ("__srcId", "operator-1")]
    request = Message(INVOKE, resp.request("SET", "settings/admin", "alice"), 1, False, user, b"forged",
                      "clients/operator-1/replies", None, None, None)
    proof = companion.mac(key, connection, sequence, "operator-1", "operator", request)
    request.user = [*user, ("statestore-mac", f"{connection}:{sequence}:{proof}"), ("statestore-client-id", "operator-1"),
                    ("statestore-username", "operator")]
    leave_will(guarded, request.payload, will_properties(request))


def test_a_reader_of_the_disk_forges_requests_until_the_broker_is_restarted(guarded, tmp_path):
    guarded.start_store("--data-dir", tmp_path / "data")
    operator, spy = guarded.connect("operator"), guarded.spy()
    operator.ask("SET", "settings/admin", 1)
    connection, sequence, _ = spy.message(INVOKE).prop("statestore-mac").split(":")
    n_deleted = 0
    while not (key := stored.header(tmp_path / "data")["mac_key"]):
        operator.ask("DEL", "settings/admin")  # a commit stores the watermark of the requests acknowledged before it
        operator.ask("SET", "settings/admin", 1)
        n_deleted += 1
        assert n_deleted < 1000

    leave_forged_will(guarded, key, int(connection), int(sequence) + 2 * n_deleted + 1)
    executed = f'statestore_requests_total{{verb="set",outcome="done"}} {n_deleted + 2}'
    wait_until(lambda: executed in guarded.page("metrics"), "the forged request is executed")

    seen = len(guarded.site.store.log())
    guarded.site.broker.kill()
    guarded.site.broker.start_again()
    guarded.site.store.wait_for_log("ready: serving", after=seen)
    operator = guarded.connect("operator")
    assert operator.ask("GET", "settings/admin") == b"$5\r\nalice\r\n"
    assert operator.ask("SET", "settings/admin", 2) == b"+OK\r\n"
    leave_forged_will(guarded, key, int(connection), int(sequence) + 10000)
    guarded.wait_until_dropped("unverified")
    assert operator.ask("GET", "settings/admin") == b"$1\r\n2\r\n"


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
    operator, spy = guarded.connect("operator", "operator-1"), guarded.spy()
    operator.ask("SET", "settings/admin", "a-value")
    proof = spy.message(INVOKE).prop("statestore-mac")

    for page in ("metrics", "healthz", "readyz", ""):
        try:
            text = guarded.page(page)
        except urllib.error.HTTPError:
            continue
        for secret in (proof.split(":")[2], "operator-1", "settings/admin", "a-value", *USERS.values()):
            assert secret not in text, page
