# SPDX-License-Identifier: Apache-2.0
"""statestored --control: what a test tells its double, and what becomes of it."""

import json
import subprocess
import time
import urllib.request
import uuid

import pytest

from support import resp
from support.broker import free_port
from support.control import CONTROL, Control
from support.double import Double
from support.hlc import Hlc
from support.process import STATESTORED, wait_until

OK, NOTHING = b"+OK\r\n", b"$-1\r\n"

HOUR_MS = 3600 * 1000


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    double = Double(tmp_path_factory.mktemp("control"), "--control").start()
    try:
        yield double
        assert double.stop() == 0, double.log()
    finally:
        double.close()


@pytest.fixture
def double(started):
    """As just started: whoever comes next finds nothing of who was here before."""
    started.control = started.connect(f"control-{uuid.uuid4().hex[:8]}", Control)
    started.control.do("reset")
    yield started
    started.control.do("reset")
    started.close_clients()


@pytest.fixture
def control(double):
    return double.control


@pytest.fixture
def client(double):
    return double.connect("client-1")


def value_of(client, key):
    payload = client.request("GET", key, ts=None).payload
    return None if payload == NOTHING else resp.read(payload)


# Reset


def test_after_a_reset_it_is_as_just_started(control, client):
    client.watch("watched")
    correlation = uuid.uuid4().bytes
    first = client.request("SET", "key", "value", "NX", correlation=correlation, ts=str(Hlc(1, 0, "client-1")))
    control.do("clock", "advance", "10d")
    control.do("clock", "skew", "client-1", "1h")
    control.do("fault", "no-answer")
    assert first.payload == OK

    assert control.ask("reset") == OK

    assert value_of(client, "key") is None
    assert control.lines("fault", "list") == []
    assert [one["request"] for one in control.lines("requests")] == [["GET", "key"]]
    again = client.request("SET", "key", "value", "NX", correlation=correlation, ts=str(Hlc(1, 0, "client-1")))
    assert again.payload == OK, "the answer was not remembered"
    assert abs(again.ts.wall_ms - time.time() * 1000) < HOUR_MS, "the clock is the real one again"
    client.request("SET", "watched", "value")
    assert client.request("KEYNOTIFY", "watched", "STOP").payload == b":0\r\n"
    assert client.notifications.empty()


def test_a_hundred_tests_spend_less_than_a_millisecond_each_on_their_reset(control, client):
    """Over what any answer takes here, and the fastest of some tries: others may be at work on this machine."""

    def took(ask):
        before = time.monotonic()
        ask()
        return time.monotonic() - before

    def suite():
        more = 0
        for n in range(100):
            for key in range(3):
                client.request("SET", f"key-{key}", "value")
            more += took(lambda: control.do("reset")) - took(lambda: control.do("clock", "resume"))
        return more / 100

    assert min(suite() for _ in range(5)) < 0.001


def test_what_was_asked_before_a_reset_is_answered_and_what_is_asked_after_it_finds_nothing(control):
    before = [control.send("SET", f"key-{n}", "value") for n in range(300)]
    reset = control.send("reset", topic=CONTROL, ts=None)
    after = [control.send("GET", f"key-{n}") for n in range(300)]

    assert all(answer.result(30).payload == OK for answer in before)
    assert reset.result(30).payload == OK
    assert all(answer.result(30).payload == NOTHING for answer in after)


def test_it_is_executed_when_all_that_was_asked_before_is_answered(double, control):
    control.do("fault", "error", "boom", "key", "struck")
    with double.paused():
        answer = control.send("SET", "key", "value")
        struck = control.send("GET", "struck")
        requests = control.send("requests", topic=CONTROL, ts=None)
        control.send("fault", "clear", topic=CONTROL, ts=None)
        spared = control.send("GET", "struck")
        control.wait_until_sent()

    lines = [json.loads(line) for line in resp.read(requests.result(30).payload).splitlines()]
    assert [line["answer"] for line in lines] == ["+OK\r\n", "-ERR boom\r\n"]
    assert (answer.result(30).payload, struck.result(30).payload) == (OK, b"-ERR boom\r\n")
    assert spared.result(30).payload == NOTHING


