# SPDX-License-Identifier: Apache-2.0
"""statestorectl stat and top, which read the metrics of the store."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import threading
import urllib.request

import pytest

from support.broker import free_port
from support.ctl import USAGE, environment
from support.process import CTL, PATIENCE, REPOSITORY, wait_until

CLEAR = b"\x1b[H\x1b[2J"


@pytest.fixture
def url(site):
    """The URL of a store with two keys."""
    port = free_port()
    site.start_store("--http-listen", f"127.0.0.1:{port}")
    client = site.connect()
    client.request("SET", "a", 1)
    client.request("SET", "b", 1)
    client.request("GET", "c")
    client.request("NOSUCH")
    return f"http://127.0.0.1:{port}"


def ctl(*arguments, **more):
    return subprocess.run([CTL, *arguments], capture_output=True, text=True, timeout=PATIENCE, **more)


def row(report, label):
    return next(line.split() for line in report.splitlines() if line.strip().startswith(label))


def test_stat_prints_gauges_and_counters(site, url):
    ended = ctl("stat", "--metrics-url", url)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "serving; identity claimed" in ended.stdout
    assert row(ended.stdout, "requests")[1] == "4"
    assert row(ended.stdout, "set")[1] == "2"
    assert row(ended.stdout, "replies that are errors")[4] == "1"
    assert row(ended.stdout, "keys")[1:] == ["2", "of", "1,000,000"]

    site.broker.kill()
    wait_until(lambda: "NOT CONNECTED" in ctl("stat", "--metrics-url", url).stdout, "stat reports the lost connection")
    site.broker.start_again()


def test_the_store_has_every_metric_that_statestorectl_reads(url):
    """stat prints 0 for a metric that the store does not have."""
    source = "".join(file.read_text() for file in (REPOSITORY / "server" / "ctl").glob("*.c"))
    names = set(re.findall(r'"((?:statestore|process)_[a-z_]+)"', source))
    names |= {f"{name}_limit" for name in re.findall(r'LIMITED\(.*"(\w+)"\),', source)}
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE) as page:
        present = set(re.findall(r"^(\w+)[{ ]", page.read().decode(), re.MULTILINE))

    assert len(names) > 20
    assert names - present - {"process_bytes"} == set()


def test_stat_prints_json(url):
    figures = json.loads(ctl("stat", "--json", "--metrics-url", url + "/").stdout)

    assert (figures["keys"], figures["requests"], figures["errors"], figures["serving"]) == (2, 4, 1, True)
    assert 0 < figures["request_seconds_p50"] <= figures["request_seconds_p99"] < 30


@pytest.mark.parametrize("arguments, variables, text", [
    (["--config", "{file}"], {}, "[http]\nlisten = 127.0.0.1:{port}\n"),
    ([], {"CONFIG": "{file}"}, "[broker]\nhost = unknown.invalid\n[http]\nlisten = {port}\n"),
    ([], {"CONFIG": "{file}", "URL": "mqtt://unknown.invalid"}, "[http]\nlisten = 0.0.0.0:{port}\n"),
    ([], {"HTTP_LISTEN": "127.0.0.1:{port}"}, ""),
    ([], {"HTTP_LISTEN": "{port}", "CONFIG": "{file}"}, "[http]\nlisten = 1\n"),
    (["--metrics-url", "http://127.0.0.1:{port}"], {"HTTP_LISTEN": "1", "CONFIG": "/nowhere"}, ""),
    ([], {"METRICS_URL": "http://127.0.0.1:{port}", "HTTP_LISTEN": "1"}, ""),
    ([], {"HTTP_LISTEN": "{port}", "PASSWORD_FILE": "/nowhere", "TLS_CA_FILE": "/nowhere"}, ""),
])
def test_the_configuration_of_the_store_gives_the_url(url, tmp_path, arguments, variables, text):
    file = tmp_path / "statestored.conf"

    def fill(value):
        return value.replace("{file}", str(file)).replace("{port}", url.rpartition(":")[2])

    file.write_text(fill(text))
    ended = ctl("stat", *map(fill, arguments), env=environment({name: fill(value) for name, value in variables.items()}))

    assert (ended.returncode, ended.stderr) == (0, "")
    assert row(ended.stdout, "requests")[1] == "4"


def test_an_unreadable_configuration_of_the_store_is_named():
    ended = ctl("stat", "--config", "/nonexistent")

    assert (ended.returncode, ended.stdout) == (USAGE, "")
    assert "/nonexistent" in ended.stderr


def test_stat_names_the_remedy_when_no_server_listens():
    ended = ctl("stat", "--metrics-url", "http://127.0.0.1:1")

    assert ended.returncode == 3 and ended.stdout == ""
    assert "http://127.0.0.1:1/metrics" in ended.stderr and "--http-listen" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_proxy_variables_are_ignored(url):
    ended = ctl("stat", "--metrics-url", url, env={"http_proxy": "http://127.0.0.1:1", "STATESTORE_URL": "mqtt://elsewhere"})

    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("arguments", [("stat", "--url", "mqtt://127.0.0.1"), ("stat", "--host", "127.0.0.1"),
                                       ("stat", "--metrics-url", "mqtt://127.0.0.1"), ("get", "a", "--url", "http://127.0.0.1"),
                                       ("get", "a", "--metrics-url", "http://127.0.0.1"),
                                       ("stat", "more"), ("top", "--interval", "1ms"), ("stat", "--interval", "1s")])
def test_incompatible_options_are_named(arguments):
    ended = ctl(*arguments)

    assert ended.returncode == 2 and ended.stderr.count("\n") == 1


def serve_once(text):
    """Start a server that sends one reply. Returns its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def reply():
        peer, _ = listener.accept()
        with peer, listener:
            peer.recv(65536)
            try:
                peer.sendall(text)
            except OSError:
                pass

    threading.Thread(target=reply, daemon=True).start()
    return listener.getsockname()[1]


