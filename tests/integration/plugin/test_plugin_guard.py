# SPDX-License-Identifier: Apache-2.0
"""Only the store and the plugin can use the store's topics."""

import re

import pytest

from support.broker import Broker, free_port, passwords, refuses_will
from support.client import INVOKE, NOTIFY_PREFIX, SERVICE, notify_topic
from support.connection import NOT_AUTHORIZED, SUCCESS, Connection, Disconnected
from support.plugin import CONTROL, PLUGIN, SYS, PluginBroker, peer, site, site_with  # noqa: F401 fixtures
from support.process import wait_until

# Other clients


@pytest.mark.parametrize("topic", [notify_topic("a", "b"), f"clients/{SERVICE}", f"clients/{SERVICE}/x",
                                   f"clients/{SERVICE}x", CONTROL + "hello", CONTROL + "frame", CONTROL + "other", "$CONTROL/statestore/v2/x",
                                   SYS + "plugin", SYS + "welcome", SYS + "frame"])
def test_other_clients_cannot_publish_to_internal_topics(site, peer, topic):
    stranger = site.connect()

    assert stranger.publish(topic, b"1") == NOT_AUTHORIZED

    assert peer.messages() == []


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_publishing_to_a_notify_topic_is_denied_at_every_qos(site, peer, qos):
    stranger = site.connect()
    peer.subscribe("#")

    stranger.send(stranger.encode_publish(notify_topic("a", "b"), b"x", qos=qos, retain=True))

    stranger.ping()
    assert peer.messages() == []


@pytest.mark.parametrize("topic", [notify_topic("a", "b"), SYS + "frame", SYS + "welcome", CONTROL + "hello", CONTROL + "frame"])
def test_wills_of_other_clients_to_internal_topics_are_not_published(site, peer, topic):
    client, listener = site.connect(), site.connect()
    connection = peer.track(client)
    for one, everything in ((listener, "#"), (peer, SYS + "#")):
        one.subscribe(everything)
        one.messages()
    will = (topic, connection.encode())
    if refuses_will(topic):
        with pytest.raises(Disconnected):  # the broker refuses this CONNECT
            site.connect("stranger", will=will)
        return

    site.connect("stranger", will=will).cut()
    site.broker.wait_until_disconnected("stranger")

    assert listener.messages() == peer.messages() == []
    client.ping()
    assert peer.hello() == {connection}


@pytest.mark.parametrize("topic", [INVOKE, f"$share/group/{INVOKE}"])
def test_other_clients_cannot_subscribe_to_the_invoke_topic(site, topic):
    assert site.connect().subscribe(topic) == NOT_AUTHORIZED


@pytest.mark.parametrize("topic", ["#", "+/#"])
def test_wildcard_subscriptions_receive_no_requests(site, peer, topic):
    stranger, client = site.connect(), site.connect()
    assert stranger.subscribe(topic) == 1

    for _ in range(3):
        client.request()
    client.publish("statestore/other/x/y/z", b"visible")

    assert len([peer.next_request() for _ in range(3)]) == 3
    assert INVOKE not in {message.topic for message in stranger.messages()}


def test_wildcard_subscriptions_receive_all_other_messages(site, peer):
    stranger, client = site.connect(), site.connect()
    stranger.subscribe("#")

    for topic in ("other", "statestore/v1/other", INVOKE + "/below", "$other/topic"):
        client.publish(topic)

    assert [message.topic for message in stranger.messages()] == ["other", "statestore/v1/other", INVOKE + "/below"]


def test_a_resumed_session_of_another_client_has_no_requests(site, peer):
    stranger = site.connect("stranger", session_expiry=1000)
    stranger.subscribe("#")
    stranger.disconnect(session_expiry=1000)

    site.connect().request()

    assert site.connect("stranger", clean_start=False, session_expiry=1000).messages() == []


# The store


def test_the_store_may_publish_to_notify_topics(site, peer):
    client = site.connect()
    client.subscribe(notify_topic(client.id, "key"))

    assert peer.publish(notify_topic(client.id, "key"), b"x") == SUCCESS

    assert client.message().payload == b"x"


