# SPDX-License-Identifier: Apache-2.0
"""How to test a program with the double: the clock moves at once, and faults happen when the test wants them."""

import pytest

from statestore import NoReply, Refused, StateStore

HOUR = 3600


def take_lease(store, owner):
    return store.set("lease", owner, condition="NX", expires=HOUR) is not None


def test_a_key_is_set_and_read(store):
    store.set("greeting", "hello")
    assert store.get("greeting") == b"hello"


def test_each_test_begins_with_an_empty_store(store):
    assert store.get("greeting") is None


def test_a_lease_is_free_again_after_its_time(store, control):
    assert take_lease(store, "me")
    assert not take_lease(store, "you")

    control("clock", "advance", "1h")
    assert take_lease(store, "you")


def test_a_watcher_is_notified_when_a_lease_ends(store, control):
    take_lease(store, "me")
    changes = store.watch("lease")
    assert changes.next(30).value == b"me"

    control("clock", "advance", "1h")
    assert changes.next(30).value is None


def test_a_repeated_reply_is_not_taken_for_the_next_one(store, control):
    control("fault", "answer-twice", "verb", "SET", "count", 1)
    store.set("greeting", "hello")
    assert store.get("greeting") == b"hello"


def test_a_set_of_the_value_delete_is_notified_as_set(store):
    changes = store.watch("state")
    assert changes.next(30).value is None
    store.set("state", "DELETE")
    assert changes.next(30).value == b"DELETE"


def test_an_error_reply_is_raised(store, control):
    control("fault", "error", "no quorum", "verb", "GET")
    with pytest.raises(Refused, match="no quorum"):
        store.get("greeting")


def test_a_request_without_a_reply_is_an_error(statestore_url, control):
    control("fault", "no-answer", "verb", "GET")
    with StateStore(statestore_url, timeout=0.2) as store, pytest.raises(NoReply, match="GET got no reply"):
        store.get("greeting")
