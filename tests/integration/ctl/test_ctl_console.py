# SPDX-License-Identifier: Apache-2.0
"""What statestorectl prints of the console of a store."""

import http.server
import json
import os
import re
import socket
import subprocess
import threading

import pytest

from support import hlc
from support.broker import free_port
from support.certificates import Authority
from support.console import Console, Users
from support.ctl import DONE, ESCAPE_SEQUENCE, NO_REPLY, STORE_ERROR, USAGE, Ctl, RunningCtl, environment
from support.double import running_double
from support.flood import Flood
from support.process import CTL, PATIENCE, wait_until
from support.proxy import Proxy
from support.site import kill_store


def ctl_of(port, token_file=None, scheme="http", host="127.0.0.1"):
    """statestorectl with a console, and without a broker."""
    ctl = Ctl(1)
    ctl.variables["HTTP"] = f"{scheme}://{host}:{port}/"
    if token_file:
        ctl.variables["TOKEN_FILE"] = token_file
    return ctl


class TokenFiles:
    """The file of users, and files with the tokens of the user alice and the operator bob."""

    def __init__(self, directory):
        users = Users(directory)
        self.file, self.alice, self.bob = users.file, directory / "alice.txt", directory / "bob.txt"
        self.alice.write_text(f"{users.alice}\n")
        self.bob.write_text(f"{users.bob}\n")


@pytest.fixture
def users(tmp_path):
    return TokenFiles(tmp_path)


@pytest.fixture
def port(site, users):
    """The port of the console of a store with users. The store keeps it when it starts again."""
    port = free_port()
    site.start_store("--http-listen", port, "--console-users", users.file)
    return port


@pytest.fixture
def ctl(port, users):
    return ctl_of(port, users.bob)


@pytest.fixture
def monitor():
    running = []

    def start(ctl, *arguments, **popen):
        running.append(RunningCtl(ctl, "monitor", *arguments, **popen))
        return running[-1].wait_for_note("monitoring until interrupted")

    yield start
    for each in running:
        each.stop()


def refusal(ctl, *words):
    """Return the exit status of a command that prints nothing, and its only message."""
    ended = ctl.run(*words)
    assert ended.stdout == b""
    [line] = ended.stderr.decode().splitlines()
    return ended.returncode, line.removeprefix("statestorectl: ")


def rows(output):
    return [re.split(b"  +", line) for line in output.splitlines()]


def test_stat_shows_the_health_without_a_token(site):
    port = free_port()
    site.start_store("--http-listen", port, "--max-keys", "10")
    site.connect().request_all([("SET", f"key/{i}", "value") for i in range(9)])
    ctl = ctl_of(port)

    shown = dict(rows(ctl.ok("stat")))
    assert (shown[b"ready"], shown[b"broker"]) == (b"yes", b"connected, without the plugin")
    assert (shown[b"keys"], shown[b"dropped"]) == (b"9 of 10 (90.0 %)", b"0")
    assert shown[b"commits"] == b"none: the store is in memory"
    assert b"9 of at most 10 keys are used; beyond the limit the store refuses more; delete some, or raise max-keys" \
        in ctl.ok("stat")
    assert ctl.json("stat")["keys"] == {"n": 9, "max": 10}
    assert refusal(ctl, "clients") == (STORE_ERROR, f"{ctl.variables['HTTP']}: the store has no --console-users: it only shows "
                                       "Health; see --token-file, and statestorectl console-token --help")


def test_stat_shows_the_load_of_the_last_sample(site, tmp_path):
    port = free_port()
    site.start_store("--http-listen", port, "--data-dir", tmp_path / "data")
    client, ctl = site.connect(), ctl_of(port)

    def shown():
        client.request("SET", "key", "value")
        lines = dict(rows(ctl.ok("stat")))
        return b"SET " in lines[b"requests/s"] and b"commit p99" in lines[b"latency"] and lines

    lines = wait_until(shown, "there is a sample")
    assert re.fullmatch(rb"SET \d+\.\d", lines[b"requests/s"])
    assert re.fullmatch(rb"(queue|engine|commit) p[59][09] \d+\.\d{3} ms(, .*){4}", lines[b"latency"])
    assert re.fullmatch(rb"\d+, 0 failed", lines[b"commits"])


def test_stat_tells_why_the_store_is_not_ready(site, ctl):
    site.broker.stop()
    line = wait_until(lambda: b"no:" in (line := ctl.ok("stat").splitlines()[0]) and line, "the store notices")
    assert re.fullmatch(rb"ready +no: .*broker.*", line)
    assert b"not connected" in ctl.ok("stat")
    site.broker.start_again()
    site.store.wait_until_ready()


