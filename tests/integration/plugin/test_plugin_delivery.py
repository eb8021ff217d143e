# SPDX-License-Identifier: Apache-2.0
"""A notification reaches its client once, subscribed or not, while the client is connected."""

import queue

import paho.mqtt.client as paho
import pytest

from support import companion
from support.client import INVOKE, NOTIFY_PREFIX, notify_topic
from support.connection import Disconnected
from support.plugin import CONTROL, disconnect_while_notified, peer, site, site_with  # noqa: F401 fixtures
from support.process import PATIENCE

@pytest.fixture
def client(site, peer):
    """A client whose connection is tracked."""
    client = site.connect(session_expiry=1000)
    client.number = peer.number_of(client)
    peer.track(client.number)
    return client


def test_a_client_that_never_subscribed_gets_a_notification_once(peer, client):
    peer.deliver("key", client.number, payload=b"payload")

    notification, = client.messages()
    assert notification.topic == notify_topic(client.id, "key")
    assert (notification.payload, notification.qos, notification.retain) == (b"payload", 1, False)


@pytest.mark.parametrize("subscriptions", [["{topic}"], [NOTIFY_PREFIX + "#"], ["#"], ["{topic}", "clients/#", "#"]])
def test_a_client_that_subscribed_gets_a_notification_once(peer, client, subscriptions):
    for subscription in subscriptions:
        client.subscribe(subscription.format(topic=notify_topic(client.id, "key")))

    peer.deliver("key", client.number)

    assert len(client.messages()) == 1


def test_other_subscribers_get_no_notification(site, peer, client):
    other = site.connect()
    for subscription in ("#", NOTIFY_PREFIX + "#", notify_topic(client.id, "key")):
        other.subscribe(subscription)

    peer.deliver("key", client.number)

    assert len(client.messages()) == 1
    assert other.messages() == []


def test_payload_and_properties_are_delivered_unchanged(peer, client):
    user = [("__ts", "1:2:x"), ("", ""), ("__ts", "again"), ("ключ", "значение")]

    peer.deliver("key", client.number, payload=b"\0\xff" * 50000, user=user,
                 ContentType="application/octet-stream", PayloadFormatIndicator=0)

    notification = client.message()
    assert notification.payload == b"\0\xff" * 50000
    assert notification.user == user
    assert (notification.content_type, notification.format_indicator) == ("application/octet-stream", 0)
    assert (notification.response_topic, notification.correlation) == (None, None)


def test_an_empty_payload_and_no_properties_are_delivered(peer, client):
    peer.deliver("key", client.number, payload=b"")

    notification = client.message()
    assert (notification.payload, notification.user) == (b"", [])


def test_another_connection_of_the_same_client_gets_nothing(site, peer, client):
    again = site.connect(client.id)
    peer.deliver("key", client.number)
    peer.number_of(again)
    peer.deliver("key", client.number)

    assert again.messages() == []


def test_all_recipients_of_a_frame_get_the_notification_once(site, peer, client):
    """More than the broker handles in one turn of its loop."""
    clients = [client, *(site.connect() for _ in range(299))]
    for each in clients[1:]:
        each.number = peer.number_of(each)

    peer.deliver("key", *(each.number for each in clients), payload=b"payload", user=[("name", "value")])

    for each in clients:
        notification, = each.messages()
        assert notification.topic == notify_topic(each.id, "key")
        assert (notification.payload, notification.user) == (b"payload", [("name", "value")])


def test_recipients_that_are_not_connected_are_skipped(site, peer, client):
    disconnected, never_given = site.connect(), int(client.number) + 1000
    disconnected.number = peer.number_of(disconnected)
    disconnected.disconnect()

    peer.deliver("key", 0, disconnected.number, client.number, never_given, 2**64 - 1)

    assert len(client.messages()) == 1


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.parametrize("leave", ["disconnect", "cut"])
def test_no_notification_is_queued_for_a_disconnected_client(site, peer, client, leave, subscribed):
    if subscribed:
        client.subscribe(NOTIFY_PREFIX + "#")
    client.disconnect(session_expiry=1000) if leave == "disconnect" else client.cut()
    assert peer.next_report("disconnected") == client.number

    peer.deliver("key", client.number)
    peer.ping()

    again = site.connect(client.id, clean_start=False, session_expiry=1000)
    assert again.session_present
    assert again.messages() == []