def test_a_reset_begins_the_counting_anew(tmp_path):
    port = free_port()
    double = Double(tmp_path, "--control", "--http-listen", f"127.0.0.1:{port}").start()
    try:
        control = double.connect("control", Control)

        def n_set():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
                [line] = [line for line in page.read().decode().splitlines()
                          if line.startswith('statestore_requests_total{verb="set",outcome="done"}')] or [" 0"]
                return int(line.split()[1] if line.strip() != "0" else 0)

        control.request("SET", "key", "value")
        assert n_set() == 1
        control.do("reset")
        assert n_set() == 0
        assert double.stop() == 0
    finally:
        double.close()


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


def test_a_seed_may_be_the_list_of_objects_of_data_flows(control, client):
    assert control.ask("seed", '[{"factoryId": "factoryA"}, {"limits": {"max": 7}}]') == OK

    assert value_of(client, "factoryId") == b"factoryA"
    assert value_of(client, "limits") == b'{"max":7}'


def test_a_seed_sets_what_is_there_already_and_tells_who_watches(control, client):
    client.watch("key")
    client.request("SET", "key", "old")
    assert client.notification().payload.endswith(b"old\r\n")

    control.do("seed", '{"key":"key","value":"new"}')

    assert client.notification().payload.endswith(b"new\r\n")
    assert value_of(client, "key") == b"new"


def test_of_a_seed_with_a_fault_nothing_is_set(control, client):
    client.request("SET", "key", "old")

    answer = control.ask("seed", '{"key":"key","value":"new"}\n{"key":"other","value":"x"}\n{"key":"third"}')

    assert answer.startswith(b"-ERR seed:3: "), answer
    assert value_of(client, "key") == b"old"
    assert value_of(client, "other") is None


# The clock


def test_an_hour_passes_at_once(control, client):
    client.watch("leased")
    before = client.request("SET", "leased", "value", "PX", HOUR_MS)
    client.notification()

    control.do("clock", "advance", "1h")

    assert b"DELETE" in client.notification().payload
    assert value_of(client, "leased") is None
    after = client.request("SET", "other", "value")
    assert after.ts.wall_ms - before.ts.wall_ms >= HOUR_MS


def test_a_key_stays_until_its_time(control, client):
    control.do("clock", "freeze")
    client.request("SET", "leased", "value", "PX", HOUR_MS)

    control.do("clock", "advance", "3599999ms")
    assert value_of(client, "leased") == b"value"

    control.do("clock", "advance", "1ms")
    assert value_of(client, "leased") is None


def test_while_it_is_frozen_no_time_passes_and_then_it_goes_on_from_there(control, client):
    old = Hlc(1, 0, "old")
    control.do("clock", "freeze")
    client.request("SET", "leased", "value", "PX", 1, ts=str(old))
    first = client.request("SET", "key", "1", ts=str(old)).ts
    second = client.request("SET", "key", "2", ts=str(old)).ts
    assert (second.wall_ms, second.counter) == (first.wall_ms, first.counter + 1)
    assert value_of(client, "leased") == b"value"

    control.do("clock", "resume")

    wait_until(lambda: value_of(client, "leased") is None, "time passes again")
    third = client.request("SET", "key", "3", ts=str(old)).ts
    assert 0 < third.wall_ms - first.wall_ms < HOUR_MS


def test_an_answer_is_remembered_by_the_same_clock(control, client):
    request = {"correlation": uuid.uuid4().bytes, "ts": str(Hlc(1, 0, "client-1")), "expiry": 60}
    assert client.request("SET", "key", "value", "NX", **request).payload == OK
    assert client.request("SET", "key", "value", "NX", **request).payload == OK

    control.do("clock", "advance", "1h")

    assert client.request("SET", "key", "value", "NX", **request).payload == b":-1\r\n"


