# SPDX-License-Identifier: Apache-2.0
"""A notification reaches its client once, subscribed or not, while the client is connected."""

import queue

import paho.mqtt.client as paho
import pytest

from support import companion
from support.client import INVOKE, NOTIFY_PREFIX, notify_topic
from support.connection import Disconnected
from support.plugin import CONTROL, peer, site, site_with  # noqa: F401 fixtures
from support.process import PATIENCE

@pytest.fixture
def client(site, peer):
    """A client whose connection is tracked."""
    client = site.connect(session_expiry=1000)
    client.number = peer.track(client)
    return client


def test_a_client_that_never_subscribed_gets_a_notification_once(peer, client):
    peer.notify("key", client.number, payload=b"payload")

    notification, = client.messages()
    assert notification.topic == notify_topic(client.id, "key")
    assert (notification.payload, notification.qos, notification.retain) == (b"payload", 1, False)


@pytest.mark.parametrize("subscriptions", [["{topic}"], [NOTIFY_PREFIX + "#"], ["#"], ["{topic}", "clients/#", "#"]])
def test_a_client_that_subscribed_gets_a_notification_once(peer, client, subscriptions):
    for subscription in subscriptions:
        client.subscribe(subscription.format(topic=notify_topic(client.id, "key")))

    peer.notify("key", client.number)

    assert len(client.messages()) == 1


def test_other_subscribers_get_no_notification(site, peer, client):
    other = site.connect()
    for subscription in ("#", NOTIFY_PREFIX + "#", notify_topic(client.id, "key")):
        other.subscribe(subscription)

    peer.notify("key", client.number)

    assert len(client.messages()) == 1
    assert other.messages() == []


def test_payload_and_user_properties_are_published_unchanged(peer, client):
    user = [("__ts", "1:2:x"), ("", ""), ("__ts", "again"), ("ключ", "значение")]

    peer.notify("key", client.number, payload=b"\0\xff" * 50000, user=user)

    notification = client.message()
    assert notification.payload == b"\0\xff" * 50000
    assert notification.user == user
    assert (notification.content_type, notification.format_indicator) == ("application/octet-stream", 0)
    assert (notification.response_topic, notification.correlation) == (None, None)


def test_an_empty_payload_and_no_properties_are_published(peer, client):
    peer.notify("key", client.number, payload=b"")

    notification = client.message()
    assert (notification.payload, notification.user) == (b"", [])


def test_another_connection_of_the_same_client_gets_nothing(site, peer, client):
    again = site.connect(client.id)
    peer.notify("key", client.number)
    peer.number_of(again)
    peer.notify("key", client.number)

    assert again.messages() == []


def test_all_recipients_of_a_frame_get_the_notification_once(site, peer, client):
    """More than the broker handles in one turn of its loop."""
    clients = [client, *(site.connect() for _ in range(299))]
    for each in clients[1:]:
        each.number = peer.number_of(each)

    peer.notify("key", *(each.number for each in clients), payload=b"payload", user=[("name", "value")])

    for each in clients:
        notification, = each.messages()
        assert notification.topic == notify_topic(each.id, "key")
        assert (notification.payload, notification.user) == (b"payload", [("name", "value")])


def test_recipients_that_are_not_connected_are_skipped(site, peer, client):
    disconnected, never_given = site.connect(), int(client.number) + 1000
    disconnected.number = peer.number_of(disconnected)
    disconnected.disconnect()

    peer.notify("key", 0, disconnected.number, client.number, never_given, 2**64 - 1)

    assert len(client.messages()) == 1


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.parametrize("leave", ["disconnect", "cut"])
def test_no_notification_is_queued_for_a_disconnected_client(site, peer, client, leave, subscribed):
    if subscribed:
        client.subscribe(NOTIFY_PREFIX + "#")
    client.disconnect(session_expiry=1000) if leave == "disconnect" else client.cut()
    assert peer.next_disconnect() == client.number

    peer.notify("key", client.number)
    peer.ping()

    again = site.connect(client.id, clean_start=False, session_expiry=1000)
    assert again.session_present
    assert again.messages() == []


