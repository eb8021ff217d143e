# SPDX-License-Identifier: Apache-2.0
"""statestorectl stat, which reads the metrics of the store."""

import json
import re
import socket
import subprocess
import threading
import urllib.request

import pytest

from support.broker import free_port
from support.ctl import USAGE, environment
from support.process import CTL, PATIENCE, REPOSITORY, wait_until


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
    figures = json.loads(ctl("stat", "--json", "--metrics-url", url).stdout)

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
                                       ("stat", "more")])
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