def test_the_check_of_skew_sees_the_same_clock(control, client):
    ahead = str(Hlc(int(time.time() * 1000) + HOUR_MS, 0, "client-1"))
    assert b"too far in the future" in client.request("SET", "key", "value", ts=ahead).payload

    control.do("clock", "advance", "1h")

    assert client.request("SET", "key", "value", ts=ahead).payload == OK


def test_one_clients_clock_may_be_wrong(double, control, client):
    other = double.connect("client-2")

    control.do("clock", "skew", "client-1", "90s")
    assert b"too far in the future" in client.request("SET", "key", "value").payload
    assert other.request("SET", "key", "value").payload == OK

    control.do("clock", "skew", "client-1", "-90s")
    assert client.request("SET", "key", "value").payload == OK


@pytest.mark.parametrize("words", [
    ("clock",), ("clock", "advance"), ("clock", "advance", "soon"), ("clock", "advance", "-1s"),
    ("clock", "advance", "1s", "2s"), ("clock", "advance", "36501d"), ("clock", "freeze", "now"),
    ("clock", "skew", "a"),
    ("clock", "skew", "a", "b"), ("clock", "skew", "a", "-"), ("clock", "backwards"), ("reset", "all"), ("seed",),
    ("seed", "{"), ("seed", "", ""), ("RESET",), ("",), ("fault",), ("fault", "explode"), ("fault", "delay"),
    ("fault", "delay", "0s"), ("fault", "error", ""), ("fault", "error", "a\nb"), ("fault", "quota", "count", "0"),
    ("fault", "quota", "count", "x"), ("fault", "quota", "verb", "set"), ("fault", "quota", "verb", "MOVE"),
    ("fault", "quota", "key", ""), ("fault", "quota", "key"), ("fault", "quota", "probability", "0"),
    ("fault", "quota", "probability", "1.5"), ("fault", "quota", "seed", "x"), ("fault", "quota", "colour", "red"),
    ("fault", "quota", "key", "a", "key", "b"), ("fault", "notify-twice", "verb", "SET"), ("requests", "all"),
    ("requests", "colour", "red"), ("requests", "after", "x"), ("requests", "count", "1"), ("wait-for", "count", "0"),
    ("wait-for", "timeout", "0s"), ("wait-for", "timeout", "11m"), ("wait-for", "verb", "x"), ("x",) * 30,
])
def test_what_cannot_be_done_is_refused_with_a_text(control, words):
    answer = control.ask(*words)

    assert answer.startswith(b"-ERR ") and answer.endswith(b"\r\n") and len(answer) > 12, answer
    assert control.lines("fault", "list") == []


# Faults


def test_an_answer_is_delayed_by_the_clock(control, client):
    control.do("clock", "freeze")
    control.do("fault", "delay", "10s", "key", "slow", "verb", "SET")
    slow = client.send("SET", "slow", "value")

    assert value_of(client, "slow") == b"value", "it is executed at once"
    assert not slow.done()
    control.do("clock", "advance", "9999ms")
    assert client.request("SET", "fast", "value").payload == OK
    assert not slow.done()

    control.do("clock", "advance", "1ms")
    assert slow.result(30).payload == OK


def test_a_delay_passes_by_itself(control, client):
    control.do("fault", "delay", "50ms")
    before = time.monotonic()

    assert client.request("SET", "key", "value").payload == OK
    assert time.monotonic() - before >= 0.05


def test_a_request_is_not_answered_though_it_is_executed(control, client):
    control.do("fault", "no-answer", "verb", "SET", "count", "1")
    lost = client.send("SET", "key", "value")

    assert value_of(client, "key") == b"value"
    assert not lost.done()


