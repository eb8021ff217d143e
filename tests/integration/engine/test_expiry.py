# SPDX-License-Identifier: Apache-2.0
"""Expiry: keys are deleted by themselves and never early, and then no command finds them (PROTOCOL.md "Commands" and
"Notifications")."""

import time

import pytest

from support.client import notify_topic
from support.process import PATIENCE, wait_until
from support.store import GRANULARITY_S

MISSING = b"$-1\r\n"


def set_and_time(client, key, px):
    """Set the key; return the earliest moment at which it may expire."""
    before = time.monotonic()
    assert client.request("SET", key, "value", "PX", px).payload == b"+OK\r\n"
    return before + px / 1000


def wait_for_delete(client):
    while True:
        notification = client.notification()
        if notification.payload.endswith(b"DELETE\r\n"):
            return notification


def test_an_idle_store_deletes_expired_keys_by_itself_and_never_early(client, key):
    """The benchmark measures the delay."""
    for n in range(9):
        client.watch(f"{key}-{n}")
        earliest = set_and_time(client, f"{key}-{n}", 60 + 13 * n)
        assert wait_for_delete(client).time >= earliest - GRANULARITY_S


def test_many_keys_that_expire_together_are_all_deleted_and_none_early(client, key):
    keys = [f"{key}-{n}" for n in range(300)]
    client.watch(*keys)
    sent = {}
    for each in keys:
        sent[notify_topic(client.id, each)] = time.monotonic()
        client.send("SET", each, "value", "PX", "300")

    deleted = {notification.topic: notification.time for notification in (wait_for_delete(client) for _ in keys)}

    assert deleted.keys() == sent.keys()
    assert min(deleted[topic] - sent[topic] for topic in sent) >= 0.3 - GRANULARITY_S


def test_a_key_does_not_expire_with_a_key_of_a_slightly_earlier_deadline(client, key):
    client.watch(f"{key}-first", f"{key}-second")
    set_and_time(client, f"{key}-first", 100)
    earliest = set_and_time(client, f"{key}-second", 108)

    wait_for_delete(client)
    second = wait_for_delete(client)

    assert second.topic == notify_topic(client.id, f"{key}-second")
    assert second.time >= earliest - GRANULARITY_S


def test_a_key_exists_before_its_deadline_and_not_after_it(client, key):
    earliest = set_and_time(client, key, 150)

    def expired():
        reply = client.request("GET", key)
        return reply if reply.payload == MISSING else None

    assert wait_until(expired, "the key expires").time >= earliest - GRANULARITY_S, "early"


GONE = [
    (["GET"], MISSING),
    (["DEL"], b":0\r\n"),
    (["VDEL", "value"], b":0\r\n"),
    (["VDEL", "other"], b":0\r\n"),
    (["SET", "new", "NX"], b"+OK\r\n"),
    (["SET", "new", "NEX"], b"+OK\r\n"),
    (["SET", "new"], b"+OK\r\n"),
]


@pytest.mark.parametrize("words, payload", GONE)
def test_an_expired_fenced_key_does_not_exist_for_any_command(client, key, words, payload):
    client.watch(key)
    client.request("SET", key, "value", "PX", "1", ft="5:0:n")
    wait_for_delete(client)

    verb, *arguments = words
    assert client.request(verb, key, *arguments).payload == payload


def expire_under_load(site, n_between):
    """Set keys that expire after 1 ms, send n_between other requests, and then access the keys.

    With many requests in flight the store reads many at once, and no timer runs meanwhile. Returns the replies, and the
    milliseconds on the store's clock between the SET of the last key and the first access.
    """
    client = site.connect()
    with site.store.paused():
        pending = [client.send("GET", "something else") for _ in range(3000)]
        for n in range(len(GONE)):
            client.send("SET", f"key-{n}", "value", "PX", "1", ft="5:0:n")
        last = client.send("SET", "key-listed", "value", "PX", "1")
        pending += [client.send("GET", "something else") for _ in range(n_between)]
        marker = client.send("SET", "marker", "value")
        listing = client.send("SCAN", "key-l*")
        replies = [client.send(verb, f"key-{n}", *arguments) for n, ((verb, *arguments), _) in enumerate(GONE)]

    assert all(reply.result(PATIENCE).payload == MISSING for reply in pending)
    advance = marker.result(PATIENCE).ts.wall_ms - last.result(PATIENCE).ts.wall_ms
    return [reply.result(PATIENCE).payload for reply in [*replies, listing]], advance


