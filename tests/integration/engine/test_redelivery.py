# SPDX-License-Identifier: Apache-2.0
"""A request that arrives twice is executed once (PROTOCOL.md "Repeated requests")."""

import uuid

import pytest

from support import resp
from support.process import PATIENCE
from support.site import kill_store


class Request:
    """One request that can be sent several times."""

    def __init__(self, client, *words, **properties):
        self.client = client
        self.words = words
        self.properties = {"ts": client.clock.now(), "correlation": uuid.uuid4().bytes, **properties}

    def send(self, **changed):
        return self.client.request(*self.words, **{**self.properties, **changed})


def assert_same(second, first):
    assert second.payload == first.payload
    assert second.prop("__ts") == first.prop("__ts")
    assert second.status == first.status == "200"


@pytest.mark.parametrize("correlation", [b"1234", uuid.uuid4().bytes], ids=["short", "long"])
def test_a_redelivered_set_nx_gets_its_first_reply(client, key, correlation):
    request = Request(client, "SET", key, "value", "NX", correlation=correlation)
    first = request.send()
    assert first.payload == b"+OK\r\n"

    for _ in range(3):
        assert_same(request.send(), first)


def test_a_redelivered_set_does_not_undo_a_later_one(client, key):
    request = Request(client, "SET", key, "first")
    first = request.send()
    client.request("SET", key, "second")

    assert_same(request.send(), first)
    assert client.request("GET", key).payload == b"$6\r\nsecond\r\n"


def test_a_redelivered_set_is_notified_once(client, key):
    client.watch(key)
    request = Request(client, "SET", key, "value")
    request.send()
    request.send()
    client.request("SET", key, "marker")

    values = [resp.read(client.notification().payload)[-1] for _ in range(2)]
    assert values == [b"value", b"marker"]


@pytest.mark.parametrize("words", [["DEL"], ["VDEL", "value"]])
def test_a_redelivered_deletion_gets_its_first_reply_and_keeps_a_new_key(client, key, words):
    version = client.request("SET", key, "value").ts
    verb, *arguments = words
    request = Request(client, verb, key, *arguments)
    first = request.send()
    assert first.payload == b":1\r\n"
    assert first.ts == version
    client.request("SET", key, "value")

    assert_same(request.send(), first)
    assert client.request("GET", key).payload == b"$5\r\nvalue\r\n"


def test_a_redelivered_set_does_not_restore_an_older_token(client, key):
    request = Request(client, "SET", key, "first", ft="5:0:n")
    first = request.send()
    client.request("SET", key, "second", ft="6:0:n")

    assert_same(request.send(), first)


def test_a_redelivered_set_whose_condition_was_not_met_stays_not_met(client, key):
    client.request("SET", key, "held")
    request = Request(client, "SET", key, "value", "NX")
    first = request.send()
    assert first.payload == b":-1\r\n"
    client.request("DEL", key)

    assert_same(request.send(), first)
    assert client.request("GET", key).payload == b"$-1\r\n"


def test_a_redelivered_stop_gets_its_first_reply(client, key):
    client.watch(key)
    request = Request(client, "KEYNOTIFY", key, "STOP")
    first = request.send()
    assert first.payload == b"+OK\r\n"

    assert_same(request.send(), first)


def test_copies_that_arrive_together_get_equal_replies(client, key):
    request = Request(client, "SET", key, "value", "NX")
    copies = [client.send(*request.words, **request.properties) for _ in range(20)]

    replies = [copy.result(PATIENCE) for copy in copies]

    assert {reply.payload for reply in replies} == {b"+OK\r\n"}
    assert len({reply.ts for reply in replies}) == 1


@pytest.mark.parametrize("length", [16, 17, 64])
def test_without_a_timestamp_long_correlation_data_identifies_a_copy(client, key, length):
    client.request("SET", key, "value")
    request = Request(client, "DEL", key, ts=None, correlation=uuid.uuid4().bytes * 4)
    request.properties["correlation"] = request.properties["correlation"][:length]
    first = request.send()
    assert first.payload == b":1\r\n"

    assert_same(request.send(), first)


@pytest.mark.parametrize("length", [1, 4, 15])
def test_without_a_timestamp_short_correlation_data_identifies_no_copy(client, key, length):
    client.request("SET", key, "value")
    request = Request(client, "DEL", key, ts=None, correlation=b"x" * length)

    assert request.send().payload == b":1\r\n"
    assert request.send().payload == b":0\r\n"


