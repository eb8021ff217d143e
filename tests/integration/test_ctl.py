# SPDX-License-Identifier: Apache-2.0
"""statestorectl, as a person or a script uses it."""

import base64
import json
import os
import queue
import signal
import socket
import subprocess
import threading

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.broker import Broker, free_port
from support.client import INVOKE
from support.process import BUILD, PATIENCE, bound_to_us, wait_until

CTL = BUILD / "server" / "statestorectl"

DONE, NOT_MET, USAGE, NO_ANSWER, STORE_ERROR = range(5)

BINARY = bytes(range(256)) + b"\r\n\0"
ESCAPE_SEQUENCE = b"\x1b[31mred"


def environment(variables):
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith("STATESTORE_") or name == "STATESTORE_BUILD"}
    return {**inherited, **{f"STATESTORE_{name}": str(value) for name, value in variables.items()}}


class Ctl:
    """Runs statestorectl against one broker, which it learns of from the environment."""

    def __init__(self, port):
        self.variables = {"HOST": "127.0.0.1", "PORT": port}

    def argv(self, arguments):
        return bound_to_us([CTL]) + [argument if isinstance(argument, bytes) else str(argument)
                                     for argument in arguments]

    def run(self, *arguments, stdin=b"", variables=None, **popen):
        popen.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(self.argv(arguments), input=stdin, stderr=subprocess.PIPE, check=False,
                              env=environment(self.variables if variables is None else variables), timeout=PATIENCE,
                              **popen)

    def ok(self, *arguments, **popen):
        """stdout of a run that must succeed and have nothing to say on stderr."""
        ended = self.run(*arguments, **popen)
        assert (ended.returncode, ended.stderr) == (DONE, b"")
        return ended.stdout

    def json(self, *arguments, **popen):
        return json.loads(self.ok(*arguments, "--json", **popen))


