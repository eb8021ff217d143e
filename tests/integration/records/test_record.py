# SPDX-License-Identifier: Apache-2.0
"""--record FILE, and statestorectl replay."""

import base64
import json
import os
import re
import subprocess

import pytest

from support.client import INVOKE
from support.control import Control
from support.ctl import environment
from support.hlc import Hlc
from support.process import CTL, PATIENCE
from support.site import Site

FENCE = "001696374425000:00000:Client1"


def replay(site, *arguments):
    return subprocess.run([CTL, "replay", "--port", str(site.broker.port), *map(str, arguments)], env=environment({}),
                          capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "recording.jsonl"


@pytest.fixture
def fresh(tmp_path):
    """Another store, with nothing in it."""
    directory = tmp_path / "fresh"
    directory.mkdir()
    site = Site(directory)
    try:
        site.start_store()
        yield site
    finally:
        site.close()


def read(recording, kind=None):
    """All of the recording's lines; it ends with a line's end."""
    text = recording.read_text()
    assert text.endswith("\n")
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if kind in (None, line["type"])]


def correlation(line):
    if "correlation_data" in line:
        return line["correlation_data"].encode()
    return base64.b64decode(line["correlation_data_base64"])


def ask_everything(site):
    """Every verb and outcome that a store begins without; returns how many requests that were."""
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


def test_what_is_recorded_is_what_was_asked_and_answered(site, recording):
    site.start_store("--record", str(recording))
    client = site.connect("client-1")
    client.request("KEYNOTIFY", "k")
    answer = client.request("SET", "k", b"\0\xff", "PX", 3600000, expiry=30)
    client.request("GET", "k")

    start, asked, _, set_line, *rest = read(recording)
    assert start["type"] == "start"
    assert (asked["verb"], asked["key"], asked["client"]) == ("KEYNOTIFY", "k", "client-1")
    assert (set_line["type"], set_line["verb"], set_line["expiry"]) == ("request", "SET", 30)
    assert b"\0\xff" in base64.b64decode(set_line["payload_base64"])
    assert {"name": "__srcId", "value": "client-1"} in set_line["properties"]
    [set_answer] = [line for line in rest if line["type"] == "answer" and correlation(line) == correlation(set_line)]
    assert set_answer["payload"] == "+OK\r\n"
    [version] = [entry["value"] for entry in set_answer["properties"] if entry["name"] == "__ts"]
    assert Hlc.parse(version) == answer.ts
    assert [line["type"] for line in rest].count("notification") == 1


def test_a_store_that_begins_the_same_answers_the_same(site, recording, fresh):
    site.start_store("--record", str(recording))
    n_asked = ask_everything(site)
    assert site.store.stop() == 0  # the last answer may be on its way before its line is written

    # the last two have no correlation data and another protocol version: answered all the same
    result = replay(fresh, recording)
    assert result.stdout == f"{n_asked} answered as recorded, 0 otherwise, 0 had no answer in the recording, 0 left out\n"
    assert (result.returncode, result.stderr) == (0, "")


def test_a_replay_can_be_replayed_at_the_store_that_it_has_filled(site, recording, fresh):
    """What was asked a minute ago is not taken for the same request."""
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
        "1 answered as recorded, 1 otherwise, 0 had no answer in the recording, 0 left out\n")


def test_what_a_test_has_made_of_its_double_is_replayed_too(site, recording, tmp_path):
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
    assert result.stdout == "9 answered as recorded, 0 otherwise, 0 had no answer in the recording, 1 left out\n"
    assert result.returncode == 0


def test_what_had_no_answer_is_not_waited_for(site, recording, tmp_path):
    """A rule that strikes once is not used up by us."""
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
    assert result.stdout == "5 answered as recorded, 0 otherwise, 2 had no answer in the recording, 0 left out\n"
    assert result.returncode == 0


UNANSWERED = {"type": "request", "time": 1, "topic": INVOKE, "qos": 1, "properties": [], "response_topic": "r",
              "correlation_data": "1", "payload": "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"}


def test_what_had_no_answer_may_have_one_now(fresh, recording):
    recording.write_text(2 * (json.dumps(UNANSWERED) + "\n"))

    result = replay(fresh, recording, "--timeout", "1h")

    assert result.stdout == "0 answered as recorded, 0 otherwise, 2 had no answer in the recording, 0 left out\n"
    assert (result.returncode, result.stderr) == (0, "")


def test_what_a_test_has_asked_is_left_out_where_the_store_does_not_take_it(site, recording, fresh):
    site.start_store("--record", str(recording), "--control")
    client, control = site.connect("client-1"), site.connect("control", Control)
    control.do("clock", "advance", "1h")
    control.do("fault", "no-answer", "count", "1")
    client.send("SET", "k", "v")
    assert client.request("GET", "k").payload == b"$1\r\nv\r\n"
    assert site.store.stop() == 0

    result = replay(fresh, recording, "--timeout", "1h")

    assert result.stdout == "1 answered as recorded, 0 otherwise, 1 had no answer in the recording, 2 left out\n"
    assert (result.returncode, result.stderr) == (0, "")


def test_what_hangs_on_time_is_the_same_at_the_recorded_pace(site, recording, fresh):
    site.start_store("--record", str(recording))
    client = site.connect("client-1")
    client.watch("k", "later")
    client.request("SET", "k", "v", "PX", 2000)
    client.request("SET", "later", "v", "PX", 4000)
    for _ in range(4):
        client.notification()
    assert client.request("GET", "k").payload == b"$-1\r\n"
    assert site.store.stop() == 0

    assert replay(fresh, recording).returncode == 1
    assert replay(fresh, recording, "--pace").returncode == 0


