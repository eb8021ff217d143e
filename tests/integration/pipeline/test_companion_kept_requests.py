# SPDX-License-Identifier: Apache-2.0
"""The plugin keeps each request until the store has reported its end: whatever happens to stores, each request that the broker
has acknowledged gets one reply, and is executed once.

STATESTORE_KILLS sets the number of kills.
"""

import os
import random
import time
import urllib.request

import pytest

from support import resp
from support.broker import free_port
from support.client import INVOKE
from support.connection import KICKED, NO_SUBSCRIBERS
from support.message import error
from support.process import BUILD, wait_until
from support.stepped_clock import SteppedClock
from support.stored import select
from support.wire_client import DELETED, NOT_REGISTERED, WireClient, was_set, wire_clients
from support.writer import Writer

N_KILLS = int(os.environ.get("STATESTORE_KILLS", "20"))
N_WRITERS = 4
N_PAIRS = 20  # of each writer between two kills
OK = b"+OK\r\n"

UNAVAILABLE = error("the state store is not available")


@pytest.fixture(params=["memory", "data"])
def flags(request, data):
    return ["--data-dir", data] if request.param == "data" else []


# Kills under load


class Killer:
    """Kills the store at a random moment, and starts it again. The store is connected to the broker through the proxy."""

    def __init__(self, site, proxy, seed):
        self.store = site.store
        self.proxy = proxy
        self.dice = random.Random(seed)

    def _wait(self):
        time.sleep(self.dice.uniform(0, 0.01))

    def kill(self):
        """Before the kill, the broker may receive nothing from the store, or the store nothing from the broker, or neither."""
        self._wait()
        hold = self.dice.choice([None, self.proxy.hold, self.proxy.hold, self.proxy.hold_replies])
        if hold:
            hold()
            self._wait()
        self.store.kill()
        self.proxy.cut()
        self.proxy.mend()
        self.store.start()


@pytest.fixture
def kill_under_load(make_site, proxy_of, flags):
    site = make_site()
    proxy = proxy_of(site)
    site.start_store("--port", proxy.port, *flags)
    killer = Killer(site, proxy, seed=1)
    writers = [Writer(site) for _ in range(N_WRITERS)]

    def run():
        for _ in range(N_KILLS):
            for writer in writers:
                writer.send(N_PAIRS)
            killer.kill()
        return [writer.receive() for writer in writers]

    run.site, run.writers = site, writers
    return run


def test_each_request_gets_one_reply_over_kills_of_the_store(kill_under_load, flags):
    """A store with data executes each request once. One without data may have lost the key before the deletion."""
    for pairs in kill_under_load():
        if flags:
            assert set(pairs) == {(OK, b":1\r\n")}
        else:
            assert set(pairs) <= {(OK, b":1\r\n"), (OK, b":0\r\n")}


@pytest.mark.parametrize("flags", ["data"], indirect=True)
def test_each_change_is_notified_once_over_kills_of_the_store(kill_under_load):
    watcher, = wire_clients(kill_under_load.site, 1)
    writers = kill_under_load.writers
    watcher.register(*(writer.key for writer in writers))

    kill_under_load()

    by_key = {writer.key: [] for writer in writers}
    n_changes = sum(2 * writer.n_sent for writer in writers)
    for _ in range(n_changes):
        notification = watcher.notification()
        key = bytes.fromhex(notification.topic.rsplit("/", 1)[1]).decode()
        by_key[key].append(resp.read(notification.payload)[1:])
    for writer in writers:
        assert by_key[writer.key] == [change for n in range(writer.n_sent) for change in (was_set(n), DELETED)]
    assert watcher.changes() == []


# Requests that wait for a store


def test_requests_sent_while_no_store_runs_are_executed_when_it_starts(make_site, flags):
    site = make_site()
    client, other = wire_clients(site, 2)
    assert client.request() == NO_SUBSCRIBERS, "no store has been connected: the broker has no session for it"
    store = site.start_store(*flags)
    store.stop()

    requests = [client.begin("SET", "key", n) for n in range(100)]
    request = other.begin("GET", "nothing")
    client.ping()
    store.start()

    assert {client.reply_to(request).payload for request in requests} == {OK}
    assert other.reply_to(request).payload == b"$-1\r\n"
    assert other.ask("GET", "key") == b"$2\r\n99\r\n"


