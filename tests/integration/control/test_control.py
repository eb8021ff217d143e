# SPDX-License-Identifier: Apache-2.0
"""statestored --control: reset, invalid requests, reply address, statestorectl test, and a store without --control."""

import json
import subprocess
import time
import urllib.request
import uuid

import pytest

from support import resp
from support.broker import free_port, refuses_response_topic
from support.connection import PROTOCOL_ERROR, SUCCESS
from support.control import CONTROL, Control, value_of
from support.ctl import environment
from support.double import running_double
from support.hlc import Hlc
from support.process import CTL, PATIENCE, wait_until
from support.wire_client import WireClient

OK, NOTHING = b"+OK\r\n", b"$-1\r\n"
HOUR_MS = 3600 * 1000


# Reset


def test_reset_restores_the_state_after_start(control, client):
    client.watch("watched")
    correlation = uuid.uuid4().bytes
    first = client.request("SET", "key", "value", "NX", correlation=correlation, ts=str(Hlc(1, 0, "client-1")))
    control.do("clock", "advance", "10d")
    control.do("fault", "no-answer")
    assert first.payload == OK

    assert control.ask("reset") == OK

    assert value_of(client, "key") is None
    assert [one["request"] for one in control.lines("requests")] == [["GET", "key"]]
    again = client.request("SET", "key", "value", "NX", correlation=correlation, ts=str(Hlc(1, 0, "client-1")))
    assert again.payload == OK, "the reset removed the remembered reply"
    assert abs(again.ts.wall_ms - time.time() * 1000) < HOUR_MS, "the clock shows the real time again"
    client.request("SET", "watched", "value")
    assert client.request("KEYNOTIFY", "watched", "STOP").payload == b":0\r\n"
    assert client.notifications.empty()


def test_requests_around_a_reset_get_replies(control):
    """With the plugin, the reset may be executed before requests that were sent earlier."""
    requests = [control.send("SET", f"key-{n}", "value") for n in range(300)]
    reset = control.send("reset", topic=CONTROL, ts=None)
    requests += [control.send("SET", f"key-{n}", "value") for n in range(300)]

    assert all(reply.result(PATIENCE).payload == OK for reply in requests)
    assert reset.result(PATIENCE).payload == OK


def test_control_requests_find_the_requests_that_have_replies(control):
    control.do("fault", "error", "boom", "key", "struck")
    assert control.request("SET", "key", "value").payload == OK
    assert control.request("GET", "struck").payload == b"-ERR boom\r\n"

    assert [line["reply"] for line in control.lines("requests")] == ["+OK\r\n", "-ERR boom\r\n"]
    control.do("fault", "clear")

    assert control.request("GET", "struck").payload == NOTHING


def test_reset_removes_seeded_keys(tmp_path):
    seed = tmp_path / "seed.jsonl"
    seed.write_text('{"key":"greeting","value":"hello"}\n')
    with running_double(tmp_path, "--control", "--seed", seed) as double:
        control = double.connect("control", Control)
        assert value_of(control, "greeting") == b"hello"
        control.do("reset")
        assert value_of(control, "greeting") is None
        assert control.ask("seed", seed.read_text()) == OK
        assert value_of(control, "greeting") == b"hello"


def test_reset_sets_the_metrics_to_zero(tmp_path):
    port = free_port()
    with running_double(tmp_path, "--control", "--http-listen", f"127.0.0.1:{port}") as double:
        control = double.connect("control", Control)

        def n_set():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as page:
                [line] = [line for line in page.read().decode().splitlines()
                          if line.startswith('statestore_requests_total{verb="set",outcome="done"}')]
                return int(line.split()[1])

        control.request("SET", "key", "value")
        assert n_set() == 1
        control.do("reset")
        assert n_set() == 0


def test_reset_restores_the_limit_of_clock_advance(control, client):
    for _ in range(3):
        control.do("clock", "advance", "36500d")
        assert control.ask("clock", "advance", "1d").startswith(b"-ERR the clock can be advanced by 100 years")
        control.do("reset")
    client.request("SET", "leased", "value", "PX", 20, ts=None)

    wait_until(lambda: value_of(client, "leased") is None, "the clock advances again")


# A part of the store


def test_reset_of_keys_removes_what_concerns_them(double, control, client):
    for key in "mine/a", "mine/b", "other":
        client.watch(key)
        client.request("SET", key, "value")
        assert client.notification()
    control.do("fault", "quota", "key", "mine/a*", "verb", "DEL")
    control.do("fault", "error", "boom", "key", "other")
    control.do("fault", "error", "boom", "client", "client-2")
    control.do("clock", "freeze")

    assert control.ask("reset", "key", "mine/*") == OK

    assert client.notifications.empty()
    kept = control.lines("requests")
    assert {line["key"] for line in kept} == {"other"}
    assert [line["number"] for line in kept] == [5, 6], "the numbers stay"
    assert client.request("DEL", "mine/a").payload == b":0\r\n", "the rule for the keys was removed"
    assert client.request("GET", "other").payload == b"-ERR boom\r\n"
    assert double.connect("client-2").request("GET", "mine/a").payload == b"-ERR boom\r\n"
    control.do("fault", "clear")
    assert value_of(client, "mine/a") is None and value_of(client, "mine/b") is None
    assert value_of(client, "other") == b"value"
    assert client.request("KEYNOTIFY", "mine/a", "STOP").payload == b":0\r\n"
    assert client.request("KEYNOTIFY", "other", "STOP").payload == OK