OTHER_SERVERS = {
    "a page": b"HTTP/1.1 200 OK\r\n\r\n<html>\n",
    "metrics of another program": b"HTTP/1.1 200 OK\r\n\r\nup 1\n",
    "a redirection": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
    "a truncated body": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
    "a body that is too large": b"HTTP/1.1 200 OK\r\n\r\n" + b"a 1\n" * (2 << 20),
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("server", OTHER_SERVERS)
def test_a_server_other_than_a_store_is_an_error(server):
    ended = ctl("stat", "--metrics-url", f"http://127.0.0.1:{serve_once(OTHER_SERVERS[server])}")

    assert ended.returncode == 3 and ended.stdout == ""
    assert ended.stderr.startswith("statestorectl: http://127.0.0.1:") and ended.stderr.count("\n") == 1


def test_top_prints_tables_without_a_terminal(site, url):
    child = subprocess.Popen([CTL, "top", "--interval", "200ms", "--metrics-url", url], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    lines = iter(child.stdout.readline, "")
    try:
        first, second = (next(line for line in lines if re.match(r"requests +\d", line)) for _ in range(2))
        assert first.split() == ["requests", "4"]
        assert re.fullmatch(r"requests +4 +0/s\n", second), second
    finally:
        child.stdin.close()
    assert "\x1b" not in "".join(lines)
    assert child.wait(PATIENCE) == 0


def test_top_continues_with_empty_stdin(url):
    child = subprocess.Popen([CTL, "top", "--interval", "100ms", "--metrics-url", url], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        assert next(line for line in child.stdout if line.startswith("statestored "))
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=PATIENCE)
    assert child.returncode == 0


def test_top_continues_after_a_restart_of_the_store(site, url):
    child = subprocess.Popen([CTL, "top", "--interval", "100ms", "--metrics-url", url], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        next(line for line in child.stdout if re.match(r"requests +4\b", line))
        site.store.stop()
        next(line for line in child.stdout if "/metrics: " in line)
        site.store.start()
        line = next(line for line in child.stdout if re.match(r"requests +0", line))
        assert line.split() == ["requests", "0"], "no rate across a restart"
    finally:
        child.stdin.close()
        child.stdout.read()
    assert child.wait(PATIENCE) == 0


ROWS, COLUMNS = 24, 80


@pytest.mark.parametrize("key", [b"q", b"\x03", b"\x04"])
def test_top_fills_a_terminal_until_a_key_ends_it(url, key):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    child = subprocess.Popen(["setsid", "--ctty", CTL, "top", "--interval", "100ms", "--metrics-url", url], stdin=theirs,
                             stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while shown.count(CLEAR) < 3:
            shown += os.read(ours, 65536)
        os.write(ours, key)
        with contextlib.suppress(OSError):  # the other end is closed
            while os.read(ours, 65536):
                pass
        assert child.wait(PATIENCE) == 0
    finally:
        child.kill()
        os.close(ours)
    assert b"Press q to quit" in shown and b"per second" in shown
    screens = [screen.splitlines() for screen in shown.split(CLEAR)[1:3]]
    assert all(screen[0].startswith(b"statestored ") for screen in screens)
    assert all(len(screen) < ROWS and max(map(len, screen)) <= COLUMNS for screen in screens)


def test_top_ends_when_its_output_is_closed(url):
    child = subprocess.Popen([CTL, "top", "--interval", "100ms", "--metrics-url", url], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(PATIENCE) == -signal.SIGPIPE