def test_requests_wait_for_a_disconnected_store_that_has_a_session(site):
    peer = site.served(session_expiry=1000)
    peer.disconnect(session_expiry=1000)
    client = site.connect()
    client.request()

    peer = site.peer(clean_start=False, session_expiry=1000)
    assert peer.messages() == [], "they wait in the plugin"
    peer.hello()

    assert peer.next_request().client_id == client.id


@pytest.mark.parametrize("client_id", ["statestored", "statestored-" + "0a" * 16])
def test_without_the_option_the_store_has_a_client_id_with_a_prefix(site, client_id):
    assert site.peer(client_id).subscribe(INVOKE) == 1
    for other in "statestore", "Statestored", "a-statestored":
        assert site.peer(other).subscribe(INVOKE) == NOT_AUTHORIZED


def test_without_the_option_no_client_with_a_user_name_is_the_store(site_with, tmp_path):
    """So a broker whose administrator has forgotten the option serves no request, and no user can be the store."""
    site = site_with("allow_anonymous false", f"password_file {passwords(tmp_path, statestored='s', other='o')}")

    for user, password in ("statestored", "s"), ("other", "o"):
        peer = site.peer(username=user, password=password)
        assert peer.subscribe(INVOKE) == NOT_AUTHORIZED
        assert peer.publish(CONTROL + "hello", b"x") == NOT_AUTHORIZED