def test_a_request_that_no_store_receives_in_time_gets_an_error_and_is_not_executed(make_site, tmp_path, monkeypatch):
    clock = SteppedClock(tmp_path)
    monkeypatch.setenv("STATESTORE_CLOCK", str(clock.path))
    clock.advance_monotonic(0)
    site = make_site("plugin_opt_statestored_wait 20", preload=[BUILD / "tests" / "libclock_shim.so"])
    http_port = free_port()
    store = site.start_store("--http-listen", f"127.0.0.1:{http_port}")
    client, = wire_clients(site, 1)
    store.stop()
    early = [client.begin("SET", f"early-{n}", "value") for n in range(10)]
    client.ping()

    clock.advance_monotonic(15)
    late = client.begin("SET", "late", "value")
    client.ping()
    clock.advance_monotonic(20)

    assert {client.reply_to(request).payload for request in early} == {UNAVAILABLE}
    store.start()
    assert client.reply_to(late).payload == OK
    assert {client.ask("GET", f"early-{n}") for n in range(10)} == {b"$-1\r\n"}
    with urllib.request.urlopen(f"http://127.0.0.1:{http_port}/metrics") as reply:
        assert 'statestore_plugin_refused_total{cause="store_unavailable"} 10\n' in reply.read().decode()


def test_a_store_without_data_executes_kept_requests_on_its_empty_state(make_site):
    """The first of them was sent to the former store, which has not reported its end."""
    site = make_site()
    store = site.start_store()
    client, watcher = wire_clients(site, 2)
    watcher.register("key")
    assert client.ask("SET", "key", "lost") == OK
    assert watcher.changes() == [was_set("lost")]

    with store.paused():
        commands = ("GET", "key"), ("DEL", "key"), ("SET", "key", "kept", "NX"), ("GET", "key")
        requests = [client.begin(*words) for words in commands]
        client.ping()
        store.kill()
    store.start()

    replies = [client.reply_to(request).payload for request in requests]
    assert replies == [b"$-1\r\n", b":0\r\n", OK, b"$4\r\nkept\r\n"]
    assert client.messages() == []
    assert watcher.wait_until_closed() == KICKED
    again = site.connect(watcher.id, WireClient)
    assert again.stop("key") == NOT_REGISTERED


# Registrations of connections that have ended


def test_keynotify_of_a_connection_that_ended_meanwhile_leaves_no_registration(make_site, flags):
    site = make_site()
    store = site.start_store("--max-registrations", 1, *flags)
    holder, other = wire_clients(site, 2)

    with store.paused():
        holder.begin("KEYNOTIFY", "key")
        holder.begin_and_disconnect("KEYNOTIFY", "another key")
        other.ping()
        store.kill()
    store.start()

    wait_until(lambda: other.ask("KEYNOTIFY", "key") == OK, "the registration of the ended connection has ended")
    again = site.connect(holder.id, WireClient)
    assert again.stop("key") == again.stop("another key") == NOT_REGISTERED
    assert other.ask("SET", "key", "value") == OK
    assert other.notification().payload.endswith(b"value\r\n")


def test_keynotify_of_a_connection_that_ended_after_its_commit_leaves_no_registration(make_site, proxy_of, data):
    """The store has committed the registration, and dies before it has reported the end of the request."""
    site = make_site()
    proxy = proxy_of(site)
    store = site.start_store("--data-dir", data, "--port", proxy.port)
    holder, other = wire_clients(site, 2)

    def n_registrations():
        return select(data, "SELECT count(*) FROM registrations")[0][0]

    proxy.hold()
    holder.begin("KEYNOTIFY", "key")
    wait_until(lambda: n_registrations() == 1, "the registration is committed")
    holder.disconnect()
    store.kill()
    proxy.cut()
    proxy.mend()
    store.start()

    assert other.ask("SET", "key", "value") == OK
    wait_until(lambda: n_registrations() == 0, "the registration has ended")
    assert site.connect(holder.id, WireClient).stop("key") == NOT_REGISTERED


# Floods


@pytest.mark.parametrize("qos", [0, 2])
def test_a_flood_at_another_qos_affects_no_other_client(make_site, qos):
    """Each message of the flood gets an error from the store, or from the plugin if too many wait."""
    site = make_site("plugin_opt_statestored_queue_bytes 1000000")
    store = site.start_store()
    hostile, other = wire_clients(site, 2)
    flood = [b"%d" % n for n in range(8000)]

    with store.paused():
        for correlation in flood:
            hostile.send(hostile.encode_publish(INVOKE, b"x" * 100, qos=qos, CorrelationData=correlation,
                                                ResponseTopic=hostile.response_topic))
        hostile.ping()
        requests = [other.begin("SET", "key", n) for n in range(100)]
        other.ping()

    assert {other.reply_to(request).payload for request in requests} == {OK}
    replies = {}
    while len(replies) < len(flood):
        reply = hostile.message(hostile.response_topic)
        assert reply.correlation not in replies
        replies[reply.correlation] = reply.payload
    assert set(replies) == set(flood)
    assert len(set(replies.values())) == 2 and error("too many requests are waiting") in replies.values()
    assert all(payload.startswith(b"-ERR") for payload in replies.values())
    assert store.running() and other.ask("GET", "key") == b"$2\r\n99\r\n"