# A request that differs in any part is another request.

def test_another_timestamp_is_another_request(client, key):
    request = Request(client, "SET", key, "value", "NX", correlation=b"1234")

    assert request.send().payload == b"+OK\r\n"
    assert request.send(ts=client.clock.now()).payload == b":-1\r\n"


def test_another_correlation_is_another_request(client, key):
    request = Request(client, "SET", key, "value", "NX")

    assert request.send().payload == b"+OK\r\n"
    assert request.send(correlation=uuid.uuid4().bytes).payload == b":-1\r\n"


def test_another_token_is_another_request(client, key):
    request = Request(client, "SET", key, "value", "NX", ft="5:0:n")

    assert request.send().payload == b"+OK\r\n"
    assert request.send(ft="6:0:n").payload == b":-1\r\n"


def test_another_client_is_another_request(shared, client, key):
    request = Request(client, "SET", key, "value", "NX")

    assert request.send().payload == b"+OK\r\n"
    assert request.send(source="another").payload == b":-1\r\n"


def test_another_response_topic_is_another_request(client, key):
    topic = f"{client.response_topic}/other"
    client.subscribe(topic)
    request = Request(client, "SET", key, "value", "NX")

    assert request.send().payload == b"+OK\r\n"
    assert request.send(response_topic=topic).payload == b":-1\r\n"


def test_another_payload_is_another_request(client, key):
    request = Request(client, "SET", key, "value", "NX")

    assert request.send().payload == b"+OK\r\n"
    request.words = ("SET", key, "other", "NX")
    assert request.send().payload == b":-1\r\n"


def test_the_reply_to_a_copy_has_the_expiry_of_the_copy(client, key):
    request = Request(client, "SET", key, "value", "NX", expiry=10_000)
    request.send()

    copy = request.send(expiry=5_000)

    assert copy.payload == b"+OK\r\n"
    assert 4_900 <= copy.expiry <= 5_000


def test_a_redelivered_get_is_executed_again_or_gets_its_first_reply(client, key):
    client.request("SET", key, "old")
    request = Request(client, "GET", key)
    request.send()
    client.request("SET", key, "new")

    assert request.send().payload in (b"$3\r\nold\r\n", b"$3\r\nnew\r\n")


# Of so many clients, more than so many share one of the 1024 groups with a given client in one of ten million runs.
N_CLIENTS, IN_ONE_GROUP_MAX = 100, 4


def forgets(request, first):
    """Return whether the store executes a copy of this SET with NX again."""
    return request.send().payload != first.payload


def test_one_client_makes_the_store_forget_the_replies_to_few_others(site):
    """The limit is reached by the requests of the first client. Each other client has one remembered reply, the oldest."""
    site.start_store("--max-remembered-bytes", "100KiB")
    client = site.connect()
    others = [Request(client, "SET", f"lock-{n}", "mine", "NX", source=f"other-{n}") for n in range(N_CLIENTS)]
    first = [request.send() for request in others]
    assert {reply.payload for reply in first} == {b"+OK\r\n"}
    for reply in [client.send("SET", f"key-{n}", "value", expiry=600) for n in range(3000)]:
        assert reply.result(PATIENCE).payload == b"+OK\r\n"

    assert sum(map(forgets, others, first)) <= IN_ONE_GROUP_MAX


def test_after_a_restart_one_client_makes_the_store_forget_the_replies_to_others(site, data):
    """The restored replies share one group, because the store does not store to which client each was."""
    site.start_store("--max-remembered-bytes", "100KiB", "--data-dir", data)
    client = site.connect()
    others = [Request(client, "SET", f"lock-{n}", "mine", "NX", source=f"other-{n}") for n in range(N_CLIENTS)]
    first = [request.send() for request in others]
    for reply in [client.send("SET", f"key-{n}", "value", expiry=600) for n in range(3000)]:
        reply.result(PATIENCE)
    kill_store(site)
    for reply in [client.send("SET", f"key-{n}", "other", expiry=600) for n in range(3000)]:
        reply.result(PATIENCE)

    assert sum(map(forgets, others, first)) > IN_ONE_GROUP_MAX
