# SPDX-License-Identifier: Apache-2.0
"""statestorectl replay at a broker with the plugin: each recorded client has its own connection."""

import json

import pytest

from support.client import INVOKE
from support.control import Control
from support.ctl import DONE, Ctl
from support.double import Double

OK = b"+OK\r\n"


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "recording.jsonl"


@pytest.fixture
def recorded(tmp_path, recording):
    double = Double(tmp_path, "--control", "--record", recording)
    try:
        yield double.start()
    finally:
        double.close()


@pytest.fixture
def replay(tmp_path, recording):
    """Run a replay at a new store."""
    double = Double(tmp_path, "--control")
    try:
        yield lambda *arguments: Ctl(double.start().port).run("replay", recording, "--timeout", "20s", *arguments)
        assert double.stop() == 0
    finally:
        double.close()


def test_replay_keeps_recorded_clients_apart(recorded, replay):
    clients = [recorded.connect(f"client-{n}") for n in range(3)]
    for words in ("KEYNOTIFY", "key"), ("KEYNOTIFY", "key", "STOP"):
        assert [client.request(*words).payload for client in clients] == [OK] * 3
    assert recorded.stop() == 0

    ended = replay()

    assert ended.stdout == b"6 equal, 0 different, 0 without a recorded reply, 0 skipped\n"
    assert (ended.returncode, ended.stderr) == (DONE, b"")


def test_replay_reconnects_a_disconnected_client(recorded, replay):
    client, control = recorded.connect("client"), recorded.connect("control", Control)
    control.do("fault", "disconnect", "verb", "SET", "count", "1")
    client.send("SET", "key", "value")
    client.wait_until_reconnected()
    assert client.request("GET", "key").payload == b"$5\r\nvalue\r\n"
    assert recorded.stop() == 0

    ended = replay()

    assert ended.stdout == b"2 equal, 0 different, 1 without a recorded reply, 0 skipped\n"
    assert (ended.returncode, ended.stderr) == (DONE, b"")


def test_a_replay_sends_clients_beyond_the_maximum_over_one_connection(recording, replay):
    lines = []
    for n in range(103):
        common = {"time": 1, "qos": 1, "correlation_data": str(n), "properties": []}
        replies = f"clients/{n}/replies"
        lines += [common | {"type": "request", "client": str(n), "topic": INVOKE, "response_topic": replies, "verb": "GET",
                            "key": "key", "payload": "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"},
                  common | {"type": "answer", "topic": replies, "payload": "$-1\r\n",
                            "properties": [{"name": "__stat", "value": "200"}]}]
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))

    ended = replay()

    assert ended.stdout == b"103 equal, 0 different, 0 without a recorded reply, 0 skipped\n"
    assert ended.returncode == DONE
    assert b"the recording has 103 clients; all after client 99 shared one connection" in ended.stderr