@pytest.mark.parametrize("n_before, n_at_once", [(50, 0), (0, 5000)])
def test_every_request_that_was_answered_is_in_the_file_after_kill_9(site, recording, n_before, n_at_once):
    store = site.start_store("--record", str(recording))
    client = site.connect("client-1")
    for i in range(n_before):
        client.request("SET", f"k{i}", "v", protocol=("1.0", "7.0")[i % 2])  # the second is answered by itself
    futures = [client.send("SET", f"l{i}", "v" * 300) for i in range(n_at_once)]
    if futures:
        futures[n_at_once // 5].result(PATIENCE)
    assert store.kill() == -9

    n_answered = n_before + sum(future.done() for future in futures)
    assert n_answered > n_at_once // 5
    assert len(read(recording, "request")) >= n_answered


def test_a_recording_goes_on_over_a_restart(site, recording):
    store = site.start_store("--record", str(recording))
    site.connect().request("SET", "k", "v")
    assert store.stop() == 0
    store.start()
    site.connect().request("GET", "k")
    assert store.stop() == 0

    assert [line["type"] for line in read(recording)] == ["start", "request", "answer"] * 2


def test_a_full_disk_is_said_once_and_requests_are_served(site):
    store = site.start_store("--record", "/dev/full")
    client = site.connect()
    for i in range(20):
        assert client.request("SET", f"k{i}", "v").payload == b"+OK\r\n"

    assert store.log().count("cannot write the recording /dev/full: No space left on device") == 1


def limit_files(store, n_bytes):
    subprocess.run(["prlimit", "--pid", str(store.child.pid), f"--fsize={n_bytes}:unlimited"], check=True)


def test_what_did_not_fit_leaves_no_half_line_and_recording_goes_on_when_there_is_room(site, recording):
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


def test_a_file_that_cannot_be_written_refuses_the_start(site, tmp_path):
    store = site.launch_store("--record", str(tmp_path / "nowhere" / "recording"))

    assert store.wait() == 2
    assert f"cannot start: --record {tmp_path}/nowhere/recording: No such file or directory" in store.log()


def refusal_to_record(site, file):
    """What the log says of a store that does not start."""
    store = site.launch_store("--record", str(file))
    assert store.wait() == 2
    return store.log()


def test_a_recording_is_its_owner_s_alone(site, recording):
    site.start_store("--record", str(recording))

    assert recording.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604, 0o601], ids=oct)
def test_a_file_that_others_can_use_is_not_recorded_in(site, recording, mode):
    recording.write_text("")
    recording.chmod(mode)

    assert f"cannot start: --record {recording}: other users can access the file" in refusal_to_record(site, recording)
    assert recording.read_text() == ""
    assert recording.stat().st_mode & 0o777 == mode


def test_a_file_of_another_user_is_not_recorded_in(site, recording):
    recording.write_text("")
    recording.chmod(0o600)
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(recording, 12345, -1)

    assert f"cannot start: --record {recording}: the file belongs to another user" in refusal_to_record(site, recording)


@pytest.mark.parametrize("is_there", [True, False], ids=["to a file", "to nothing"])
def test_a_symbolic_link_is_not_followed(site, recording, tmp_path, is_there):
    target = tmp_path / "target"
    if is_there:
        target.touch(mode=0o600)
    recording.symlink_to(target)

    assert f"cannot start: --record {recording}: the file is a symbolic link" in refusal_to_record(site, recording)
    assert target.exists() == is_there


def test_a_pipe_that_others_can_read_is_not_recorded_in(site, recording):
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
def test_a_file_that_is_no_recording_is_not_replayed(fresh, recording, text, said):
    recording.write_text(text)
    result = replay(fresh, recording)

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"statestorectl: {recording}{said}\n"


def test_a_last_line_that_is_cut_is_left_out(fresh, recording):
    recording.write_text('{"type":"start","time":1}\n{"type":"requ')
    result = replay(fresh, recording)

    assert result.returncode == 0
    assert f"{recording}:2: the last line does not end; it is left out" in result.stderr


def test_only_what_a_client_may_ask_is_sent(fresh, recording):
    """A recording that somebody else wrote cannot make us publish anywhere."""
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

    assert result.stdout == "0 answered as recorded, 0 otherwise, 1 had no answer in the recording, 4 left out\n"
    assert result.returncode == 0
    assert watcher.others.empty()


def test_an_answer_that_has_a_version_is_another_than_one_without(fresh, recording):
    who = {"time": 1, "qos": 1, "correlation_data": "1"}
    answered = {"type": "answer", "topic": "r", "properties": [{"name": "__stat", "value": "200"}], "payload": "+OK\r\n"}
    asked = {"type": "request", "topic": INVOKE, "response_topic": "r", "properties": [],
             "payload": "*2\r\n$9\r\nKEYNOTIFY\r\n$1\r\nk\r\n"}
    recording.write_text("".join(json.dumps(who | line) + "\n" for line in (asked, answered)))
    result = replay(fresh, recording)

    assert result.returncode == 1
    assert "  recorded  +OK\\r\\n, without a version\n  replayed  +OK\\r\\n\n" in result.stdout


def test_there_is_no_store(site, recording):
    recording.write_text(json.dumps(UNANSWERED) + "\n")

    result = replay(site, recording, "--timeout", "1h")

    assert (result.returncode, result.stdout) == (3, "")
    assert "knows of nobody who takes requests; is statestored running there?" in result.stderr


def test_nobody_answers(site, recording):
    recording.write_text('{"type":"start","time":1}\n')
    assert replay(site, recording).returncode == 0
    site.broker.kill()
    result = replay(site, recording)
    site.broker.start_again()

    assert result.returncode == 3
    assert "cannot connect" in result.stderr
