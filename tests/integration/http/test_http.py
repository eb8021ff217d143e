# SPDX-License-Identifier: Apache-2.0
"""The HTTP server: metrics and health pages, and hostile clients."""

import contextlib
import os
import re
import socket
import subprocess
import threading

import pytest

from support.downloads import require_program
from support.hlc import wall_ms
from support.process import PATIENCE, REPOSITORY, wait_until


def test_each_page_is_served(pages):
    assert pages.get("/healthz") == (200, "ok\n")
    assert pages.get("/readyz") == (200, "ready\n")
    assert re.fullmatch(r"statestored \d+\.\d+\.\d+\n", pages.get("/version")[1])
    assert pages.get("/nothing")[0] == 404
    assert pages.get("/metrics", method="POST")[0] == 405


def test_a_store_without_a_broker_is_healthy_but_not_ready(site, pages):
    site.broker.kill()
    site.store.wait_for_log("no connection to the broker")

    assert pages.get("/healthz")[0] == 200
    status, cause = pages.get("/readyz")
    assert status == 503
    assert re.fullmatch(rf"no connection to the broker at 127.0.0.1:{site.broker.port}: .+\n", cause)
    site.broker.start_again()


def test_each_request_is_counted(site, pages):
    client = site.connect()
    watcher = site.connect()
    watcher.subscribe("clients/statestore/#")
    before = pages.metrics()
    watcher.request("KEYNOTIFY", "a")
    client.request("SET", "a", 1)
    client.request("SET", "a", 2)
    client.request("SET", "a", 3, "NX")
    client.request("GET", "a")
    client.request("GET", "b")
    client.request("DEL", "a")
    client.request("DEL", "a")
    client.request("VDEL", "a", 1)
    client.request("NOSUCH", "a")
    client.request("GET", "a", "b")
    again = dict(correlation=b"same", ts=client.clock.now())
    client.request("SET", "c", 1, **again)
    client.request("SET", "c", 1, **again)
    client.request("SET", "d", 1, ts=None)
    client.request("SET", "d", 1, ts=client.clock.now()._replace(wall_ms=wall_ms() + 3_600_000))
    client.request("GET", "a", qos=0)

    metrics = pages.metrics()
    requests = {name: value for name, value in metrics.items() if name.startswith("statestore_requests_total")}
    assert sum(requests.values()) == 16
    assert metrics.keys() == before.keys(), "all series exist from the start"
    assert metrics['statestore_requests_total{verb="set",outcome="done"}'] == 4
    assert metrics['statestore_requests_total{verb="set",outcome="condition_not_met"}'] == 1
    assert metrics['statestore_requests_total{verb="get",outcome="value"}'] == 1
    assert metrics['statestore_requests_total{verb="get",outcome="no_value"}'] == 1
    assert metrics['statestore_requests_total{verb="get",outcome="wrong_number_of_arguments"}'] == 1
    assert metrics['statestore_requests_total{verb="set",outcome="missing_timestamp"}'] == 1
    assert metrics['statestore_requests_total{verb="set",outcome="timestamp_too_far"}'] == 1
    assert metrics['statestore_requests_total{verb="unknown",outcome="unknown_command"}'] == 1
    assert metrics['statestore_requests_total{verb="unknown",outcome="wrong_qos"}'] == 1
    assert metrics["statestore_repeated_total"] == 1
    assert 3500 < metrics['statestore_clock_skew_max_seconds{direction="ahead"}'] <= 3600
    assert metrics['statestore_notifications_total{kind="set"}'] == 2
    assert metrics['statestore_notifications_total{kind="delete"}'] == 1
    assert metrics["statestore_registrations"] == 1
    assert metrics["statestore_keys"] == 1
    assert metrics["statestore_broker_connected"] == 1
    assert metrics["statestore_request_seconds_count"] == 16
    assert metrics["statestore_serving"] == 1
    assert metrics["aio_broker_state_store_insertions"] == 2
    assert metrics["aio_broker_state_store_modifications"] == 5, "includes four requests that changed nothing"
    assert metrics["aio_broker_state_store_retrievals"] == 3
    assert metrics["aio_broker_state_store_deletions"] == 3
    assert metrics["aio_broker_state_store_keynotify_requests"] == 1
    assert metrics["aio_broker_state_store_notifications_sent"] == 3


REPLIES = {"done", "value", "no_value", "deleted", "nothing", "condition_not_met", "page"}


def test_the_dashboard_shows_each_outcome_that_is_an_error(pages):
    dashboard = (REPOSITORY / "conf" / "grafana-dashboard.json").read_text()
    outcomes = set(re.findall(r'statestore_requests_total\{.*outcome="([a-z_]+)"', pages.get("/metrics")[1]))

    assert REPLIES < outcomes
    [shown] = re.findall(r'outcome=~\\"([a-z_|]+)\\"', dashboard)
    assert set(shown.split("|")) == outcomes - REPLIES


def test_documents_name_only_metrics_that_exist(pages):
    families = set(re.findall(r"^# TYPE ([a-z_]+) ", pages.get("/metrics")[1], re.MULTILINE))
    documents = [path for folder in ("common", "conf", "server") for path in (REPOSITORY / folder).rglob("*")
                 if path.suffix in (".md", ".scd")]

    named = {name for document in documents for name in re.findall(r"\bstatestore_[a-z_]+", document.read_text())}

    assert "statestore_dropped_total" in named
    assert named - families == set()


