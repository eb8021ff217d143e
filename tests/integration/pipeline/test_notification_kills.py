# SPDX-License-Identifier: Apache-2.0
"""Store and broker are killed at any moment while watched keys change. A client whose connection stays open is notified of
every change once, in the order of the changes; a connection that has ended gets nothing more.

STATESTORE_KILLS sets the number of kills.
"""

import contextlib
import os
import random
import time
import uuid

import pytest

from support import resp
from support.client import INVOKE
from support.connection import NO_SUBSCRIBERS, Disconnected
from support.process import wait_until
from support.site import kill_broker, kill_store
from support.wire_client import WireClient

N_KILLS = int(os.environ.get("STATESTORE_KILLS", "10"))
N_REQUESTS = 40  # in each round
KEYS = ["k0", "k1", "k2"]
WATCHED = [KEYS, ["k0"], ["k1", "k2"]]  # by each watcher


class Killer:
    """Kills the store, the broker or both at a random moment. The store is connected to the broker through the proxy."""

    def __init__(self, site, proxy, dice):
        self.site = site
        self.proxy = proxy
        self.dice = dice

    def wait(self):
        time.sleep(self.dice.uniform(0, 0.01))

    def store(self):
        self.wait()
        kill_store(self.site)

    def held_store(self):
        """Kill the store while the proxy holds its messages, so that committed changes may be unpublished."""
        self.proxy.hold()
        self.wait()
        self.site.store.kill()
        self.proxy.cut()
        self.proxy.mend()
        self.site.store.start()

    def broker(self):
        self.wait()
        kill_broker(self.site)

    def both(self):
        self.wait()
        self.site.broker.kill()
        self.site.store.kill()
        self.site.broker.start_again()
        self.site.store.start()


class Request:
    """A request, repeated until its reply arrives. The store executes it once."""

    def __init__(self, writer, number, dice):
        self.key = dice.choice(KEYS)
        self.words = ("DEL", self.key) if dice.random() < 0.2 else ("SET", self.key, number)
        self.number = number
        self.correlation = uuid.uuid4().bytes
        self.timestamp = writer.clock.now()
        self.reply = None

    def send(self, writer):
        writer.begin(*self.words, correlation=self.correlation, ts=self.timestamp)

    def receive(self, writer):
        self.reply = writer.reply_to(self.correlation)


def version_of(message):
    wall_ms, counter, _node = dict(message.user)["__ts"].split(":")
    return int(wall_ms), int(counter)


def expected(requests, keys):
    """The changes, as (key, value or None, version). A deletion has the version of the value that it removed."""
    changes = []
    for request in requests:
        if request.key not in keys:
            continue
        if request.words[0] == "SET":
            assert request.reply.payload == b"+OK\r\n"
            changes.append((request.key, resp.to_bytes(request.number), version_of(request.reply)))
        elif request.reply.payload == b":1\r\n":
            changes.append((request.key, None, version_of(request.reply)))
    return sorted(changes, key=lambda change: (change[0], change[2], change[1] is None))


def key_of(message):
    return bytes.fromhex(message.topic.rsplit("/", 1)[1]).decode()


def change_of(message):
    words = resp.read(message.payload)[1:]
    return key_of(message), words[2] if words[0] == b"SET" else None, version_of(message)


def received(watcher):
    """What the watcher has been notified of until now."""
    return [change_of(message) for message in watcher.notifications()]


def received_before_the_end(watcher):
    changes = []
    with contextlib.suppress(Disconnected):
        while True:
            changes.append(change_of(watcher.notification()))
    return changes


def check_order(changes):
    """Of all keys together, values arrive in the order of their versions; of each key, a deletion after its value."""
    versions = [version for _key, value, version in changes if value is not None]
    assert versions == sorted(set(versions))
    for key in KEYS:
        of_key = [(version, value is None) for name, value, version in changes if name == key]
        assert of_key == sorted(set(of_key))


def by_key(changes):
    return sorted(changes, key=lambda change: change[0])


def connect_watchers(site):
    watchers = [site.connect(kind=WireClient) for _ in WATCHED]
    for watcher, keys in zip(watchers, WATCHED):
        watcher.register(*keys)
    return watchers


def run_round(site, dice, killer, writer, watchers, first_number):
    """Return the clients for the next round."""
    kill = dice.choice([killer.store, killer.held_store, killer.held_store, killer.broker, killer.both])
    keeps_connections = kill in (killer.store, killer.held_store)
    requests = [Request(writer, first_number + n, dice) for n in range(N_REQUESTS)]
    for request in requests:
        request.send(writer)
    requests[dice.randrange(N_REQUESTS // 2)].receive(writer)
    kill()

    if not keeps_connections:
        writer = site.connect(writer.id, WireClient)
        wait_until(lambda: writer.publish(INVOKE) != NO_SUBSCRIBERS, "the store has subscribed")
    for request in requests:
        if not request.reply:
            request.send(writer)
    for request in requests:
        if not request.reply:
            request.receive(writer)

    if keeps_connections:
        for watcher, keys in zip(watchers, WATCHED):
            changes = received(watcher)
            check_order(changes)
            assert by_key(changes) == expected(requests, keys)
    else:
        for watcher, keys in zip(watchers, WATCHED):
            changes = received_before_the_end(watcher)
            check_order(changes)
            assert set(changes) <= set(expected(requests, keys))
        watchers = connect_watchers(site)
        assert [received(watcher) for watcher in watchers] == [[], [], []]
    return writer, watchers


@pytest.mark.parametrize("seed", range(2))
def test_every_change_is_notified_once_and_in_order_whatever_is_killed(make_site, proxy_of, tmp_path, seed):
    dice = random.Random(seed)
    site = make_site()
    proxy = proxy_of(site)
    site.start_store("--data-dir", tmp_path / "data", "--port", proxy.port)
    killer = Killer(site, proxy, dice)
    writer, watchers = site.connect(kind=WireClient), connect_watchers(site)

    for n in range(N_KILLS // 2):
        writer, watchers = run_round(site, dice, killer, writer, watchers, n * N_REQUESTS)
