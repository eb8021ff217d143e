# SPDX-License-Identifier: Apache-2.0
"""How to test a program with the double: leases end and faults happen when the test wants them."""

import pytest

from statestore import NoReply, Refused, StateStore

HOUR = 3600


def take_lease(store, lease, owner):
    return store.set(lease, owner, condition="NX", expires=HOUR) is not None


def test_a_key_is_set_and_read(store, key):
    store.set(key("greeting"), "hello")
    assert store.get(key("greeting")) == b"hello"


def test_each_test_begins_with_an_empty_store(store, key):
    assert store.get(key("greeting")) is None


def test_a_lease_is_free_again_after_its_time(store, control, key):
    assert take_lease(store, key("lease"), "me")
    assert not take_lease(store, key("lease"), "you")

    control("expire", key("lease"))
    assert take_lease(store, key("lease"), "you")


def test_a_watcher_is_notified_when_a_lease_ends(store, control, key):
    take_lease(store, key("lease"), "me")
    changes = store.watch(key("lease"))
    assert changes.next(30).value == b"me"

    control("expire", key("lease"))
    assert changes.next(30).value is None


def test_a_repeated_reply_is_not_taken_for_the_next_one(store, control, key):
    control("fault", "answer-twice", "verb", "SET", "key", key("*"), "count", 1)
    store.set(key("greeting"), "hello")
    assert store.get(key("greeting")) == b"hello"


def test_a_set_of_the_value_delete_is_notified_as_set(store, key):
    changes = store.watch(key("state"))
    assert changes.next(30).value is None
    store.set(key("state"), "DELETE")
    assert changes.next(30).value == b"DELETE"


def test_an_error_reply_is_raised(store, control, key):
    control("fault", "error", "no quorum", "verb", "GET", "key", key("*"))
    with pytest.raises(Refused, match="no quorum"):
        store.get(key("greeting"))


def test_a_request_without_a_reply_is_an_error(statestore_url, control, key):
    control("fault", "no-answer", "verb", "GET", "key", key("*"))
    with StateStore(statestore_url, timeout=0.2) as store, pytest.raises(NoReply, match="GET got no reply"):
        store.get(key("greeting"))