def test_notifications_arrive_in_the_order_in_which_they_were_sent(peer, client):
    for n in range(100):
        peer.send(peer.encode_notification("key", [client.number], b"%d" % n))
    peer.ping()

    assert [message.payload for message in client.messages()] == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize("client_id", ["a", "ключ", "with/slash", "x" * 30000],
                         ids=["short", "not ASCII", "slash", "long"])
def test_any_client_id_is_found(site, peer, client_id):
    client = site.connect(client_id)
    number = peer.number_of(client)

    peer.notify("key", number)

    assert len(client.messages()) == 1


def test_a_client_of_an_older_protocol_version_is_served_as_well(site, peer, client):
    """The broker omits the properties, which MQTT 3.1.1 does not have."""
    arrived, connected = queue.SimpleQueue(), queue.SimpleQueue()
    old = paho.Client("old", protocol=paho.MQTTv311)
    old.on_connect = lambda *_: connected.put(True)
    old.on_message = lambda _client, _data, message: arrived.put(message)
    old.connect("127.0.0.1", site.broker.port)
    old.loop_start()
    try:
        connected.get(timeout=PATIENCE)
        old.publish(INVOKE, b"a request", 1)
        number = peer.next_request().connection
        peer.notify("key", number, payload=b"payload")
        assert arrived.get(timeout=PATIENCE).payload == b"payload"
    finally:
        old.disconnect()
        old.loop_stop()


RECORD = companion.notification(1, b"key", [1], b"payload")


@pytest.mark.parametrize("data", [b"", bytes([companion.VERSION - 1]) + RECORD, companion.frame(RECORD[:-1]),
                                  companion.frame(b"\x09" + RECORD[1:]), companion.frame(b"\2\2" + RECORD[2:]),
                                  companion.frame(companion.notification(0, b"key", [1], b"")),
                                  companion.frame(companion.notification(1, b"key", [1], b"", index=2**32 - 1)),
                                  companion.frame(RECORD, b"\3\0" + bytes(8))],
                         ids=["empty", "another version", "a cut", "an unknown kind", "an unknown flag", "sequence 0", "a large index",
                              "a malformed record behind a good one"])
def test_a_malformed_frame_is_ignored_as_a_whole(peer, client, data):
    peer.send(peer.encode_publish(CONTROL + "frame", data, qos=0))

    assert client.messages() == []
    assert peer.hello() == {client.number}
    assert peer.welcome.published == 0
    peer.notify("key", client.number)
    assert len(client.messages()) == 1


def test_a_topic_that_is_too_long_for_mqtt_is_skipped(peer, client):
    peer.notify("k" * 40000, client.number)
    peer.notify("key", client.number)

    assert [message.topic for message in client.messages()] == [notify_topic(client.id, "key")]


def test_a_change_that_is_repeated_after_hello_is_not_published_again(site, peer, client):
    changes = [{"sequence": n, "payload": b"%d" % n} for n in (1, 2, 3)]
    for change in changes[:2]:
        peer.notify("key", client.number, **change)

    peer.cut()
    peer = site.peer()
    assert peer.hello() == {client.number}
    assert peer.welcome.published == 2
    for change in [*changes, changes[0]]:  # the plugin has not received the third one
        peer.notify("key", client.number, **change)

    assert [message.payload for message in client.messages()] == [b"1", b"2", b"3"]


def part(peer, clients, sequence, index, is_last):
    peer.notify("key", *(each.number for each in clients), payload=b"%d" % sequence, sequence=sequence, index=index, is_last=is_last)


