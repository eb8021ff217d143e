# SPDX-License-Identifier: Apache-2.0
"""With the plugin the store uses the identity that the broker verified, and ignores claims in the request."""

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import disconnects, resp
from support.broker import refuses_response_topic
from support.client import INVOKE, NOTIFY_PREFIX, SERVICE, notify_topic
from support.connection import KICKED, PROTOCOL_ERROR
from support.wire_client import NOT_REGISTERED, WireClient, was_set

OK = b"+OK\r\n"


@pytest.fixture
def client(shared_plugin_site):
    return shared_plugin_site.connect(kind=WireClient)


@pytest.fixture
def victim(shared_plugin_site, key):
    victim = shared_plugin_site.connect(kind=WireClient)
    victim.register(key)
    return victim


def forged_identity(victim):
    return {"user": [("statestore-client-id", victim.id), ("statestore-username", "root")]}


def source_id_of_the_victim(victim):
    return {"source": victim.id}


def source_id_repeated_many_times(victim):
    return {"user": [("__srcId", victim.id)] * 100}


def all_forgeries(victim):
    return {**forged_identity(victim), **source_id_of_the_victim(victim)}


@pytest.fixture(params=[forged_identity, source_id_of_the_victim, source_id_repeated_many_times, all_forgeries],
                ids=lambda pretend: pretend.__name__)
def pretend(request):
    return request.param


def test_a_forged_identity_cannot_end_another_clients_registration(client, victim, key, pretend):
    assert client.ask("KEYNOTIFY", key, "STOP", **pretend(victim)) == NOT_REGISTERED

    client.ask("SET", key, "value")
    assert victim.changes() == [was_set("value")]


def test_a_forged_identity_cannot_register_another_client(client, victim, key, pretend):
    assert client.ask("KEYNOTIFY", key + "-2", **pretend(victim)) == OK

    client.ask("SET", key + "-2", "value")

    assert victim.changes() == []
    assert client.changes() == [was_set("value")]
    assert client.stop(key + "-2") == OK


def test_a_foreign_response_topic_does_not_change_the_identity(client, victim, key):
    reply_topic = victim.response_topic

    client.begin("KEYNOTIFY", key, "STOP", source=victim.id, response_topic=reply_topic)
    client.ask("SET", key, "value")

    assert victim.changes() == [was_set("value")]


def test_notifications_have_the_notify_topic_of_the_verified_client(client, victim, key):
    client.register(key)

    client.ask("SET", key, "value", source=victim.id)

    assert client.notification().topic == notify_topic(client.id, key)
    assert victim.notification().topic == notify_topic(victim.id, key)


@pytest.mark.parametrize("words", [["KEYNOTIFY", "{key}", "STOP"], ["KEYNOTIFY", "{key}-2"], ["SET", "{key}", "x"]],
                         ids=" ".join)
def test_a_will_that_the_plugin_does_not_see_is_not_executed(shared_plugin_site, client, victim, key, words):
    """The broker publishes a will without calling the plugin."""
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.UserProperty = [("__ts", str(client.clock.now())), ("__srcId", victim.id),
                               *forged_identity(victim)["user"]]
    properties.ResponseTopic, properties.CorrelationData = victim.response_topic, b"of the will"
    will = INVOKE, resp.request(*(word.format(key=key) for word in words))

    ghost = shared_plugin_site.connect(None, WireClient, will=will, will_properties=properties.pack())
    disconnects.by_cut(shared_plugin_site, ghost)

    client.ask("SET", key, "value")
    client.ask("SET", key + "-2", "value")
    assert victim.changes() == [was_set("value")]
    assert b"of the will" not in {message.correlation for message in victim.messages()}


# Forbidden response topics

FORBIDDEN = [INVOKE, f"clients/{SERVICE}", notify_topic("victim", "key"), f"{NOTIFY_PREFIX}x", f"clients/{SERVICE}x",
             "clients/+/replies", "#", "$SYS/x", "$CONTROL/statestore/v1/hello"]


@pytest.mark.parametrize("topic", FORBIDDEN)
def test_a_forbidden_response_topic_disconnects_only_its_sender(shared_plugin_site, client, key, topic):
    offender = shared_plugin_site.connect(kind=WireClient)
    offender.register(key)
    client.register(key)
    before = [client.begin("GET", key) for _ in range(20)]

    offender.begin("SET", key, "value", response_topic=topic)
    after = [client.begin("GET", key) for _ in range(20)]

    assert offender.wait_until_closed() == (PROTOCOL_ERROR if refuses_response_topic(topic) else KICKED)
    assert {client.reply_to(request).payload for request in before + after} == {b"$-1\r\n"}
    assert client.changes() == []
    again = shared_plugin_site.connect(offender.id, WireClient)
    assert again.stop(key) == NOT_REGISTERED


def test_requests_before_a_forbidden_response_topic_get_replies_after_the_reconnect(shared_plugin_site, key):
    offender = shared_plugin_site.connect(None, WireClient, session_expiry=1000)
    with shared_plugin_site.store.paused():
        request = offender.begin("SET", key, "value")
        offender.begin("GET", key, response_topic=INVOKE)
        assert offender.wait_until_closed() == KICKED
        again = shared_plugin_site.connect(offender.id, WireClient, clean_start=False, session_expiry=1000)

    assert again.reply_to(request).payload == OK


def test_a_request_without_a_response_topic_is_dropped_without_disconnect(client, key):
    client.publish(INVOKE, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", CorrelationData=b"1")

    assert client.ask("GET", key) == b"$-1\r\n"


# Reading requests


@pytest.mark.parametrize("topic", ["#", "+/#"])
def test_no_other_client_receives_requests_or_notifications(shared_plugin_site, client, key, topic):
    listener = shared_plugin_site.connect(kind=WireClient)
    assert listener.subscribe(topic) == 1

    client.register(key)
    for n in range(10):
        client.ask("SET", key, n)
    assert len(client.changes()) == 10
    client.publish(f"{SERVICE}/other/invoke", b"visible")

    seen = {message.topic for message in listener.messages()}
    assert f"{SERVICE}/other/invoke" in seen
    assert seen <= {f"{SERVICE}/other/invoke", client.response_topic}


def test_no_other_client_may_subscribe_to_requests(client):
    assert client.subscribe(INVOKE) == 0x87


@pytest.mark.parametrize("topic", [INVOKE, "#", "+/+/+/+/+", "statestore/#", "clients/#", "clients/+/replies", "clients",
                                   "$SYS/#", "$share/group/#"])
def test_no_client_may_share_a_subscription_to_topics_of_the_store(client, topic):
    assert client.subscribe(f"$share/group/{topic}") == 0x87


@pytest.mark.parametrize("topic", ["factory/press", "factory/#", "clients-of-another-program/1", "/clients"])
def test_clients_share_subscriptions_to_other_topics(client, topic):
    assert client.subscribe(f"$share/group/{topic}") == 1
    client.publish(topic.replace("#", "1"), b"shared")
    assert [message.payload for message in client.messages()] == [b"shared"]