class Watch:
    """A running `statestorectl watch`: its lines as they come."""

    def __init__(self, ctl, *arguments, stdout=subprocess.PIPE):
        self.child = subprocess.Popen(ctl.argv(["watch", *arguments]), env=environment(ctl.variables),
                                      stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
        self._events = self._read(self.child.stdout) if self.child.stdout else None
        self._notes = self._read(self.child.stderr)

    @staticmethod
    def _read(stream):
        def read():
            for line in stream:
                lines.put(line)

        lines = queue.SimpleQueue()
        threading.Thread(target=read, daemon=True).start()
        return lines

    def event(self):
        """The next line, in its columns."""
        return self.line().removesuffix(b"\n").split(b"\t")

    def line(self):
        return self._events.get(timeout=PATIENCE)

    def wait_for_note(self, text):
        """Waits for a line on stderr that has the text in it."""
        while text not in self._notes.get(timeout=PATIENCE).decode():
            pass
        return self

    def stop(self, number=signal.SIGINT):
        self.child.send_signal(number)
        return self.child.wait(PATIENCE)


@pytest.fixture
def ctl(shared):
    return Ctl(shared.broker.port)


@pytest.fixture
def own(site):
    """Against a broker and a store that no other test knows."""
    site.start_store()
    return Ctl(site.broker.port)


@pytest.fixture
def watch():
    watches = []

    def start(ctl, *arguments, **popen):
        watches.append(Watch(ctl, *arguments, **popen))
        return watches[-1].wait_for_note("watching")

    yield start
    for each in watches:
        each.child.kill()
        each.child.wait()


# set, get, del, vdel


def test_a_value_that_was_set_is_got_and_nothing_else_is_printed(ctl, key):
    ctl.ok("set", key, "hello world")

    assert ctl.ok("get", key) == b"hello world"


def test_set_prints_ok_and_the_version(ctl, client, key):
    printed = ctl.ok("set", key, "value")

    assert printed == b"OK %s\n" % client.request("GET", key).prop("__ts").encode()


def test_verbose_get_prints_the_version_on_stderr(ctl, client, key):
    version = client.request("SET", key, "value").prop("__ts")

    ended = ctl.run("get", key, "-v")

    assert ended.stdout == b"value"
    assert ended.stderr.decode() == f"version {version}\n"


def test_what_is_not_there_is_not_found(ctl, key):
    for arguments in ["get", key], ["del", key], ["vdel", key, "value"]:
        ended = ctl.run(*arguments)
        assert (ended.returncode, ended.stdout) == (NOT_MET, b"")
        assert ended.stderr.decode() == f'statestorectl: "{key}": not found\n'


def test_an_empty_value_is_a_value(ctl, key):
    ctl.ok("set", key, "")

    assert ctl.ok("get", key) == b""


def test_del_prints_the_version_of_what_it_deleted(ctl, client, key):
    version = client.request("SET", key, "value").prop("__ts")

    assert ctl.ok("del", key).decode() == f"deleted {version}\n"
    assert client.request("GET", key).payload == b"$-1\r\n"


@pytest.mark.parametrize("dialect", ["sdk", "document"], indirect=True)
def test_vdel_deletes_only_the_value_it_is_given(ctl, client, key):
    version = client.request("SET", key, "value").prop("__ts")

    ended = ctl.run("vdel", key, "other")
    assert (ended.returncode, ended.stdout) == (NOT_MET, b"")
    assert "another value" in ended.stderr.decode()
    assert version in ended.stderr.decode()
    assert ctl.ok("vdel", key, "value").decode() == f"deleted {version}\n"


@pytest.mark.parametrize("dialect", ["sdk", "document"], indirect=True)
def test_nx_sets_once(ctl, key):
    ctl.ok("set", key, "first", "--nx")

    ended = ctl.run("set", key, "second", "--nx")

    assert (ended.returncode, ended.stdout) == (NOT_MET, b"")
    assert "exists" in ended.stderr.decode()
    assert ctl.ok("get", key) == b"first"


def test_nex_without_a_value_sets_again_what_is_there(ctl, key):
    ctl.ok("set", key, "me", "--nex")
    ctl.ok("set", key, "me", "--nex", "--px", "10m")
    ctl.ok("set", "--nex", key, "me")

    assert ctl.run("set", key, "you", "--nex").returncode == NOT_MET


def test_nex_with_a_value_sets_what_has_that_value(ctl, key):
    ctl.ok("set", key, "old")

    assert ctl.run("set", key, "new", "--nex", "other").returncode == NOT_MET
    ctl.ok("set", key, "new", "--nex", "old")
    ctl.ok("set", "--nex=new", key, "newer")
    ctl.ok("set", key, "--nex", "newer", "newest", "--px", "10m")
    assert ctl.ok("get", key) == b"newest"


def test_px_lets_a_key_expire(ctl, key):
    ctl.ok("set", key, "value", "--px", "1ms")

    wait_until(lambda: ctl.run("get", key).returncode == NOT_MET, "the key expires")


def test_fence_is_checked_by_each_command_that_changes(ctl, key):
    token = ctl.ok("set", key, "value").decode().split()[1]
    ctl.ok("set", key, "value", "--fence", token)

    for arguments in ["set", key, "other"], ["del", key], ["vdel", key, "value"]:
        ended = ctl.run(*arguments)
        assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
        assert ended.stderr == b"-ERR a fencing token is required for this request\n"
    ctl.ok("vdel", key, "value", "--fence", token)
    ctl.ok("set", key, "value", "--fence", token)
    ctl.ok("del", key, "--fence", token)


def test_the_stores_error_is_printed_as_it_came(ctl):
    ended = ctl.run("get", "")

    assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
    assert ended.stderr == b"-ERR the key length is zero\n"


# Bytes in and out


@pytest.mark.parametrize("value", [BINARY, b"", b"line\n", os.urandom(5 << 20)],
                         ids=["binary", "empty", "line", "5 MiB"])
def test_a_value_is_stored_byte_for_byte_from_stdin_and_from_a_file(ctl, key, tmp_path, value):
    file = tmp_path / "value"
    file.write_bytes(value)

    ctl.ok("set", key, "-", stdin=value)
    assert ctl.ok("get", key) == value
    ctl.ok("set", key, "--value-file", file)
    assert ctl.ok("get", key) == value
    ctl.ok("vdel", key, "--value-file", "-", stdin=value)


def test_a_key_may_be_any_bytes(ctl, client, tmp_path):
    key = BINARY + os.urandom(8)
    file = tmp_path / "key"
    file.write_bytes(key)

    ctl.ok("set", "--key-file", file, "value")
    assert client.request("GET", key).payload == b"$5\r\nvalue\r\n"
    assert ctl.ok("get", "-", stdin=key) == b"value"
    ctl.ok("del", "--key-file", "-", stdin=key)


def test_words_behind_two_dashes_are_no_options(ctl, key):
    ctl.ok("set", "--", f"--{key}", "--nx")

    assert ctl.ok("get", "--", f"--{key}") == b"--nx"


def test_with_hex_keys_and_values_are_hex_digits(ctl, client, key):
    ctl.ok("set", key.encode().hex(), "00FFab0a", "--hex")

    assert client.request("GET", key).payload == b"$4\r\n\x00\xff\xab\n\r\n"
    assert ctl.ok("get", key.encode().hex(), "--hex") == b"00FFAB0A\n"
    ctl.ok("set", key.encode().hex(), "01", "--nex", "00ffab0a", "--hex")
    ctl.ok("vdel", key.encode().hex(), "01", "--hex")


def test_json_shows_key_value_and_version(ctl, client, key):
    version = client.request("SET", key, 'say "hö"\n\\\x01\x7f').prop("__ts")

    assert ctl.json("get", key) == {"key": key, "value": 'say "hö"\n\\\x01\x7f', "version": version}
    assert ctl.ok("get", key, "--json").count(b"\n") == 1


@pytest.mark.parametrize("value", [b"\xff", b"\xff\xfe", b"\xff\xfe\xfd", BINARY])
def test_json_shows_as_base64_what_is_not_utf_8(ctl, client, key, value):
    client.request("SET", key, value)

    shown = ctl.json("get", key)

    assert "value" not in shown
    assert base64.b64decode(shown["value_base64"]) == value


def test_json_with_hex_shows_hex_digits(ctl, client, key):
    client.request("SET", key, "value")

    shown = ctl.json("get", key.encode().hex(), "--hex")

    assert shown["key_hex"] == key.encode().hex().upper()
    assert shown["value_hex"] == b"value".hex().upper()


def test_json_of_changes_says_whether_there_was_one(ctl, key):
    done = ctl.json("set", key, "value")
    assert done == {"key": key, "set": True, "version": done["version"]}

    def not_met(*arguments):
        ended = ctl.run(*arguments, "--json")
        assert (ended.returncode, ended.stderr) == (NOT_MET, b"")
        return json.loads(ended.stdout)

    assert not_met("set", key, "other", "--nx") == {"key": key, "set": False, "version": done["version"]}
    assert not_met("vdel", key, "other") == {"key": key, "deleted": False, "version": done["version"]}
    assert ctl.json("del", key) == {"key": key, "deleted": True, "version": done["version"]}
    assert not_met("del", key) == {"key": key, "deleted": False, "version": None}
    assert not_met("get", key) == {"key": key, "value": None, "version": None}


# On a terminal


def on_a_terminal(ctl, *arguments):
    """What a person sees: stdout and stderr together."""
    master, terminal = os.openpty()
    with open(master, "rb", buffering=0) as screen:
        with open(terminal, "wb", buffering=0) as stdout:
            child = subprocess.Popen(ctl.argv(arguments), env=environment(ctl.variables), stdin=subprocess.DEVNULL,
                                     stdout=stdout, stderr=stdout)
        seen = b""
        try:
            while chunk := screen.read(4096):
                seen += chunk
        except OSError:  # how a terminal ends
            pass
        return child.wait(PATIENCE), seen.replace(b"\r\n", b"\n").decode()


@pytest.mark.parametrize("value", ["one line", "two\nlines\n"])
def test_on_a_terminal_the_version_follows_the_value_on_a_line_of_its_own(ctl, client, key, value):
    version = client.request("SET", key, value).prop("__ts")

    code, seen = on_a_terminal(ctl, "get", key)

    assert code == DONE
    assert seen == value.removesuffix("\n") + f"\nversion {version}\n"


def test_a_value_cannot_play_with_the_terminal(ctl, client, key):
    client.request("SET", key, ESCAPE_SEQUENCE)

    _, seen = on_a_terminal(ctl, "get", key)

    assert seen.startswith("\\x1B[31mred\n")
    assert "escaped" in seen
    assert ctl.ok("get", key) == ESCAPE_SEQUENCE


# scan


def test_scan_lists_the_keys_that_match(ctl, client, key):
    for name in "a", "b", "other":
        client.request("SET", f"{key}/{name}", "value")

    assert sorted(ctl.ok("scan", f"{key}/?").decode().splitlines()) == [f"{key}/a", f"{key}/b"]
    assert f"{key}/other" in ctl.ok("scan").decode().splitlines()
    assert ctl.ok("scan", f"{key}/none") == b""


def test_scan_goes_on_to_the_last_page(ctl, client, key):
    keys = {f"{key}/{i}" for i in range(2500)}
    client.request_all(("SET", each, "") for each in keys)

    assert set(ctl.ok("scan", f"{key}/*").decode().splitlines()) == keys


def test_scan_shows_a_key_with_control_characters_on_one_line(ctl, client, key):
    name = f"{key}\n\t\x1b\u009b\\"
    client.request("SET", name, "value")

    assert ctl.ok("scan", f"{key}*").decode() == f"{key}\\n\\t\\x1B\\xC2\\x9B\\\\\n"
    assert ctl.json("scan", f"{key}*") == name
    assert bytes.fromhex(ctl.ok("scan", f"{key}*", "--hex").decode()) == name.encode()


# ping


def test_ping_says_who_answered_and_how_fast(ctl):
    words = ctl.ok("ping").decode().split()
    assert words[:4] == ["pong", "from", "StateStore", "in"]
    assert float(words[4]) > 0
    assert words[5:] == ["ms"]

    shown = ctl.json("ping")
    assert shown["from"] == "StateStore"
    assert shown["rtt_ms"] > 0


# watch


@pytest.mark.parametrize("dialect", ["sdk", "document"], indirect=True)
def test_watch_prints_a_line_for_each_change(ctl, client, key, watch):
    watching = watch(ctl, key, f"{key} too")

    first = client.request("SET", key, "value").prop("__ts").encode()
    second = client.request("SET", f"{key} too", BINARY).prop("__ts").encode()
    client.request("DEL", key)

    assert watching.event() == [b"SET", first, key.encode(), b"value"]
    event, version, name, value = watching.event()
    assert (event, version, name) == (b"SET", second, f"{key} too".encode())
    assert value.startswith(rb"\x00\x01")
    assert watching.event() == [b"DELETE", first, key.encode()]


def test_watch_sees_a_key_expire(ctl, client, key, watch):
    watching = watch(ctl, key)

    client.request("SET", key, "value", "PX", "1")

    assert [watching.event()[0] for _ in range(2)] == [b"SET", b"DELETE"]


def test_watch_shows_json_and_hex(ctl, client, key, watch):
    as_json = watch(ctl, key, "--json")
    as_hex = watch(ctl, key.encode().hex(), "--hex")

    version = client.request("SET", key, b"\0\xff").prop("__ts")
    client.request("DEL", key)

    assert json.loads(as_json.line()) == {"event": "SET", "key": key, "value_base64": "AP8=", "version": version}
    assert json.loads(as_json.line()) == {"event": "DELETE", "key": key, "version": version}
    assert as_hex.event() == [b"SET", version.encode(), key.encode().hex().upper().encode(), b"00FF"]


def test_watch_takes_any_bytes_for_a_key(ctl, client, watch, tmp_path):
    file = tmp_path / "key"
    file.write_bytes(BINARY)
    watching = watch(ctl, "--key-file", file, "--json")

    client.request("SET", BINARY, "value")

    assert base64.b64decode(json.loads(watching.line())["key_base64"]) == BINARY


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_watch_is_done(ctl, key, watch, number):
    assert watch(ctl, key).stop(number) == DONE


def test_watch_registers_again_after_a_restart_of_the_broker(site, own, watch):
    watching = watch(own, "one", "two")

    site.broker.kill()
    watching.wait_for_note("changes are being missed")
    site.broker.start_again()
    watching.wait_for_note("registered again")

    client = site.connect()
    client.request("SET", "one", "value")
    client.request("SET", "two", "value")
    assert [watching.event()[2] for _ in range(2)] == [b"one", b"two"]
    assert watching.stop() == DONE


def test_a_watch_can_be_interrupted_while_the_broker_is_away(site, own, watch):
    watching = watch(own, "key")

    site.broker.kill()
    watching.wait_for_note("changes are being missed")

    assert watching.stop() == DONE


def test_watch_registers_again_with_a_store_that_was_restarted(site, own, watch):
    watching = watch(own, "key", "--timeout", "200ms")

    site.store.stop()
    watching.wait_for_note("changes are being missed")
    site.store.start()
    watching.wait_for_note("registered again")

    site.connect().request("SET", "key", "value")
    assert watching.event()[::3] == [b"SET", b"value"]


def test_watch_ends_when_nobody_reads_any_more(ctl, key, watch):
    reader, writer = os.pipe()
    watching = watch(ctl, key, stdout=writer)
    os.close(writer)

    os.close(reader)

    assert watching.child.wait(PATIENCE) == DONE


def test_watch_tells_the_stores_error(ctl):
    ended = ctl.run("watch", "")

    assert ended.returncode == STORE_ERROR
    assert ended.stderr == b"-ERR the key length is zero\n"


# The request itself


def test_a_request_is_what_the_published_clients_send(site):
    spy = site.connect()
    spy.subscribe(INVOKE)
    site.start_store()

    Ctl(site.broker.port).ok("set", "key", "value", "--persist", "--fence", "1:0:a", "--nex", "old", "--px", "5s",
                             "--client-id", "me", "--timeout", "7s")

    sent = spy.others.get(timeout=PATIENCE)
    words = [b"SET", b"key", b"value", b"NEX", b"old", b"PX", b"5000"]
    assert sent.payload == b"*7\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    assert sent.qos == 1
    assert sent.expiry in (6, 7)
    assert len(sent.correlation) == 16
    assert sent.response_topic.startswith("clients/me/")
    assert sent.prop("__srcId") == "me"
    assert sent.prop("__protVer") == "1.0"
    assert sent.prop("__ft") == "1:0:a"
    assert sent.prop("aio-persistence") == "true"
    wall, counter, node = sent.prop("__ts").split(":")
    assert (len(wall), counter, node) == (15, "00000", "me")


def test_a_request_says_nothing_that_was_not_asked_for(site):
    spy = site.connect()
    spy.subscribe(INVOKE)
    site.start_store()

    Ctl(site.broker.port).ok("set", "key", "value")

    sent = spy.others.get(timeout=PATIENCE)
    assert sent.payload == b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n"
    assert sent.prop("__ft") is None
    assert sent.prop("aio-persistence") is None
    assert sent.prop("__srcId").startswith("statestorectl-")


# Nobody there


def test_no_broker(key):
    port = free_port()

    ended = Ctl(port).run("get", key)

    assert (ended.returncode, ended.stdout) == (NO_ANSWER, b"")
    assert f"127.0.0.1:{port}" in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [["get", "key"], ["set", "key", "value"], ["del", "key"],
                                       ["vdel", "key", "value"], ["scan"], ["watch", "key"], ["ping"]])
