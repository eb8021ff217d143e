# SPDX-License-Identifier: Apache-2.0
"""A notification reaches its client once, subscribed or not, while the client is connected."""

import queue

import paho.mqtt.client as paho
import pytest

from support.client import INVOKE, NOTIFY_PREFIX, notify_topic
from support.connection import Disconnected
from support.plugin import CONTROL, leave_while_notified, peer, site, site_with  # noqa: F401 fixtures
from support.process import PATIENCE

@pytest.fixture
def client(site, peer):
    """One that has registered: it sent a request, and its connection is held."""
    client = site.connect(session_expiry=1000)
    client.number = peer.number_of(client)
    peer.track(client.number)
    return client


def test_a_client_that_never_subscribed_gets_a_notification_once(peer, client):
    peer.deliver(client.id, "key", b"payload", connection=client.number)

    notification, = client.messages()
    assert notification.topic == notify_topic(client.id, "key")
    assert (notification.payload, notification.qos, notification.retain) == (b"payload", 1, False)


@pytest.mark.parametrize("subscriptions", [["{topic}"], [NOTIFY_PREFIX + "#"], ["#"], ["{topic}", "clients/#", "#"],
                                           ["$share/group/{topic}"]])
def test_a_client_that_subscribed_gets_a_notification_once(peer, client, subscriptions):
    for subscription in subscriptions:
        client.subscribe(subscription.format(topic=notify_topic(client.id, "key")))

    peer.deliver(client.id, "key", connection=client.number)

    assert len(client.messages()) == 1


def test_other_subscribers_get_no_notification(site, peer, client):
    other = site.connect()
    for subscription in ("#", NOTIFY_PREFIX + "#", notify_topic(client.id, "key")):
        other.subscribe(subscription)

    peer.deliver(client.id, "key", connection=client.number)

    assert len(client.messages()) == 1
    assert other.messages() == []


def test_all_that_concerns_the_client_is_passed_on(peer, client):
    user = [("__ts", "1:2:x"), ("", ""), ("__ts", "again"), ("ключ", "значение")]

    peer.deliver(client.id, "key", b"\0\xff" * 50000, connection=client.number, user=user,
                 ContentType="application/octet-stream", PayloadFormatIndicator=0)

    notification = client.message()
    assert notification.payload == b"\0\xff" * 50000
    assert notification.user == user
    assert (notification.content_type, notification.format_indicator) == ("application/octet-stream", 0)
    assert (notification.response_topic, notification.correlation) == (None, None)


def test_an_empty_payload_and_no_properties_are_delivered(peer, client):
    peer.deliver(client.id, "key", b"", connection=client.number)

    notification = client.message()
    assert (notification.payload, notification.user) == (b"", [])


def test_another_connection_of_the_same_client_gets_nothing(site, peer, client):
    again = site.connect(client.id)
    peer.deliver(client.id, "key", connection=client.number)
    peer.number_of(again)
    peer.deliver(client.id, "key", connection=client.number)

    assert again.messages() == []


def test_another_client_s_number_is_not_enough(site, peer, client):
    other = site.connect()
    peer.number_of(other)

    peer.deliver(other.id, "key", connection=client.number)

    assert client.messages() == []
    assert other.messages() == []


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.parametrize("leave", ["disconnect", "cut"])
def test_no_notification_is_queued_for_a_disconnected_client(site, peer, client, leave, subscribed):
    if subscribed:
        client.subscribe(NOTIFY_PREFIX + "#")
    client.disconnect(session_expiry=1000) if leave == "disconnect" else client.cut()
    assert peer.next_told("disconnected") == client.number

    peer.deliver(client.id, "key", connection=client.number)
    peer.ping()

    again = site.connect(client.id, clean_start=False, session_expiry=1000)
    assert again.session_present
    assert again.messages() == []


def test_no_notification_is_queued_for_a_client_that_disconnects_at_the_same_time(site, peer, client):
    for _ in range(20):
        leave_while_notified(site, peer, client, client.number)

        client = site.connect(client.id, clean_start=False, session_expiry=1000)
        assert client.session_present
        assert client.messages() == []
        client.number = peer.number_of(client)


def test_notifications_arrive_in_the_order_in_which_they_were_sent(peer, client):
    for n in range(100):
        peer.send(peer.encode_delivery(client.id, "key", b"%d" % n, client.number))
    peer.ping()

    assert [message.payload for message in client.messages()] == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize("client_id", ["a", "ключ", "with/slash", "with+plus#", "x" * 30000],
                         ids=["short", "not ASCII", "slash", "wildcards", "long"])
def test_any_client_id_is_found(site, peer, client_id):
    client = site.connect(client_id)
    number = peer.number_of(client)

    peer.deliver(client_id, "key", connection=number)

    assert len(client.messages()) == 1


