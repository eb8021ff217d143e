# SPDX-License-Identifier: Apache-2.0
"""A broker without the plugin. The store ends a registration when a notification had no subscriber (reason code 0x10 of its
PUBACK), or when the presence topic reports the disconnect of the client (PROTOCOL.md "Broker abilities")."""

import pytest

from support import disconnects
from support.client import base16, notify_topic
from support.control import Control
from support.process import wait_until
from support.wire_client import NOT_REGISTERED, WireClient, was_set

OK = b"+OK\r\n"
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


def publish_disconnect(site, client_id):
    broker = site.connect(kind=WireClient)
    broker.publish(PRESENCE.format(client=client_id), b"disconnected")


def test_the_store_logs_that_the_broker_has_no_plugin(make_site):
    store = make_site(plugin=False).start_store()

    store.wait_for_log("ready: .*the broker has no plugin")


def test_a_store_that_requires_the_plugin_serves_no_broker_without_it(make_site):
    site = make_site(plugin=False)
    store = site.launch_store("--require-plugin", "on")

    store.wait_for_log("the broker has no plugin of this version")
    client = site.connect(kind=WireClient)
    client.begin("GET", "key")
    client.acknowledgement()
    site.broker.stop()
    store.wait_for_log("no connection to the broker")

    assert "ready: " not in store.log()
    site.broker.start_again()


def change_twice(client, key):
    """When the second reply arrives, the store has processed the acknowledgement of the first change's notification."""
    client.ask("SET", key, "value")
    client.ask("GET", key)


def returned_without_subscription(site, holder):
    """Reconnect with the same client id and a new session, which has no subscription to notifications."""
    disconnects.by_cut(site, holder)
    return site.connect(holder.id, WireClient)


def test_a_client_without_subscription_locks_updates_and_unlocks(shared, key):
    """The requests of a published client that updates a value under a lock."""
    holder = shared.connect(kind=WireClient)

    requests = [("KEYNOTIFY", key), ("SET", key, holder.id, "NX", "PX", "600000"), ("SET", f"{key}-value", "new"),
                ("DEL", key), ("KEYNOTIFY", key, "STOP")]

    assert [holder.ask(*words) for words in requests] == [OK, OK, OK, b":1\r\n", OK]


def test_notifications_without_subscribers_end_no_registration_of_a_client_that_never_subscribed(shared, key):
    holder, writer = shared.connect(kind=WireClient), shared.connect(kind=WireClient)
    holder.register(key)

    for _ in range(3):
        change_twice(writer, key)

    assert holder.stop(key) == OK


def test_a_notification_without_subscribers_ends_the_registration_of_a_client_that_had_subscribed(shared, key):
    holder, other = subscribed_holder(shared, key), subscribed_holder(shared, key)
    writer = shared.connect(kind=WireClient)
    change_twice(writer, key)
    disconnects.by_cut(shared, holder)

    change_twice(writer, key)

    again = shared.connect(holder.id, WireClient)
    again.subscribe_to_notifications()
    assert again.stop(key) == NOT_REGISTERED
    assert other.changes() == [was_set("value")] * 2
    assert again.changes() == []


def test_a_client_that_never_subscribed_loses_its_registration_when_it_is_idle(make_site):
    site = make_site(plugin=False)
    site.start_store("--control", "--max-registrations", 1, "--registration-timeout", "2h")
    control, holder, writer = site.connect(kind=Control), site.connect(kind=WireClient), site.connect(kind=WireClient)
    holder.register("key")
    control.do("clock", "advance", "3h")
    assert holder.stop("key") == OK, "no notification was sent, so no acknowledgement ended the registration"

    holder.register("key")
    change_twice(writer, "key")
    control.do("clock", "advance", "119m")
    assert holder.ask("GET", "key") != b"$-1\r\n", "and the client is no longer idle"
    control.do("clock", "advance", "119m")
    assert writer.ask("KEYNOTIFY", "other").startswith(b"-ERR"), "the client's registration counts against the quota"
    control.do("clock", "advance", "1m")

    wait_until(lambda: writer.ask("KEYNOTIFY", "other") == OK, "the registration has ended")
    assert holder.stop("key") == NOT_REGISTERED


def test_a_notification_without_subscribers_keeps_a_newer_registration(shared, key):
    """The notification without a subscriber belonged to an earlier registration of a client that had subscribed."""
    subscribed = subscribed_holder(shared, key, f"{key}-other")
    subscribed.ask("SET", key, "first")
    subscribed.ask("GET", key)
    holder = returned_without_subscription(shared, subscribed)
    with shared.broker.paused():
        change = holder.begin("SET", key, "value")
        stop = holder.begin("KEYNOTIFY", key, "STOP")
        again = holder.begin("KEYNOTIFY", key)
    holder.reply_to(stop)  # NOT_REGISTERED if the broker reports the notification before it passes on this request
    for correlation in (change, again):
        assert holder.reply_to(correlation).payload == b"+OK\r\n"
    holder.subscribe_to_notifications()
    holder.ask("GET", key)

    holder.ask("SET", key, "another")

    assert was_set("another") in holder.changes()


def test_identity_properties_are_ignored_without_the_plugin(shared, key):
    client, victim = shared.connect(kind=WireClient), subscribed_holder(shared, key)
    client.subscribe_to_notifications()
    forged = [("statestore-client-id", victim.id), ("statestore-username", "root")]

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

    publish_disconnect(with_presence, gone.id)

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

    holder.publish(topic.format(client=holder.id, hex=base16(holder.id)), b"disconnected")
    holder.ask("SET", "key", "value")

    assert holder.changes() == [was_set("value")]


def test_a_presence_topic_of_emqx_is_understood(make_site):
    """EMQX has its node name as one level, below $SYS. The test uses $other, where clients may publish."""
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

    publish_disconnect(site, holder.id)

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