def test_no_store(site, arguments):
    ended = Ctl(site.broker.port).run(*arguments, "--timeout", "500ms")

    assert (ended.returncode, ended.stdout) == (NO_ANSWER, b"")
    assert "no answer within 500ms" in ended.stderr.decode()
    assert f"127.0.0.1:{site.broker.port}" in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1


def test_a_server_that_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = Ctl(server.getsockname()[1]).run("ping", "--timeout", "50ms")

    assert ended.returncode == NO_ANSWER
    assert "does not answer within 50ms" in ended.stderr.decode()


def test_a_broker_that_wants_to_know_who_we_are(tmp_path):
    broker = Broker(tmp_path, anonymous=False).start()
    try:
        ended = Ctl(broker.port).run("ping")
    finally:
        broker.kill()

    assert ended.returncode == NO_ANSWER
    assert "--password-file" in ended.stderr.decode()


# Options and environment


def first_packet(arguments, variables):
    """What a broker at a port of its own is sent first; {port} stands for that port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        port = server.getsockname()[1]
        child = subprocess.Popen(bound_to_us([CTL, *(argument.format(port=port) for argument in arguments)]),
                                 env=environment({name: value.format(port=port) for name, value in variables.items()}),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peer, _ = server.accept()
        with peer:
            peer.settimeout(PATIENCE)
            packet = peer.recv(4096)
        assert child.wait(PATIENCE) == NO_ANSWER
        return packet


def field(text):
    return len(text).to_bytes(2, "big") + text.encode()


@pytest.mark.parametrize("arguments, variables", [
    (["--port", "{port}"], {}),
    (["--port={port}", "--host=localhost"], {}),
    (["-u", "mqtt://127.0.0.1:{port}"], {}),
    (["--url=mqtt://localhost:{port}/"], {}),
    ([], {"PORT": "{port}"}),
    ([], {"PORT": "{port}", "HOST": "localhost", "TIMEOUT": "10s"}),
    ([], {"URL": "mqtt://127.0.0.1:{port}"}),
    ([], {"URL": "mqtt://nobody.invalid:{port}", "HOST": "127.0.0.1"}),
    ([], {"URL": "mqtt://127.0.0.1:1", "PORT": "{port}", "HOST": ""}),
    (["--host", "127.0.0.1"], {"URL": "mqtt://nobody.invalid:{port}"}),
    (["--port", "{port}"], {"PORT": "1"}),
    (["-u", "mqtt://127.0.0.1:{port}"], {"HOST": "nobody.invalid", "PORT": "1"}),
])
def test_flags_beat_the_environment_and_it_beats_the_defaults(arguments, variables):
    assert first_packet([*arguments, "ping"], variables)[:1] == b"\x10"


@pytest.mark.parametrize("arguments, variables", [
    (["--user", "alice", "--password-file", "{file}"], {}),
    ([], {"USER": "alice", "PASSWORD_FILE": "{file}"}),
    (["--user", "alice"], {"USER": "bob", "PASSWORD_FILE": "{file}"}),
    (["-u", "mqtt://alice:p%3a%40ss%20word@127.0.0.1:{port}"], {}),
    (["-u", "mqtt://alice:p%3a%40ss%20word@127.0.0.1:{port}"], {"USER": "bob", "PASSWORD_FILE": "/nowhere"}),
    (["-u", "mqtt://alice@127.0.0.1:{port}"], {"PASSWORD_FILE": "{file}"}),
    (["--password-file", "{file}"], {"URL": "mqtt://alice:wrong@127.0.0.1:{port}"}),
])
def test_credentials(tmp_path, arguments, variables):
    file = tmp_path / "password"
    file.write_text("p:@ss word\n")

    packet = first_packet([argument.replace("{file}", str(file)) for argument in [*arguments, "ping"]],
                          {"PORT": "{port}", **{name: value.replace("{file}", str(file))
                                                for name, value in variables.items()}})

    assert packet.endswith(field("alice") + field("p:@ss word"))


def test_the_password_of_one_url_is_not_sent_to_the_host_of_another():
    packet = first_packet(["-u", "mqtt://127.0.0.1:{port}", "ping"], {"URL": "mqtt://alice:secret@nobody.invalid"})

    assert b"alice" not in packet
    assert b"secret" not in packet


@pytest.mark.parametrize("arguments, variables", [
    (["--client-id", "me"], {"CLIENT_ID": "you"}),
    ([], {"CLIENT_ID": "me"}),
])
def test_the_client_id_is_what_was_configured(arguments, variables):
    assert field("me") in first_packet([*arguments, "ping"], {"PORT": "{port}", **variables})


def test_each_run_has_a_client_id_of_its_own():
    packets = {first_packet(["ping"], {"PORT": "{port}"}) for _ in range(2)}

    assert len(packets) == 2
    assert all(b"statestorectl-" in packet for packet in packets)


@pytest.mark.parametrize("arguments, named", [
    ([], "command"),
    (["gett", "key"], "gett"),
    (["--bogus", "get", "key"], "--bogus"),
    (["get", "key", "--bogus"], "--bogus"),
    (["get", "key", "--bogus=1"], "--bogus"),
    (["get", "key", "-x"], "-x"),
    (["get", "key", "--json=yes"], "--json"),
    (["get", "key", "--nx"], "--nx"),
    (["get", "key", "--value-file", "file"], "--value-file"),
    (["del", "key", "--px", "1s"], "--px"),
    (["scan", "--key-file", "file"], "--key-file"),
    (["ping", "--hex"], "--hex"),
    (["get"], "get"),
    (["get", "key", "more"], "get"),
    (["get", "key", "--key-file", "/dev/null"], "get"),
    (["set", "key"], "set"),
    (["set", "key", "value", "more"], "set"),
    (["set", "key", "value", "old", "more", "--nex"], "set"),
    (["vdel", "key"], "vdel"),
    (["watch"], "watch"),
    (["ping", "more"], "ping"),
    (["set", "key", "value", "--nx", "--nex"], "--nx"),
    (["set", "key", "value", "--px"], "--px"),
    (["set", "key", "value", "--px", "0"], "--px"),
    (["set", "key", "value", "--px", "soon"], "--px"),
    (["set", "key", "value", "--fence", "soon"], "--fence"),
    (["set", "-", "-"], "stdin"),
    (["set", "key", "-", "--nex=-"], "stdin"),
    (["get", "0g", "--hex"], "0g"),
    (["get", "012", "--hex"], "012"),
    (["get", "--key-file", "/nonexistent"], "/nonexistent"),
    (["get", "--key-file", "/"], "/"),
    (["get", "key", "--port", "0"], "--port"),
    (["get", "key", "--port", "65536"], "--port"),
    (["get", "key", "--host", ""], "--host"),
    (["get", "key", "--url", "http://host"], "--url"),
    (["get", "key", "-u", "mqtt://"], "-u"),
    (["get", "key", "-u", "mqtt://host/path"], "-u"),
    (["get", "key", "-u", "mqtt://a%zz@host"], "-u"),
    (["get", "key", "-u", "mqtt://[::1"], "-u"),
    (["get", "key", "--client-id", "a:b"], "--client-id"),
    (["get", "key", "--client-id", "a/b"], "--client-id"),
    (["get", "key", "--timeout", "0"], "--timeout"),
    (["get", "key", "--timeout", "1w"], "--timeout"),
    (["get", "key", "--user", "me", "--password-file", "/nonexistent"], "/nonexistent"),
    (["get", "key", "--password-file", "/dev/null"], "--password-file"),
])
def test_wrong_usage_is_named_in_one_line(arguments, named):
    ended = Ctl(1).run(*arguments)

    assert (ended.returncode, ended.stdout) == (USAGE, b"")
    assert named in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("variable, value", [("PORT", "mqtt"), ("URL", "mqtt://"), ("TIMEOUT", "soon"),
                                             ("CLIENT_ID", "a+b")])
def test_a_wrong_variable_is_named(variable, value):
    ended = Ctl(1).run("ping", variables={variable: value})

    assert (ended.returncode, ended.stdout) == (USAGE, b"")
    assert f"STATESTORE_{variable}" in ended.stderr.decode()


def test_a_url_that_is_wrong_is_not_repeated_for_it_may_hold_a_password():
    assert b"secret" not in Ctl(1).run("ping", "-u", "mqtt://me:secret@:1").stderr


# Help


def test_help_names_every_command_and_teaches_by_examples():
    printed = Ctl(1).ok("--help").decode()

    for command in "get", "set", "del", "vdel", "scan", "watch", "ping":
        assert f"\n  {command} " in printed
    for word in "--url", "--host", "--port", "--user", "--password-file", "--client-id", "--timeout", "--json", \
            "STATESTORE_URL", "STATESTORE_PASSWORD_FILE", "Examples:", "Exit status:":
        assert word in printed
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.parametrize("command, words", [
    ("get", ["KEY", "--key-file", "--hex", "--verbose"]),
    ("set", ["KEY VALUE", "--nx", "--nex [VALUE]", "--px DURATION", "--fence HLC", "--persist", "--value-file FILE"]),
    ("del", ["KEY", "--fence HLC"]),
    ("vdel", ["KEY VALUE", "--fence HLC"]),
    ("scan", ["[PATTERN]", "[abc]"]),
    ("watch", ["KEY..."]),
    ("ping", []),
])
def test_each_command_has_help_of_its_own(command, words):
    for arguments in [command, "--help"], ["-h", command]:
        printed = Ctl(1).ok(*arguments).decode()
        for word in [f"Usage: statestorectl {command}", f"\n  statestorectl {command}", *words]:
            assert word in printed
        assert max(map(len, printed.splitlines())) <= 100


def test_version_is_one_line():
    printed = Ctl(1).ok("--version")

    assert printed.startswith(b"statestorectl ")
    assert printed.count(b"\n") == 1


# An output that cannot be written


def test_a_full_disk_is_told(ctl, key):
    ctl.ok("set", key, "value")

    with open("/dev/full", "wb") as full:
        ended = ctl.run("get", key, stdout=full)

    assert ended.returncode == USAGE
    assert "cannot write" in ended.stderr.decode()


def test_who_stops_reading_ends_it_quietly(ctl, key):
    ctl.ok("set", key, "value")
    reader, writer = os.pipe()
    os.close(reader)

    with open(writer, "wb") as pipe:
        ended = ctl.run("get", key, stdout=pipe)

    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("closed, arguments", [(1, ["get", "key"]), (0, ["set", "key", "-"])])
def test_a_closed_descriptor_is_never_taken_for_the_brokers(own, closed, arguments):
    own.ok("set", "key", "value")

    ended = own.run(*arguments, preexec_fn=lambda: os.close(closed))

    assert ended.returncode == USAGE
    assert own.ok("get", "key") == b"value"


# Stores that are not as they should be


class FakeStore:
    """Gives every request the same answer."""

    def __init__(self, port, payload, user):
        self.payload = payload
        self.user = user
        self._subscribed = threading.Event()
        self._paho = paho.Client(protocol=paho.MQTTv5)
        self._paho.on_connect = lambda client, *_: client.subscribe(INVOKE, qos=1)
        self._paho.on_subscribe = lambda *_: self._subscribed.set()
        self._paho.on_message = self._answer
        self._paho.connect("127.0.0.1", port)
        self._paho.loop_start()
        assert self._subscribed.wait(PATIENCE)

    def _answer(self, client, _data, request):
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = request.properties.CorrelationData
        properties.UserProperty = self.user
        client.publish(request.properties.ResponseTopic, self.payload, 1, properties=properties)

    def close(self):
        self._paho.disconnect()
        self._paho.loop_stop()


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
def test_an_answer_that_is_none_is_an_error(site, arguments, payload):
    ended = ask_fake(site, payload, [("__stat", "200")], *arguments)

    assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
    assert "no answer to this" in ended.stderr.decode()


def test_a_status_that_is_not_200_is_an_error(site):
    ended = ask_fake(site, b"", [("__stat", "505"), ("__stMsg", "not supported"), ("__propName", "__protVer"),
                                 ("__propVal", "1.0")], "get", "key")

    assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
    assert "status 505: not supported (__protVer: 1.0)" in ended.stderr.decode()


def test_an_error_cannot_play_with_the_terminal(site):
    ended = ask_fake(site, b"-ERR " + ESCAPE_SEQUENCE + b"\r\n", [("__stat", "200")], "get", "key")

    assert ended.stderr == b"-ERR \\x1B[31mred\n"
