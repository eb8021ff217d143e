# SPDX-License-Identifier: Apache-2.0
"""Beside a broker without the plugin: what acknowledgements hint at and what the broker publishes (PROTOCOL.md "Broker
abilities")."""

import pytest

from support import leaving
from support.client import base16, notify_topic
from support.wire_client import WireClient, was_set

NOT_REGISTERED = b":0\r\n"
PRESENCE = "presence/{client}/disconnected"


@pytest.fixture
def with_presence(make_site):
    site = make_site(plugin=False)
    site.start_store("--presence-topic", PRESENCE)
    return site


def subscribed_holder(site, *keys, **more):
    holder = site.connect(None, WireClient, **more)
    holder.subscribe_to_notifications()
    holder.register(*keys)
    return holder


def tell_that_it_left(site, client_id):
    broker = site.connect(kind=WireClient)
    broker.publish(PRESENCE.format(client=client_id), b"gone")


def test_the_store_logs_the_abilities_of_a_plain_broker(make_site):
    store = make_site(plugin=False).start_store()

    store.wait_for_log("ready: .*identity claimed, delivery by subscription, presence guessed")


def change_twice(client, key):
    """The second answer comes behind the acknowledgement of the first change's notification."""
    client.ask("SET", key, "value")
    client.ask("GET", key)


def test_a_notification_without_subscribers_ends_its_registration(shared, key):
    holder = shared.connect(kind=WireClient)
    holder.register(key)
    writer = shared.connect(kind=WireClient)

    change_twice(writer, key)

    assert holder.stop(key) == NOT_REGISTERED


def test_a_notification_without_subscribers_ends_only_the_registration_of_that_client(shared, key):
    holder, other = subscribed_holder(shared, key), subscribed_holder(shared, key)
    writer = shared.connect(kind=WireClient)
    leaving.by_cut(shared, holder)

    change_twice(writer, key)

    again = shared.connect(holder.id, WireClient)
    again.subscribe_to_notifications()
    assert again.stop(key) == NOT_REGISTERED
    assert other.changes() == [was_set("value")]
    assert again.changes() == []


def test_a_notification_without_subscribers_keeps_a_newer_registration(shared, key):
    """The notification without a subscriber belonged to an earlier registration."""
    holder = shared.connect(kind=WireClient)
    holder.register(key)
    with shared.broker.paused():
        change = holder.begin("SET", key, "value")
        stop = holder.begin("KEYNOTIFY", key, "STOP")
        anew = holder.begin("KEYNOTIFY", key)
    for correlation in (change, stop, anew):
        assert holder.answer_to(correlation).payload == b"+OK\r\n"
    holder.subscribe_to_notifications()
    holder.ask("GET", key)

    holder.ask("SET", key, "another")

    assert was_set("another") in holder.changes()


def test_identity_properties_are_ignored_without_the_plugin(shared, key):
    client, victim = shared.connect(kind=WireClient), subscribed_holder(shared, key)
    client.subscribe_to_notifications()
    forged = [("statestore-mac", "1:1:" + "0" * 32), ("statestore-client-id", victim.id)]

    assert client.ask("KEYNOTIFY", key, "STOP", user=forged) == NOT_REGISTERED
    assert client.ask("KEYNOTIFY", key, user=forged) == b"+OK\r\n"
    client.ask("SET", key, "value")

    assert client.changes() == [was_set("value")]
    assert victim.changes() == [was_set("value")]


def test_a_forbidden_response_topic_does_not_disconnect_without_the_plugin(shared, key):
    client = shared.connect(kind=WireClient)

    client.begin("SET", key, "value", response_topic=notify_topic(client.id, key))

    assert client.ask("GET", key) == b"$-1\r\n"


def test_a_message_on_the_presence_topic_ends_registrations(with_presence):
    gone, other = (subscribed_holder(with_presence, "one", "two") for _ in range(2))
    writer = with_presence.connect(kind=WireClient)

    tell_that_it_left(with_presence, gone.id)

    writer.ask("SET", "one", "value")
    assert gone.stop("one") == NOT_REGISTERED
    assert gone.stop("two") == NOT_REGISTERED
    assert gone.changes() == []
    assert other.changes() == [was_set("value")]


@pytest.mark.parametrize("topic", ["presence/{client}/connected", "presence/x/{client}/disconnected",
                                   "presence/{client}/disconnected/x", "presence/{hex}/disconnected",
                                   "presence//disconnected"])
def test_a_topic_that_resembles_the_presence_topic_ends_nothing(with_presence, topic):
    holder = subscribed_holder(with_presence, "key")

    holder.publish(topic.format(client=holder.id, hex=base16(holder.id)), b"gone")
    holder.ask("SET", "key", "value")

    assert holder.changes() == [was_set("value")]


def test_a_presence_topic_of_emqx_is_understood(make_site):
    """Its node's name is one level, and its own topics begin with $SYS: here with $other, which clients may write."""
    site = make_site(plugin=False)
    site.start_store("--presence-topic", "$other/brokers/+/clients/{client}/disconnected")
    holder = subscribed_holder(site, "key")

    holder.publish(f"$other/brokers/emqx@127.0.0.1/clients/{holder.id}/disconnected", b"{}")

    assert holder.stop("key") == NOT_REGISTERED


def test_the_presence_topic_is_ignored_with_the_plugin(make_site):
    site = make_site()
    site.start_store("--presence-topic", PRESENCE)
    holder = site.connect(kind=WireClient)
    holder.register("key")

    tell_that_it_left(site, holder.id)

    assert holder.stop("key") == b"+OK\r\n"


def test_a_store_that_starts_without_registrations_disconnects_no_client_without_the_plugin(make_site):
    site = make_site(plugin=False)
    store = site.start_store()
    holder = subscribed_holder(site, "key")

    store.kill()
    store.start()

    assert holder.stop("key") == NOT_REGISTERED


def test_registrations_survive_a_connection_loss_if_the_broker_kept_the_session(make_site, proxy_of):
    site = make_site(plugin=False)
    proxy = proxy_of(site)
    store = site.start_store("--port", proxy.port)
    holder = subscribed_holder(site, "key")

    seen = len(store.log())
    proxy.cut()
    store.wait_for_log("no connection", after=seen)
    proxy.mend()
    store.wait_for_log("ready: ", after=seen)
    holder.ask("SET", "key", "value")

    assert holder.changes() == [was_set("value")]