def test_no_notification_is_queued_for_a_client_that_disconnects_at_the_same_time(site, peer, client):
    for _ in range(20):
        disconnect_while_notified(site, peer, client, client.number)

        client = site.connect(client.id, clean_start=False, session_expiry=1000)
        assert client.session_present
        assert client.messages() == []
        client.number = peer.number_of(client)


def test_notifications_arrive_in_the_order_in_which_they_were_sent(peer, client):
    for n in range(100):
        peer.send(peer.encode_delivery("key", [client.number], b"%d" % n))
    peer.ping()

    assert [message.payload for message in client.messages()] == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize("client_id", ["a", "ключ", "with/slash", "with+plus#", "x" * 30000],
                         ids=["short", "not ASCII", "slash", "wildcards", "long"])
def test_any_client_id_is_found(site, peer, client_id):
    client = site.connect(client_id)
    number = peer.number_of(client)

    peer.deliver("key", number)

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
        number = peer.next_request().prop("statestore-mac").split(":")[0]
        peer.deliver("key", number, payload=b"payload")
        assert arrived.get(timeout=PATIENCE).payload == b"payload"
    finally:
        old.disconnect()
        old.loop_stop()


FRAME = companion.frame(1, b"key", [1], b"payload")


@pytest.mark.parametrize("data", [b"", FRAME[:21], FRAME[:29], b"\0" + FRAME[1:], b"\1\x04" + FRAME[2:], companion.frame(0, b"key", [1], b""),
                                  companion.frame(1, b"key", [1], b"", index=2**32 - 1), FRAME[:14] + b"\xff" * 8 + FRAME[22:]],
                         ids=["empty", "no header", "no recipient", "another version", "an unknown flag", "sequence 0", "a large index",
                              "lengths past the end"])
def test_a_malformed_frame_is_ignored(peer, client, data):
    peer.publish(CONTROL + "deliver", data)

    assert client.messages() == []
    assert peer.hello() == {client.number}
    assert peer.delivered == 0
    peer.deliver("key", client.number)
    assert len(client.messages()) == 1


def test_a_topic_that_is_too_long_for_mqtt_is_skipped(peer, client):
    peer.deliver("k" * 40000, client.number)
    peer.deliver("key", client.number)

    assert [message.topic for message in client.messages()] == [notify_topic(client.id, "key")]


def reconnect(site, peer):
    """Return a peer that continues the run of this peer over a new connection."""
    peer.cut()
    returned = site.peer(peer.id)
    returned.mac_key, returned.run, returned.n_hellos, returned.sequence = peer.mac_key, peer.run, peer.n_hellos, peer.sequence
    return returned


def test_a_resent_frame_is_not_delivered_again(site, peer, client):
    deliveries = [peer.encode_delivery("key", [client.number], b"%d" % n) for n in range(3)]
    for delivery in deliveries[:2]:
        peer.send(delivery)
    peer.ping()

    peer = reconnect(site, peer)
    for delivery in deliveries:  # the broker has not received the third one
        peer.send(delivery)
    assert peer.hello() == {client.number}
    peer.deliver("key", client.number, payload=b"3")

    assert [message.payload for message in client.messages()] == [b"0", b"1", b"2", b"3"]


def part(peer, clients, sequence, index, is_last):
    peer.send(peer.encode_delivery("key", [each.number for each in clients], b"%d" % sequence,
                                   frame={"sequence": sequence, "index": index, "is_last": is_last}))


def test_a_change_that_is_resent_in_other_parts_reaches_each_recipient_once(site, peer, client):
    """A restarted store splits a change into other parts if the broker's maximum packet size has changed."""
    clients = [client, *(site.connect() for _ in range(4))]
    for each in clients[1:]:
        each.number = peer.number_of(each)

    part(peer, clients[:3], 1, 0, False)
    peer.ping()
    peer = reconnect(site, peer)
    peer.hello()
    assert peer.delivered == 0
    part(peer, clients[:2], 1, 0, False)
    part(peer, clients[2:4], 1, 2, False)
    part(peer, clients[4:], 1, 4, True)
    part(peer, clients[4:], 1, 4, True)
    part(peer, clients, 2, 0, True)
    part(peer, clients, 1, 0, True)
    peer.ping()

    for each in clients:
        assert [message.payload for message in each.messages()] == [b"1", b"2"]
    peer.hello()
    assert peer.delivered == 2


