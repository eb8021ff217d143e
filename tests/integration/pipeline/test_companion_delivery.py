# SPDX-License-Identifier: Apache-2.0
"""With the plugin each client gets its notifications once, in order, and never early, with or without a subscription."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import published, resp
from support.client import NOTIFY_PREFIX, notify_topic
from support.process import PATIENCE
from support.store import GRANULARITY_S
from support.wire_client import DELETED, was_set


@pytest.fixture(params=published.ALL, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture
def client(shared_plugin_site, kind):
    return shared_plugin_site.connect(kind=kind)


@pytest.fixture
def writer(shared_plugin_site):
    return shared_plugin_site.connect()


def test_a_watcher_is_notified_of_every_kind_of_change_once(client, writer, key):
    client.watch(key, key + "-marker")

    versions = [writer.request("SET", key, "1").ts, writer.request("DEL", key).ts,
                writer.request("SET", key, "2").ts, writer.request("VDEL", key, "2").ts,
                writer.request("SET", key, "3", "PX", "1").ts]
    notifications = [client.notification() for _ in range(6)]
    writer.request("SET", key + "-marker", "marker")

    assert [resp.read(each.payload)[1:] for each in notifications] == [was_set("1"), DELETED, was_set("2"), DELETED,
                                                                  was_set("3"), DELETED]
    assert [each.ts for each in notifications] == versions + versions[-1:]
    assert {each.topic for each in notifications} == {notify_topic(client.id, key)}
    assert client.next_change() == was_set("marker")


def test_a_notification_is_the_same_with_and_without_the_plugin(client, writer, key):
    client.watch(key)
    version = writer.request("SET", key, b"\0\xff\r\n").prop("__ts")

    notification = client.notification()

    assert notification.payload == b"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$4\r\n\0\xff\r\n\r\n"
    assert (notification.qos, notification.retain) == (1, False)
    assert notification.content_type == "application/octet-stream"
    assert notification.format_indicator in (0, None)
    assert (notification.response_topic, notification.correlation, notification.expiry) == (None, None, None)
    assert sorted(notification.user) == [("__protVer", "1.0"), ("__srcId", "StateStore"), ("__ts", version)]


@pytest.mark.parametrize("filters", [["{topic}"], [NOTIFY_PREFIX + "#"], ["#"], ["{topic}", "clients/#", "#"]], ids=" ".join)
def test_a_client_that_subscribed_gets_each_notification_once(shared_plugin_site, writer, key, filters):
    client = shared_plugin_site.connect(kind=published.GoClient)
    for each in filters:
        client.subscribe(each.format(topic=notify_topic(client.id, key)))
    client.watch(key, key + "-marker")

    for n in range(5):
        writer.request("SET", key, n)
    writer.request("SET", key + "-marker", "marker")

    assert [client.next_change() for _ in range(6)] == [was_set(n) for n in range(5)] + [was_set("marker")]


def test_after_stop_no_notification_arrives(client, writer, key):
    client.watch(key, key + "-marker")
    writer.request("SET", key, "before")
    assert client.request("KEYNOTIFY", key, "STOP").payload == b"+OK\r\n"

    writer.request("SET", key, "after")
    writer.request("SET", key + "-marker", "marker")

    assert [client.next_change() for _ in range(2)] == [was_set("before"), was_set("marker")]


def test_changes_under_load_are_notified_to_each_watcher_in_order(shared_plugin_site, key):
    watchers = [shared_plugin_site.connect(kind=kind) for kind in published.ALL * 2]
    for watcher in watchers:
        watcher.watch(key)
    writers = [shared_plugin_site.connect() for _ in range(4)]

    replies = [writers[n % 4].send("SET", key, n) for n in range(600)]
    versions = sorted(reply.result(PATIENCE).ts for reply in replies)

    for watcher in watchers:
        assert [watcher.notification().ts for _ in range(600)] == versions


def test_changes_of_many_keys_are_notified_in_the_order_of_their_effect(client, writer, key):
    keys = [f"{key}-{n}" for n in range(50)]
    client.watch(*keys)
    order = [random.Random(1).choice(keys) for _ in range(500)]

    versions = [reply.ts for reply in writer.request_all(("SET", each, "value") for each in order)]

    notifications = [client.notification() for _ in range(500)]
    assert [each.topic for each in notifications] == [notify_topic(client.id, each) for each in order]
    assert [each.ts for each in notifications] == versions


def test_an_idle_store_notifies_of_an_expiry_and_never_early(client, key):
    """The benchmark measures the delay."""
    for n in range(9):
        client.watch(f"{key}-{n}")
        px = 40 + 13 * n
        sent = time.monotonic()
        client.request("SET", f"{key}-{n}", "value", "PX", px)
        assert client.next_change() == was_set("value")
        deleted = client.notification()
        assert resp.read(deleted.payload)[1:] == DELETED
        assert deleted.time >= sent + px / 1000 - GRANULARITY_S, "early"


# A lock, used like the published lock clients do: a client that does not get the lock waits for DELETE and never polls


class Turn:
    """The present holder of the lock, recorded by the clients."""

    def __init__(self):
        self.holder = None
        self.taken = []

    def take(self, client):
        assert self.holder is None, "two clients hold the lock"
        self.holder = client.id
        self.taken.append(client.id)

    def give_back(self):
        self.holder = None


def take_turns(client, lock, turn, n_turns):
    client.watch(lock)
    for _ in range(n_turns):
        while True:
            reply = client.request("SET", lock, client.id, "NX", "PX", "600000")
            if reply.payload == b"+OK\r\n":
                break
            while True:
                notification = client.notification()
                if resp.read(notification.payload)[1:] == DELETED and notification.ts >= reply.ts:
                    break
        turn.take(client)
        client.request("GET", lock)
        turn.give_back()
        assert client.request("VDEL", lock, client.id).payload == b":1\r\n"


def test_eight_clients_that_never_subscribed_hand_a_lock_over(shared_plugin_site, key):
    clients = [shared_plugin_site.connect(kind=kind) for kind in (published.GoClient, published.DotnetClient) * 4]
    turn = Turn()

    with ThreadPoolExecutor(len(clients)) as pool:
        for turns in [pool.submit(take_turns, client, key, turn, 10) for client in clients]:
            turns.result(PATIENCE)

    assert sorted(turn.taken) == sorted(client.id for client in clients for _ in range(10))


def test_a_lock_of_a_disconnected_owner_is_handed_over_when_it_expires(shared_plugin_site, key, kind):
    owner, successor = shared_plugin_site.connect(kind=kind), shared_plugin_site.connect(kind=kind)
    owner.request("SET", key, owner.id, "NX", "PX", "100")
    owner.close()

    take_turns(successor, key, Turn(), 1)
