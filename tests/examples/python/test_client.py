# SPDX-License-Identifier: Apache-2.0
"""The client itself: it loses its connection at each request, and its locks exclude each other."""

import threading

import pytest

from statestore import LockLost, NoReply, Refused, StateStore, StateStoreError

STEPS = {
    "SET": (lambda store, key: store.set(key("key"), "new") is not None, True),
    "SET with a condition": (lambda store, key: store.set(key("free"), "me", condition="NX") is not None, True),
    "GET": (lambda store, key: store.get(key("key")), b"old"),
    "DEL": (lambda store, key: store.delete(key("key")), True),
    "VDEL": (lambda store, key: store.delete(key("key"), value="old"), True),
    "KEYNOTIFY": (lambda store, key: store.watch(key("key")).next(30).value, b"old"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_request_survives_a_lost_connection(store, other, control, step, key):
    """The store executes the request, and closes the connection instead of sending the reply."""
    other.set(key("key"), "old")
    control("fault", "kick", "verb", step.split()[0], "key", key("*"), "count", 1)

    act, expected = STEPS[step]
    assert act(store, key) == expected
    assert control("wait-for", "client", store.client_id, "verb", step.split()[0], "count", 2) == 1


@pytest.fixture
def other(statestore_url, control):
    with StateStore(statestore_url, timeout=30) as other:
        yield other


def lose_connection(store, control, key):
    control("fault", "kick", "client", store.client_id, "verb", "GET", "key", key("nothing"), "count", 1)
    store.get(key("nothing"))


def test_a_watcher_learns_what_changed_while_it_was_away(store, other, control, key):
    with store.watch(key("door")) as changes:
        assert changes.next(30).value is None
        control("fault", "drop-notification", "key", key("door"))
        other.set(key("door"), "open")

        lose_connection(store, control, key)
        assert changes.next(30).value == b"open"

        control("fault", "clear", "key", key("*"))
        other.set(key("door"), "shut")
        assert changes.next(30).value == b"shut"


def test_a_watcher_learns_of_a_deletion_while_it_was_away(store, other, control, key):
    store.set(key("door"), "open")
    with store.watch(key("door")) as changes:
        assert changes.next(30).value == b"open"
        control("fault", "drop-notification", "key", key("door"), "count", 1)
        other.delete(key("door"))

        lose_connection(store, control, key)
        assert changes.next(30).value is None


class ObservedLock:
    """`asked` counts the threads that wait for the lock, or have had it."""

    def __init__(self):
        self.asked, self.lock = threading.Semaphore(0), threading.Lock()

    def __enter__(self):
        self.asked.release()
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_a_watcher_learns_what_changed_while_it_registered_twice(store, other, control, monkeypatch, key):
    """When its connection is lost twice, the second registration may begin while the first one still has the reply to its GET."""
    ask, lock = store.ask, ObservedLock()

    def ask_slowly(*words):
        reply = ask(*words)
        if words[0] == "GET" and threading.current_thread() is not second:
            second.start()
            assert all(lock.asked.acquire(timeout=30) for _ in range(2))
            other.set(key("door"), "open")
        return reply

    store.get(key("door"))  # now it is connected: only watch() registers
    with store.watch(key("door")) as changes:
        assert changes.next(30).value is None
        control("fault", "drop-notification", "key", key("door"), "count", 1)
        second = threading.Thread(target=changes._register)
        monkeypatch.setattr(changes, "_registration", lock)
        monkeypatch.setattr(store, "ask", ask_slowly)
        changes._register()
        second.join()
        monkeypatch.undo()
        assert changes.next(30).value == b"open"


def test_a_watcher_gets_each_change_once(store, other, control, key):
    control("fault", "notify-twice", "key", key("door"))
    with store.watch(key("door")) as changes:
        assert changes.next(30).value is None
        other.set(key("door"), "open")
        other.delete(key("door"))
        assert [changes.next(30).value for _ in range(2)] == [b"open", None]
        lose_connection(store, control, key)
        other.set(key("door"), "shut")
        assert changes.next(30).value == b"shut"
        other.set(key("door"), "end")
        assert changes.next(30).value == b"end"


def test_a_watch_that_is_not_permitted_raises(store, control, key):
    control("fault", "error", "not authorized", "verb", "KEYNOTIFY", "key", key("*"))
    with pytest.raises(Refused, match="not authorized"):
        store.watch(key("door")).next(30)


def test_a_closed_watch_ends_its_registration_unless_another_watches(store, control, key):
    first, second = store.watch(key("door")), store.watch(key("door"))
    first.close()
    assert second.next(30).value is None
    store.set(key("door"), "open")
    assert second.next(30).value == b"open"
    second.close()
    assert store.ask("KEYNOTIFY", key("door"), "STOP").value == 0


def test_a_closed_watch_is_not_registered_again(store, control, monkeypatch, key):
    """After a lost connection, a thread registers for the key again. Here it starts only when the watch is closed."""
    starts, threads, start = threading.Event(), [], threading.Thread.start

    def start_later(thread):
        if thread._target == watch._register:
            threads.append(threading.Thread(target=lambda: starts.wait(30) and watch._register()))
            thread = threads[-1]
        start(thread)

    watch = store.watch(key("door"))
    monkeypatch.setattr(threading.Thread, "start", start_later)
    lose_connection(store, control, key)
    watch.close()
    starts.set()
    for thread in threads:
        thread.join()
    assert threads and store.ask("KEYNOTIFY", key("door"), "STOP").value == 0


def test_a_registration_that_waits_is_left_to_a_newer_one(store, monkeypatch, key):
    """Else they would queue up while the connection is lost again and again, and close() would wait for each of them."""
    ask, asked, lock = store.ask, [], ObservedLock()

    def ask_and_note(*words):
        asked.append(words[0])
        return ask(*words)

    store.get(key("door"))  # now it is connected: only watch() registers
    with store.watch(key("door")) as changes:
        assert changes.next(30).value is None
        monkeypatch.setattr(store, "ask", ask_and_note)
        monkeypatch.setattr(changes, "_registration", lock)
        threads = [threading.Thread(target=changes._register) for _ in range(3)]
        with lock.lock:
            for thread in threads:
                thread.start()
                assert lock.asked.acquire(timeout=30)
        for thread in threads:
            thread.join()
        assert asked == ["KEYNOTIFY", "GET"]


def test_a_closed_client_refuses_requests(statestore_url, control, key):
    with StateStore(statestore_url) as store:
        control("fault", "no-answer", "verb", "GET", "key", key("*"))
        errors = []

        def get():
            try:
                store.get(key("key"))
            except StateStoreError as error:
                errors.append(str(error))

        waiting = threading.Thread(target=get)
        waiting.start()
        control("wait-for", "client", store.client_id, "verb", "GET")
    waiting.join()
    assert errors == ["the client is closed"]
    with pytest.raises(StateStoreError, match="closed"):
        store.get(key("key"))


def test_a_lock_is_released_and_taken_by_the_next(store, other, key):
    with store.lock(key("lock")) as lock:
        assert store.get(key("lock")) == lock.holder.encode()
        for timeout in 0, 0.1:
            with pytest.raises(TimeoutError, match="another holder"):
                other.lock(key("lock"), timeout=timeout)
    with other.lock(key("lock")) as lock:
        assert other.get(key("lock")) == lock.holder.encode()
    assert other.get(key("lock")) is None


def test_a_waiting_client_is_woken_although_its_connection_was_lost(store, other, control, key):
    lock = store.lock(key("lock"), lease=60)
    tokens = []
    waiting = threading.Thread(target=lambda: tokens.append(other.lock(key("lock"), lease=60).token))
    waiting.start()
    control("wait-for", "client", other.client_id, "verb", "GET", "key", key("lock"))
    lose_connection(other, control, key)

    assert lock.release()
    waiting.join()
    assert len(tokens) == 1


@pytest.mark.parametrize("verb", ["SET", "VDEL"])
def test_a_lock_survives_a_connection_lost_while_it_is_taken_or_released(store, control, verb, key):
    control("fault", "kick", "verb", verb, "key", key("lock"), "count", 1)
    lock = store.lock(key("lock"))
    assert lock.token
    assert lock.release()
    assert store.get(key("lock")) is None


def test_a_lock_is_renewed_although_the_connection_is_lost(store, control, key):
    with store.lock(key("lock"), lease=9) as lock:
        first = lock.token
        control("fault", "kick", "client", store.client_id, "verb", "SET", "key", key("lock"), "count", 1)
        control("wait-for", "client", store.client_id, "verb", "SET", "key", key("lock"), "count", 3, "timeout", "30s")
        while lock.token == first:  # the thread that renews may not have taken the reply yet
            store.get(key("nothing"))


def test_a_lock_that_is_not_renewed_is_lost_before_its_lease_ends(store, other, control, key):
    lock = store.lock(key("lock"), lease=5)
    control("fault", "no-answer", "client", store.client_id, "verb", "SET", "key", key("lock"))
    assert lock.lost.wait(30)
    with pytest.raises(LockLost):
        lock.token


def test_a_lock_that_another_took_is_lost(store, other, key):
    lock = store.lock(key("lock"), lease=5)
    other.set(key("lock"), "another", expires=60)
    assert lock.lost.wait(30)
    assert not lock.release()


def test_the_store_refuses_the_writes_of_a_former_holder(store, other, key):
    lock = store.lock(key("lock"), lease=60)
    old = lock.token
    store.set(key("counter"), "1", fence=old)
    assert lock.release()

    with other.lock(key("lock"), lease=60) as lock:
        other.set(key("counter"), "2", fence=lock.token)
        with pytest.raises(Refused, match="lower version"):
            store.set(key("counter"), "3", fence=old)
        with pytest.raises(Refused, match="required"):
            store.set(key("counter"), "3")
    assert store.get(key("counter")) == b"2"


@pytest.mark.parametrize("wrong", [None, {"x": 1}, ["x"]])
def test_a_value_that_is_neither_text_nor_number_is_not_stored(store, wrong, key):
    with pytest.raises(TypeError):
        store.set(key("key"), wrong)
    with pytest.raises(TypeError):
        store.get(wrong)
    assert store.get(key("key")) is None


@pytest.mark.parametrize("expires", [0, -1])
def test_a_lifetime_that_is_not_positive_is_refused(store, expires, key):
    with pytest.raises(Refused):
        store.set(key("key"), "value", expires=expires)


@pytest.mark.parametrize("url", ["127.0.0.1:1883", "mqtt://", "http://127.0.0.1"])
def test_a_wrong_url_raises(url):
    with pytest.raises(ValueError, match="mqtt"):
        StateStore(url)


def test_a_url_of_tls_does_not_connect_without_tls(statestore_url, key):
    with StateStore(statestore_url.replace("mqtt:", "mqtts:"), timeout=3) as store:
        with pytest.raises(NoReply, match="EOF|SSL|reset|not connected"):
            store.get(key("key"))


def test_the_error_of_a_missing_reply_does_not_blame_the_connection(store, control, key):
    store.get(key("key"))
    control("fault", "no-answer", "client", store.client_id, "key", key("*"))
    store.timeout = 0.5
    with pytest.raises(NoReply, match=": connected$"):
        store.get(key("key"))


def test_a_request_that_is_too_long_is_refused_and_delays_no_other(store, key):
    store.set(key("key"), "old")
    with pytest.raises(StateStoreError, match="longer than the broker accepts"):
        store.set(key("key"), b"x" * (17 << 20))
    assert store.get(key("key")) == b"old"


def test_a_request_that_is_too_long_is_refused_when_the_client_has_connected(statestore_url, key):
    with StateStore(statestore_url, timeout=30) as store:
        with pytest.raises(StateStoreError, match="longer than the broker accepts"):
            store.set(key("key"), b"x" * (17 << 20))
