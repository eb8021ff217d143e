# SPDX-License-Identifier: Apache-2.0
"""The requests of statestorectl, and its errors for malformed and missing replies."""

import json
import socket
import threading

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import resp
from support.broker import Broker, free_port
from support.client import INVOKE, notify_topic
from support.ctl import DONE, ESCAPE_SEQUENCE, NO_REPLY, STORE_ERROR, TOO_LARGE, Ctl
from support.process import PATIENCE, wait_until


def test_a_request_has_the_format_of_published_clients(site):
    spy = site.connect()
    spy.subscribe(INVOKE)
    site.start_store()

    Ctl(site.broker.port).ok("set", "key", "value", "--persist", "--fence", "1:0:a", "--nex=old", "--px", "5s",
                             "--client-id", "me", "--timeout", "1000s")

    sent = spy.others.get(timeout=PATIENCE)
    words = [b"SET", b"key", b"value", b"NEX", b"old", b"PX", b"5000"]
    assert sent.payload == b"*7\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    assert sent.qos == 1
    assert 900 < sent.expiry <= 1000
    assert len(sent.correlation) == 16
    assert sent.response_topic.startswith("clients/me/")
    assert sent.prop("__srcId") == "me"
    assert sent.prop("__protVer") == "1.0"
    assert sent.prop("__ft") == "1:0:a"
    assert sent.prop("aio-persistence") == "true"
    wall, counter, node = sent.prop("__ts").split(":")
    assert (len(wall), counter, node) == (15, "00000", "me")


def test_a_request_has_no_unrequested_options(site):
    spy = site.connect()
    spy.subscribe(INVOKE)
    site.start_store()

    Ctl(site.broker.port).ok("set", "key", "value")

    sent = spy.others.get(timeout=PATIENCE)
    assert sent.payload == b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n"
    assert sent.prop("__ft") is None
    assert sent.prop("aio-persistence") is None
    assert sent.prop("__srcId").startswith("statestorectl-")


# No broker


def test_a_missing_broker_is_an_error(key):
    port = free_port()

    ended = Ctl(port).run("get", key)

    assert (ended.returncode, ended.stdout) == (NO_REPLY, b"")
    assert f"127.0.0.1:{port}" in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [["get", "key"], ["set", "key", "value"], ["del", "key"],
                                       ["vdel", "key", "value"], ["scan"], ["watch", "key"], ["ping"]])
def test_a_missing_store_is_an_error(site, arguments):
    def ask():
        ended = Ctl(site.broker.port).run(*arguments, "--timeout", "2s")
        is_connected = b"does not reply" not in ended.stderr  # a busy broker may take longer to accept the connection
        return is_connected and ended

    ended = wait_until(ask, "the command reaches the broker")
    assert (ended.returncode, ended.stdout) == (NO_REPLY, b"")
    assert "no reply within 2s" in ended.stderr.decode()
    assert f"127.0.0.1:{site.broker.port}" in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1


def test_a_silent_server_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = Ctl(server.getsockname()[1]).run("ping", "--timeout", "50ms")

    assert ended.returncode == NO_REPLY
    assert "does not reply within 50ms" in ended.stderr.decode()


def test_a_broker_that_requires_credentials_is_named(tmp_path):
    broker = Broker(tmp_path, anonymous=False).start()
    try:
        ended = Ctl(broker.port).run("ping")
    finally:
        broker.kill()

    assert ended.returncode == NO_REPLY
    assert "--password-file" in ended.stderr.decode()


# Stores with malformed replies


class FakeStore:
    """Sends the same reply to every request."""

    def __init__(self, port, payload, user):
        self.payload = payload
        self.user = user
        self._subscribed = threading.Event()
        self._paho = paho.Client(protocol=paho.MQTTv5)
        self._paho.on_connect = lambda client, *_: client.subscribe(INVOKE, qos=1)
        self._paho.on_subscribe = lambda *_: self._subscribed.set()
        self._paho.on_message = self._reply
        self._paho.connect("127.0.0.1", port)
        self._paho.loop_start()
        assert self._subscribed.wait(PATIENCE)

    def _reply(self, client, _data, request):
        client.publish(request.properties.ResponseTopic, self.payload, 1, properties=self._properties(request))

    def _properties(self, request):
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = request.properties.CorrelationData
        properties.UserProperty = self.user
        return properties

    def close(self):
        self._paho.disconnect()
        self._paho.loop_stop()


class LateStore(FakeStore):
    """Sends the notification of a newer value before the reply to a GET, and another one afterwards."""

    def _reply(self, client, data, request):
        def notify(version, value):
            properties = Properties(PacketTypes.PUBLISH)
            properties.UserProperty = [("__ts", f"{version}:0:StateStore")]
            client.publish(notify_topic("watch-1", "key"), resp.request("NOTIFY", "SET", "VALUE", value), 1, properties=properties)

        if b"GET" not in request.payload:
            client.publish(request.properties.ResponseTopic, b"+OK\r\n", 1, properties=self._properties(request))
            return
        notify(2, "new")
        super()._reply(client, data, request)
        notify(3, "newer")


