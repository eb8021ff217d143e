# SPDX-License-Identifier: Apache-2.0
"""A watcher that does not read or acknowledge holds up no other one, and has a bounded queue in the broker.

The broker queues notifications for such a watcher up to max_inflight_bytes and max_queued_bytes together, and drops the
later ones. With log_dest topic the plugin then disconnects it.
"""

import re
import urllib.request

import pytest

from support import resp
from support.broker import free_port, version
from support.connection import KICKED, NOT_AUTHORIZED, PUBACK, SUCCESS
from support.plugin import site_with  # noqa: F401 fixture
from support.wire_client import WireClient, was_set

WATCHERS = 20
CHANGES = 300
VALUE_SIZE = 20_000

INFLIGHT_BYTES = 200_000
QUEUED_BYTES = 1_000_000
LIMITS = f"max_inflight_bytes {INFLIGHT_BYTES}", f"max_queued_bytes {QUEUED_BYTES}"

LOG_TOPIC = "$SYS/broker/log/N"
DROPPING = "Outgoing messages are being dropped for client "


class Watcher(WireClient):
    """Can withhold its acknowledgements."""

    def __init__(self, *args, **more):
        self.is_acknowledging = True
        self._withheld = b""
        super().__init__(*args, **more)

    def send(self, data):
        if self.is_acknowledging or data[0] >> 4 != PUBACK:
            super().send(data)
        else:
            self._withheld += data

    def acknowledge(self):
        self.is_acknowledging = True
        if self._withheld:
            self.send(self._withheld)
            self._withheld = b""

    def numbers(self):
        """Read all notifications that wait for this watcher: the numbers of their values."""
        numbers = []
        while messages := self.messages():
            numbers += [int(resp.read(message.payload)[3].split(b":")[0]) for message in messages]
        return numbers


def value(n):
    return b"%03d:" % n + b"x" * VALUE_SIZE


PAYLOAD_SIZE = len(resp.request("NOTIFY", *was_set(value(0))))


