# SPDX-License-Identifier: Apache-2.0
"""The console: who may use it, its page, its session and health, and TLS."""

import contextlib
import http.client
import re
import select
import signal
import ssl
import subprocess

import pytest

from support.certificates import Authority
from support.console import Console, make_token
from support.double import running_double
from support.process import CTL, PATIENCE, STATESTORED, wait_until


@pytest.fixture
def console(site, users):
    return Console(site.start_store("--http-listen", "0", "--console-users", users.file))


def test_a_user_is_known_by_the_token(console, users):
    alice, bob = users.alice, users.bob
    own = {"login": "token", "control": False, "version": "0.1.0"}

    assert console.session() == {"user": None, "operator": False, **own}
    assert console.session(alice) == {"user": "alice", "operator": False, **own}
    assert console.session(bob) == {"user": "bob", "operator": True, **own}
    assert re.fullmatch(r"[\w-]{43}", alice) and alice != bob


@contextlib.contextmanager
def sent_wrong_token(console):
    """A connection that has sent a request with a wrong token."""
    connection = http.client.HTTPConnection(console.host, int(console.port), timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", "/api/session", headers={"Authorization": "Bearer wrong"})
        yield connection


def test_a_wrong_token_is_refused_late_and_logged_and_delays_no_other(site, console, users):
    def is_refused_after_a_user_is_served():
        with sent_wrong_token(console) as wrong:
            assert console.session(users.alice)["user"] == "alice"
            is_waiting = not select.select([wrong.sock], [], [], 0)[0]
            assert wrong.getresponse().status == 401
        return is_waiting

    wait_until(is_refused_after_a_user_is_served, "the wrong token has its reply after that of the user")
    site.store.wait_for_log('level=warning msg="console: wrong token" peer=127.0.0.1')


def test_many_wrong_tokens_lock_nobody_out(site, console, users):
    with contextlib.ExitStack() as stack:
        wrong = [stack.enter_context(sent_wrong_token(console)) for _ in range(12)]
        assert console.session(users.alice)["user"] == "alice"
        assert {each.getresponse().status for each in wrong} == {401}


def test_the_store_stops_while_a_wrong_token_waits(site, console):
    with sent_wrong_token(console):
        site.store.wait_for_log("console: wrong token")
        assert site.store.stop() == 0


def test_a_reload_replaces_the_users(site, console, users):
    line, carol = make_token("carol")
    users.file.write_text(line)
    site.store.child.send_signal(signal.SIGHUP)
    site.store.wait_for_log("configuration reloaded")
    assert console.session(carol)["user"] == "carol"
    assert console.status("/api/session", users.alice) == 401

    users.file.write_text("dave = secret\n")
    site.store.child.send_signal(signal.SIGHUP)
    site.store.wait_for_log("the previous one stays in effect")
    assert f'SIGHUP: {users.file}:1: a hash was expected' in site.store.log()
    wait_until(lambda: console.status("/api/session", carol) == 200, "the former users stay")


def test_the_file_of_users_is_checked_at_the_start(tmp_path):
    file = tmp_path / "users"
    file.write_text("alice = secret\n")

    result = subprocess.run([STATESTORED, "--http-listen", "0", "--console-users", file], capture_output=True, text=True,
                            timeout=PATIENCE)

    assert result.returncode == 2
    assert f"{file}:1: a hash was expected" in result.stderr


def test_the_page_is_served_with_its_headers(console):
    status, headers, body = console.ask("/")
    assert (status, headers["Content-Type"], headers["Cache-Control"]) == (200, "text/html; charset=utf-8", "no-cache")
    assert body.startswith(b"<!doctype html>")
    assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]

    status, headers, body = console.ask("/", If_None_Match=headers["ETag"])
    assert (status, body) == (304, b"")
    assert console.status("/../console.c") == 404
    assert console.status("/", method="POST", Content_Type="application/octet-stream") == 405


