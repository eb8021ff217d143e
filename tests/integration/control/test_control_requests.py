# SPDX-License-Identifier: Apache-2.0
"""statestored --control: the request journal, and wait-for."""

import time

import pytest

from support.control import CONTROL
from support.flood import Flood
from support.process import PATIENCE

OK = b"+OK\r\n"
HOUR_MS = 3600 * 1000


def test_requests_are_listed_with_their_replies(control, client):
    set_reply = client.request("SET", "key", "value", "PX", 1000)
    client.request("GET", b"\xff")
    client.request("set", "key")
    control.do("fault", "no-answer", "verb", "DEL")
    client.send("DEL", "key")
    client.request("GET", "other")

    first, second, third, fourth, fifth = control.lines("requests")

    assert abs(first.pop("time") - time.time() * 1000) < HOUR_MS
    assert first == {"number": 1, "client": "client-1", "verb": "SET", "key": "key",
                     "request": ["SET", "key", "value", "PX", "1000"], "reply": "+OK\r\n",
                     "version": set_reply.prop("__ts"), "fault": None}
    assert (second["key_base64"], second["reply"]) == ("/w==", "$-1\r\n")
    assert "payload_base64" in second
    assert (third["verb"], third["request"]) == (None, ["set", "key"])
    assert third["reply"] == "-ERR unknown command\r\n"
    assert (fourth["fault"], fourth["reply"]) == ("no-answer", ":1\r\n")
    assert fifth["number"] == 5


def test_requests_are_selected_by_client_verb_key_and_number(double, control, client):
    other = double.connect("client-2")
    client.request("SET", "a", "1")
    other.request("SET", "b", "1")
    client.request("GET", "b")

    def numbers(*words):
        return [one["number"] for one in control.lines("requests", *words)]

    assert numbers("client", "client-1") == [1, 3]
    assert numbers("verb", "SET") == [1, 2]
    assert numbers("key", "[b]", "after", "2") == [3]
    assert numbers("after", "3") == []


@pytest.mark.not_sanitized("the unit tests of the journal fill it")
def test_the_oldest_requests_are_removed(double, control):
    flood = double.connect("flood", Flood)
    flood.send(12_500, "GET", "key")
    flood.receive_replies(12_500)

    kept = control.lines("requests")
    assert kept[-1]["number"] == 12500
    assert 5000 < len(kept) <= 10000
    assert kept[0]["number"] == 12500 - len(kept) + 1


def test_wait_for_ends_with_a_matching_request(control, client):
    waiting = control.send("wait-for", "key", "door*", "verb", "SET", "count", 2, "timeout", "10m", topic=CONTROL,
                           ts=None)
    client.request("SET", "door-1", "open")
    client.request("GET", "door-2")
    assert not waiting.done()

    client.request("SET", "door-2", "open")

    assert waiting.result(PATIENCE).payload == b":1\r\n"


def test_wait_for_counts_earlier_requests(control, client):
    client.request("SET", "door", "open")

    assert control.ask("wait-for", "key", "door") == b":1\r\n"
    assert control.ask("wait-for", "key", "door", "after", "1", "timeout", "1ms") == b":0\r\n"


def test_wait_for_counts_only_requests_after_a_number(control, client):
    waiting = control.send("wait-for", "key", "door", "after", "3", "timeout", "10m", topic=CONTROL, ts=None)
    for _ in range(3):
        client.request("SET", "door", "open")
    assert not control.lines("requests", "after", "3")
    assert not waiting.done()

    client.request("SET", "door", "open")

    assert waiting.result(PATIENCE).payload == b":1\r\n"


def test_wait_for_times_out_while_the_clock_is_frozen(control):
    control.do("clock", "freeze")

    assert control.ask("wait-for", "key", "never", "timeout", "20ms") == b":0\r\n"


def test_reset_ends_wait_for(control):
    waiting = control.send("wait-for", "timeout", "10m", topic=CONTROL, ts=None)
    control.do("reset")

    assert waiting.result(PATIENCE).payload == b":0\r\n"


# Notifications and watchers


def test_notifications_are_listed(double, control, client):
    other = double.connect("client-2")
    client.watch("key")
    other.watch("key")
    version = client.request("SET", "key", "\u00e9").prop("__ts")
    control.do("fault", "drop-notification", "client", "client-2")
    control.do("fault", "notify-twice", "client", "client-1")
    client.request("DEL", "key")
    for _ in range(3):
        client.notification()

    listed = control.lines("notifications")

    assert all(abs(line.pop("time") - time.time() * 1000) < HOUR_MS for line in listed)
    first = {"number": 1, "client": "client-1", "key": "key", "event": "SET", "value": "\u00e9", "version": version,
             "fault": None}
    assert listed == [
        first, {**first, "number": 2, "client": "client-2"},
        {**first, "number": 3, "event": "DELETE", "value": None, "fault": "notify-twice"},
        {**first, "number": 4, "event": "DELETE", "value": None, "client": "client-2", "fault": "drop-notification"},
    ]
    assert [line["number"] for line in control.lines("notifications", "client", "client-2", "after", "2")] == [4]
    assert control.lines("notifications", "key", "other") == []
    control.do("reset", "client", "client-1")
    assert [line["number"] for line in control.lines("notifications")] == [2, 4]
    control.do("reset")
    assert control.lines("notifications") == []


def test_watchers_are_listed(double, control, client):
    other = double.connect("client-2")
    client.watch("a")
    client.watch("b")
    other.watch("b")

    def watchers(*words):
        return sorted((line["client"], line["key"]) for line in control.lines("watchers", *words))

    assert watchers() == [("client-1", "a"), ("client-1", "b"), ("client-2", "b")]
    assert watchers("key", "[b]") == [("client-1", "b"), ("client-2", "b")]
    assert watchers("client", "client-1", "key", "b*") == [("client-1", "b")]
    client.request("KEYNOTIFY", "a", "STOP")
    assert watchers("client", "client-1") == [("client-1", "b")]