def test_an_answer_comes_twice(control, client):
    control.do("fault", "answer-twice", "count", "1")

    answer = client.request("SET", "key", "value")

    second = client.others.get(timeout=30)
    assert (second.payload, second.correlation) == (answer.payload, answer.correlation)
    assert second.prop("__ts") == answer.prop("__ts")


def test_an_error_can_have_any_text(control, client):
    control.do("fault", "error", "no quorum: 1 of 3", "verb", "SET")

    answer = client.request("SET", "key", "value")

    assert answer.payload == b"-ERR no quorum: 1 of 3\r\n"
    assert answer.prop("__stat") == "200" and answer.prop("__ts") is None
    assert value_of(client, "key") is None, "it was not executed"
    assert control.lines("requests")[0]["answer"] == "-ERR no quorum: 1 of 3\r\n"


def test_the_quota_can_be_exceeded_by_one(control, client):
    control.do("fault", "quota", "count", "1")

    assert client.request("SET", "key", "value").payload == b"-ERR the quota has been exceeded\r\n"
    assert client.request("SET", "key", "value").payload == OK


def test_an_answer_may_bear_other_correlation_data(control, client):
    control.do("fault", "wrong-correlation", "count", "1")
    waiting = client.send("SET", "key", "value")

    stray = client.others.get(timeout=30)
    assert stray.payload == OK
    assert not waiting.done()


def test_an_answer_may_be_cut(control, client):
    control.do("fault", "malformed", "verb", "GET")
    client.request("SET", "key", "value")

    payload = client.request("GET", "key").payload

    assert b"$5\r\nvalue\r\n".startswith(payload) and payload != b"$5\r\nvalue\r\n"
    with pytest.raises(ValueError):
        resp.read(payload)


def test_a_notification_is_dropped(control, client):
    client.watch("key")
    control.do("fault", "drop-notification", "client", "client-1", "key", "k*", "count", "1")

    client.request("SET", "key", "1")
    client.request("SET", "key", "2")

    assert client.notification().payload.endswith(b"2\r\n")


def test_a_notification_comes_twice(control, client):
    client.watch("key")
    control.do("fault", "notify-twice", "count", "1")

    client.request("SET", "key", "1")
    client.request("SET", "key", "2")

    assert [client.notification().payload[-3:] for _ in range(3)] == [b"1\r\n", b"1\r\n", b"2\r\n"]


def test_a_client_is_disconnected(control, client):
    client.watch("key")
    control.do("fault", "disconnect", "client", "client-1", "verb", "SET")

    client.send("SET", "key", "value")

    client.wait_until_returned()
    assert value_of(client, "key") == b"value", "it was executed"
    assert client.request("KEYNOTIFY", "key", "STOP").payload == b":0\r\n", "with the connection went what hung on it"


def test_a_rule_is_for_whom_it_says(double, control, client):
    other = double.connect("client-2")
    control.do("fault", "error", "boom", "client", "client-1", "verb", "GET", "key", "a*")

    assert client.request("GET", "abc").payload == b"-ERR boom\r\n"
    assert other.request("GET", "abc").payload == NOTHING
    assert client.request("GET", "xyz").payload == NOTHING
    assert client.request("DEL", "abc").payload == b":0\r\n"


def test_chance_is_the_same_each_time(control, client):
    def struck(seed):
        control.do("fault", "clear")
        control.do("fault", "quota", "probability", "0.3", "seed", seed)
        return [client.request("GET", "key").payload != NOTHING for _ in range(100)]

    first = struck(7)
    assert 10 < sum(first) < 50
    assert struck(7) == first
    assert struck(8) != first