def test_clients_and_watchers_are_aligned_columns_or_lines_of_json(site, ctl):
    client = site.connect("a client with a long name")
    client.watch("key", "other")
    site.connect("device").request("set", "key", "value")
    site.connect("third").watch("third")

    header, *clients = rows(ctl.ok("clients"))
    assert header == [b"CLIENT", b"USER", b"VERIFIED", b"REQUESTS", b"BYTES", b"REFUSED", b"WATCHES", b"LAST REQUEST"]
    of = {each[0]: each[1:] for each in clients}
    assert of[b"a client with a long name"][:3] == [b"-", b"no", b"2"]
    assert (of[b"device"][4], of[b"a client with a long name"][5]) == (b"1", b"2")
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", of[b"device"][6])
    assert len({line.index(column) for line, column in zip(ctl.ok("clients").splitlines(), [b"USER", b"-  ", b"-  "])}) == 1
    assert {json.loads(line)["client"] for line in ctl.ok("clients", "--json").splitlines()} == set(
        each.decode() for each in of)

    assert rows(ctl.ok("watchers", "key"))[1:] == [[b"key", b"a client with a long name", b"-", b"no"]]
    assert len(rows(ctl.ok("watchers", "--client", "a client with a long name"))) == 3
    assert rows(ctl.ok("watchers", "--client", "device"))[1:] == rows(ctl.ok("watchers", "nothing"))[1:] == []
    lines = [json.loads(line) for line in ctl.ok("watchers", "--json").splitlines()]
    assert {(each["key"], each["client"]) for each in lines} == {
        ("key", "a client with a long name"), ("other", "a client with a long name"), ("third", "third")}
    assert refusal(ctl, "watchers", "key", "--client", "device")[0] == USAGE


def test_all_pages_of_watchers_are_printed(site, ctl):
    site.connect().watch(*(f"key/{i}" for i in range(3000)))

    assert len(ctl.ok("watchers").splitlines()) == 3001


HOSTILE = [b"a\tb\r\nc", ESCAPE_SEQUENCE, b"\xff\xfe", "\u202e".encode(), b"a&client=b?#%+ c"]


def test_hostile_keys_stay_on_their_line(site, ctl, monitor):
    watching = monitor(ctl)
    client = site.connect()
    client.watch(*HOSTILE)

    for key in HOSTILE:
        client.request("SET", key, "value")
        fields = watching.line().removesuffix(b"\n").split(b"\t")
        assert (len(fields), fields[1], fields[6]) == (7, b"set", b"5")
        assert all(0x20 <= byte < 0x7f for byte in fields[5])
        assert ctl.ok("watchers", "-", stdin=key).splitlines()[1].startswith(fields[5] + b"  ")
    assert len(ctl.ok("watchers").splitlines()) == 1 + len(HOSTILE)
    assert all(0x20 <= byte < 0x7f for line in ctl.ok("watchers", "--json").splitlines() for byte in line)


def test_monitor_prints_what_happens(site, ctl, monitor):
    client = site.connect("device")
    client.request("SET", "before", "value")
    everything, filtered, of_other = monitor(ctl), monitor(ctl, "a/*", "--json"), monitor(ctl, "--client", "other")

    version = client.request("SET", "a/1", "value").prop("__ts").encode()
    client.request("SET", "b", "v", "PX", "1")
    client.request("set", "b", "v")
    client.request("SET", "a/1", "other", "NX")
    events = [everything.line().removesuffix(b"\n").split(b"\t") for _ in range(5)]

    assert events[0][1:] == [b"set", b"device", b"-", version, b"a/1", b"5"]
    kinds = {event[1]: event for event in events}
    assert kinds.keys() == {b"set", b"expire", b"refused", b"unmet"}
    assert (kinds[b"expire"][2], kinds[b"expire"][5]) == (b"-", b"b")
    assert kinds[b"refused"][6] == b"unknown command"
    assert kinds[b"unmet"][1:] == [b"unmet", b"device", b"-", b"-", b"a/1", b"SET the key exists"]
    site.connect("other").request("SET", "a/2", "value")
    assert [json.loads(filtered.line())["key"] for _ in range(3)] == ["a/1", "a/1", "a/2"]
    assert of_other.line().split(b"\t")[5] == b"a/2"
    first, second = ctl.run("monitor", "--after", "0", "--count", "2", "--json").stdout.splitlines()
    assert [json.loads(line)["key"] for line in (first, second)] == ["before", "a/1"]


def test_monitor_names_lost_events(site, ctl):
    flood = site.connect(kind=Flood)
    flood.send(12_000, "SET", "x" * 1000, "value", ts=hlc.Clock("flood").now())
    flood.receive_replies(12_000)

    ended = ctl.run("monitor", "--after", "1", "--count", "1", "--json")
    lost = int(re.search(rb"(\d+) events were lost", ended.stderr)[1])
    assert lost > 0
    assert json.loads(ended.stdout)["n"] == 2 + lost


def test_monitor_continues_after_its_connection_ended(site, port, users, monitor):
    """Before and after its first event."""
    client = site.connect()
    client.request("SET", "before", "value")
    proxy = Proxy(port)
    try:
        watching = monitor(ctl_of(proxy.port, users.bob))
        for key in b"first", b"second":
            proxy.cut()
            watching.wait_for_note("events are not printed until the next connection: http://")
            client.request("SET", key, "value")
            proxy.mend()
            watching.wait_for_note("connected again")
            assert watching.line().split(b"\t")[5] == key
    finally:
        proxy.close()


