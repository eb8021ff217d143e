# SPDX-License-Identifier: Apache-2.0
"""--record FILE, and statestorectl replay."""

import base64
import json
import os
import re
import subprocess

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.client import INVOKE
from support.connection import Connection
from support.control import Control
from support.ctl import environment
from support.hlc import Hlc
from support.process import CTL, PATIENCE
from support.site import Site
from support.wire_client import WireClient

FENCE = "001696374425000:00000:Client1"


def replay(site, *arguments):
    return subprocess.run([CTL, "replay", "--port", str(site.broker.port), *map(str, arguments)], env=environment({}),
                          capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "recording.jsonl"


@pytest.fixture
def fresh(tmp_path):
    """Another store, which is empty."""
    directory = tmp_path / "fresh"
    directory.mkdir()
    site = Site(directory)
    try:
        site.start_store()
        yield site
    finally:
        site.close()


def read(recording, kind=None, after_kill=False):
    """The lines of the recording. The last line is complete, except after a kill, which may interrupt a write."""
    text, _, rest = recording.read_text().rpartition("\n")
    assert not rest or after_kill
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if kind in (None, line["type"])]


def correlation(line):
    if "correlation_data" in line:
        return line["correlation_data"].encode()
    return base64.b64decode(line["correlation_data_base64"])


def ask_everything(site):
    """Send a request for each verb and each outcome that is possible at an empty store. Returns their number."""
    client, other = site.connect("client-1"), site.connect("client-2")
    asked = [
        client.request("SET", "k", "v"),
        client.request("SET", "k", "w", "NX"),
        client.request("GET", "k"),
        client.request("GET", "nothing"),
        client.request("SET", b"by\xfftes", b"\0\xff\r\n"),
        client.request("GET", b"by\xfftes"),
        client.request("SET", "empty", ""),
        client.request("SCAN", "*"),
        client.request("KEYNOTIFY", "k"),
        other.request("KEYNOTIFY", "k", "STOP"),
        other.request("SET", "k", "x"),
        client.request("KEYNOTIFY", "k", "STOP"),
        client.request("SET", "locked", "me", "PX", 3600000, ft=FENCE),
        other.request("SET", "locked", "you"),
        other.request("SET", "locked", "you", ft="1:0:Client2"),
        client.request("VDEL", "locked", "you", ft=FENCE),
        client.request("DEL", "locked", ft=FENCE),
        client.request("get", "k"),
        client.request(payload=b"\xff\xfe nothing"),
        client.request("GET", "k", correlation=None),
        client.request("GET", "k", protocol="7.0"),
        client.request("SET", "k", "v", ts=None),
    ]
    twice = {"ts": client.clock.now(), "correlation": b"twice"}
    first, second = (client.send("SET", "once", "v", "NX", **twice) for _ in range(2))
    assert first.result(PATIENCE).payload == second.result(PATIENCE).payload == b"+OK\r\n"
    return len(asked) + 2


def test_requests_replies_and_notifications_are_recorded(site, recording):
    site.start_store("--record", str(recording))
    client = site.connect("client-1")
    client.request("KEYNOTIFY", "k")
    reply = client.request("SET", "k", b"\0\xff", "PX", 3600000, expiry=30)
    client.request("GET", "k")
    assert site.store.stop() == 0

    start, asked, _, set_line, *rest = read(recording)
    assert start["type"] == "start"
    assert (asked["verb"], asked["key"], asked["client"]) == ("KEYNOTIFY", "k", "client-1")
    assert (set_line["type"], set_line["verb"], set_line["expiry"]) == ("request", "SET", 30)
    assert b"\0\xff" in base64.b64decode(set_line["payload_base64"])
    assert {"name": "__srcId", "value": "client-1"} in set_line["properties"]
    [set_reply] = [line for line in rest if line["type"] == "answer" and correlation(line) == correlation(set_line)]
    assert set_reply["payload"] == "+OK\r\n"
    [version] = [entry["value"] for entry in set_reply["properties"] if entry["name"] == "__ts"]
    assert Hlc.parse(version) == reply.ts
    assert [line["type"] for line in rest].count("notification") == 1