def test_a_client_of_an_older_protocol_version_is_served_as_well(site, peer, client):
    """Delivered by client id: the broker leaves out what 3.1.1 has no room for."""
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
        peer.deliver("old", "key", b"payload", connection=number)
        assert arrived.get(timeout=PATIENCE).payload == b"payload"
    finally:
        old.disconnect()
        old.loop_stop()


@pytest.mark.parametrize("topic", [None, "other", NOTIFY_PREFIX, NOTIFY_PREFIX + "636C/command", NOTIFY_PREFIX + "/x",
                                   NOTIFY_PREFIX + "6", NOTIFY_PREFIX + "6g/command/notify/6B",
                                   NOTIFY_PREFIX + "00/command/notify/6B", "clients/636C/x", INVOKE])
def test_a_delivery_whose_topic_names_no_client_is_ignored(peer, client, topic):
    peer.publish(CONTROL + "deliver", b"x", ResponseTopic=topic, CorrelationData=peer.numbered(client.number))

    assert client.messages() == []
    assert peer.hello() == {client.number}


@pytest.mark.parametrize("numbers", [None, "", "{number}", "x", "x:9", "-1:9", "0:9", "18446744073709551616:9",
                                     "{number}:", "{number}:x", "{number}:9:9", "{number}:18446744073709551616"])
def test_malformed_correlation_data_delivers_nothing(peer, client, numbers):
    correlation = None if numbers is None else numbers.format(number=client.number).encode()
    peer.publish(CONTROL + "deliver", b"x", ResponseTopic=notify_topic(client.id, "key"), CorrelationData=correlation)

    assert client.messages() == []
    assert peer.hello() == {client.number}
    peer.deliver(client.id, "key", connection=client.number)
    assert len(client.messages()) == 1


def again(site, peer):
    """The same run over its next connection."""
    peer.cut()
    returned = site.peer(peer.id)
    returned.mac_key, returned.run, returned.sequence = peer.mac_key, peer.run, peer.sequence
    return returned


def test_a_resent_delivery_is_not_delivered_again(site, peer, client):
    deliveries = [peer.encode_delivery(client.id, "key", b"%d" % n, client.number) for n in range(3)]
    for delivery in deliveries[:2]:
        peer.send(delivery)
    peer.ping()

    peer = again(site, peer)
    for delivery in deliveries:  # of the third one the broker knows nothing yet
        peer.send(delivery)
    assert peer.hello() == {client.number}
    peer.deliver(client.id, "key", b"3", connection=client.number)

    assert [message.payload for message in client.messages()] == [b"0", b"1", b"2", b"3"]


def test_a_resent_hello_does_not_repeat_deliveries(site, peer, client):
    peer.sequence += 1
    hello = peer.encode_publish(CONTROL + "hello", b"instance-1", CorrelationData=b"%d:%d" % (peer.run, peer.sequence))
    delivery = peer.encode_delivery(client.id, "key", b"payload", client.number)
    peer.send(hello + delivery)
    peer.ping()

    peer = again(site, peer)
    peer.send(hello + delivery)
    peer.hello()

    assert len(client.messages()) == 1


def test_sequence_numbers_start_again_with_each_run(site, peer, client):
    for _ in range(10):
        peer.deliver(client.id, "key", connection=client.number)
    peer.cut()

    peer = site.served()
    assert peer.sequence < 10
    peer.deliver(client.id, "key", connection=client.number)

    assert len(client.messages()) == 11


def test_each_client_gets_its_own_notifications_in_any_order(site, peer, client):
    other = site.connect()
    other.number = peer.number_of(other)
    for _ in range(3):
        for one in (client, other):
            peer.deliver(one.id, "key", connection=one.number)

    assert [len(one.messages()) for one in (client, other)] == [3, 3]


def test_strangers_deliver_nothing(site, peer, client):
    stranger = site.connect()
    stranger.publish(CONTROL + "deliver", b"x", ResponseTopic=notify_topic(client.id, "key"))

    assert client.messages() == []


def test_a_notification_to_a_client_that_reads_nothing_does_not_stop_others(site, peer, client):
    other = site.connect()
    number = peer.number_of(other)
    for _ in range(200):
        peer.deliver(client.id, "key", b"x" * 100000, connection=client.number)

    peer.deliver(other.id, "key", connection=number)

    assert len(other.messages()) == 1
    assert len(client.messages()) == 200


def test_a_client_closed_with_pending_notifications_leaves_nothing_behind(site, peer, client):
    peer.deliver(client.id, "key", b"x" * 1000000, connection=client.number)
    client.cut()

    assert peer.next_told("disconnected") == client.number
    with pytest.raises((Disconnected, OSError)):
        client.ping()