def test_rules_are_listed_with_what_they_have_done_and_cleared(control, client):
    assert control.ask("fault", "delay", "1ms", "count", "3", "key", "a*", "verb", "SET") == b":1\r\n"
    assert control.ask("fault", "error", "boom", "probability", "0.25", "client", "nobody") == b":2\r\n"
    client.request("SET", "abc", "value")

    assert control.lines("fault", "list") == [
        {"number": 1, "action": "delay", "delay_ms": 1, "verb": "SET", "pattern": "a*", "left": 2, "strikes": 1},
        {"number": 2, "action": "error", "text": "boom", "client": "nobody", "probability": 0.25, "seed": 0,
         "strikes": 0},
    ]
    control.do("fault", "clear")
    assert control.lines("fault", "list") == []


def test_there_is_an_end_to_rules(control):
    for _ in range(100):
        control.do("fault", "quota", "client", "nobody")

    assert control.ask("fault", "quota", "client", "nobody") == b"-ERR there are too many rules\r\n"


# Requests


def test_what_was_asked_is_told_with_its_answers(control, client):
    set_answer = client.request("SET", "key", "value", "PX", 1000)
    client.request("GET", b"\xff")
    client.request("set", "key")
    control.do("fault", "no-answer", "verb", "DEL")
    client.send("DEL", "key")
    client.request("GET", "other")

    first, second, third, fourth, fifth = control.lines("requests")

    assert abs(first.pop("time") - time.time() * 1000) < HOUR_MS
    assert first == {"number": 1, "client": "client-1", "verb": "SET", "key": "key",
                     "request": ["SET", "key", "value", "PX", "1000"], "answer": "+OK\r\n",
                     "version": set_answer.prop("__ts"), "fault": None}
    assert (second["key_base64"], second["answer"]) == ("/w==", "$-1\r\n")
    assert "payload_base64" in second
    assert (third["verb"], third["request"]) == (None, ["set", "key"])
    assert third["answer"] == "-ERR unknown command\r\n"
    assert (fourth["fault"], fourth["answer"]) == ("no-answer", ":1\r\n")
    assert fifth["number"] == 5


def test_requests_can_be_chosen(double, control, client):
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


def test_the_oldest_requests_are_forgotten(control, client):
    for _ in range(5):
        client.request_all(("GET", "key") for _ in range(2500))

    kept = control.lines("requests")
    assert kept[-1]["number"] == 12500
    assert 5000 < len(kept) <= 10000
    assert kept[0]["number"] == 12500 - len(kept) + 1


def test_a_request_is_waited_for(control, client):
    waiting = control.send("wait-for", "key", "door*", "verb", "SET", "count", 2, "timeout", "30s", topic=CONTROL,
                           ts=None)
    client.request("SET", "door-1", "open")
    client.request("GET", "door-2")
    assert not waiting.done()

    client.request("SET", "door-2", "open")

    assert waiting.result(30).payload == b":1\r\n"


def test_a_request_that_has_come_need_not_be_waited_for(control, client):
    client.request("SET", "door", "open")

    assert control.ask("wait-for", "key", "door") == b":1\r\n"
    assert control.ask("wait-for", "key", "door", "after", "1", "timeout", "1ms") == b":0\r\n"


def test_waiting_ends_though_the_clock_stands(control):
    control.do("clock", "freeze")

    assert control.ask("wait-for", "key", "never", "timeout", "20ms") == b":0\r\n"


def test_a_reset_ends_waiting(control):
    waiting = control.send("wait-for", "timeout", "10m", topic=CONTROL, ts=None)
    control.do("reset")

    assert waiting.result(30).payload == b":0\r\n"


# The envelope


def test_it_wants_the_envelope_that_the_store_wants(control):
    assert control.ask("reset", qos=2).startswith(b"-ERR a request must be published at QoS 1")
    assert control.send("reset", topic=CONTROL, correlation=None).result(30).prop("__stat") == "400"
    control.send("fault", "quota", topic=CONTROL, response_topic=None)
    control.send("fault", "quota", topic=CONTROL, response_topic="a/+")
    assert control.lines("fault", "list") == []