def test_an_unverified_client_id_is_not_recorded(make_site, recording, fresh):
    site = make_site()
    site.start_store("--record", str(recording))
    victim = site.connect("victim", WireClient)
    victim.register("k")
    forged = Properties(PacketTypes.WILLMESSAGE)
    forged.ResponseTopic, forged.CorrelationData = victim.response_topic, b"1"
    forged.UserProperty = [("__ts", str(victim.clock.now())), ("__srcId", "victim"), ("statestore-client-id", "victim")]
    Connection(site.broker.port, "alice", will=(INVOKE, b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"),
               will_properties=forged.pack()).cut()
    site.store.wait_for_log("the plugin did not verify it")
    hasty = Connection(site.broker.port, "bob")
    hasty.send(hasty.encode_publish(INVOKE, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", qos=0, ResponseTopic=victim.response_topic,
                                    CorrelationData=b"2", user=[("__srcId", "victim")]))
    victim.reply_to(b"2")
    hasty.cut()
    assert victim.ask("SET", "k", "v") == b"+OK\r\n"
    topic = victim.notification().topic
    site.store.stop()

    assert [(line.get("client"), line["verb"]) for line in read(recording, "request")] == [
        ("victim", "KEYNOTIFY"), (None, "GET"), ("victim", "SET")]
    [notification] = read(recording, "notification")
    assert notification["topic"] == topic
    assert notification["payload"].endswith("$1\r\nv\r\n")
    assert replay(fresh, recording).returncode == 0


def test_a_replay_at_an_empty_store_has_no_differences(site, recording, fresh):
    site.start_store("--record", str(recording))
    n_asked = ask_everything(site)
    assert site.store.stop() == 0  # the line of the last reply may be written after the reply is sent

    # n_asked includes the requests without Correlation Data and with another protocol version
    result = replay(fresh, recording)
    assert result.stdout == f"{n_asked} equal, 0 different, 0 without a recorded reply, 0 skipped\n"
    assert (result.returncode, result.stderr) == (0, "")


def test_a_replay_can_be_repeated_at_the_same_store(site, recording, fresh):
    """Replayed requests are not repetitions of those of an earlier replay."""
    site.start_store("--record", str(recording))
    client = site.connect("client-1")
    client.request("SET", "k", "v", "NX")
    client.request("SET", "k", "w")
    assert site.store.stop() == 0
    assert replay(fresh, recording).returncode == 0

    result = replay(fresh, recording)
    assert result.returncode == 1
    assert result.stdout == (
        f'{recording}:2: SET "k" of client "client-1"\n'
        "  recorded  +OK\\r\\n\n"
        "  replayed  :-1\\r\\n\n"
        "1 equal, 1 different, 0 without a recorded reply, 0 skipped\n")


def test_control_requests_are_replayed(site, recording, tmp_path):
    site.start_store("--record", str(recording), "--control")
    client, control = site.connect("client-1"), site.connect("control", Control)
    client.request("SET", "k", "v", "PX", 3600000)
    control.do("clock", "advance", "1h")
    assert client.request("GET", "k", ts=None).payload == b"$-1\r\n"
    control.do("reset")
    control.do("seed", '{"key":"k","value":"seeded"}')
    control.do("fault", "error", "no quorum", "verb", "SET", "count", "1")
    assert client.request("SET", "k", "v").payload == b"-ERR no quorum\r\n"
    control.do("wait-for", "verb", "SET", "timeout", "5s")
    control.lines("requests")
    assert client.request("GET", "k", ts=None).payload == b"$6\r\nseeded\r\n"
    assert site.store.stop() == 0

    site.store.flags = ("--control",)
    site.store.start()
    result = replay(site, recording)
    assert result.stdout == "9 equal, 0 different, 0 without a recorded reply, 1 skipped\n"
    assert result.returncode == 0


def test_a_request_without_a_recorded_reply_does_not_wait_for_the_timeout(site, recording, tmp_path):
    """The probe does not use up a fault rule with a count."""
    site.start_store("--record", str(recording), "--control")
    client, control = site.connect("client-1"), site.connect("control", Control)
    control.do("fault", "no-answer", "verb", "SET", "count", "2")
    control.do("fault", "error", "no quorum", "verb", "GET", "count", "1")
    client.send("SET", "k", "v")
    client.send("SET", "l", "v")
    assert client.request("SET", "l", "w", "NX").payload == b":-1\r\n"
    assert client.request("GET", "k").payload == b"-ERR no quorum\r\n"
    assert client.request("GET", "k").payload == b"$1\r\nv\r\n"
    assert site.store.stop() == 0

    site.store.flags = ("--control",)
    site.store.start()
    result = replay(site, recording, "--timeout", "1h")
    assert result.stdout == "5 equal, 0 different, 2 without a recorded reply, 0 skipped\n"
    assert result.returncode == 0


WITHOUT_REPLY = {"type": "request", "time": 1, "topic": INVOKE, "qos": 1, "properties": [], "response_topic": "r",
              "correlation_data": "1", "payload": "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"}


def test_a_reply_to_a_request_without_a_recorded_reply_is_no_difference(fresh, recording):
    recording.write_text(2 * (json.dumps(WITHOUT_REPLY) + "\n"))

    result = replay(fresh, recording, "--timeout", "1h")

    assert result.stdout == "0 equal, 0 different, 2 without a recorded reply, 0 skipped\n"
    assert (result.returncode, result.stderr) == (0, "")


def test_control_requests_are_left_out_at_a_store_without_control(site, recording, fresh):
    site.start_store("--record", str(recording), "--control")
    client, control = site.connect("client-1"), site.connect("control", Control)
    control.do("clock", "advance", "1h")
    control.do("fault", "no-answer", "count", "1")
    client.send("SET", "k", "v")
    assert client.request("GET", "k").payload == b"$1\r\nv\r\n"
    assert site.store.stop() == 0

    result = replay(fresh, recording, "--timeout", "1h")

    assert result.stdout == "1 equal, 0 different, 1 without a recorded reply, 2 skipped\n"
    assert (result.returncode, result.stderr) == (0, "")


def test_expiry_is_the_same_at_the_recorded_pace(site, recording, fresh):
    site.start_store("--record", str(recording))
    client = site.connect("client-1")
    client.watch("k", "later")
    client.request("SET", "k", "v", "PX", 4000)
    client.request("SET", "later", "v", "PX", 8000)
    for _ in range(4):
        client.notification()
    assert client.request("GET", "k").payload == b"$-1\r\n"
    assert site.store.stop() == 0

    assert replay(fresh, recording).returncode == 1
    assert replay(fresh, recording, "--pace").returncode == 0


@pytest.mark.parametrize("n_before, n_at_once", [(50, 0), (0, 5000)])
def test_after_kill_9_the_file_contains_every_request_with_a_reply(site, recording, n_before, n_at_once):
    store = site.start_store("--record", str(recording))
    client = site.connect("client-1")
    for i in range(n_before):
        client.request("SET", f"k{i}", "v", protocol=("1.0", "7.0")[i % 2])  # version 7.0 is refused before it reaches a batch
    futures = [client.send("SET", f"l{i}", "v" * 300) for i in range(n_at_once)]
    if futures:
        futures[n_at_once // 5].result(PATIENCE)
    assert store.kill() == -9

    n_replies = n_before + sum(future.done() for future in futures)
    assert n_replies > n_at_once // 5
    assert len(read(recording, "request", after_kill=True)) >= n_replies


def test_a_recording_continues_after_a_restart(site, recording):
    store = site.start_store("--record", str(recording))
    site.connect().request("SET", "k", "v")
    assert store.stop() == 0
    store.start()
    site.connect().request("GET", "k")
    assert store.stop() == 0

    assert [line["type"] for line in read(recording)] == ["start", "request", "answer"] * 2


def test_a_full_disk_is_logged_once_and_requests_are_served(site):
    store = site.start_store("--record", "/dev/full")
    client = site.connect()
    for i in range(20):
        assert client.request("SET", f"k{i}", "v").payload == b"+OK\r\n"

    assert store.log().count("cannot write the recording /dev/full: No space left on device") == 1


def limit_files(store, n_bytes):
    subprocess.run(["prlimit", "--pid", str(store.child.pid), f"--fsize={n_bytes}:unlimited"], check=True)


def test_a_full_disk_leaves_no_partial_line_and_recording_continues_with_space(site, recording):
    store = site.start_store("--record", str(recording))
    limit_files(store, 20000)
    client = site.connect()
    for i in range(60):
        assert client.request("SET", f"k{i}", "v" * 300).payload == b"+OK\r\n"
    store.wait_for_log("cannot write the recording .*: File too large; lines are dropped until writing succeeds")
    assert 10000 < recording.stat().st_size <= 20000
    assert len(read(recording, "request")) < 60

    limit_files(store, "unlimited")
    client.request("GET", "k59")
    assert store.stop() == 0
    assert len(re.findall(r"writing the recording .* succeeds again: dropped_lines=\d+", store.log())) == 1
    assert read(recording, "request")[-1]["verb"] == "GET"


def test_a_file_that_cannot_be_written_prevents_the_start(site, tmp_path):
    store = site.launch_store("--record", str(tmp_path / "nowhere" / "recording"))

    assert store.wait() == 2
    assert f"cannot start: --record {tmp_path}/nowhere/recording: No such file or directory" in store.log()


def refusal_to_record(site, file):
    """The log of a store that refuses to start."""
    store = site.launch_store("--record", str(file))
    assert store.wait() == 2
    return store.log()


def test_a_recording_is_created_with_mode_0600(site, recording):
    site.start_store("--record", str(recording))

    assert recording.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604, 0o601], ids=oct)
