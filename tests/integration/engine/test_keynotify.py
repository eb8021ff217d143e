# SPDX-License-Identifier: Apache-2.0
"""Notifications (PROTOCOL.md "Notifications")."""

import pytest

from support.client import notify_topic
from support.process import PATIENCE
from support.wire_client import DELETED, was_set

OK = b"+OK\r\n"


def assert_notified_of_nothing_more(client, key):
    """Check with a marker: notifications arrive in order, so a pending one would arrive before that of the marker."""
    client.watch(key + "-marker")
    client.request("SET", key + "-marker", "marker")
    assert client.next_change() == was_set("marker")


def test_the_notify_topic_equals_the_published_example(shared):
    client = shared.connect("client-id1")
    client.watch("SOMEKEY")

    client.request("SET", "SOMEKEY", "abc")

    notification = client.notification()
    assert notification.topic == ("clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/"
                                  "636C69656E742D696431/command/notify/534F4D454B4559")
    assert notification.payload == b"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$3\r\nabc\r\n"


def assert_notification_properties(notification):
    assert notification.qos == 1
    assert not notification.retain
    assert notification.content_type == "application/octet-stream"
    assert notification.format_indicator in (0, None)
    assert notification.response_topic is None
    assert notification.prop("__srcId") == "StateStore"
    assert notification.prop("__protVer") == "1.0"
    assert sorted(name for name, _ in notification.user) == ["__protVer", "__srcId", "__ts"]


def test_a_set_is_notified_with_its_value_and_version(client, key):
    client.watch(key)

    version = client.request("SET", key, "value").prop("__ts")

    notification = client.notification()
    assert notification.payload == b"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$5\r\nvalue\r\n"
    assert notification.prop("__ts") == version
    assert_notification_properties(notification)


@pytest.mark.parametrize("removal", [["DEL"], ["VDEL", "value"]])
def test_a_deletion_is_notified_with_the_deleted_version(client, key, removal):
    version = client.request("SET", key, "value").prop("__ts")
    client.watch(key)

    verb, *arguments = removal
    client.request(verb, key, *arguments)

    notification = client.notification()
    assert notification.payload == b"*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n"
    assert notification.prop("__ts") == version
    assert_notification_properties(notification)


def test_an_expiry_is_notified_with_the_expired_version(client, key):
    client.watch(key)
    version = client.request("SET", key, "value", "PX", "1").prop("__ts")
    assert client.notification().prop("__ts") == version

    notification = client.notification()

    assert notification.payload == b"*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n"
    assert notification.prop("__ts") == version
    assert_notification_properties(notification)


@pytest.mark.parametrize("value", [b"", b"\r\n", bytes(range(256)), b"$3\r\n"], ids=repr)
def test_values_are_notified_unchanged(client, key, value):
    client.watch(key)

    client.request("SET", key, value)

    assert client.next_change() == was_set(value)


@pytest.mark.parametrize("tail", [b"/+#", b"\0\r\n", b"\xff\xfe", "é".encode()], ids=repr)
def test_keys_of_any_bytes_can_be_watched(client, key, tail):
    binary_key = key.encode() + tail
    client.watch(binary_key)

    client.request("SET", binary_key, "value")

    assert client.notification().topic == notify_topic(client.id, binary_key)


def test_a_change_by_another_client_is_notified(shared, client, key):
    client.watch(key)

    shared.connect().request("SET", key, "theirs")

    assert client.next_change() == was_set("theirs")


def test_several_watchers_are_each_notified(shared, key):
    watchers = [shared.connect() for _ in range(5)]
    for watcher in watchers:
        watcher.watch(key)

    version = watchers[0].request("SET", key, "value").ts

    for watcher in watchers:
        notification = watcher.notification()
        assert notification.topic == notify_topic(watcher.id, key)
        assert notification.ts == version


