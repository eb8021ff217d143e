# SPDX-License-Identifier: Apache-2.0
"""statestored --control: seeds and the test clock."""

import json
import time
import uuid

import pytest

from support.control import value_of
from support.hlc import Hlc
from support.process import wait_until

OK = b"+OK\r\n"
HOUR_MS = 3600 * 1000


# Seed


def test_a_seed_of_lines_sets_keys_with_deadlines_and_tokens(control, client):
    deadline = int(time.time() * 1000) + HOUR_MS
    lines = [{"key": "greeting", "value": "hello"}, {"key_base64": "/w==", "value_base64": "AP8="},
             {"key": "lock", "value": "me", "deadline": deadline, "token": str(Hlc(1, 0, "owner"))}]

    assert control.ask("seed", "\n".join(json.dumps(line) for line in lines)) == OK

    assert value_of(client, "greeting") == b"hello"
    assert value_of(client, b"\xff") == b"\x00\xff"
    assert client.request("SET", "lock", "you").payload == b"-ERR a fencing token is required for this request\r\n"
    control.do("clock", "advance", "2h")
    assert value_of(client, "lock") is None


def test_a_seed_may_be_a_json_list_of_objects(control, client):
    assert control.ask("seed", '[{"factoryId": "factoryA"}, {"limits": {"max": 7}}]') == OK

    assert value_of(client, "factoryId") == b"factoryA"
    assert value_of(client, "limits") == b'{"max":7}'


def test_a_seed_replaces_existing_keys_and_notifies_their_watchers(control, client):
    client.watch("key")
    client.request("SET", "key", "old")
    assert client.notification().payload.endswith(b"old\r\n")

    control.do("seed", '{"key":"key","value":"new"}')

    assert client.notification().payload.endswith(b"new\r\n")
    assert value_of(client, "key") == b"new"


def test_an_invalid_seed_sets_no_key(control, client):
    client.request("SET", "key", "old")

    reply = control.ask("seed", '{"key":"key","value":"new"}\n{"key":"other","value":"x"}\n{"key":"third"}')

    assert reply.startswith(b"-ERR seed:3: "), reply
    assert value_of(client, "key") == b"old"
    assert value_of(client, "other") is None


@pytest.mark.parametrize("text", [
    "[" * 5000 + "]" * 5000, '[{"a":' + "[" * 5000 + "]" * 5000 + "}]", "[1]", "5", "\0", b"\xff", "[", '{"key":1,"value":2}',
    '{"key":"","value":"x"}', '[{"a":"1"},{"":"2"}]',
])
def test_a_malformed_seed_is_refused_and_sets_no_key(control, client, text):
    assert control.ask("seed", text).startswith(b"-ERR seed:1: ")
    assert value_of(client, "a") is None


# The clock


def test_advance_expires_keys_at_once(control, client):
    client.watch("leased")
    before = client.request("SET", "leased", "value", "PX", HOUR_MS)
    client.notification()

    control.do("clock", "advance", "1h")

    assert b"DELETE" in client.notification().payload
    assert value_of(client, "leased") is None
    after = client.request("SET", "other", "value")
    assert after.ts.wall_ms - before.ts.wall_ms >= HOUR_MS


def test_a_key_exists_until_its_deadline(control, client):
    control.do("clock", "freeze")
    client.request("SET", "leased", "value", "PX", HOUR_MS)

    control.do("clock", "advance", "3599999ms")
    assert value_of(client, "leased") == b"value"

    control.do("clock", "advance", "1ms")
    assert value_of(client, "leased") is None


def test_a_frozen_clock_stands_still_and_continues_from_there(control, client):
    old = Hlc(1, 0, "old")
    control.do("clock", "freeze")
    client.request("SET", "leased", "value", "PX", 1, ts=str(old))
    first = client.request("SET", "key", "1", ts=str(old)).ts
    second = client.request("SET", "key", "2", ts=str(old)).ts
    assert (second.wall_ms, second.counter) == (first.wall_ms, first.counter + 1)
    assert value_of(client, "leased") == b"value"

    control.do("clock", "resume")

    wait_until(lambda: value_of(client, "leased") is None, "the clock advances again")
    third = client.request("SET", "key", "3", ts=str(old)).ts
    assert 0 < third.wall_ms - first.wall_ms < HOUR_MS


def test_remembered_replies_expire_by_the_test_clock(control, client):
    request = {"correlation": uuid.uuid4().bytes, "ts": str(Hlc(1, 0, "client-1")), "expiry": 60}
    assert client.request("SET", "key", "value", "NX", **request).payload == OK
    assert client.request("SET", "key", "value", "NX", **request).payload == OK

    control.do("clock", "advance", "1h")

    assert client.request("SET", "key", "value", "NX", **request).payload == b":-1\r\n"


def test_clock_skew_is_checked_against_the_test_clock(control, client):
    ahead = str(Hlc(int(time.time() * 1000) + HOUR_MS, 0, "client-1"))
    assert b"too far in the future" in client.request("SET", "key", "value", ts=ahead).payload

    control.do("clock", "advance", "1h")

    assert client.request("SET", "key", "value", ts=ahead).payload == OK


def test_timestamps_ahead_of_a_frozen_clock_are_refused_until_it_advances(control, client):
    client.request("SET", "key", "value")
    control.do("clock", "freeze")
    later = str(Hlc(int(time.time() * 1000) + 120 * 1000, 0, "client-1"))
    assert b"too far in the future" in client.request("SET", "key", "value", ts=later).payload

    control.do("clock", "resume")
    control.do("clock", "advance", "2m")

    assert client.request("SET", "key", "value", ts=later).payload == OK


def test_one_key_expires(control, client):
    client.watch("lock")
    token = client.request("SET", "lock", "me", "NX", "PX", HOUR_MS, ft=str(Hlc(1, 0, "owner"))).prop("__ts")
    client.request("SET", "other", "value", "PX", HOUR_MS)
    client.notification()

    assert control.ask("expire", "lock") == b"+OK\r\n"

    notification = client.notification()
    assert b"DELETE" in notification.payload and notification.prop("__ts") == token
    assert value_of(client, "lock") is None
    assert value_of(client, "other") == b"value"
    assert control.ask("expire", "lock") == b"-ERR there is no such key\r\n"


def test_a_key_without_a_deadline_does_not_expire(control, client):
    client.request("SET", "key", "value")

    assert control.ask("expire", "key") == b"-ERR the key has no deadline: it was set without PX\r\n"
    assert value_of(client, "key") == b"value"


def test_a_key_expires_while_the_clock_is_frozen(control, client):
    control.do("clock", "freeze")
    client.request("SET", "key", "value", "PX", HOUR_MS)

    control.do("expire", "key")

    assert value_of(client, "key") is None