# Number of notifications that the broker queues for one client. The last of them reaches the limit.
ACCEPTED_BYTES = INFLIGHT_BYTES * (2 if version() >= (2, 0, 13) else 1) + QUEUED_BYTES
ACCEPTED = -(-ACCEPTED_BYTES // PAYLOAD_SIZE)


@pytest.fixture
def site(make_site):
    site = make_site(*LIMITS, "sys_interval 1")
    site.start_store()
    return site


class LoggedSite:
    """A site whose broker publishes its log, and whose store shows its metrics."""

    def __init__(self, site):
        self.site = site
        self.broker = site.broker
        self.connect = site.connect
        self.http_port = free_port()
        self.store = site.start_store("--http-listen", f"127.0.0.1:{self.http_port}")

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return next(int(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    def n_disconnected(self):
        return self.metric("statestore_slow_watchers_disconnected_total")

    def wait_for_drop(self, client):
        self.broker.wait_for_log(DROPPING + re.escape(client.id))


@pytest.fixture
def logged(make_site):
    return LoggedSite(make_site(*LIMITS, "log_dest stderr", "log_dest topic"))


@pytest.fixture
def setter(site):
    return site.connect(kind=WireClient)


def watch(site, **more):
    watcher = site.connect(kind=Watcher, **more)
    watcher.register("key")
    return watcher


def change(setter, numbers, watchers=()):
    """Set the key to each of these values in turn, and have each of these watchers see it."""
    for n in numbers:
        assert setter.ask("SET", "key", value(n)) == b"+OK\r\n"
        for watcher in watchers:
            assert resp.read(watcher.notification().payload)[1:] == was_set(value(n))


def wait_for_statistic(site, topic, expected):
    client = site.connect(kind=WireClient)
    client.subscribe(f"$SYS/broker/{topic}", 0)
    while int(client.message(f"$SYS/broker/{topic}").payload) != expected:
        pass


def test_a_watcher_that_does_not_read_holds_up_no_other_and_has_a_bounded_queue(site, setter):
    slow = watch(site)
    watchers = [watch(site) for _ in range(WATCHERS)]

    change(setter, range(CHANGES), watchers)

    for watcher in watchers:
        assert watcher.numbers() == []
    wait_for_statistic(site, "publish/messages/dropped", CHANGES - ACCEPTED)
    site.broker.wait_for_log(f"Outgoing messages are being dropped for client {slow.id}")


def test_a_watcher_that_reads_again_misses_what_was_dropped_and_gets_later_changes(site, setter):
    slow = watch(site)
    change(setter, range(CHANGES))

    assert slow.numbers() == list(range(ACCEPTED))
    change(setter, [CHANGES], [slow])
    assert slow.ask("GET", "key").endswith(value(CHANGES) + b"\r\n")


def test_a_watcher_that_never_acknowledges_holds_up_no_other(site, setter):
    slow = watch(site)
    watchers = [watch(site) for _ in range(WATCHERS)]
    slow.is_acknowledging = False

    change(setter, range(CHANGES), watchers)

    numbers = slow.numbers()
    slow.acknowledge()
    assert numbers + slow.numbers() == list(range(ACCEPTED))


def test_a_session_keeps_what_waited_at_the_disconnect_and_gets_nothing_more(site, setter):
    slow = watch(site, session_expiry=1000)
    change(setter, range(CHANGES))
    slow.cut()
    wait_for_statistic(site, "clients/disconnected", 1)
    change(setter, range(CHANGES, CHANGES + 10))

    again = site.connect(slow.id, kind=Watcher, clean_start=False, session_expiry=1000)

    assert again.session_present
    assert again.numbers() == list(range(ACCEPTED))
    change(setter, [CHANGES + 10])
    assert again.numbers() == []
    again.register("key")
    change(setter, [CHANGES + 11], [again])


# With log_dest topic the plugin reads the broker's log.


def lose_messages(logged, client, publisher):
    """Make the broker drop messages for the client, which does not acknowledge. The client stays connected."""
    client.subscribe("fill")
    client.is_acknowledging = False
    for _ in range(CHANGES):
        publisher.publish("fill", b"x" * VALUE_SIZE)
    client.ping()
    logged.wait_for_drop(client)


def lose_messages_undisturbed(logged, client, publisher):
    """Check that a client that loses messages, and later acknowledges, stays connected."""
    lose_messages(logged, client, publisher)
    client.acknowledge()
    client.messages()
    assert client.still_works()


@pytest.mark.parametrize("n_slow", [1, 3])
def test_a_slow_watcher_is_disconnected_and_can_register_again(logged, n_slow):
    slow = [watch(logged) for _ in range(n_slow)]
    for watcher in slow:
        watcher.is_acknowledging = False
    watchers = [watch(logged) for _ in range(WATCHERS)]
    setter = logged.connect(kind=WireClient)

    change(setter, range(CHANGES), watchers)

    for watcher in slow:
        watcher.wait_until_closed()
    assert setter.ask("GET", "key").endswith(value(CHANGES - 1) + b"\r\n")
    assert logged.n_disconnected() == n_slow
    assert logged.metric("statestore_registrations") == WATCHERS
    for watcher in watchers:
        assert watcher.numbers() == []
    for watcher in slow:
        assert re.search(rf'slow watcher disconnected.*client="?{watcher.id}', logged.store.log())
        again = logged.connect(watcher.id, kind=Watcher)
        assert again.numbers() == []
        assert again.stop("key") == b":0\r\n"
        again.register("key")
        change(setter, [CHANGES], [again])


def test_a_watcher_that_loses_other_messages_is_disconnected(logged):
    slow, publisher = watch(logged), logged.connect(kind=WireClient)
    slow.subscribe("fill")
    slow.is_acknowledging = False

    for _ in range(CHANGES):
        publisher.publish("fill", b"x" * VALUE_SIZE)

    assert slow.wait_until_closed() == KICKED
    publisher.ask("GET", "key")
    assert logged.n_disconnected() == 1


def test_a_slow_client_is_disconnected_only_when_it_registers(logged):
    slow, publisher = logged.connect(kind=Watcher), logged.connect(kind=WireClient)
    assert slow.still_works()
    lose_messages_undisturbed(logged, slow, publisher)

    slow.begin("KEYNOTIFY", "key")

    assert slow.wait_until_closed() == KICKED
    publisher.ask("GET", "key")
    assert logged.n_disconnected() == 1


def test_a_watcher_that_has_stopped_is_not_disconnected(logged):
    slow, publisher = watch(logged), logged.connect(kind=WireClient)
    assert slow.stop("key") == b"+OK\r\n"

    lose_messages_undisturbed(logged, slow, publisher)

    assert logged.n_disconnected() == 0


def forging_ids(victim):
    line = f"{DROPPING}{victim.id}."
    return [line, f": {line}", f"1: {line}", f"x: {line}"]


def test_no_client_forges_a_line_of_the_log(logged):
    victim = watch(logged)

    for client_id in forging_ids(victim):
        forger = logged.connect(client_id, kind=WireClient, will=(LOG_TOPIC, b"1: " + forging_ids(victim)[0].encode()))
        for topic in "broker/log/N", "SYS/broker/log/N", "$SYS/statestore/broker/log/N":
            forger.publish(topic, client_id.encode(), retain=True)
        assert forger.publish(LOG_TOPIC, client_id.encode()) == NOT_AUTHORIZED
        forger.send(b"\xf0\x00\x00")
        forger.wait_until_closed()

    slow, publisher = logged.connect(f"x: {DROPPING}{victim.id}", kind=Watcher), logged.connect(kind=WireClient)
    lose_messages(logged, slow, publisher)
    victim.ping()
    assert victim.still_works()
    assert victim.stop("key") == b"+OK\r\n"
    assert logged.n_disconnected() == 0


def test_the_plugin_says_whether_it_reads_the_log(logged, make_site):
    unlogged = make_site()
    unlogged.start_store()

    unlogged.broker.wait_for_log("statestore: slow watchers are not disconnected")
    assert "store connected" in logged.broker.log()
    assert "slow watchers are not disconnected" not in logged.broker.log()


def test_the_plugin_keeps_the_log_from_the_store(site_with):
    site = site_with("log_dest stderr", "log_dest topic")
    peer = site.served()
    assert peer.subscribe(LOG_TOPIC, 0) == SUCCESS

    site.connect("noisy").disconnect()

    assert "noisy" in site.broker.log()
    assert peer.messages() == []


@pytest.mark.parametrize("line", ["acl_file {rules}", "plugin_opt_undecided deny"])
def test_the_plugin_reads_the_log_without_an_access_rule(site_with, tmp_path, line):
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite other\n")
    site = site_with(line.format(rules=rules), "log_dest stderr", "log_dest topic")
    peer = site.peer()
    peer.subscribe(LOG_TOPIC, 0)

    peer.hello()

    assert "statestore: store connected" in site.broker.log()
    assert "slow watchers are not disconnected" not in site.broker.log()