def test_a_change_that_is_repeated_in_other_parts_reaches_each_recipient_once(site, peer, client):
    """A restarted store splits a change into other parts if the broker's maximum packet size has changed."""
    clients = [client, *(site.connect() for _ in range(4))]
    for each in clients[1:]:
        each.number = peer.number_of(each)

    part(peer, clients[:3], 1, 0, False)
    peer.cut()
    peer = site.peer()
    peer.hello()
    assert peer.welcome.published == 0
    part(peer, clients[:2], 1, 0, False)
    part(peer, clients[2:4], 1, 2, False)
    part(peer, clients[4:], 1, 4, True)
    part(peer, clients[4:], 1, 4, True)
    part(peer, clients, 2, 0, True)
    part(peer, clients, 1, 0, True)

    for each in clients:
        assert [message.payload for message in each.messages()] == [b"1", b"2"]
    peer.hello()
    assert peer.welcome.published == 2


def test_a_frame_of_the_plugin_says_what_is_published(site, peer, client):
    def published_after(*changes):
        for change in changes:
            peer.send(peer.encode_notification("key", [client.number], **change))
        peer.ping()
        return peer.frames[-1].published

    assert published_after({"sequence": 1}) == 1
    assert published_after({"sequence": 4, "is_last": False}) == 3, "all changes below it"
    assert published_after({"sequence": 4, "index": 1}) == 4
    assert published_after(*({"sequence": n} for n in range(5, 30))) == 29
    assert published_after({"sequence": 7}) == 29, "a repeated change is answered, too"
    assert not any(frame.records for frame in peer.frames[1:])
    peer.hello()
    assert peer.welcome.published == 29
    peer.hello("instance-2")
    assert peer.welcome.published == 0


def test_a_frame_without_records_is_answered(peer):
    peer.send_frame()
    assert peer.next_frame().records == []
    peer.notify("key", 1)
    peer.send_frame()
    assert peer.next_frame().published == 1


def test_a_frame_with_replies_only_is_not_answered(site, peer):
    peer.ends_at_once = False
    site.connect().request()
    peer.answer(peer.next_request())
    peer.ping()

    assert len(peer.frames) == 1


def test_sequences_continue_in_the_next_run_of_an_instance(site, peer, client):
    for _ in range(10):
        peer.notify("key", client.number)
    peer.cut()

    peer = site.served()
    assert peer.welcome.published == 10
    peer.notify("key", client.number, sequence=10)
    peer.notify("key", client.number, sequence=11)

    assert len(client.messages()) == 11


def test_sequences_start_again_with_each_instance(site, peer):
    """The watcher is the fake store itself, because a new instance disconnects other tracked clients."""
    number = peer.number_of(peer)
    for _ in range(3):
        peer.notify("key", number)
    peer.hello("instance-2")
    peer.notify("key", number, payload=b"first", sequence=1)

    assert [message.payload for message in peer.messages() if message.topic == notify_topic(peer.id, "key")][-1:] == [b"first"]


def test_each_client_gets_its_own_notifications_in_any_order(site, peer, client):
    other = site.connect()
    other.number = peer.number_of(other)
    for _ in range(3):
        for one in (client, other):
            peer.notify("key", one.number)

    assert [len(one.messages()) for one in (client, other)] == [3, 3]


def test_a_frame_of_another_client_is_ignored(site, peer, client):
    stranger = site.connect()
    stranger.publish(CONTROL + "frame", companion.frame(companion.notification(1, b"key", [client.number], b"x")))

    assert client.messages() == []
    peer.notify("key", client.number)
    assert len(client.messages()) == 1


def test_a_notification_to_a_client_that_reads_nothing_does_not_stop_others(site, peer, client):
    other = site.connect()
    number = peer.number_of(other)
    for _ in range(200):
        peer.notify("key", client.number, payload=b"x" * 100000)

    peer.notify("key", number)

    assert len(other.messages()) == 1
    assert len(client.messages()) == 200


def test_a_client_closed_with_pending_notifications_leaves_nothing_behind(site, peer, client):
    peer.notify("key", client.number, payload=b"x" * 1000000)
    client.cut()

    assert peer.next_disconnect() == client.number
    with pytest.raises((Disconnected, OSError)):
        client.ping()
