# SPDX-License-Identifier: Apache-2.0
"""The quota: requests beyond it are refused, stored keys stay (PROTOCOL.md "Errors", row 14)."""

import pytest

from support import resp

OK = b"+OK\r\n"
EXCEEDED = b"-ERR the quota has been exceeded\r\n"
VALUE = "v" * 10_000


@pytest.fixture
def full_of_keys(site):
    """A client of a store with the maximum number of keys, key-0 to key-9."""
    site.start_store("--max-keys", "10")
    client = site.connect()
    for n in range(10):
        assert client.request("SET", f"key-{n}", n).payload == OK
    return client


def test_a_key_beyond_the_maximum_is_refused(full_of_keys):
    reply = full_of_keys.request("SET", "one more", "value")

    assert reply.payload == EXCEEDED
    assert reply.status == "200"
    assert reply.prop("__ts") is None
    assert full_of_keys.request("GET", "one more").payload == b"$-1\r\n"
    for n in range(10):
        assert full_of_keys.request("GET", f"key-{n}").payload == f"$1\r\n{n}\r\n".encode()


def test_existing_keys_of_a_full_store_can_be_changed(full_of_keys):
    assert full_of_keys.request("SET", "key-3", "changed").payload == OK
    assert full_of_keys.request("GET", "key-3").payload == b"$7\r\nchanged\r\n"


def test_a_deleted_key_makes_room(full_of_keys):
    full_of_keys.request("DEL", "key-3")

    assert full_of_keys.request("SET", "one more", "value").payload == OK
    assert full_of_keys.request("SET", "key-3", "value").payload == EXCEEDED


def test_an_expired_key_makes_room(full_of_keys):
    full_of_keys.watch("key-3")
    full_of_keys.request("SET", "key-3", "value", "PX", "30")
    full_of_keys.notification()
    full_of_keys.notification()

    assert full_of_keys.request("SET", "one more", "value").payload == OK


def test_a_refused_set_is_not_notified(full_of_keys):
    full_of_keys.watch("one more", "key-0")
    assert full_of_keys.request("SET", "one more", "value").payload == EXCEEDED
    full_of_keys.request("SET", "key-0", "marker")

    assert resp.read(full_of_keys.notification().payload)[-1] == b"marker"


def test_conditions_and_tokens_are_checked_before_the_quota(full_of_keys):
    full_of_keys.request("SET", "key-0", "value", ft="5:0:n")

    assert full_of_keys.request("SET", "key-1", "value", "NX").payload == b":-1\r\n"
    assert full_of_keys.request("SET", "key-0", VALUE, ft="4:0:n").payload.startswith(b"-ERR the request fencing token")
    assert full_of_keys.request("SET", "key-0", VALUE).payload.startswith(b"-ERR a fencing token is required")
    assert full_of_keys.request("SET", "one more", "value", ts=None).payload == b"-ERR missing timestamp\r\n"


@pytest.fixture
def full_of_bytes(site):
    """A client of a store without room for another VALUE, and the number of stored values."""
    site.start_store("--max-bytes", "1MiB")
    client = site.connect()
    n_stored = 0
    while True:
        reply = client.request("SET", f"key-{n_stored}", VALUE)
        if reply.payload == EXCEEDED:
            return client, n_stored
        assert reply.payload == OK
        n_stored += 1
        assert n_stored * len(VALUE) <= 1024 * 1024


def test_bytes_beyond_the_quota_are_refused_and_stored_values_stay_readable(full_of_bytes):
    client, n_stored = full_of_bytes

    assert n_stored * len(VALUE) > 1024 * 1024 // 2, "most of the quota is for keys and values"
    for reply in client.request_all(("GET", f"key-{n}") for n in range(n_stored)):
        assert resp.read(reply.payload) == VALUE.encode()
    assert client.request("GET", f"key-{n_stored}").payload == b"$-1\r\n"


def test_a_full_store_accepts_writes_that_do_not_grow_it(full_of_bytes):
    client, _ = full_of_bytes

    assert client.request("SET", "key-0", VALUE.upper()).payload == OK
    assert client.request("SET", "key-0", "less").payload == OK
    assert client.request("DEL", "key-1").payload == b":1\r\n"


def test_a_value_that_grows_past_the_quota_is_refused_and_the_old_one_stays(full_of_bytes):
    client, _ = full_of_bytes

    assert client.request("SET", "key-0", VALUE * 3).payload == EXCEEDED
    assert resp.read(client.request("GET", "key-0").payload) == VALUE.encode()


def test_deleted_bytes_make_room(full_of_bytes):
    client, n_stored = full_of_bytes
    for n in range(3):
        client.request("DEL", f"key-{n}")

    assert client.request("SET", f"key-{n_stored}", VALUE).payload == OK


def test_bytes_do_not_leak_from_the_quota(site):
    site.start_store("--max-bytes", "4MiB")
    client = site.connect()

    for n in range(2000):
        words = [("SET", "key", VALUE), ("SET", "key", "v"), ("DEL", "key"), ("SET", "other", VALUE, "NX")][n % 4]
        assert not client.request(*words).payload.startswith(b"-ERR"), n


def test_bytes_of_registrations_do_not_leak_from_the_quota(site):
    site.start_store("--max-bytes", "1MiB")
    client = site.connect()

    for n in range(400):
        replies = client.request_all((("KEYNOTIFY", "k" * 5000), ("KEYNOTIFY", "k" * 5000, "STOP")))
        assert [reply.payload for reply in replies] == [OK, OK], n


def test_a_value_larger_than_the_whole_quota_is_refused(site):
    site.start_store("--max-bytes", "1MiB")
    client = site.connect()

    assert client.request("SET", "key", b"v" * 3 * 1024 * 1024).payload == EXCEEDED
    assert client.request("SET", "key", "value").payload == OK


def test_one_client_cannot_take_all_registrations(site):
    site.start_store("--max-registrations", "1024")
    greedy, other = site.connect(), site.connect()
    replies = greedy.request_all(("KEYNOTIFY", f"key-{n}") for n in range(1024))

    assert [reply.payload for reply in replies] == [OK] * 256 + [EXCEEDED] * 768
    assert "client_registrations=256 max_client_registrations=256" in site.store.log()
    assert other.request("KEYNOTIFY", "key").payload == OK


def test_one_client_cannot_take_all_memory_with_registrations(site):
    site.start_store("--max-bytes", "8MiB")
    greedy, other = site.connect(), site.connect()
    replies = greedy.request_all(("KEYNOTIFY", f"{n}".ljust(6000, "k")) for n in range(300))

    n_accepted = [reply.payload for reply in replies].count(OK)
    assert 150 < n_accepted < 200, "a quarter of the memory"
    assert f"max_client_bytes={2 << 20}" in site.store.log()
    assert other.request("KEYNOTIFY", "key").payload == OK
    assert other.request("SET", "key", "v" * (5 << 20)).payload == OK


def test_registrations_have_a_quota_of_their_own(site):
    site.start_store("--max-registrations", "3")
    client = site.connect()
    client.watch("a", "b", "c")

    assert client.request("KEYNOTIFY", "d").payload == EXCEEDED
    assert client.request("KEYNOTIFY", "a").payload == OK, "the key is registered already"
    assert client.request("KEYNOTIFY", "a", "STOP").payload == OK
    assert client.request("KEYNOTIFY", "d").payload == OK
