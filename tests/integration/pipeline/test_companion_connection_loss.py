# SPDX-License-Identifier: Apache-2.0
"""The store loses only its connection to the broker: registrations stay, and missed disconnects are reported."""

import pytest

from support import disconnects
from support.process import PATIENCE
from support.wire_client import DELETED, NOT_REGISTERED, WireClient, was_set

MAX_REGISTRATIONS = 150


class Away:
    """Context manager: the store has no connection inside it."""

    def __init__(self, store, proxy):
        self.store, self.proxy = store, proxy

    def __enter__(self):
        self.seen = len(self.store.log())
        self.proxy.cut()
        self.store.wait_for_log("no connection", after=self.seen)

    def __exit__(self, *_):
        self.proxy.mend()
        self.store.wait_for_log("ready: .*the plugin", after=self.seen)


@pytest.fixture
def site(make_site):
    return make_site()


@pytest.fixture
def proxies(site, proxy_of):
    return [proxy_of(site)]


@pytest.fixture
def away(site, proxies):
    proxy, = proxies
    store = site.start_store("--port", proxy.port, "--max-registrations", MAX_REGISTRATIONS)
    return lambda: Away(store, proxy)


@pytest.fixture
def clients(site):
    return lambda n_clients: [site.connect(kind=WireClient) for _ in range(n_clients)]


def test_connected_clients_keep_their_registrations_when_the_store_reconnects(clients, away):
    holder, of_many, silent = clients(3)
    keys = [f"key-{n}" for n in range(100)]
    holder.register("key-0")
    of_many.register(*keys)

    for n in range(3):
        with away():
            pass
        silent.ask("SET", "key-0", n)
        assert silent.still_works()

    assert holder.changes() == [was_set(n) for n in range(3)]
    assert of_many.changes() == [was_set(n) for n in range(3)]
    assert all(of_many.stop(key) == b"+OK\r\n" for key in keys)


def test_clients_that_disconnected_meanwhile_have_no_registrations(site, clients, away):
    stays, *leave = clients(1 + len(disconnects.QUICK_WAYS))
    for client in (stays, *leave):
        client.register("key", "other")

    with away():
        came_back = [way(site, client) or site.connect(client.id, WireClient)
                     for way, client in zip(disconnects.QUICK_WAYS, leave)]
        stays.begin("SET", "key", "value")

    for again in came_back:
        assert again.stop("key") == NOT_REGISTERED
        assert again.stop("other") == NOT_REGISTERED
        assert again.changes() == []
    assert stays.changes() == [was_set("value")]


def test_registrations_that_ended_meanwhile_free_their_quota(clients, away):
    holders = clients(3)
    for holder in holders:
        holder.register(*(f"key-{n}" for n in range(MAX_REGISTRATIONS // 3)))
    other, = clients(1)
    assert other.ask("KEYNOTIFY", "key").startswith(b"-ERR")

    with away():
        for holder in holders:
            holder.disconnect()

    other.register(*(f"key-{n}" for n in range(MAX_REGISTRATIONS)))


def test_requests_that_arrived_meanwhile_are_served_in_order(clients, away):
    registers, stops = clients(2)
    stops.register("key")

    with away():
        requests = []
        for client, words in ((stops, ("KEYNOTIFY", "key", "STOP")), (stops, ("SET", "key", "1")),
                              (registers, ("KEYNOTIFY", "key")), (stops, ("SET", "key", "2"))):
            requests.append((client, client.begin(*words)))
            client.ping()

    assert {client.reply_to(request).payload for client, request in requests} == {b"+OK\r\n"}
    assert stops.changes() == []
    assert registers.changes()[-1] == was_set("2")


def test_a_client_that_registered_and_disconnected_meanwhile_has_no_registration(site, clients, away):
    client, = clients(1)

    with away():
        client.begin_and_disconnect("KEYNOTIFY", "key")

    again = site.connect(client.id, WireClient)
    assert again.stop("key") == NOT_REGISTERED
    again.ask("SET", "key", "value")
    assert again.changes() == []


def test_a_key_that_expires_meanwhile_is_notified_after_the_reconnect(clients, away):
    client, = clients(1)
    client.register("key")
    client.ask("SET", "key", "value", "PX", "1")

    with away():
        pass

    assert client.changes() == [was_set("value"), DELETED]


def test_repeated_connection_losses_under_load_lose_nothing(site, away):
    watcher, writer = site.connect(), site.connect()
    watcher.watch("key")

    sent = []
    for n in range(5):
        sent += [writer.send("SET", "key", number) for number in range(100 * n, 100 * n + 100)]
        with away():
            pass

    versions = [reply.result(PATIENCE).ts for reply in sent]
    last = writer.request("SET", "key", "last").ts
    told = []
    while last not in told:
        told.append(watcher.notification().ts)
    assert told[:-1] == sorted(versions)


def test_a_connection_loss_with_more_than_receive_maximum_outstanding_loses_nothing(clients, away, proxies):
    """The library sends the messages beyond Receive Maximum later, in order. None may count as a copy of an earlier one."""
    writer, *watchers = clients(30)
    for watcher in watchers:
        watcher.register("key")

    n_changes = 0
    for _ in range(3):
        proxies[0].hold()  # from now on the broker receives nothing from the store
        changes = [writer.begin("SET", "key", n_changes + n) for n in range(100)]
        n_changes += len(changes)
        writer.ping()
        with away():
            pass
        assert {writer.reply_to(change).payload for change in changes} == {b"+OK\r\n"}

    for watcher in watchers:
        assert watcher.changes() == [was_set(n) for n in range(n_changes)]
