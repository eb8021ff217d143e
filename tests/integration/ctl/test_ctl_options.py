# SPDX-License-Identifier: Apache-2.0
"""statestorectl's command line and environment, and its help."""

import socket
import subprocess

import pytest

from support.ctl import NO_REPLY, USAGE, Ctl, environment
from support.process import CTL, PATIENCE, killed_with_parent


def first_packet(arguments, variables, before=lambda port: None):
    """The first packet that statestorectl sends to a broker. {port} is the port of the broker; before(port) is called first."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        port = server.getsockname()[1]
        before(port)
        child = subprocess.Popen(killed_with_parent([CTL, *(argument.format(port=port) for argument in arguments)]),
                                 env=environment({name: value.format(port=port) for name, value in variables.items()}),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peer, _ = server.accept()
        with peer:
            peer.settimeout(PATIENCE)
            packet = peer.recv(4096)
        assert child.wait(PATIENCE) == NO_REPLY
        return packet


def field(text):
    return len(text).to_bytes(2, "big") + text.encode()


@pytest.mark.parametrize("arguments, variables", [
    (["--port", "{port}"], {}),
    (["--port={port}", "--host=localhost"], {}),
    ([], {"PORT": "{port}"}),
    ([], {"PORT": "{port}", "HOST": "localhost", "TIMEOUT": "10s"}),
    ([], {"PORT": "{port}", "HOST": ""}),
    (["--port", "{port}"], {"PORT": "1"}),
    (["--host", "127.0.0.1:{port}"], {"HOST": "unknown.invalid", "PORT": "1"}),
    (["--host", "127.0.0.1:1,127.0.0.1:{port}"], {}),
    ([], {"HOST": "127.0.0.1:1,127.0.0.1", "PORT": "{port}"}),
])
def test_flags_override_variables_and_these_override_defaults(arguments, variables):
    assert first_packet([*arguments, "ping"], variables)[:1] == b"\x10"


# The configuration of the store, in the environment or a file


@pytest.mark.parametrize("arguments, variables, text", [
    ([], {"BROKER_HOST": "127.0.0.1:1,127.0.0.1:{port}"}, None),
    ([], {"BROKER_PORT": "{port}"}, None),
    ([], {"CONFIG": "{file}"}, "[broker]\nhost = 127.0.0.1:{port}\n"),
    (["--config", "{file}"], {"CONFIG": "/nowhere"}, "[broker]\nport = {port}\n[storage]\ndata-dir = /nowhere\n"),
    ([], {"CONFIG": "{file}", "BROKER_PORT": "{port}"}, "[broker]\nport = 1\n[policy]\nfile = /nowhere\n"),
    (["--port", "{port}"], {"BROKER_HOST": "127.0.0.1", "BROKER_PORT": "1"}, None),
    (["--host", "127.0.0.1", "--port", "{port}"], {"BROKER_HOST": "unknown.invalid", "BROKER_TLS": "on"}, None),
    (["--tls", "off"], {"BROKER_PORT": "{port}", "BROKER_TLS": "on"}, None),
    ([], {"BROKER_PORT": "{port}", "BROKER_USER": "alice", "BROKER_PASSWORD_FILE": "/nowhere"}, None),
])
def test_the_default_broker_comes_from_the_stores_configuration(tmp_path, arguments, variables, text):
    packet = first_packet_with(tmp_path, arguments, variables, text)

    assert packet[:1] == b"\x10"
    assert b"alice" not in packet, "the store's credentials are not used by statestorectl"


def test_tls_options_of_the_stores_configuration_apply(tmp_path):
    packet = first_packet_with(tmp_path, [], {"BROKER_PORT": "{port}", "CONFIG": "{file}"}, "[broker]\ntls = on\n")

    assert packet[:1] == b"\x16"


def first_packet_with(tmp_path, arguments, variables, text):
    file = tmp_path / "statestored.conf"

    def fill(value):
        return value.replace("{file}", str(file))

    return first_packet([*map(fill, arguments), "ping"], {name: fill(value) for name, value in variables.items()},
                        before=lambda port: file.write_text((text or "").format(port=port)))


@pytest.mark.parametrize("arguments, variables", [
    (["--user", "alice", "--password-file", "{file}"], {}),
    ([], {"USER": "alice", "PASSWORD_FILE": "{file}"}),
    (["--user", "alice"], {"USER": "bob", "PASSWORD_FILE": "{file}"}),
])
def test_credentials(tmp_path, arguments, variables):
    file = tmp_path / "password"
    file.write_text("p:@ss word\nonly the first line is the password\n")

    packet = first_packet([argument.replace("{file}", str(file)) for argument in [*arguments, "ping"]],
                          {"PORT": "{port}", **{name: value.replace("{file}", str(file))
                                                for name, value in variables.items()}})

    assert packet.endswith(field("alice") + field("p:@ss word"))


@pytest.mark.parametrize("arguments, variables", [
    (["--client-id", "me"], {"CLIENT_ID": "you"}),
    ([], {"CLIENT_ID": "me"}),
])
def test_client_id_is_used_at_the_broker(arguments, variables):
    assert field("me") in first_packet([*arguments, "ping"], {"PORT": "{port}", **variables})


def test_each_run_has_a_new_client_id():
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
    (["del", "key", "--px", "1s"], "--px"),
    (["ping", "--hex"], "--hex"),
    (["get"], "get"),
    (["set", "key", "value", "--ttl", "5s"], "--ttl: no such option; see"),
    (["-"], "-: no such command; see"),
    (["put", "key", "value"], "put: no such command; see"),
    (["set", "key", "-abc"], "-abc: no such option; write -- before a word that begins with -"),
    (["set", "key", "-l"], "--long: not an option of this command; write -- before a word that begins with -"),
    (["del"], "del"),
    (["get", "00", "0g", "--hex"], "0g"),
    (["scan", "["], "[: ']' is missing after '['"),
    (["scan", "a[[]b[]"], "a[[]b[]: ']' is missing after '['"),
    (["export", "[!"], "[!: ']' is missing after '['"),
    (["scan", "a**"], "a**: ** must stand alone between slashes"),
    (["bogus", "--help"], "bogus"),
    (["help", "get"], "help: no such command; see statestorectl --help"),
    (["set", "key"], "set"),
    (["set", "key", "value", "more"], "set"),
    (["set", "key", "value", "--nex", "old"], "set"),
    (["set", "--nex", "old", "key", "value"], "set"),
    (["vdel", "key"], "vdel"),
    (["watch"], "watch"),
    (["ping", "more"], "ping"),
    (["set", "key", "value", "--nx", "--nex"], "--nx"),
    (["set", "key", "value", "--px"], "--px"),
    (["set", "key", "value", "--px", "0"], "--px"),
    (["set", "key", "value", "--px", "soon"], "--px"),
    (["set", "key", "value", "--px", "1000"], "--px"),
    (["set", "key", "value", "--fence", "soon"], "--fence"),
    (["set", "-", "-"], "stdin"),
    (["set", "key", "-", "--nex=-"], "stdin"),
    (["get", "0g", "--hex"], "0g"),
    (["get", "012", "--hex"], "012"),
    (["get", "key", "--port", "0"], "--port"),
    (["get", "key", "--port", "65536"], "--port"),
    (["get", "key", "--host", ""], "--host"),
    (["get", "key", "--host", "a,,b"], "--host"),
    (["get", "key", "--client-id", "a:b"], "--client-id"),
    (["get", "key", "--client-id", "a/b"], "--client-id"),
    (["get", "key", "--timeout", "0"], "--timeout"),
    (["get", "key", "--timeout", "1w"], "--timeout"),
    (["get", "key", "--timeout", "25h"], "from 1ms to 24h"),
    (["get", "key", "--timeout", "10"], "--timeout"),
    (["get", "key", "--user", "me", "--password-file", "/nonexistent"], "/nonexistent"),
    (["get", "key", "--user", "me", "--password-file", "/dev/stdin"], "/dev/stdin: not a regular file"),
    (["get", "key", "--password-file", "/dev/null"], "--password-file"),
    (["import", "file", "--json"], "--json: not an option of this command"),
    (["check", "file", "--json"], "--json: not an option of this command"),
    (["test", "reset", "--json"], "--json: not an option of this command"),
])
def test_wrong_usage_is_named_in_one_line(arguments, named):
    ended = Ctl(1).run(*arguments)

    assert (ended.returncode, ended.stdout) == (USAGE, b"")
    assert named in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("variable, value", [("PORT", "mqtt"), ("BROKER_PORT", "many"), ("BROKER_HOST", ","), ("HOST", ","), ("TIMEOUT", "soon"),
                                             ("CLIENT_ID", "a+b")])
def test_a_wrong_variable_is_named(variable, value):
    ended = Ctl(1).run("ping", variables={variable: value})

    assert (ended.returncode, ended.stdout) == (USAGE, b"")
    assert f"STATESTORE_{variable}" in ended.stderr.decode()


def test_an_unreadable_configuration_of_the_store_is_named():
    ended = Ctl(1).run("ping", variables={"CONFIG": "/nonexistent"})

    assert (ended.returncode, ended.stdout) == (USAGE, b"")
    assert ended.stderr == b"statestorectl: /nonexistent: No such file or directory\n"


# Help


def test_help_has_every_command_and_examples():
    printed = Ctl(1).ok("--help").decode()

    for command in "get", "set", "del", "vdel", "scan", "watch", "ping":
        assert f"\n  {command} " in printed
    for word in "--host", "--port", "--user", "--password-file", "--client-id", "--timeout", \
            "STATESTORE_HOST", "STATESTORE_PASSWORD_FILE", "Examples:", "Exit status:":
        assert word in printed
    assert max(map(len, printed.splitlines())) <= 96


@pytest.mark.parametrize("command, words", [
    ("get", ["KEY...", "--hex"]),
    ("set", ["KEY VALUE", "--nx", "--nex[=VALUE]", "--px DURATION", "--fence HLC", "--persist"]),
    ("del", ["KEY...", "--fence HLC"]),
    ("vdel", ["KEY VALUE", "--fence HLC"]),
    ("scan", ["[PATTERN]", "[abc]"]),
    ("watch", ["KEY..."]),
    ("ping", []),
    ("import", ["FILE"]),
    ("test", ["fault ACTION"]),
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


def test_the_error_names_all_hosts_that_were_tried():
    result = subprocess.run([CTL, "--host", "/nowhere/a,/nowhere/b,/nowhere/c", "ping"], capture_output=True, text=True,
                            timeout=PATIENCE)

    assert result.returncode == 3
    assert "the broker at /nowhere/c: " in result.stderr
    assert result.stderr.endswith("; also tried /nowhere/a; also tried /nowhere/b\n")