def test_a_file_that_others_can_access_is_refused(site, recording, mode):
    recording.write_text("")
    recording.chmod(mode)

    assert f"cannot start: --record {recording}: other users can access the file" in refusal_to_record(site, recording)
    assert recording.read_text() == ""
    assert recording.stat().st_mode & 0o777 == mode


def test_a_file_of_another_user_is_refused(site, recording):
    recording.write_text("")
    recording.chmod(0o600)
    if os.geteuid() != 0:
        pytest.skip("only root can change the owner of a file")
    os.chown(recording, 12345, -1)

    assert f"cannot start: --record {recording}: the file belongs to another user" in refusal_to_record(site, recording)


@pytest.mark.parametrize("is_there", [True, False], ids=["to a file", "dangling"])
def test_a_symbolic_link_is_refused(site, recording, tmp_path, is_there):
    target = tmp_path / "target"
    if is_there:
        target.touch(mode=0o600)
    recording.symlink_to(target)

    assert f"cannot start: --record {recording}: the file is a symbolic link" in refusal_to_record(site, recording)
    assert target.exists() == is_there


def test_a_pipe_that_others_can_read_is_refused(site, recording):
    os.mkfifo(recording)
    recording.chmod(0o644)
    reader = os.open(recording, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert "other users can access the file" in refusal_to_record(site, recording)
    finally:
        os.close(reader)


@pytest.mark.parametrize("text, said", [
    ('{"type":"start","time":1}\nnonsense\n', ":2: a JSON object was expected"),
    ('{"type":"start"}\n', ':1: "time" was expected: milliseconds'),
])
def test_a_malformed_recording_is_an_error(fresh, recording, text, said):
    recording.write_text(text)
    result = replay(fresh, recording)

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"statestorectl: {recording}{said}\n"


def test_an_incomplete_last_line_is_left_out(fresh, recording):
    recording.write_text('{"type":"start","time":1}\n{"type":"requ')
    result = replay(fresh, recording)

    assert result.returncode == 0
    assert f"{recording}:2: the last line does not end; it is left out" in result.stderr


def test_replay_sends_only_valid_requests(fresh, recording):
    """A hostile recording cannot make statestorectl publish to any topic."""
    line = {"type": "request", "time": 1, "qos": 1, "properties": [], "correlation_data": "1",
            "payload": "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"}
    watcher = fresh.connect()
    watcher.subscribe("elsewhere")
    recording.write_text("".join(json.dumps(line | more) + "\n" for more in (
        {"topic": "elsewhere", "response_topic": "r"},
        {"topic": INVOKE},
        {"topic": INVOKE, "response_topic": INVOKE},
        {"topic": INVOKE, "response_topic": "r", "qos": 0},
        {"topic": INVOKE, "response_topic": "r"},
    )))
    result = replay(fresh, recording)

    assert result.stdout == "0 equal, 0 different, 1 without a recorded reply, 4 skipped\n"
    assert result.returncode == 0
    assert watcher.others.empty()


def test_a_reply_with_a_version_differs_from_one_without(fresh, recording):
    common = {"time": 1, "qos": 1, "correlation_data": "1"}
    answered = {"type": "answer", "topic": "r", "properties": [{"name": "__stat", "value": "200"}], "payload": "+OK\r\n"}
    asked = {"type": "request", "topic": INVOKE, "response_topic": "r", "properties": [],
             "payload": "*2\r\n$9\r\nKEYNOTIFY\r\n$1\r\nk\r\n"}
    recording.write_text("".join(json.dumps(common | line) + "\n" for line in (asked, answered)))
    result = replay(fresh, recording)

    assert result.returncode == 1
    assert "  recorded  +OK\\r\\n, without a version\n  replayed  +OK\\r\\n\n" in result.stdout


def test_a_replay_without_a_store_is_an_error(site, recording):
    recording.write_text(json.dumps(WITHOUT_REPLY) + "\n")

    result = replay(site, recording, "--timeout", "1h")

    assert (result.returncode, result.stdout) == (3, "")
    assert "reports no subscriber for requests; is statestored running there?" in result.stderr


def test_a_replay_without_a_broker_is_an_error(site, recording):
    recording.write_text('{"type":"start","time":1}\n')
    assert replay(site, recording).returncode == 0
    site.broker.kill()
    result = replay(site, recording)
    site.broker.start_again()

    assert result.returncode == 3
    assert "cannot connect" in result.stderr
