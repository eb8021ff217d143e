# SPDX-License-Identifier: Apache-2.0
"""What conf/mosquitto.conf and conf/mosquitto-acl.conf limit: the memory that a client takes, and the replies that it reads."""

import re
import struct
from pathlib import Path

import pytest

from support import resp
from support.broker import passwords, version
from support.client import INVOKE, Client, base16, notify_topic
from support.connection import NOT_AUTHORIZED, PUBACK, SUBACK, SUBSCRIBE, Connection, Disconnected
from support.flood import Flood
from support.message import error
from support.packets import number, packet, text
from support.process import wait_until
from support.published import DotnetClient, GoClient, RustClient
from support.wire_client import WireClient, was_set

CONF = Path(__file__).resolve().parents[3] / "conf"
LIMITS = dict(re.findall(r"^(max_\w+) (\d+)$", (CONF / "mosquitto.conf").read_text(), re.MULTILINE))
MAX_PACKET = int(LIMITS["max_packet_size"])
MIB = 1 << 20

CONNECT_MAX = MAX_PACKET if version() < (2, 0, 12) else 100_000
IN_FLIGHT_FACTOR = 1 if version() < (2, 0, 13) else 2  # how often the limits of the broker count what is in flight

EMPTY_PROPERTY = b"\x26\x00\x00\x00\x00"