def test_reset_of_a_client_removes_what_concerns_it(double, control, client):
    other = double.connect("client-2")
    for each in client, other:
        each.watch("key")
        control.do("fault", "error", "boom", "client", each.id, "key", "unknown")

    assert control.ask("reset", "client", "client-1") == OK

    assert [line["client"] for line in control.lines("requests")] == ["client-2"]
    assert client.request("GET", "unknown").payload == NOTHING
    assert other.request("GET", "unknown").payload == b"-ERR boom\r\n"
    assert client.request("SET", "key", "value").payload == OK
    assert other.notification().payload.endswith(b"value\r\n")
    assert client.request("KEYNOTIFY", "key", "STOP").payload == b":0\r\n"


def test_reset_of_a_client_and_keys_removes_what_matches_both(double, control, client):
    other = double.connect("client-2")
    for each in client, other:
        each.watch("a")
        each.watch("b")

    control.do("reset", "client", "client-1", "key", "a")

    assert [(line["client"], line["key"]) for line in control.lines("requests")] == \
        [("client-1", "b"), ("client-2", "a"), ("client-2", "b")]
    assert [client.request("KEYNOTIFY", key, "STOP").payload for key in "ab"] == [b":0\r\n", OK]
    assert other.request("KEYNOTIFY", "a", "STOP").payload == OK


def test_tests_that_share_a_double_do_not_disturb_each_other(double, control):
    """Two tests in turn do what one double with a global reset did not permit."""
    clients = {name: double.connect(f"client-{name}") for name in ("one", "two")}
    for _ in range(3):
        for name, each in clients.items():
            assert value_of(each, f"{name}/key") is None
            control.do("fault", "error", f"of {name}", "key", f"{name}/*", "verb", "SET", "count", 1)
        for name, each in clients.items():
            assert each.request("SET", f"{name}/key", "value").payload == f"-ERR of {name}\r\n".encode()
            assert each.request("SET", f"{name}/key", "value", "PX", HOUR_MS).payload == OK
            assert len(control.lines("requests", "key", f"{name}/*")) == 3
            control.do("expire", f"{name}/key")
            control.do("reset", "key", f"{name}/*")


# Invalid requests


@pytest.mark.parametrize("words", [
    ("clock",), ("clock", "advance"), ("clock", "advance", "soon"), ("clock", "advance", "-1s"),
    ("clock", "advance", "10"), ("fault", "delay", "10"), ("wait-for", "timeout", "10"),
    ("clock", "advance", "1s", "2s"), ("clock", "freeze", "now"),
    ("clock", "skew", "a", "1s"), ("clock", "backwards"), ("reset", "all"), ("reset", "key"), ("reset", "key", ""), ("reset", "verb", "SET"),
    ("outage",), ("outage", "broker"), ("outage", "client", "1s"), ("outage", "store", "0s"), ("outage", "store", "3600001ms"),
    ("outage", "store", "1s", "2s"),
    ("reset", "key", "a", "key", "b"), ("fault", "clear", "x"), ("fault", "clear", "verb", "SET"), ("seed",),
    ("seed", "", ""), ("RESET",), ("expire",), ("expire", "a", "b"), ("",), ("fault",), ("fault", "explode"), ("fault", "delay"),
    ("fault", "delay", "0s"), ("fault", "error", ""), ("fault", "error", "a\nb"), ("fault", "quota", "count", "0"),
    ("fault", "quota", "count", "x"), ("fault", "quota", "verb", "set"), ("fault", "quota", "verb", "MOVE"),
    ("fault", "quota", "key", ""), ("fault", "quota", "key"), ("fault", "quota", "probability", "0.5"), ("fault", "quota", "colour", "red"),
    ("fault", "quota", "key", "a", "key", "b"), ("fault", "notify-twice", "verb", "SET"), ("requests", "all"), ("notifications", "verb", "SET"), ("notifications", "count", "1"), ("watchers", "after", "1"),
    ("watchers", "key"),
    ("requests", "colour", "red"), ("requests", "after", "x"), ("requests", "count", "1"), ("wait-for", "count", "0"),
    ("wait-for", "timeout", "0s"), ("wait-for", "timeout", "11m"), ("wait-for", "verb", "x"), ("x",) * 30,
    ("fault", "error", "x" * 65536), ("wait-for", "key", "x" * 65536),
])
def test_wrong_words_are_a_usage_error(control, words):
    reply = control.ask(*words)

    assert reply.startswith(b"-ERR usage: ") and reply.endswith(b"\r\n") and len(reply) > 19, reply
    assert control.request("GET", "key").payload == NOTHING, "no fault was injected"