def test_a_registration_needs_no_key_and_outlives_it(client, key):
    client.watch(key)

    client.request("SET", key, "1")
    client.request("DEL", key)
    client.request("SET", key, "2")

    assert [client.next_change() for _ in range(3)] == [was_set("1"), DELETED, was_set("2")]


def test_registering_twice_notifies_once(client, key):
    client.watch(key)
    client.watch(key)

    client.request("SET", key, "value")

    assert client.next_change() == was_set("value")
    assert_notified_of_nothing_more(client, key)


def test_keynotify_with_the_older_argument_get_registers_too(client, key):
    client.watch(key + "-x")
    assert client.request("KEYNOTIFY", key, "GET").payload == OK

    client.request("SET", key, "value")

    assert client.next_change() == was_set("value")


def test_changes_are_notified_in_the_order_of_their_versions(shared, client, key):
    client.watch(key)
    writers = [shared.connect() for _ in range(3)]
    replies = [writers[n % 3].send("SET", key, n) for n in range(300)]
    versions = sorted(reply.result(PATIENCE).ts for reply in replies)

    assert [client.notification().ts for _ in range(300)] == versions


def test_changes_of_several_keys_are_notified_in_the_order_of_their_effect(client, key):
    keys = [f"{key}-{n}" for n in range(7)]
    client.watch(*keys)

    client.request_all(("SET", keys[n % 7], n) for n in range(200))

    assert [client.next_change() for _ in range(200)] == [was_set(n) for n in range(200)]


def test_requests_that_change_nothing_are_not_notified(client, key):
    client.watch(key)
    client.request("DEL", key)
    client.request("VDEL", key, "value")
    client.request("SET", key, "value", ft="5:0:n")
    assert client.next_change() == was_set("value")

    client.request("SET", key, "other", "NX", ft="5:0:n")
    client.request("SET", key, "other", "NEX", ft="5:0:n")
    client.request("VDEL", key, "other", ft="5:0:n")
    client.request("SET", key, "other")
    client.request("SET", key, "other", ft="4:0:n")
    client.request("DEL", key)
    client.request("SET", key, "other", "BOGUS")
    client.request("SET", key, "other", ts=None)
    client.request("SET", key, "other", qos=0)
    client.request("GET", key)

    assert_notified_of_nothing_more(client, key)


def test_stop_ends_the_registration_once(client, key):
    client.watch(key)

    assert client.request("KEYNOTIFY", key, "STOP").payload == OK
    again = client.request("KEYNOTIFY", key, "STOP")
    assert again.payload == b":0\r\n"
    assert again.prop("__ts") is None

    client.request("SET", key, "value")
    assert_notified_of_nothing_more(client, key)


def test_stop_ends_no_other_clients_registration(shared, client, key):
    client.watch(key)
    other = shared.connect()

    assert other.request("KEYNOTIFY", key, "STOP").payload == b":0\r\n"

    other.request("SET", key, "value")
    assert client.next_change() == was_set("value")


def test_a_stopped_client_can_register_again(client, key):
    client.watch(key)
    client.request("KEYNOTIFY", key, "STOP")
    client.watch(key)

    client.request("SET", key, "value")

    assert client.next_change() == was_set("value")
    assert_notified_of_nothing_more(client, key)


def longest_watchable_key(client_id):
    return (65535 - len(notify_topic(client_id, b""))) // 2


def test_the_longest_key_whose_topic_fits_can_be_watched(client):
    longest = b"k" * longest_watchable_key(client.id)
    client.watch(longest)

    client.request("SET", longest, "value")

    assert client.notification().topic == notify_topic(client.id, longest)


@pytest.mark.parametrize("option", [[], ["STOP"], ["GET"]])
def test_a_key_whose_topic_would_not_fit_cannot_be_watched(client, option):
    too_long = b"k" * (longest_watchable_key(client.id) + 1)

    reply = client.request("KEYNOTIFY", too_long, *option)

    assert reply.payload == b"-ERR the key is too long to be notified\r\n"
    assert reply.status == "200"
    assert client.request("SET", too_long, "value").payload == OK
