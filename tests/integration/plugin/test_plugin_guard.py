# SPDX-License-Identifier: Apache-2.0
"""Only the store and the plugin can use the store's topics."""

import pytest

from support.broker import passwords
from support.client import INVOKE, NOTIFY_PREFIX, SERVICE, notify_topic
from support.connection import NOT_AUTHORIZED, SUCCESS
from support.plugin import CONTROL, SYS, PluginBroker, peer, site, site_with  # noqa: F401 fixtures
from support.process import wait_until

# Strangers


@pytest.mark.parametrize("topic", [notify_topic("a", "b"), f"clients/{SERVICE}", f"clients/{SERVICE}/x",
                                   f"clients/{SERVICE}x", CONTROL + "hello", CONTROL + "track", CONTROL + "untrack",
                                   CONTROL + "deliver", CONTROL + "kick", CONTROL + "other", "$CONTROL/statestore/v2/x", SYS + "plugin",
                                   SYS + "welcome"])
def test_a_stranger_cannot_publish_to(site, peer, topic):
    stranger = site.connect()

    assert stranger.publish(topic, b"1") == NOT_AUTHORIZED

    assert peer.messages() == []


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_not_at_any_qos_nor_retained(site, peer, qos):
    stranger = site.connect()
    peer.subscribe("#")

    stranger.send(stranger.encode_publish(notify_topic("a", "b"), b"x", qos=qos, retain=True))

    stranger.ping()
    assert peer.messages() == []


@pytest.mark.parametrize("topic", [notify_topic("a", "b"), SYS + "disconnected", SYS + "welcome", CONTROL + "untrack",
                                   CONTROL + "hello", CONTROL + "kick"])
def test_a_stranger_s_will_is_not_published_there_either(site, peer, topic):
    client, listener = site.connect(), site.connect()
    connection = peer.number_of(client)
    peer.track(connection)
    for one, everything in ((listener, "#"), (peer, SYS + "#")):
        one.subscribe(everything)
        one.messages()
    stranger = site.connect("stranger", will=(topic, connection.encode()))

    stranger.cut()
    site.broker.wait_for_log(r"client stranger\b.*(closed|disconnect)")

    assert listener.messages() == peer.messages() == []
    client.ping()
    assert peer.hello() == {connection}


@pytest.mark.parametrize("topic", [INVOKE, f"$share/group/{INVOKE}"])
def test_a_stranger_cannot_subscribe_to_the_invoke_topic(site, topic):
    assert site.connect().subscribe(topic) == NOT_AUTHORIZED


@pytest.mark.parametrize("topic", ["#", "statestore/#", f"{SERVICE}/#", f"{SERVICE}/command/+", "+/+/+/+/+",
                                   "$share/group/statestore/#", "$share/group/#"])
def test_a_stranger_s_wildcards_show_no_requests(site, peer, topic):
    stranger, client = site.connect(), site.connect()
    assert stranger.subscribe(topic) == 1

    for _ in range(3):
        client.request()
    client.publish("statestore/other/x/y/z", b"this it sees")

    assert [message.topic for message in peer.messages()] == [INVOKE] * 3
    assert INVOKE not in {message.topic for message in stranger.messages()}


def test_wildcards_show_everything_else(site, peer):
    stranger, client = site.connect(), site.connect()
    stranger.subscribe("#")

    for topic in ("other", "statestore/v1/other", INVOKE + "/below", "$other/topic"):
        client.publish(topic)

    assert [message.topic for message in stranger.messages()] == ["other", "statestore/v1/other", INVOKE + "/below"]


def test_a_stranger_s_session_gets_no_requests_when_it_comes_back(site, peer):
    stranger = site.connect("stranger", session_expiry=1000)
    stranger.subscribe("#")
    stranger.disconnect(session_expiry=1000)

    site.connect().request()

    assert site.connect("stranger", clean_start=False, session_expiry=1000).messages() == []


# Statestored


def test_statestored_may_publish_notifications_the_plain_way(site, peer):
    client = site.connect()
    client.subscribe(notify_topic(client.id, "key"))

    assert peer.publish(notify_topic(client.id, "key"), b"x") == SUCCESS

    assert client.message().payload == b"x"


def test_requests_wait_in_the_session_of_a_disconnected_store(site):
    peer = site.served(session_expiry=1000)
    peer.disconnect(session_expiry=1000)
    client = site.connect()
    client.request()

    peer = site.peer(clean_start=False, session_expiry=1000)

    assert peer.next_request().prop("statestore-client-id") == client.id