def test_what_is_no_request_is_a_syntax_error(control):
    for payload in (b"", b"*1\r\n", b"reset", b"*0\r\n", b"*1\r\n$5\r\nreset\r\nmore", b"\xff" * 100):
        assert control.ask(payload=payload) == b"-ERR syntax error\r\n", payload


# statestorectl


def test_statestorectl_says_all_of_it(double, control, client, tmp_path):
    def ctl(*words):
        answer = subprocess.run([STATESTORED.with_name("statestorectl"), "--url", double.url, "test", *words],
                                capture_output=True, text=True, check=False)
        return answer.returncode, answer.stdout, answer.stderr

    seed = tmp_path / "seed.json"
    seed.write_text('[{"machine": "A"}]')
    assert ctl("seed", str(seed))[:2] == (0, "OK\n")
    assert value_of(client, "machine") == b"A"
    assert ctl("seed", str(tmp_path / "missing"))[0] == 2
    assert ctl("clock", "advance", "1h")[:2] == (0, "OK\n")
    assert ctl("clock", "skew", "client-1", "--", "-90s")[0] == 0
    assert ctl("fault", "error", "boom", "key", "x", "count", "1")[:2] == (0, "1\n")
    assert client.request("GET", "x").payload == b"-ERR boom\r\n"
    assert json.loads(ctl("fault", "list")[1])["strikes"] == 1
    assert json.loads(ctl("requests", "key", "x")[1])["fault"] == "error"
    assert ctl("wait-for", "key", "x")[0] == 0
    assert ctl("wait-for", "key", "y", "timeout", "10ms")[0] == 1
    code, _, errors = ctl("--timeout", "50ms", "wait-for", "key", "y")
    assert (code, errors) == (1, "statestorectl: no such request has come\n")
    code, _, errors = ctl("fault", "explode")
    assert code == 4 and "was expected" in errors
    assert ctl("reset")[:2] == (0, "OK\n")
    assert value_of(client, "machine") is None


# Without --control


def test_without_it_nothing_can_be_asked(tmp_path):
    double = Double(tmp_path).start()
    try:
        control = double.connect("control", Control)
        control.request("SET", "key", "value")
        asked = [control.send(*words, topic=CONTROL) for words in
                 [("reset",), ("fault", "quota"), ("clock", "advance", "1h"), ("seed", '{"key":"key","value":"new"}')]]
        control.wait_until_sent()

        assert value_of(control, "key") == b"value"
        assert not any(answer.done() for answer in asked)
        answer = subprocess.run(
            [STATESTORED.with_name("statestorectl"), "--url", double.url, "--timeout", "50ms", "test", "reset"],
            capture_output=True, text=True, check=False)
        assert answer.returncode == 3 and "--control" in answer.stderr
        assert "it seems that no state store is connected" in answer.stderr, "nobody subscribes to it"
        assert double.stop() == 0
    finally:
        double.close()


def test_without_it_a_session_that_had_it_brings_nothing_in(site):
    """The broker keeps the subscription of a store that was started with it."""
    store = site.start_store("--control")
    control = site.connect(kind=Control)
    assert control.do("fault", "quota", "client", "nobody") == b":1\r\n"
    store.stop()
    asked = control.send("reset", topic=CONTROL)
    control.wait_until_sent()
    store.flags = ()
    store.start()

    assert control.request("SET", "key", "value").payload == OK
    asked_again = control.send("reset", topic=CONTROL)
    control.wait_until_sent()
    assert value_of(control, "key") == b"value"
    assert not asked.done() and not asked_again.done()


def test_it_is_loud(started):
    assert 'level=warning msg="--control: whoever reaches the broker can wipe this store' in started.log()


def test_disconnecting_needs_the_plugin(site):
    site.start_store("--control")

    answer = site.connect(kind=Control).ask("fault", "disconnect")

    assert answer == b"-ERR disconnect needs the plugin in the broker\r\n"