def test_monitor_begins_anew_with_a_restarted_store(site, ctl, monitor):
    watching = monitor(ctl)
    site.connect().request("SET", "before", "value")
    assert watching.line().split(b"\t")[5] == b"before"

    kill_store(site)
    site.connect().request("SET", "after", "value")

    watching.wait_for_note("connected again; the store has restarted: events may be lost")
    assert watching.line().split(b"\t")[5] == b"after"


def test_monitor_ends_when_its_reader_has_gone(ctl, monitor):
    reader, writer = os.pipe()
    watching = monitor(ctl, stdout=writer)
    os.close(writer)
    os.close(reader)
    assert watching.child.wait(PATIENCE) == DONE


def test_users_need_to_be_operators(ctl, port, users, tmp_path):
    url = ctl.variables["HTTP"]
    advice = "; see --token-file, and statestorectl console-token --help"
    for command in "clients", "watchers", "monitor":
        assert refusal(ctl_of(port, users.alice), command) == (STORE_ERROR, f"{url}: this needs an operator{advice}")
        assert refusal(ctl_of(port), command) == (STORE_ERROR, f"{url}: a token is missing{advice}")
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    assert refusal(ctl_of(port, wrong), "clients") == (STORE_ERROR, f"{url}: the token is wrong{advice}")
    assert ctl.run("clients").returncode in (0, NO_REPLY), "the address may be refused for a second"


NO_TOKEN = "cannot use {}: its first line is not a token, which has only printable characters of ASCII, without blanks"


@pytest.mark.parametrize("content, problem", [
    ("", "cannot read {}: the file is empty"),
    ("\n", NO_TOKEN),
    ("to ken", NO_TOKEN),
    ("x" * 65_537, "cannot read {}: longer than 65536 bytes"),
    (None, "cannot read {}: No such file or directory"),
])
def test_a_token_file_is_checked(tmp_path, content, problem):
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)

    assert refusal(ctl_of(1, file), "clients") == (USAGE, problem.format(file))


def test_without_a_console_the_cause_is_told(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ctl = ctl_of(silent.getsockname()[1])
        ctl.variables["TIMEOUT"] = "1ms"
        assert refusal(ctl, "stat") == refusal(ctl, "monitor") == (
            NO_REPLY, f"{ctl.variables['HTTP']}: nothing arrives; is the store running?")
    assert refusal(ctl, "stat")[0] == NO_REPLY
    assert refusal(ctl_of(1), "stat", "--tls-ca-file", tmp_path / "none") == (
        USAGE, f"cannot read {tmp_path / 'none'}: No such file or directory")
    assert refusal(ctl_of(1), "stat", "--http", "127.0.0.1:9464")[0] == USAGE
    assert refusal(ctl_of(1), "monitor", "[")[0] == USAGE


@pytest.mark.parametrize("path, problem", [("/none", "status 404; "), ("", "")])
def test_another_server_is_no_console(tmp_path, path, problem):
    (tmp_path / "api").mkdir()
    for page in "health", "clients":
        (tmp_path / "api" / page).write_text("{}")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *arguments: Files(*arguments, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ctl = ctl_of(f"{server.server_port}{path}")

    for command in "stat", "clients", "monitor":
        assert refusal(ctl, command) == (
            STORE_ERROR, f"{ctl.variables['HTTP']}: {problem}it is not the console of a store (--http-listen)")
    server.shutdown()
    server.server_close()


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_tls_protects_the_token(site, users, tmp_path):
    authority = Authority(tmp_path, "authority")
    certificate = authority.issue("store")
    store = site.start_store("--http-listen", "0.0.0.0:0", "--http-certificate", certificate.certificate,
                             "--http-key", certificate.key, "--console-users", users.file)
    ctl = ctl_of(Console(store).port, users.bob, scheme="https", host="127.0.0.2")

    assert ctl.ok("clients", "--tls-ca-file", authority.certificate).startswith(b"CLIENT")
    status, message = refusal(ctl, "clients")
    assert (status, "certificate" in message) == (NO_REPLY, True)

    command = [*authority.trusted_by_system(), CTL, "clients", "--tls-ca-file", Authority(tmp_path, "other").certificate]
    ended = subprocess.run(command, env=environment(ctl.variables), capture_output=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, b"certificate" in ended.stderr) == (NO_REPLY, True)


def test_dev_needs_no_token(tmp_path, monitor):
    with running_double(tmp_path) as double:
        ctl = ctl_of(Console(double).port)
        watching = monitor(ctl)
        double.connect("device").request("SET", "key", "value")

        assert watching.line().split(b"\t")[2] == b"device"
        assert [row[2] for row in rows(ctl.ok("clients"))[1:]] == [b"yes"]
        assert rows(ctl.ok("watchers"))[1:] == []
        assert b"with the plugin" in ctl.ok("stat")
