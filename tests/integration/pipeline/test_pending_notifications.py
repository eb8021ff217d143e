# SPDX-License-Identifier: Apache-2.0
"""A store with a data directory is killed between the commit of a change and its notification, or before it knows that the
notification is acknowledged. With the plugin each notification arrives once, in order; on a plain broker at least once.

While the store's messages are held, the plugin has one frame outstanding: one request. So if several requests must be executed,
they wait for the store, and it executes them when it starts."""

import urllib.request

import pytest

from support.broker import free_port
from support.process import wait_until
from support.plugin import CONTROL
from support.stored import notified_keys
from support.wire_client import DELETED, WireClient, was_set


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def proxied_site(make_site, data, proxy_of, *lines, **more):
    """A store behind a proxy."""
    site = make_site(*lines, **more)
    proxy = proxy_of(site)
    store = site.start_store("--data-dir", data, "--port", proxy.port)
    return site, proxy, store


def commit_unpublished(proxy, data, writer, *requests):
    """Hold the messages of the store, and send these requests. Return when their changes are committed."""
    proxy.hold()
    begun = [writer.begin(*request) for request in requests]
    wait_until(lambda: notified_keys(data) == [request[1] for request in requests], "the changes are committed")
    return begun


def commit_after_start(proxy, data, store, writer, begin):
    """Kill the store, send requests of the writer, and start the store. Return when further changes are committed, and not
    published: after the first frame, without which the plugin sends no request, the messages of the store are held. Then the plugin sends
    two frames, whose sizes follow the time that requests have taken: at least two requests."""
    if store.running():
        store.kill()
    before = notified_keys(data)
    begun = begin()
    writer.ping()  # the broker has read them: one that came later would wait for the end of the frames before it
    proxy.hold_after(CONTROL.encode() + b"frame")
    store.launch()
    wait_until(lambda: notified_keys(data) not in ([], before), "further changes are committed")
    return begun


def kill_before_publishing(proxy, store):
    """Kill the store. The broker never receives what the store has sent since hold()."""
    store.kill()
    proxy.cut()
    proxy.mend()


def test_a_change_that_was_committed_but_not_published_is_notified_once_after_the_restart(make_site, data, proxy_of):
    site, proxy, store = proxied_site(make_site, data, proxy_of)
    watcher, writer = (site.connect(kind=WireClient) for _ in range(2))
    watcher.register("lock")
    writer.ask("SET", "lock", "held")
    assert watcher.changes() == [was_set("held")]
    wait_until(lambda: notified_keys(data) == [], "the first notification is acknowledged")

    [release] = commit_unpublished(proxy, data, writer, ("DEL", "lock"))
    kill_before_publishing(proxy, store)
    store.start()

    assert writer.reply_to(release).payload == b":1\r\n"
    writer.ask("SET", "lock", "held again")
    assert watcher.changes() == [DELETED, was_set("held again")]
    wait_until(lambda: notified_keys(data) == [], "the notifications are acknowledged")


def test_changes_of_several_commits_are_notified_in_order_and_before_later_changes(make_site, data, proxy_of):
    site, proxy, store = proxied_site(make_site, data, proxy_of)
    watcher, other, writer = (site.connect(kind=WireClient) for _ in range(3))
    watcher.register("a", "b")
    other.register("b")

    def begin(numbers):
        return [writer.begin("SET", "ab"[n % 2], n) for n in numbers]

    requests = commit_after_start(proxy, data, store, writer, lambda: begin(range(1)))
    kill_before_publishing(proxy, store)
    requests += commit_after_start(proxy, data, store, writer, lambda: begin(range(1, 25)))
    kill_before_publishing(proxy, store)
    store.start()

    assert {writer.reply_to(request).payload for request in requests} == {b"+OK\r\n"}
    writer.ask("SET", "b", "last")
    assert watcher.changes() == [was_set(n) for n in range(25)] + [was_set("last")]
    assert other.changes() == [was_set(n) for n in range(1, 25, 2)] + [was_set("last")]


def test_a_published_notification_is_not_repeated_although_its_row_is_still_stored(make_site, data, proxy_of):
    site, proxy, store = proxied_site(make_site, data, proxy_of)
    watcher, writer = (site.connect(kind=WireClient) for _ in range(2))
    watcher.register("key")

    [request] = commit_unpublished(proxy, data, writer, ("SET", "key", "value"))
    proxy.hold_replies()  # the notification is published, and the store does not learn it
    assert watcher.notification().payload.endswith(b"value\r\n")
    assert notified_keys(data) == ["key"]
    kill_before_publishing(proxy, store)
    store.start()

    assert writer.reply_to(request).payload == b"+OK\r\n"
    assert watcher.changes() == []
    wait_until(lambda: notified_keys(data) == [], "WELCOME has said that it is published")