class ReversingStore(FakeStore):
    """Lists three keys, and replies to their GETs in the reverse order. The second key does not exist any more."""

    def __init__(self, port):
        self._waiting = []
        super().__init__(port, None, [("__stat", "200")])

    def _reply(self, client, data, request):
        words = request.payload.split(b"\r\n")
        if words[2] == b"SCAN":
            self.payload = resp.request("a", "b", "c").join([b"*1\r\n", b""])
            super()._reply(client, data, request)
            return
        self._waiting.append((words[4], request))
        if len(self._waiting) == 3:
            for key, waiting in reversed(self._waiting):
                self.payload = b"$-1\r\n" if key == b"b" else b"$7\r\nvalue " + key + b"\r\n"
                super()._reply(client, data, waiting)


def test_replies_in_another_order_are_of_their_keys(site):
    store = ReversingStore(site.broker.port)
    try:
        ended = Ctl(site.broker.port).run("export")
    finally:
        store.close()

    assert [(line["key"], line["value"]) for line in map(json.loads, ended.stdout.splitlines())] \
        == [("a", "value a"), ("c", "value c")]
    assert ended.stderr == b"statestorectl: 1 key was left out: deleted or expired since the store listed it\n"
    assert ended.returncode == DONE


def test_a_request_that_is_too_large_has_its_own_status(make_site):
    site = make_site("max_packet_size 100000")
    site.start_store()
    ctl = Ctl(site.broker.port)

    ended = ctl.run("set", "key", "-", stdin=b"x" * 100000)
    assert ended.returncode == TOO_LARGE
    assert b"max_packet_size" in ended.stderr

    assert ctl.run("set", "key", "-", stdin=b"x" * 99000).returncode == DONE
    assert ctl.run("lock", "k" * 100000, "--", "true").returncode == 120 + STORE_ERROR


@pytest.mark.parametrize("error", ["the value is too large", "the reply is too large"])
def test_the_stores_error_of_a_size_has_its_own_status(site, error):
    ended = ask_fake(site, f"-ERR {error}\r\n".encode(), [("__stat", "200")], "set", "key", "value")

    assert (ended.returncode, ended.stderr) == (TOO_LARGE, f'statestorectl: SET "key": -ERR {error}\n'.encode())


def ask_fake(site, payload, user, *arguments):
    store = FakeStore(site.broker.port, payload, user)
    try:
        return Ctl(site.broker.port).run(*arguments)
    finally:
        store.close()


@pytest.mark.parametrize("arguments, payload", [
    (["get", "key"], b""),
    (["get", "key"], b"+OK\r\n"),
    (["get", "key"], b"$5\r\nvalue\r\n$1\r\nx\r\n"),
    (["get", "key"], b"$5\r\nval\r\n"),
    (["set", "key", "value"], b":1\r\n"),
    (["set", "key", "value"], b"+KO\r\n"),
    (["set", "key", "value"], b"OK\r\n"),
    (["del", "key"], b":2\r\n"),
    (["vdel", "key", "value"], b"+OK\r\n"),
    (["scan"], b"*0\r\n"),
    (["scan"], b"*1\r\n$1\r\na\r\n"),
    (["scan"], b"*1\r\n*2\r\n$1\r\na\r\n"),
    (["scan"], b"*1\r\n*0\r\n:1\r\n"),
    (["scan"], b"*2\r\n*0\r\n$0\r\n\r\n"),
    (["watch", "key"], b":0\r\n"),
])
def test_a_malformed_reply_is_an_error(site, arguments, payload):
    ended = ask_fake(site, payload, [("__stat", "200")], *arguments)

    assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
    assert "unexpected reply" in ended.stderr.decode()


@pytest.mark.parametrize("payload", [b"$3\r\nold\r\n", b"$-1\r\n"], ids=["old value", "not found"])
def test_watch_initial_ignores_a_reply_that_is_older_than_a_notification(site, payload):
    store = LateStore(site.broker.port, payload, [("__stat", "200"), ("__ts", "1:0:StateStore")])
    try:
        ended = Ctl(site.broker.port).run("watch", "key", "--initial", "--count", "2", "--client-id", "watch-1")
    finally:
        store.close()

    assert ended.stdout == b"SET\t2:0:StateStore\tkey\tnew\nSET\t3:0:StateStore\tkey\tnewer\n"


def test_a_status_that_is_not_200_is_an_error(site):
    ended = ask_fake(site, b"", [("__stat", "505"), ("__stMsg", "not supported"), ("__propName", "__protVer"),
                                 ("__propVal", "1.0")], "get", "key")

    assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
    assert "status 505: not supported (__protVer: 1.0)" in ended.stderr.decode()


def test_json_shows_a_scanned_key_that_is_not_utf_8_as_base64(site):
    """statestored lists no such key."""
    ended = ask_fake(site, b"*1\r\n*2\r\n$1\r\n\xff\r\n$2\r\n\xc3\xa9\r\n", [("__stat", "200")], "scan", "--json")

    assert [json.loads(line) for line in ended.stdout.splitlines()] == [{"key_base64": "/w=="}, "é"]


@pytest.mark.parametrize("user", [[], [("details", "1"), ("expires_in_ms", "soon")]], ids=["unknown", "malformed"])
def test_details_that_the_store_does_not_tell_are_left_out(site, user):
    ended = ask_fake(site, b"$5\r\nvalue\r\n", [("__stat", "200"), *user], "get", "key", "--json")

    assert json.loads(ended.stdout) == {"key": "key", "value": "value", "version": None}


def test_an_error_cannot_control_the_terminal(site):
    ended = ask_fake(site, b"-ERR " + ESCAPE_SEQUENCE + b"\r\n", [("__stat", "200")], "get", "key")

    assert ended.stderr == b'statestorectl: GET "key": -ERR \\x1B[31mred\n'
