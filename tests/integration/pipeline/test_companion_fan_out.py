# SPDX-License-Identifier: Apache-2.0
"""A key with many watchers: the store sends frames, and the plugin notifies each watcher once and in order."""

import pytest

from support import companion
from support.connection import PUBLISH
from support.packets import packets
from support.plugin import CONTROL
from support.wire_client import DELETED, WireClient, was_set, wire_clients

N_WATCHERS = 300


def registered(site, n_clients, key="key"):
    watchers = wire_clients(site, n_clients)
    for watcher in watchers:
        watcher.register(key)
    return watchers


@pytest.fixture(params=[None, 1000], ids=["large frames", "small frames"])
def site(make_site, request):
    """Two packet sizes: a frame has as many recipients as the store puts in one, or as the packet has room for."""
    site = make_site(*([f"max_packet_size {request.param}"] if request.param else []))
    site.start_store()
    return site


def test_all_watchers_are_notified_of_all_changes_once_and_in_order(site):
    writer, *watchers = wire_clients(site, 1) + registered(site, N_WATCHERS)

    correlations = [writer.begin("SET", "key", n) for n in range(20)]
    assert {writer.reply_to(each).payload for each in correlations} == {b"+OK\r\n"}
    assert writer.ask("DEL", "key") == b":1\r\n"

    for watcher in watchers:
        assert watcher.changes() == [*(was_set(n) for n in range(20)), DELETED]


def test_watchers_that_disconnect_meanwhile_are_skipped(site):
    writer, *watchers = wire_clients(site, 1) + registered(site, 60)

    for n, watcher in enumerate(watchers[::2]):
        watcher.disconnect() if n % 2 else watcher.cut()
    assert writer.ask("SET", "key", "value") == b"+OK\r\n"

    for watcher in watchers[1::2]:
        assert watcher.changes() == [was_set("value")]
    for watcher in watchers[::2]:
        assert site.connect(watcher.id, kind=WireClient).changes() == []


def test_a_resent_frame_is_not_published_again(make_site, proxy_of):
    """The store's connection breaks before the PUBACK of the frame arrives."""
    site = make_site()
    proxy = proxy_of(site)
    store = site.start_store("--port", proxy.port)
    writer, *watchers = wire_clients(site, 1) + registered(site, 5)
    assert writer.ask("SET", "key", "value", "PX", 500) == b"+OK\r\n"

    proxy.hold_replies()
    for watcher in watchers:
        assert watcher.notification().payload.endswith(b"value\r\n")
        assert watcher.notification().payload == b"*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n"
    seen = len(store.log())
    proxy.reset()
    store.wait_for_log("ready: .*the plugin", after=seen)

    assert writer.ask("SET", "key", "next") == b"+OK\r\n"
    for watcher in watchers:
        assert watcher.changes() == [was_set("next")]


def test_large_values_reach_all_watchers(make_site):
    """Frames with large values have few recipients, because the broker copies the value for each of them."""
    site = make_site()
    site.start_store()
    writer, *watchers = wire_clients(site, 1) + registered(site, 10)

    for n in range(3):
        assert writer.ask("SET", "key", b"%d" % n + b"v" * 5000000) == b"+OK\r\n"

    for watcher in watchers:
        assert [change[2][:1] for change in watcher.changes()] == [b"0", b"1", b"2"]


FRAME_TOPIC = CONTROL.encode() + b"frame"


def published_frames(data):
    """Return the payloads of the frames among the packets that the store has sent."""
    frames = []
    for head, body in packets(data):
        if head >> 4 == PUBLISH and body[2:].startswith(FRAME_TOPIC):
            properties_at = 2 + len(FRAME_TOPIC)
            assert head == PUBLISH << 4 and body[properties_at] < 0x80, "QoS 0, not retained, with few properties"
            frames.append(bytes(body[properties_at + 1 + body[properties_at]:]))
    return frames


def test_a_frame_has_a_limited_number_of_copies(make_site, proxy_of):
    """The broker makes a copy of topic and value for each recipient, and reads no packet meanwhile. After each frame it reads a
    packet of each other client. The topic of a key of 30 kB has 60 kB."""
    site = make_site()
    proxy = proxy_of(site)
    site.start_store("--port", proxy.port)
    key = "k" * 30000
    writer, *watchers = wire_clients(site, 1) + registered(site, 100, key)

    proxy.is_recording = True
    assert writer.ask("SET", key, "value") == b"+OK\r\n"
    for watcher in watchers:
        assert watcher.changes()[0] == was_set("value")

    notifications = [record for frame in published_frames(proxy.recorded) for record in companion.read_frame_to_plugin(frame)
                     if isinstance(record, companion.Notification) and record.key == key.encode()]
    # 4 MiB of copies: OUTBOX_FRAMES_BROKER_BYTES_MAX in server/pipeline/outbox_frames.h
    assert [len(each.recipients) for each in notifications] == [68, 32]
    assert [(each.index, each.is_last) for each in notifications] == [(0, False), (68, True)]
