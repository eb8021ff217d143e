# SPDX-License-Identifier: Apache-2.0

HOUR = 3600


def test_a_key_is_set_and_read(store):
    store.set("greeting", "hello")
    assert store.get("greeting") == b"hello"


def test_each_test_begins_with_an_empty_store(store):
    assert store.get("greeting") is None


def test_a_lease_is_free_again_after_its_time(store):
    assert store.take_lease("lease", "me", HOUR)
    assert not store.take_lease("lease", "you", HOUR)

    store.control("clock", "advance", "1h")
    assert store.take_lease("lease", "you", HOUR)


def test_a_reply_that_comes_twice_does_no_harm(store):
    store.control("fault", "answer-twice", "verb", "SET", "count", 1)
    store.set("greeting", "hello")
    assert store.get("greeting") == b"hello"


def test_who_watches_a_lease_is_told_that_it_is_over(store):
    store.take_lease("lease", "me", HOUR)
    store.watch("lease")

    store.control("clock", "advance", "1h")
    assert store.next_notification() == ("lease", b"DELETE")


def test_a_value_is_not_taken_for_an_event(store):
    store.watch("state")
    store.set("state", "DELETE")
    assert store.next_notification() == ("state", b"SET")