def test_with_authentication_the_user_name_identifies_the_store(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret', someone='else')}")
    peer = site.served("any id", username="store", password="secret")
    client = site.connect(username="someone", password="else")

    client.request()
    request = peer.next_request()

    assert request.username == "someone"
    assert request.client_id == client.id
    for stranger in (site.connect("stranger"), site.connect(username="someone", password="else")):
        assert stranger.subscribe(INVOKE) == NOT_AUTHORIZED
        assert stranger.publish(CONTROL + "hello", b"x") == NOT_AUTHORIZED


def test_a_client_that_a_reload_disconnects_is_reported(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret')}")
    peer = site.served(username="store", password="secret")
    anonymous = site.connect()
    number = peer.track(anonymous)

    site.broker.lines[2] = "allow_anonymous false"
    site.broker.reload()

    assert peer.next_disconnect() == number
    anonymous.wait_until_closed()


# Bridges: the broker checks no access rule for their messages


@pytest.fixture
def bridged(site_with):
    """A broker with the plugin, and a broker without it that forwards all its messages over a bridge."""
    remote = site_with(plugin=False)
    return site_with("connection remote", f"address 127.0.0.1:{remote.broker.port}", "topic # in 1",
                     f"topic # in 1 {SYS} far-sys/", f"topic # in 1 {CONTROL} far-control/",
                     "topic # in 1 $SYS/broker/log/ far-log/"), remote


def bridge_is_up(local, remote):
    listener, far = local.connect(), remote.connect()
    listener.subscribe("probe")

    def arrives():
        far.publish("probe")
        return listener.messages()

    wait_until(arrives, "the bridge is up")
    return far


def test_a_bridge_forwards_no_notifications_and_no_messages_of_the_plugin(bridged):
    local, remote = bridged
    far = bridge_is_up(local, remote)
    peer, listener = local.served(), local.connect()
    for topic in (NOTIFY_PREFIX + "#", SYS + "#", "$CONTROL/#", "$SYS/broker/log/#", "last"):
        listener.subscribe(topic)
    peer.subscribe(SYS + "#")
    peer.messages()
    listener.messages()

    connection = peer.track(local.connect())

    for topic in (notify_topic("a", "b"), "far-sys/welcome", "far-sys/frame", "far-control/hello", "far-control/frame", "far-log/N", "last"):
        far.publish(topic, connection.encode())

    assert listener.message().topic == "last"
    assert peer.messages() == []
    assert peer.hello() == {connection}


def test_requests_over_a_bridge_have_the_bridges_identity(bridged):
    local, remote = bridged
    far = bridge_is_up(local, remote)
    peer = local.served()

    far.publish(INVOKE, b"a request")

    assert "remote" in peer.next_request().client_id


def test_a_bridge_forwards_requests_to_the_other_broker(site_with):
    remote = site_with(plugin=False)
    local = site_with("connection remote", f"address 127.0.0.1:{remote.broker.port}", "topic # out 1")
    far = remote.connect()
    far.subscribe(INVOKE)

    local.connect().request(payload=b"a request")

    assert far.message(INVOKE).payload == b"a request"


@pytest.fixture
def edge(site, tmp_path):
    """A broker that forwards requests and notifications to the site's broker over a bridge with a persistent session."""
    broker = Broker(tmp_path, limits=f"""\
connection cloud
address 127.0.0.1:{site.broker.port}
bridge_protocol_version mqttv50
cleansession false
restart_timeout 1
topic statestore/# out 1
topic clients/# out 1
""")
    broker.start()
    yield broker
    assert broker.stop() == 0


def test_a_forbidden_response_topic_does_not_block_a_bridge(site, edge):
    """A bridge repeats a message that was not acknowledged each time that it reconnects."""
    peer = site.served()
    hostile, client = Connection(edge.port), Connection(edge.port)
    site.connections += [hostile, client]
    for _ in range(3):
        hostile.request(ResponseTopic="$SYS/forbidden")

    client.request(payload=b"behind them")

    assert peer.next_request().payload == b"behind them"
    site.broker.wait_for_log("forbidden response topic")


def test_a_bridge_of_another_broker_forwards_no_notifications(site, edge):
    peer, listener, far = site.served(), site.connect(), Connection(edge.port)
    site.connections.append(far)
    listener.subscribe(NOTIFY_PREFIX + "#")

    far.publish(notify_topic("a", "b"), b"forged")

    far.request(payload=b"behind it")
    assert peer.next_request().payload == b"behind it"
    assert listener.messages() == []


# Settings for each listener


@pytest.fixture
def site_per_listener(site_with):
    """Starts a broker whose listener loads the plugin, with these lines behind it in the configuration."""

    def start(*lines):
        site = site_with(plugin=False)
        site.broker.stop()
        site.broker.first_lines = ["per_listener_settings true"]
        site.broker.lines = ["listener {port} 127.0.0.1", "allow_anonymous true", f"plugin {PLUGIN}", *lines]
        site.broker.start_again()
        return site

    return start


@pytest.mark.parametrize("rules", [None, "topic readwrite open/#\n"], ids=["no rules", "rules"])
def test_only_rules_deny_notifications_to_a_client_of_a_listener_without_the_plugin(site_per_listener, tmp_path, rules):
    port, path = free_port(), tmp_path / "acl"
    path.write_text(rules or "")
    site = site_per_listener(f"listener {port} 127.0.0.1", "allow_anonymous true", *([f"acl_file {path}"] if rules else []))
    client, stranger = site.connect(), Connection(port)
    site.connections.append(stranger)
    topic = notify_topic(client.id, "key")
    client.subscribe(topic)

    reason = stranger.publish(topic, b"forged")

    assert reason == (NOT_AUTHORIZED if rules else SUCCESS)
    assert [message.payload for message in client.messages()] == ([] if rules else [b"forged"])


def test_the_plugin_does_not_see_what_a_bridge_receives_with_settings_for_each_listener(site_with, site_per_listener):
    remote = site_with(plugin=False)
    local = site_per_listener("connection remote", f"address 127.0.0.1:{remote.broker.port}", "topic # in 1")
    far, client = bridge_is_up(local, remote), local.connect()
    topic = notify_topic(client.id, "key")
    client.subscribe(topic)

    far.publish(topic, b"forged")

    assert client.message(topic).payload == b"forged"


# Starting


def test_the_plugin_logs_its_settings_at_load(site_with):
    site = site_with("plugin_opt_statestored_username store")

    lines = [line for line in site.broker.log().splitlines() if "statestore: " in line]
    assert len(lines) == 1
    assert re.search(r"plugin loaded: version=\d\S* store_username=store$", lines[0])


@pytest.mark.parametrize("option", ["statestored_usernam store", "undecided maybe", "something else", "statestored_wait soon",
                                    "statestored_wait -1", "statestored_queue_bytes 64M", "statestored_reply_prefix $x/",
                                    "statestored_reply_prefix a/#"])
def test_an_unknown_option_prevents_the_start(tmp_path, option):
    broker = PluginBroker(tmp_path, f"plugin_opt_{option}")

    assert not broker.starts()
    assert f"plugin_opt_{option.split()[0]}" in broker.log()