@pytest.mark.parametrize("words", [("clock", "advance", "36501d"), ("seed", "{"), ("expire", "missing")])
def test_refused_requests_get_an_error(control, words):
    reply = control.ask(*words)

    assert reply.startswith(b"-ERR ") and not reply.startswith(b"-ERR usage: "), reply


# Properties and QoS


def test_control_requests_need_the_same_properties_and_qos_as_store_requests(control):
    assert control.ask("reset", qos=2).startswith(b"-ERR a request must be published at QoS 1")
    assert control.send("reset", topic=CONTROL, correlation=None).result(PATIENCE).prop("__stat") == "400"
    control.send("fault", "quota", topic=CONTROL, response_topic=None)
    assert control.request("GET", "key").payload == NOTHING


def test_a_control_request_with_an_invalid_response_topic_is_not_executed(double, control):
    client = double.connect("client-1", WireClient)
    client.send(client.encode_publish(CONTROL, resp.request("fault", "quota"), ResponseTopic="a/+", CorrelationData=b"1"))

    if refuses_response_topic("a/+"):
        assert client.wait_until_closed() == PROTOCOL_ERROR
    else:
        assert client.acknowledgement() == SUCCESS
    assert control.request("GET", "key").payload == NOTHING


def test_a_malformed_payload_is_a_syntax_error(control):
    for payload in (b"", b"*1\r\n", b"reset", b"*0\r\n", b"*1\r\n$5\r\nreset\r\nmore", b"\xff" * 100):
        assert control.ask(payload=payload) == b"-ERR syntax error\r\n", payload


# statestorectl


def test_statestorectl_sends_every_control_request(double, control, client, tmp_path):
    def ctl(*words):
        reply = subprocess.run([CTL, "--port", str(double.port), "test", *words], env=environment({}),
                                capture_output=True, text=True, check=False)
        return reply.returncode, reply.stdout, reply.stderr

    seed = tmp_path / "seed.json"
    seed.write_text('[{"machine": "A"}]')
    assert ctl("seed", str(seed))[:2] == (0, "OK\n")
    assert value_of(client, "machine") == b"A"
    assert ctl("seed", str(tmp_path / "missing"))[0] == 2
    seed.write_text('{"key": "k", "value": "v"}\nbad\n')
    code, _, errors = ctl("seed", str(seed))
    assert code == 4 and f'"{seed}": -ERR seed:2: ' in errors
    assert ctl("clock", "advance", "1h")[:2] == (0, "OK\n")
    assert "after advance" in ctl("clock", "advance", "-1s")[2]
    assert ctl("fault", "error", "boom", "key", "x", "count", "1")[:2] == (0, "OK\n")
    assert client.request("GET", "x").payload == b"-ERR boom\r\n"
    assert json.loads(ctl("requests", "key", "x")[1])["fault"] == "error"
    assert ctl("wait-for", "key", "x")[0] == 0
    assert ctl("wait-for", "key", "y", "timeout", "10ms") == (1, "", "statestorectl: no such request was received\n")
    code, _, errors = ctl("fault", "explode")
    assert code == 2 and "usage: delay, no-answer" in errors
    assert ctl("explode")[0] == ctl("clock")[0] == ctl("clock", "advance", "soon")[0] == 2
    assert ctl("expire", "missing")[0] == 4
    assert "client, verb, key" in ctl("fault", "error", "no", "quorum", "verb", "SET")[2]  # the text lacks quotes
    assert ctl("outage", "store", "1ms")[:2] == (0, "OK\n")
    assert ctl("reset")[:2] == (0, "OK\n")
    assert value_of(client, "machine") is None


# Without --control


def expect_no_control(port):
    reply = subprocess.run([CTL, "--port", str(port), "--timeout", "1h", "test", "reset"], capture_output=True, text=True,
                           check=False, timeout=PATIENCE)

    assert reply.returncode == 3
    assert "reports no subscriber for this request" in reply.stderr
    assert reply.stderr.endswith("only a store that runs with --control replies to this request\n")


def test_without_control_statestorectl_says_so_at_once(site):
    site.start_store()
    expect_no_control(site.broker.port)


def test_a_double_without_control_is_no_exception(tmp_path):
    with running_double(tmp_path) as double:
        expect_no_control(double.port)


def test_without_control_requests_from_an_old_subscription_are_ignored(site):
    """The session at the broker still has the subscription of a store that was started with --control."""
    store = site.start_store("--control")
    control = site.connect(kind=Control)
    assert control.do("fault", "quota", "client", "unknown") == OK
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


def test_control_logs_a_warning_at_start(started):
    assert 'level=warning msg="--control: all clients of the broker can empty this store' in started.log()
    assert "read the requests of other clients with their keys and values, whatever the policy grants" in started.log()


def test_fault_kick_needs_the_plugin(site):
    site.start_store("--control")

    reply = site.connect(kind=Control).ask("fault", "kick")

    assert reply == b"-ERR kick needs the plugin in the broker\r\n"