def test_commits_are_counted(site, pages):
    client = site.connect()
    replies = [client.send("SET", f"key-{n}", n) for n in range(100)]
    for reply in replies:
        reply.result(PATIENCE)

    metrics = pages.metrics()
    assert metrics["statestore_commit_rows_total"] == 200, "an entry and a remembered reply for each request"
    assert 1 <= metrics["statestore_commit_seconds_count"] <= 100
    assert metrics['statestore_commit_seconds_bucket{le="+Inf"}'] == metrics["statestore_commit_seconds_count"]
    assert metrics["statestore_commit_seconds_sum"] > 0


def test_promtool_accepts_the_metrics(site, pages):
    require_program("promtool")
    site.connect().request("SET", "a", 1)

    result = subprocess.run(
        ["promtool", "check", "metrics"], input=pages.get("/metrics")[1], text=True, capture_output=True
    )

    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("text", [b"\0" * 100, b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100000, b"\r\n" * 5000])
def test_a_malformed_request_does_not_affect_other_clients(site, pages, text):
    with socket.create_connection(("127.0.0.1", pages.port)) as peer:
        peer.settimeout(PATIENCE)
        try:
            peer.sendall(text)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(4096):
                pass
        except OSError:
            pass

    assert pages.get("/healthz")[0] == 200
    assert site.connect().request("SET", "a", 1).payload == b"+OK\r\n"


def connect_without_waiting(port, address="127.0.0.1"):
    peer = socket.socket()
    peer.setblocking(False)
    peer.bind((address, 0))
    peer.connect_ex(("127.0.0.1", port))
    return peer


def test_hundreds_of_silent_connections_do_not_delay_a_request(site, pages):
    silent = []
    try:
        for _ in range(300):
            silent.append(connect_without_waiting(pages.port))
        assert site.connect().request("SET", "a", 1).payload == b"+OK\r\n"
    finally:
        for peer in silent:
            peer.close()


def send_a_byte(peer):
    peer.send(b"G")


def read_a_byte(peer):
    """The replies fill the buffers."""
    with contextlib.suppress(BlockingIOError):
        peer.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
    if not peer.recv(1):
        raise ConnectionResetError


@contextlib.contextmanager
def slow_peers(port, n_addresses, act):
    """From each address more connections than it may have. They act now and then, so none is idle, and reconnect."""
    def connect(n):
        return connect_without_waiting(port, f"127.0.0.{3 + n % n_addresses}")

    def run():
        peers = [connect(n) for n in range(300)]
        while not over.wait(0.2):
            for n, peer in enumerate(peers):
                try:
                    act(peer)
                except BlockingIOError:
                    pass
                except OSError:
                    peer.close()
                    peers[n] = connect(n)
            all_connected.set()
        for peer in peers:
            peer.close()

    over, all_connected = threading.Event(), threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert all_connected.wait(PATIENCE)
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("act", [send_a_byte, read_a_byte])
@pytest.mark.parametrize("n_addresses", [
    1, pytest.param(12, marks=pytest.mark.not_sanitized("one address executes the same code"))])
def test_slow_peers_do_not_block_a_probe_from_another_address(pages, n_addresses, act):
    with slow_peers(pages.port, n_addresses, act):
        for _ in range(5):
            assert pages.get("/healthz") == (200, "ok\n")


def test_connections_of_an_address_keep_its_further_ones_away(pages):
    with contextlib.ExitStack() as opened:
        for _ in range(16):
            opened.enter_context(socket.create_connection(("127.0.0.1", pages.port))).send(b"GET")
        with pytest.raises(OSError):
            pages.get("/healthz")


def test_a_port_in_use_is_an_error(site, pages, tmp_path):
    from support.process import STATESTORED

    result = subprocess.run(
        [STATESTORED, "--port", str(site.broker.port), "--client-id", "other", "--http-listen", f"127.0.0.1:{pages.port}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert result.returncode == 1
    assert f"cannot listen at 127.0.0.1:{pages.port}: Address already in use" in result.stderr


def set_repeatedly(client, n_requests):
    for n in range(n_requests):
        assert client.request("SET", "key", n).payload == b"+OK\r\n"


def n_open_descriptors(store):
    return len(os.listdir(f"/proc/{store.child.pid}/fd"))


def hostile(port, until, kind):
    """Open 250 connections that repeatedly send this kind of data."""
    peers = [connect_without_waiting(port) for _ in range(250)]
    request = {"silent": b"", "slow": b"G", "asking": b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "huge": b"a" * 65536}[kind]
    while not until.wait(0.005):
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.send(request)
                peer.recv(1 << 20)
    for peer in peers:
        peer.close()


@pytest.mark.parametrize("kinds", ["silent slow asking huge", "asking asking asking asking", "silent silent silent silent"])
def test_a_thousand_hostile_connections_cost_bounded_memory_and_no_request(site, pages, kinds):
    client = site.connect()
    set_repeatedly(client, 100)
    before, n_descriptors = pages.metrics(), n_open_descriptors(site.store)

    over = threading.Event()
    attackers = [threading.Thread(target=hostile, args=(pages.port, over, kind))
                 for kind in kinds.split()]
    for attacker in attackers:
        attacker.start()
    try:
        set_repeatedly(client, 200)
    finally:
        over.set()
        for attacker in attackers:
            attacker.join()

    after = wait_until(pages.metrics_or_none, "the HTTP server replies again")
    assert after["process_resident_memory_bytes"] - before["process_resident_memory_bytes"] < 16 << 20
    assert n_open_descriptors(site.store) < n_descriptors + 80
    assert after['statestore_requests_total{verb="set",outcome="done"}'] == 300
    assert sum(value for name, value in after.items() if name.startswith("statestore_dropped_total")) == 0