def test_a_key_does_not_exist_after_its_deadline_even_before_its_timer_runs(site):
    site.start_store()

    advance, n_between = 0, 500
    while advance < 2:  # the store rounds its clock up: after 2 ms, more than 1 ms has passed
        payloads, advance = expire_under_load(site, n_between)
        n_between *= 2

    assert payloads == [*(payload for _, payload in GONE), b"*1\r\n*0\r\n"]


@pytest.mark.parametrize("options", [
    ["PX", "40"],
    ["NX", "PX", "40"],
    ["PX", "40", "NX"],
    ["NEX", "PX", "40"],
    ["PX", "40", "NEX"],
    ["NEX", "other", "PX", "40"],
    ["PX", "40", "NEX", "other"],
    ["NEX", "PX", "PX", "40"],
], ids=" ".join)
def test_every_form_of_px_sets_the_expiry(client, key, options):
    client.watch(key)
    client.request("SET", key, "value", *options)

    wait_for_delete(client)


def outlives(client, key, milliseconds):
    """Return whether the key exists after the deadline of another key, which is set later with a longer expiry."""
    marker = key + "-marker"
    client.watch(marker)
    client.request("SET", marker, "value", "PX", milliseconds)
    while not wait_for_delete(client).topic.endswith(marker.encode().hex().upper()):
        pass
    return client.request("GET", key).payload != MISSING


def test_a_set_without_px_clears_the_expiry(client, key):
    client.request("SET", key, "value", "PX", 100)
    client.request("SET", key, "value")

    assert outlives(client, key, 120)


def test_a_set_with_px_replaces_the_expiry(client, key):
    client.request("SET", key, "value", "PX", 100)
    client.request("SET", key, "value", "PX", 60_000)

    assert outlives(client, key, 120)


def test_a_shorter_px_replaces_a_longer_one(client, key):
    client.watch(key)
    client.request("SET", key, "value", "PX", 60_000)
    client.request("SET", key, "value", "PX", 40)

    wait_for_delete(client)


@pytest.mark.parametrize("condition", [["NX"], ["NEX", "other"]])
def test_a_set_that_is_not_done_sets_no_expiry(client, key, condition):
    client.request("SET", key, "value")
    assert client.request("SET", key, "new", *condition, "PX", 20).payload == b":-1\r\n"

    assert outlives(client, key, 50)


@pytest.mark.parametrize("condition", [[], ["NX"], ["NEX", "other"]])
def test_a_set_that_is_not_done_keeps_the_expiry(client, key, condition):
    client.watch(key)
    client.request("SET", key, "value", "PX", 60, ft="5:0:n")
    client.request("SET", key, "new", *condition, ft="5:0:n" if condition else None)

    wait_for_delete(client)


def test_a_deleted_key_that_is_set_again_does_not_have_the_old_deadline(client, key):
    client.request("SET", key, "value", "PX", 60)
    client.request("DEL", key)
    client.request("SET", key, "value")

    assert outlives(client, key, 80)


def test_a_deadline_beyond_the_range_means_never(client, key):
    client.request("SET", key, "value", "PX", 2**63 - 1)

    assert outlives(client, key, 20)


def test_a_lock_is_renewed_by_its_owner(client, key):
    for _ in range(4):
        assert client.request("SET", key, "owner", "NEX", "PX", 60_000).payload == b"+OK\r\n"
    assert client.request("SET", key, "other", "NEX", "PX", 60_000).payload == b":-1\r\n"