def memory_bytes(process, name):
    status = Path(f"/proc/{process.child.pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024


def resident_bytes(process):
    return memory_bytes(process, "VmRSS")


def peak_bytes(process):
    return memory_bytes(process, "VmHWM")


@pytest.fixture
def limited(make_site):
    """A broker with the limits of conf/mosquitto.conf. Arguments of make() replace some of them."""

    def make(**instead):
        site = make_site(*(f"{name} {value}" for name, value in {**LIMITS, **instead}.items()))
        site.start_store()
        return site

    return make


def encoded(properties):
    """Return the properties behind their length."""
    return number(len(properties)) + properties


def test_a_value_of_4_mib_is_stored_read_and_notified_and_a_larger_one_is_refused(limited):
    """As in the smallest profile of Azure IoT Operations. The packets of the refused value pass the broker."""
    site = limited()
    client, watcher = site.connect(kind=WireClient), site.connect("w" * 128, WireClient)
    watcher.subscribe_to_notifications()
    watcher.register("key")
    value = b"v" * (4 * MIB)

    assert client.ask("SET", "key", value) == b"+OK\r\n"
    assert resp.read(client.ask("GET", "key")) == value
    assert watcher.changes() == [was_set(value)]
    assert client.ask("SET", "key", "v" * (MAX_PACKET - 512)) == error("the value is too large")


def test_a_value_that_nearly_fills_a_packet_is_stored_and_a_larger_one_disconnects_its_sender(limited):
    site = limited()
    client, other = site.connect(kind=WireClient), site.connect(kind=WireClient)
    value = "v" * (MAX_PACKET - 4096)

    assert client.ask("SET", "key", value) == b"+OK\r\n"
    assert len(client.ask("GET", "key")) > len(value)
    with pytest.raises(Disconnected):
        client.ask("SET", "key", "v" * MAX_PACKET)
    assert other.ask("DEL", "key") == b":1\r\n"


@pytest.mark.not_sanitized("sanitizers keep freed memory")
def test_a_will_with_millions_of_properties_is_refused(limited):
    """The plugin does not see wills."""
    site = limited()
    before = resident_bytes(site.broker)
    with pytest.raises(Disconnected):
        site.connect(None, WireClient, will=("any/topic", b""),
                     will_properties=encoded(EMPTY_PROPERTY * (MAX_PACKET // len(EMPTY_PROPERTY) + 1)))

    assert site.connect(kind=WireClient).ask("GET", "key") == b"$-1\r\n"
    assert resident_bytes(site.broker) - before < 4 * MAX_PACKET


@pytest.mark.not_sanitized("sanitizers keep freed memory")
def test_a_will_of_user_properties_takes_a_multiple_of_its_size(limited):
    """The largest wills that the broker accepts, at the store's topic. The plugin drops them: the store does not receive them.
    The documents say: 15 times their size in the broker."""
    site = limited()
    client = site.connect(kind=WireClient)
    before = [peak_bytes(process) for process in (site.broker, site.store)]

    properties = encoded(EMPTY_PROPERTY * ((CONNECT_MAX - 512) // len(EMPTY_PROPERTY)))
    for ghost in [site.connect(None, WireClient, will=(INVOKE, b""), will_properties=properties)
                  for _ in range(MAX_PACKET // CONNECT_MAX)]:
        ghost.cut()

    site.broker.wait_for_log("a message on the invoke topic is dropped: it is a will")
    assert client.ask("GET", "key") == b"$-1\r\n"
    in_broker, in_store = (peak_bytes(process) - peak for process, peak in zip((site.broker, site.store), before))
    assert 10 * MAX_PACKET < in_broker < 20 * MAX_PACKET
    assert in_store < MAX_PACKET


def take_replies(site, slow, value, n_requests):
    """Have the slow client ask for n_requests replies with the value. Return by how much the memory of the broker grows."""
    other = site.connect(kind=WireClient)
    assert other.ask("SET", "large", value) == b"+OK\r\n"
    before = resident_bytes(site.broker)
    for _ in range(n_requests):
        slow.begin("GET", "large")

    # Requests of both clients are served in turns: when these have replies, those of the other client are published.
    for n in range(2 * n_requests):
        assert other.ask("SET", "small", n) == b"+OK\r\n"
    return resident_bytes(site.broker) - before


@pytest.mark.not_sanitized("sanitizers keep freed memory")
@pytest.mark.parametrize("instead, is_bounded", [({}, True), ({"max_queued_bytes": 1 << 30}, False)])
def test_max_inflight_and_max_queued_bytes_bound_the_memory_of_a_client_that_reads_no_replies(limited, instead, is_bounded):
    """With the limits of the file. mosquitto has each payload in its message. Before 2.0.13 it has each also in the packet that
    it tries to send, and since then only those in flight."""
    in_flight, queued = int(LIMITS["max_inflight_bytes"]), int(LIMITS["max_queued_bytes"])
    taken = 2 * (in_flight + queued) if version() < (2, 0, 13) else 3 * in_flight + queued
    length = MAX_PACKET - 4096
    site = limited(**instead)
    slow = site.connect(kind=WireClient)

    grown = take_replies(site, slow, "v" * length, 3 * (in_flight + queued) // (2 * length))

    assert (f"messages are being dropped for client {slow.id}" in site.broker.log()) == is_bounded
    assert grown > 0.9 * taken
    assert (grown < taken + 16 * MIB) == is_bounded
    slow.cut()
    other = site.connect(kind=WireClient)
    wait_until(lambda: other.ask("GET", "small").startswith(b"$"), "another client is served")


@pytest.mark.not_sanitized("the limit is one of mosquitto, which has no sanitizers")
@pytest.mark.parametrize("n_queued, n_waiting", [(1000, 1000 + 10 * IN_FLIGHT_FACTOR), (LIMITS["max_queued_messages"], 3000)])
def test_max_queued_messages_bounds_the_number_of_small_replies_that_wait(limited, n_queued, n_waiting):
    """With a lower limit than that of the file. The limit does not count the replies in flight."""
    site = limited(max_queued_messages=n_queued)
    slow = site.connect(kind=WireClient, properties=b"\x21\x00\x0A")  # Receive Maximum 10

    take_replies(site, slow, "v", 3000)

    for _ in range(n_waiting):
        slow.message(slow.response_topic)
    slow.ping()
    assert slow.messages() == []
    assert (f"messages are being dropped for client {slow.id}" in site.broker.log()) == (n_waiting < 3000)


class Silent(WireClient):
    """Acknowledges no message."""

    def send(self, data):
        if data[0] >> 4 != PUBACK:
            super().send(data)


@pytest.mark.not_sanitized("the limit is one of mosquitto, which has no sanitizers")
def test_a_client_that_acknowledges_nothing_has_a_limited_number_of_replies_in_flight(limited):
    """For each PUBACK mosquitto searches the list of the messages in flight to this client."""
    n_in_flight = int(LIMITS["max_inflight_messages"])
    site = limited()
    slow = site.connect(kind=Silent)

    take_replies(site, slow, "v", n_in_flight + 200)

    slow.ping()
    assert len(slow.messages()) == n_in_flight


@pytest.mark.not_sanitized("sanitizers keep freed memory")
def test_one_client_may_have_any_number_of_subscriptions(limited):
    """No option of mosquitto limits it."""
    n_packets, n_filters, length = 200, 50, 1900
    site = limited()
    client = site.connect(kind=WireClient)
    before = resident_bytes(site.broker)
    for at in range(n_packets):
        filters = (text(f"{at}/{n}/".encode().ljust(length, b"x")) + b"\x01" for n in range(n_filters))
        client.send(packet(SUBSCRIBE << 4 | 2, struct.pack("!H", at + 1) + b"\x00" + b"".join(filters)))
        assert client._wait_for(SUBACK).endswith(b"\x01" * n_filters)

    assert resident_bytes(site.broker) - before > n_packets * n_filters * length


def test_a_client_that_fills_its_share_of_the_queues_loses_no_request_of_others(limited):
    """Its own further requests get an error."""
    site = limited(plugin_opt_statestored_queue_bytes=10 * MAX_PACKET)
    victim, hostile = site.connect(kind=WireClient), site.connect(kind=WireClient)
    with site.store.paused():
        large = [hostile.begin("SET", f"large-{n}", "v" * (MAX_PACKET - 4096)) for n in range(14)]
        small = [hostile.begin("SET", f"small-{n}", "v") for n in range(1000)]
        hostile.ping()
        requests = [victim.begin("SET", f"key-{n}", "value") for n in range(100)]
        victim.ping()

    assert {victim.reply_to(request).payload for request in requests} == {b"+OK\r\n"}
    replies = [hostile.reply_to(request).payload for request in large + small]
    assert set(replies) == {b"+OK\r\n", error("too many requests are waiting")}
    assert 8 <= replies[:len(large)].count(b"+OK\r\n") <= 9  # 4/5 of the queues, and one in a frame
    assert hostile.messages() == victim.messages() == []
    assert "messages are being dropped" not in site.broker.log()


def flood_with_large_requests(site):
    hostile = site.connect(kind=WireClient)
    for _ in range(30):
        hostile.begin("SET", "key", "v" * (MAX_PACKET - 4096))
        hostile.acknowledgement()


def flood_with_many_requests(site):
    site.connect(kind=Flood).send(70000, "GET", "key")


@pytest.mark.parametrize("instead, flood", [
    ({"max_inflight_bytes": MIB}, flood_with_large_requests),
    ({"max_inflight_bytes": MIB, "max_queued_bytes": 12 * MIB}, flood_with_large_requests),
    ({}, flood_with_many_requests),
])
def test_a_backlog_does_not_hide_the_plugin_from_a_store_that_starts(limited, instead, flood):
    """The banner waits behind the backlog, or is dropped with it. Without the plugin any client could pose as another."""
    site = limited(**instead)
    client = site.connect(kind=WireClient)
    site.store.kill()
    flood(site)
    site.store.start()

    client.wait_until_served()
    assert client.ask("GET", "other") == b"$-1\r\n"
    assert "the broker has no plugin" not in site.store.log()


# Access to replies


USERS = {"statestored": "of the store", "alice": "of alice", "pump": "of pump"}


@pytest.fixture
def site_with_acl(make_site, tmp_path):
    """A broker with conf/mosquitto-acl.conf."""
    (tmp_path / "password").write_text(USERS["statestored"])
    site = make_site("plugin_opt_statestored_username statestored", "allow_anonymous false",
                     f"password_file {passwords(tmp_path, **USERS)}", f"acl_file {CONF / 'mosquitto-acl.conf'}")
    site.start_store("--user", "statestored", "--password-file", tmp_path / "password")
    return site


def of(user):
    return {"username": user, "password": USERS[user]}


@pytest.mark.parametrize("kind", [RustClient, DotnetClient, GoClient, Client])
@pytest.mark.parametrize("client_id", ["pump-1", "a/b", "/"])
def test_the_published_clients_work_with_the_rules(site_with_acl, kind, client_id):
    client = site_with_acl.connect(client_id, kind, **of("alice"))

    assert client.request("SET", "key", 1).payload == b"+OK\r\n"
    client.watch("key")
    assert client.request("SET", "key", 2).payload == b"+OK\r\n"
    assert client.notification().payload.endswith(b"$1\r\n2\r\n")


def forms(client_id):
    """The response topics that the plugin grants this client."""
    return {kind: kind.reply_topic(client_id) for kind in (Client, RustClient, DotnetClient, GoClient)}


# The first id is a part of the second, the third and the fourth. In base16, the fifth is the first.
IDS = ["AB", "AB/services", "AB/x", "x/AB", base16("AB"), base16(base16("AB")), "clients", "AB/", "/AB"]


@pytest.mark.parametrize("victim_id", IDS)
def test_no_client_id_reads_the_replies_to_another(site_with_acl, victim_id):
    victim = site_with_acl.connect(victim_id, WireClient, **of("alice"))
    thieves = [Connection(site_with_acl.broker.port, client_id, **of("pump")) for client_id in IDS if client_id != victim_id]
    for thief in thieves:
        for topic in ("#", "+/#", "clients/#", f"clients/{thief.id}/#", f"clients/{base16(thief.id)}/#", "$share/group/clients/#",
                      *forms(victim_id).values()):
            thief.subscribe(topic)

    assert victim.ask("SET", "key", "a secret") == b"+OK\r\n"
    for topic in forms(victim_id).values():
        victim.begin("GET", "key", response_topic=topic)
    assert victim.ask("GET", "key") == b"$8\r\na secret\r\n"

    for thief in thieves:
        assert thief.messages() == []
        thief.cut()


def test_replies_that_wait_in_a_session_are_read_by_its_client_only(site_with_acl):
    """At a reconnect mosquitto checks again whether the client may read what waits in its session."""
    replies = forms("a/b")
    client = site_with_acl.connect("a/b", WireClient, session_expiry=3600, **of("pump"))
    thief = Connection(site_with_acl.broker.port, "a", session_expiry=3600, **of("alice"))
    writer = site_with_acl.connect("writer", WireClient, **of("alice"))
    for topic in replies.values():
        client.subscribe(topic)
        thief.subscribe(topic)
    seen = len(site_with_acl.broker.log())
    client.cut()
    thief.cut()
    for client_id in ("a/b", "a"):
        site_with_acl.broker.wait_until_disconnected(client_id, after=seen)
    for topic in replies.values():
        writer.begin("SET", "key", 1, response_topic=topic)
    assert writer.ask("GET", "key") == b"$1\r\n1\r\n"

    client = Connection(site_with_acl.broker.port, "a/b", clean_start=False, session_expiry=3600, **of("pump"))
    thief = Connection(site_with_acl.broker.port, "a", clean_start=False, session_expiry=3600, **of("alice"))

    assert client.session_present and thief.session_present
    assert sorted(message.topic for message in client.messages()) == sorted(replies.values())
    assert thief.messages() == []
    client.cut()
    thief.cut()


def test_no_client_publishes_or_keeps_a_reply(site_with_acl):
    """Neither by PUBLISH, nor retained, nor as a will. A forged reply would be one that the client cannot distinguish."""
    victim = site_with_acl.connect("victim", WireClient, **of("alice"))
    forger = Connection(site_with_acl.broker.port, "forger", will=(victim.response_topic, b"forged"), **of("pump"))

    for retain in (False, True):
        assert forger.publish(victim.response_topic, b"forged", retain=retain) == NOT_AUTHORIZED
    forger.cut()
    site_with_acl.broker.wait_until_disconnected("forger")

    assert victim.ask("GET", "key") == b"$-1\r\n"
    victim.subscribe(victim.response_topic)
    assert victim.messages() == []


def reconnect_unread(site, client_id, user, reconnected_user=None):
    """Cut the connection of a watcher that has not acknowledged a notification, and connect again to its session."""
    watcher = site.connect(client_id, WireClient, session_expiry=3600, **of(user))
    writer = site.connect("writer", WireClient, **of("alice"))
    watcher.register("key")
    assert writer.ask("SET", "key", "a value") == b"+OK\r\n"  # the broker has the notification before the reply
    seen = len(site.broker.log())
    watcher.cut()
    site.broker.wait_until_disconnected(client_id, after=seen)
    again = Connection(site.broker.port, client_id, clean_start=False, session_expiry=3600, **of(reconnected_user or user))
    assert again.session_present
    return again


@pytest.mark.parametrize("client_id", ["rust-1", "a b %c \u00fc", "clients", "x" * 200])
def test_a_notification_that_waits_in_a_session_arrives_with_the_rules(site_with_acl, client_id):
    """At a reconnect mosquitto checks again whether the client may read what waits in its session."""
    client = reconnect_unread(site_with_acl, client_id, "pump")

    [notification] = client.messages()
    assert notification.topic == notify_topic(client_id, "key")
    assert resp.read(notification.payload)[1:] == was_set("a value")
    client.cut()


def test_a_user_that_takes_over_a_session_reads_its_notifications(site_with_acl):
    thief = reconnect_unread(site_with_acl, "rust-1", "pump", "alice")

    assert [message.topic for message in thief.messages()] == [notify_topic("rust-1", "key")]
    thief.cut()