def test_several_restarts_do_not_repeat_or_lose_a_notification(make_site, data, proxy_of):
    site, proxy, store = proxied_site(make_site, data, proxy_of)
    watcher, writer = (site.connect(kind=WireClient) for _ in range(2))
    watcher.register("key")

    for n in range(4):
        [request] = commit_unpublished(proxy, data, writer, ("SET", "key", n))
        kill_before_publishing(proxy, store)
        store.start()
        assert writer.reply_to(request).payload == b"+OK\r\n"
        assert watcher.changes() == [was_set(n)]
        wait_until(lambda: notified_keys(data) == [], "the notification is acknowledged")


def test_stored_notifications_for_ended_connections_are_removed(make_site, data, proxy_of):
    site, proxy, store = proxied_site(make_site, data, proxy_of)
    watcher, writer = (site.connect(kind=WireClient) for _ in range(2))
    watcher.register("key")

    [request] = commit_unpublished(proxy, data, writer, ("SET", "key", "value"))
    watcher.disconnect()
    kill_before_publishing(proxy, store)
    store.start()

    assert writer.reply_to(request).payload == b"+OK\r\n"
    wait_until(lambda: notified_keys(data) == [], "there is nothing to deliver")


def test_stored_notifications_are_removed_after_a_broker_restart(make_site, data, proxy_of):
    site, proxy, store = proxied_site(make_site, data, proxy_of)
    watcher, writer = (site.connect(kind=WireClient) for _ in range(2))
    watcher.register("key")

    commit_unpublished(proxy, data, writer, ("SET", "key", "value"))
    site.broker.kill()
    kill_before_publishing(proxy, store)
    site.broker.start_again()
    store.start()

    wait_until(lambda: notified_keys(data) == [], "the connections have ended")
    again, writer = (site.connect(kind=WireClient) for _ in range(2))
    again.register("key")
    writer.ask("SET", "key", "next")
    assert again.changes() == [was_set("next")]


def test_only_watched_keys_have_rows(make_site, data, proxy_of):
    site, proxy, store = proxied_site(make_site, data, proxy_of)
    watcher, writer = (site.connect(kind=WireClient) for _ in range(2))
    watcher.register("watched")

    def begin():
        return [writer.begin("SET", key, "value") for key in ("other", "watched", "another", "watched")]

    requests = commit_after_start(proxy, data, store, writer, begin)
    proxy.mend()

    assert {writer.reply_to(request).payload for request in requests} == {b"+OK\r\n"}

    assert watcher.changes() == [was_set("value")] * 2


def test_the_gauge_shows_pending_notifications(make_site, data, proxy_of):
    site = make_site()
    proxy = proxy_of(site)
    http_port = free_port()
    store = site.start_store("--data-dir", data, "--port", proxy.port, "--http-listen", f"127.0.0.1:{http_port}")

    def gauge():
        with urllib.request.urlopen(f"http://127.0.0.1:{http_port}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("statestore_pending_notifications "))

    watcher, writer = (site.connect(kind=WireClient) for _ in range(2))
    watcher.register("key")
    commit_after_start(proxy, data, store, writer, lambda: [writer.begin("SET", "key", n) for n in range(3)])
    wait_until(lambda: gauge() == len(notified_keys(data)), "no commit is under way")
    proxy.mend()
    wait_until(lambda: gauge() == 0, "the notifications are acknowledged")


@pytest.mark.parametrize("n_changes", [1, 20])
def test_on_a_plain_broker_a_committed_change_is_notified_after_the_restart(make_site, data, proxy_of, n_changes):
    site, proxy, store = proxied_site(make_site, data, proxy_of, plugin=False)
    watcher, writer = (site.connect(kind=WireClient, session_expiry=100) for _ in range(2))
    watcher.subscribe_to_notifications()
    watcher.register("key")

    requests = commit_unpublished(proxy, data, writer, *(("SET", "key", n) for n in range(n_changes)))
    kill_before_publishing(proxy, store)
    store.start()

    assert {writer.reply_to(request).payload for request in requests} == {b"+OK\r\n"}
    assert watcher.changes() == [was_set(n) for n in range(n_changes)]
    wait_until(lambda: notified_keys(data) == [], "the broker has acknowledged the notifications")