def test_health_shows_the_store(site, console):
    site.connect().request("SET", "key", "value")

    health = console.json("/api/health")

    assert (health["ready"], health["reason"]) == (True, "")
    assert health["broker"]["connected"]
    assert health["keys"] == {"n": 1, "max": 1000000}
    assert health["commits"] is health["disk"] is health["cluster"] is None
    assert 0 < health["started_ms"] <= health["now_ms"]
    samples = health["samples"]
    series = [samples[name] for name in samples if isinstance(samples[name], list)] + list(samples["requests"].values())
    assert {len(values) for values in series} == {180}
    assert samples["requests"].keys() == {"SET", "GET", "DEL", "VDEL", "KEYNOTIFY", "SCAN", "unknown"}


def test_health_of_a_data_directory_has_commits_and_the_disk(site, tmp_path):
    console = Console(site.start_store("--http-listen", "0", "--data-dir", tmp_path / "data"))
    site.connect().request("SET", "key", "value")

    health = console.json("/api/health")

    assert health["commits"]["n"] >= 1 and health["commits"]["failed"] == 0
    assert health["disk"]["free_bytes"] > 0


def test_without_users_only_health_is_available(site):
    console = Console(site.start_store("--http-listen", "0"))

    assert console.session() == {"user": None, "operator": False, "login": "unavailable", "control": False,
                                 "version": "0.1.0"}
    assert console.session("any")["user"] is None
    assert console.status("/api/health") == console.status("/") == 200


def test_everybody_is_an_operator_of_a_double(tmp_path):
    with running_double(tmp_path, "--control") as double:
        assert Console(double).session() == {"user": "dev", "operator": True, "login": "none", "control": True,
                                             "version": "0.1.0"}


HOSTILE = {"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}


@pytest.mark.parametrize("headers", HOSTILE)
def test_a_page_of_another_server_is_refused(tmp_path, headers):
    with running_double(tmp_path) as double:
        console = Console(double)
        for path in "/", "/api/session", "/api/health":
            assert console.status(path, **headers) == 403
        assert console.status("/metrics", **headers) == 200
        assert console.status("/api/session", Host="localhost:1", Origin="http://localhost:1") == 200


def test_with_tokens_the_server_may_have_a_name(console, users):
    host = {"Host": "store.example"}
    assert console.status("/api/session", users.alice, **host) == 200
    assert console.status("/api/session", users.alice, Origin="https://store.example", **host) == 200
    assert console.status("/api/session", users.alice, Origin="https://evil.example", **host) == 403


def test_beyond_loopback_only_monitoring_is_served_in_plain_text(site):
    console = Console(site.start_store("--http-listen", "0.0.0.0:0"))

    for path in "/", "/api/session", "/api/health":
        assert console.status(path) == 404
    assert console.status("/readyz") == 200


def test_tls_serves_the_console_beyond_loopback(site, users, tmp_path):
    authority = Authority(tmp_path, "authority")
    certificate = authority.issue("store")
    store = site.start_store("--http-listen", "0.0.0.0:0", "--http-certificate", certificate.certificate,
                             "--http-key", certificate.key, "--console-users", users.file)
    console = Console(store, ssl.create_default_context(cafile=authority.certificate))

    assert console.scheme == "https"
    assert console.session(users.alice)["user"] == "alice"
    assert console.status("/metrics") == 200


def test_a_wrong_certificate_is_an_error(tmp_path):
    (tmp_path / "file").write_text("no certificate")

    result = subprocess.run([STATESTORED, "--http-listen", "0", "--http-certificate", tmp_path / "file",
                             "--http-key", tmp_path / "file"], capture_output=True, text=True, timeout=PATIENCE)

    assert result.returncode == 1
    assert "are no certificate with its key" in result.stderr


@pytest.mark.parametrize("name", ["", "a=b", "a:b", "[a", "#a", " a", "a\nb", "x" * 101])
def test_a_token_is_made_only_for_a_name_that_a_line_can_have(name):
    result = subprocess.run([CTL, "console-token", name], capture_output=True, text=True, timeout=PATIENCE)

    assert (result.returncode, result.stdout) == (2, "")
