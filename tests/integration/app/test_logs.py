# SPDX-License-Identifier: Apache-2.0
"""The log on stderr: one event a line, parseable for any input of clients, without keys and values."""

import json
import re
import subprocess

import pytest

from support.hlc import wall_ms
from support.process import PATIENCE, STATESTORED, wait_until

FIELD = re.compile(r'(?:^| )([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|([^" =]+))(?= |$)')


def parse_text(line):
    """Every byte of the line must belong to a field."""
    assert FIELD.sub("", line) == "", line
    return {name: quoted.encode().decode("unicode_escape") if quoted else bare
            for name, quoted, bare in FIELD.findall(line)}


def parse_json(line):
    return {name: str(value) for name, value in json.loads(line).items()}


@pytest.fixture(params=["text", "json"])
def events(request, site):
    """The log lines of site.store, as dictionaries."""
    parse = {"text": parse_text, "json": parse_json}[request.param]
    site.start_store("--log-format", request.param, "--max-keys", "1")
    # a test may read a line before it is written to its end
    return lambda: [parse(line) for line in site.store.log().rpartition("\n")[0].splitlines()]


def event(events, **wanted):
    found = [event for event in events() if wanted.items() <= event.items()]
    assert len(found) == 1, events()
    return found[0]


def test_each_line_has_a_time_a_level_and_a_message(site, events):
    for line in events():
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["level"] in ("error", "warning", "info")
    start, ready = [line["msg"] for line in events() if line["level"] == "info"]
    version = subprocess.run([STATESTORED, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    assert start == f"{version}: keys are in memory only"
    assert ready.startswith("ready: serving 127.0.0.1:")


def test_a_refusal_logs_client_limit_and_current_value(site, events):
    client = site.connect("greedy")
    client.request("SET", "first", 1)
    client.request("SET", "second", 2)
    client.request("SET", "first", 1, ts=client.clock.now()._replace(wall_ms=wall_ms() + 3_600_000))
    client.request("GET", "first", qos=0)

    quota = event(events, reason="quota exceeded")
    assert (quota["level"], quota["msg"], quota["client"], quota["verb"]) == ("warning", "request refused", "greedy", "set")
    assert (quota["keys"], quota["max_keys"]) == ("1", "1")
    assert int(quota["bytes"]) < int(quota["max_bytes"]) == 1 << 30
    far = event(events, reason="timestamp too far")
    assert 3_500_000 < int(far["ahead_ms"]) <= 3_600_000 and far["max_ahead_ms"] == "60000"
    assert event(events, reason="wrong qos")["value"] == "0"


def test_a_hostile_client_id_stays_within_its_field(site, events):
    client = site.connect()
    hostile = 'x" level=error msg="forged\\'  # the broker refuses control characters
    client.request("NOSUCH", "key", source=hostile)

    refused = event(events, reason="unknown command")
    assert refused["client"] == hostile
    assert refused["level"] == "info" and refused["msg"] == "request refused"


def test_the_key_of_a_refused_request_is_printed_on_request(site):
    store = site.start_store("--max-keys", "0", "--log-keys", "on")
    site.connect().request("SET", b"a \xff\nlevel=error", "secret-value")

    line, = [line for line in store.log().splitlines() if "quota exceeded" in line]
    assert parse_text(line)["key"] == "a \\xFF\nlevel=error"
    assert "secret-value" not in store.log()


def test_neither_keys_nor_values_are_printed(site, events):
    key, value = "secret-key", "secret-value"
    client = site.connect()
    client.watch(key)
    client.request("SET", key, value)
    client.request("SET", "other", value)
    client.request("SET", key, value, ts="malformed")
    client.request("SET", key, value, ft=client.clock.now()._replace(wall_ms=wall_ms() + 3_600_000))
    client.request("VDEL", key)
    client.request("NOSUCH", key, value)
    client.request("GET", key, qos=0)
    client.send("GET", key, response_topic=None)
    site.store.wait_for_log("no response topic")

    assert len(events()) >= 7
    for text in (key, value, key.encode().hex().upper()):
        assert text not in site.store.log()


def n_refusals(events):
    """The number of refusals that the log reports: their lines, and the number of suppressed ones."""
    refusals = [event for event in events() if event["msg"] == "request refused"]
    assert len(refusals) < 1000
    assert all(event["reason"] == "unknown command" for event in refusals)
    reports = [event for event in events() if event["msg"] == "log messages were suppressed"]
    return len(refusals) + sum(int(event["suppressed"]) for event in reports)


def test_messages_of_a_flood_are_suppressed_and_counted_without_a_later_message(site, events):
    client = site.connect()
    replies = [client.send("NOSUCH", n) for n in range(3000)]
    for reply in replies:
        reply.result(PATIENCE)

    wait_until(lambda: n_refusals(events) == 3000, "the number of suppressed messages is logged")


def test_suppressed_messages_are_counted_in_the_log_at_exit(site, events):
    client = site.connect()
    for reply in [client.send("NOSUCH", n) for n in range(100)]:
        reply.result(PATIENCE)
    assert site.store.stop() == 0

    assert n_refusals(events) == 100


def test_lines_for_the_journal_begin_with_a_priority(site, tmp_path):
    log = tmp_path / "journal"
    with log.open("wb") as stderr:
        status = log.stat()
        ended = subprocess.run(
            [STATESTORED, "--port", "1", "--http-listen", "192.0.2.1:1"], stderr=stderr, timeout=PATIENCE,
            env={"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
    assert ended.returncode == 1
    lines = log.read_text().splitlines()
    assert [line for line in lines if line.startswith("<3>level=error msg=\"cannot start")]
    assert all(re.match(r"<[3-7]>level=", line) for line in lines)