def test_statestored_s_client_id_can_be_another_one(site_with):
    site = site_with("plugin_opt_statestored_client_id the store")

    assert site.peer("the store").subscribe(INVOKE) == 1
    assert site.peer("statestored").subscribe(INVOKE) == NOT_AUTHORIZED


def test_where_the_broker_authenticates_the_username_decides(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret', someone='else')}")
    peer = site.served("any id", username="store", password="secret")
    client = site.connect(username="someone", password="else")

    client.request()
    request = peer.next_request()

    assert request.prop("statestore-username") == "someone"
    assert request.prop("statestore-client-id") == client.id
    for stranger in (site.connect("stranger"), site.connect(username="someone", password="else")):
        assert stranger.subscribe(INVOKE) == NOT_AUTHORIZED
        assert stranger.publish(CONTROL + "hello", b"x") == NOT_AUTHORIZED


def test_where_both_are_given_both_decide(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "plugin_opt_statestored_client_id the-store",
                     "allow_anonymous true", f"password_file {passwords(tmp_path, store='s', other='o')}")

    assert site.peer("the-store", username="store", password="s").subscribe(INVOKE) == 1
    assert site.peer("other", username="store", password="s").subscribe(INVOKE) == NOT_AUTHORIZED
    assert site.peer("another", username="other", password="o").subscribe(INVOKE) == NOT_AUTHORIZED
    for stranger in ({"username": "other", "password": "o"}, {}):
        with pytest.raises(AssertionError, match="refused: 0x87"):
            site.peer("the-store", **stranger)


def test_a_client_that_a_reload_disconnects_is_reported(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret')}")
    peer = site.served(username="store", password="secret")
    anonymous = site.connect()
    number = peer.number_of(anonymous)
    peer.track(number)

    site.broker.lines[2] = "allow_anonymous false"
    site.broker.reload()

    assert peer.next_told("disconnected") == number
    anonymous.wait_until_closed()


# Bridges, whose messages no access rule is asked about


@pytest.fixture
def bridged(site_with):
    """A broker with the plugin, and a broker without it that forwards all its messages over a bridge."""
    remote = site_with(plugin=False)
    return site_with("connection remote", f"address 127.0.0.1:{remote.broker.port}", "topic # in 1",
                     f"topic # in 1 {SYS} far-sys/", f"topic # in 1 {CONTROL} far-control/"), remote


def bridge_is_up(local, remote):
    listener, far = local.connect(), remote.connect()
    listener.subscribe("probe")

    def arrives():
        far.publish("probe")
        return listener.messages()

    wait_until(arrives, "the bridge is up")
    return far


def test_a_bridge_brings_no_notifications_and_nothing_that_the_plugin_says(bridged):
    local, remote = bridged
    far = bridge_is_up(local, remote)
    peer, listener = local.served(), local.connect()
    for topic in (NOTIFY_PREFIX + "#", SYS + "#", "$CONTROL/#", "last"):
        listener.subscribe(topic)
    peer.subscribe(SYS + "#")
    peer.messages()
    listener.messages()

    connection = peer.number_of(local.connect())
    peer.track(connection)

    for topic in (notify_topic("a", "b"), "far-sys/welcome", "far-control/hello", "far-control/untrack", "last"):
        far.publish(topic, connection.encode())

    assert listener.message().topic == "last"
    assert peer.messages() == []
    assert peer.hello() == {connection}


def test_what_a_bridge_asks_for_bears_the_bridge_s_name(bridged):
    local, remote = bridged
    far = bridge_is_up(local, remote)
    peer = local.served()

    far.publish(INVOKE, b"a request")

    assert "remote" in peer.next_request().prop("statestore-client-id")


# Starting


def test_the_plugin_logs_its_settings_at_load(site_with):
    site = site_with("plugin_opt_statestored_username store")

    lines = [line for line in site.broker.log().splitlines() if "statestore: " in line]
    assert len(lines) == 1
    assert SERVICE in lines[0] and "username store" in lines[0]


@pytest.mark.parametrize("option", ["statestored_usernam store", "undecided maybe", "something else"])
def test_a_misspelt_option_stops_the_start(tmp_path, option):
    broker = PluginBroker(tmp_path, f"plugin_opt_{option}")

    assert not broker.starts()
    assert f"plugin_opt_{option.split()[0]}" in broker.log()
