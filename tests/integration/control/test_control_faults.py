# SPDX-License-Identifier: Apache-2.0
"""statestored --control: injected faults."""

import time

from support.control import value_of
from support.process import PATIENCE

OK, NOTHING = b"+OK\r\n", b"$-1\r\n"


def test_a_reply_is_delayed_by_the_test_clock(control, client):
    control.do("clock", "freeze")
    control.do("fault", "delay", "10s", "key", "slow", "verb", "SET")
    slow = client.send("SET", "slow", "value")

    assert value_of(client, "slow") == b"value", "the request is executed at once"
    assert not slow.done()
    control.do("clock", "advance", "9999ms")
    assert client.request("SET", "fast", "value").payload == OK
    assert not slow.done()

    control.do("clock", "advance", "1ms")
    assert slow.result(PATIENCE).payload == OK


def test_a_delayed_reply_is_sent_without_advance(control, client):
    control.do("fault", "delay", "50ms")
    before = time.monotonic()

    assert client.request("SET", "key", "value").payload == OK
    assert time.monotonic() - before >= 0.05


def test_a_request_is_executed_and_gets_no_reply(control, client):
    control.do("fault", "no-answer", "verb", "SET", "count", "1")
    lost = client.send("SET", "key", "value")

    assert value_of(client, "key") == b"value"
    assert not lost.done()


def test_a_reply_is_sent_twice(control, client):
    control.do("fault", "answer-twice", "count", "1")

    reply = client.request("SET", "key", "value")

    second = client.others.get(timeout=PATIENCE)
    assert (second.payload, second.correlation) == (reply.payload, reply.correlation)
    assert second.prop("__ts") == reply.prop("__ts")


def test_an_error_can_have_any_text(control, client):
    control.do("fault", "error", "no quorum: 1 of 3", "verb", "SET")

    reply = client.request("SET", "key", "value")

    assert reply.payload == b"-ERR no quorum: 1 of 3\r\n"
    assert reply.prop("__stat") == "200" and reply.prop("__ts") is None
    assert value_of(client, "key") is None, "the request was not executed"
    assert control.lines("requests")[0]["reply"] == "-ERR no quorum: 1 of 3\r\n"


def test_one_request_exceeds_the_quota(control, client):
    control.do("fault", "quota", "count", "1")

    assert client.request("SET", "key", "value").payload == b"-ERR the quota has been exceeded\r\n"
    assert client.request("SET", "key", "value").payload == OK


def test_a_notification_is_dropped(control, client):
    client.watch("key")
    control.do("fault", "drop-notification", "client", "client-1", "key", "k*", "count", "1")

    client.request("SET", "key", "1")
    client.request("SET", "key", "2")

    assert client.notification().payload.endswith(b"2\r\n")


def test_a_notification_is_sent_twice(control, client):
    client.watch("key")
    control.do("fault", "notify-twice", "count", "1")

    client.request("SET", "key", "1")
    client.request("SET", "key", "2")

    assert [client.notification().payload[-3:] for _ in range(3)] == [b"1\r\n", b"1\r\n", b"2\r\n"]


def test_a_client_is_disconnected(control, client):
    client.watch("key")
    control.do("fault", "kick", "client", "client-1", "verb", "SET")

    client.send("SET", "key", "value")

    client.wait_until_reconnected()
    assert value_of(client, "key") == b"value", "the request was executed"
    assert client.request("KEYNOTIFY", "key", "STOP").payload == b":0\r\n", "the registration ended with the connection"


def test_a_rule_applies_to_its_client_verb_and_key(double, control, client):
    other = double.connect("client-2")
    control.do("fault", "error", "boom", "client", "client-1", "verb", "GET", "key", "a*")

    assert client.request("GET", "abc").payload == b"-ERR boom\r\n"
    assert other.request("GET", "abc").payload == NOTHING
    assert client.request("GET", "xyz").payload == NOTHING
    assert client.request("DEL", "abc").payload == b":0\r\n"


def test_cleared_rules_do_not_apply(control, client):
    assert control.ask("fault", "error", "boom", "key", "a*", "verb", "SET") == OK
    assert client.request("SET", "abc", "value").payload == b"-ERR boom\r\n"

    control.do("fault", "clear")

    assert client.request("SET", "abc", "value").payload == OK


def test_the_number_of_rules_is_limited(control):
    for _ in range(100):
        control.do("fault", "quota", "client", "unknown")

    assert control.ask("fault", "quota", "client", "unknown") == b"-ERR there are too many rules\r\n"