def test_frames_are_acknowledged_when_they_are_delivered_completely(site, peer, client):
    def acknowledged_after(*frames):
        peer.send(b"".join(peer.encode_delivery("key", [client.number], frame=frame) for frame in frames))
        return peer.reports("delivered")[-1:]

    asked = {"wants_acknowledgement": True}
    assert acknowledged_after({"sequence": 1}) == []
    assert acknowledged_after({"sequence": 2, **asked}) == ["2"]
    assert acknowledged_after({"sequence": 4, "is_last": False, **asked}) == ["2"]
    assert acknowledged_after({"sequence": 4, "index": 1, **asked}) == ["4"]
    assert acknowledged_after(*({"sequence": n, **asked} for n in range(5, 30))) == ["29"]
    assert acknowledged_after({"sequence": 7, **asked}) == ["29"], "a repeated frame is acknowledged too"
    peer.hello()
    assert peer.delivered == 29
    peer.hello("instance-2")
    assert peer.delivered == 0


def test_a_frame_that_reaches_no_client_is_acknowledged(peer):
    peer.deliver("key", 1, frame={"wants_acknowledgement": True})
    assert peer.next_report("delivered") == "1"
    peer.deliver("key", frame={"wants_acknowledgement": True})
    assert peer.next_report("delivered") == "2"


def test_a_resent_hello_does_not_repeat_deliveries(site, peer, client):
    hello = peer.encode_publish(CONTROL + "hello", b"k" * 32 + b"instance-1", CorrelationData=b"%d:9" % peer.run)
    delivery = peer.encode_delivery("key", [client.number])
    peer.send(hello + delivery)
    peer.ping()

    peer = reconnect(site, peer)
    peer.send(hello + delivery)
    peer.hello()

    assert len(client.messages()) == 1


def test_sequences_continue_in_the_next_run_of_an_instance(site, peer, client):
    for _ in range(10):
        peer.deliver("key", client.number)
    peer.cut()

    peer = site.served()
    assert peer.delivered == 10
    peer.deliver("key", client.number, frame={"sequence": 10})
    peer.deliver("key", client.number, frame={"sequence": 11})

    assert len(client.messages()) == 11


def test_sequences_start_again_with_each_instance(site, peer):
    """The watcher is the fake store itself, because a new instance disconnects other tracked clients."""
    number = peer.number_of(peer)
    for _ in range(3):
        peer.deliver("key", number)
    peer.hello("instance-2")
    peer.deliver("key", number, payload=b"first", frame={"sequence": 1})

    assert [message.payload for message in peer.messages() if message.topic == notify_topic(peer.id, "key")][-1:] == [b"first"]


def test_each_client_gets_its_own_notifications_in_any_order(site, peer, client):
    other = site.connect()
    other.number = peer.number_of(other)
    for _ in range(3):
        for one in (client, other):
            peer.deliver("key", one.number)

    assert [len(one.messages()) for one in (client, other)] == [3, 3]


def test_a_deliver_message_of_another_client_is_ignored(site, peer, client):
    stranger = site.connect()
    stranger.publish(CONTROL + "deliver", companion.frame(1, b"key", [client.number], b"x"))

    assert client.messages() == []
    peer.deliver("key", client.number)
    assert len(client.messages()) == 1


def test_a_notification_to_a_client_that_reads_nothing_does_not_stop_others(site, peer, client):
    other = site.connect()
    number = peer.number_of(other)
    for _ in range(200):
        peer.deliver("key", client.number, payload=b"x" * 100000)

    peer.deliver("key", number)

    assert len(other.messages()) == 1
    assert len(client.messages()) == 200


def test_a_client_closed_with_pending_notifications_leaves_nothing_behind(site, peer, client):
    peer.deliver("key", client.number, payload=b"x" * 1000000)
    client.cut()

    assert peer.next_report("disconnected") == client.number
    with pytest.raises((Disconnected, OSError)):
        client.ping()
