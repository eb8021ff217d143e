# SPDX-License-Identifier: Apache-2.0
"""statestorectl passes bytes unchanged, and escapes them on a terminal."""

import base64
import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.client import INVOKE
from support.connection import Connection
from support.control import CONTROL
from support.ctl import BINARY, DONE, ESCAPE_SEQUENCE, NOT_MET, USAGE, Ctl, environment
from support.process import PATIENCE


@pytest.mark.parametrize("value", [BINARY, b"", b"line\n", os.urandom(5 << 20)],
                         ids=["binary", "empty", "line", "5 MiB"])
def test_a_value_is_stored_byte_for_byte_from_stdin(ctl, key, value):
    ctl.ok("set", key, "-", stdin=value)
    assert ctl.ok("get", key) == value
    ctl.ok("vdel", key, "-", stdin=value)


def test_a_key_can_be_any_bytes(ctl, client):
    key = BINARY + os.urandom(8)

    ctl.ok("set", "-", "value", stdin=key)
    assert client.request("GET", key).payload == b"$5\r\nvalue\r\n"
    assert ctl.ok("get", "-", stdin=key) == b"value"
    ctl.ok("set", key.hex(), "-", "--hex", stdin=BINARY)
    assert ctl.ok("get", "-", stdin=key) == BINARY
    ctl.ok("del", "-", stdin=key)


def test_arguments_after_two_dashes_are_not_options(ctl, key):
    ctl.ok("set", "--", f"--{key}", "--nx")

    assert ctl.ok("get", "--", f"--{key}") == b"--nx"


def test_hex_applies_to_keys_and_values(ctl, client, key):
    ctl.ok("set", key.encode().hex(), "00FFab0a", "--hex")

    assert client.request("GET", key).payload == b"$4\r\n\x00\xff\xab\n\r\n"
    assert ctl.ok("get", key.encode().hex(), "--hex") == b"00FFAB0A\n"
    ctl.ok("set", key.encode().hex(), "01", "--nex=00ffab0a", "--hex")
    ctl.ok("vdel", key.encode().hex(), "01", "--hex")


def test_json_shows_key_value_and_version(ctl, client, key):
    version = client.request("SET", key, 'say "hö"\n\\\x01\x7f').prop("__ts")

    assert ctl.json("get", key) == {"key": key, "value": 'say "hö"\n\\\x01\x7f', "version": version,
                                    "expires_in_ms": None, "token": None}
    assert ctl.ok("get", key, "--json").count(b"\n") == 1


@pytest.mark.parametrize("value", [b"\xff", b"\xff\xfe", b"\xff\xfe\xfd", BINARY])
def test_json_shows_text_that_is_not_utf_8_as_base64(ctl, client, key, value):
    client.request("SET", key, value)

    shown = ctl.json("get", key)

    assert "value" not in shown
    assert base64.b64decode(shown["value_base64"]) == value


@pytest.mark.parametrize("ending", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", BINARY],
                         ids=["no UTF-8", "overlong", "surrogate", "beyond Unicode", "cut", "binary"])
def test_json_shows_a_key_that_is_not_utf_8_as_base64(ctl, key, ending):
    name = key.encode() + ending
    member = {"key_base64": base64.b64encode(name).decode()}

    for arguments in ["set", "-", "value"], ["get", "-"], ["vdel", "-", "value"], ["set", "-", "value"]:
        shown = ctl.json(*arguments, stdin=name)
        assert {each: shown[each] for each in shown if each.startswith("key")} == member


def test_json_with_hex_shows_hex_digits(ctl, client, key):
    client.request("SET", key, "value")

    shown = ctl.json("get", key.encode().hex(), "--hex")

    assert shown["key_hex"] == key.encode().hex().upper()
    assert shown["value_hex"] == b"value".hex().upper()


def test_json_of_writes_has_their_result(ctl, key):
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
    """Exit status and output of a command whose stdout and stderr are a terminal."""
    master, terminal = os.openpty()
    with open(master, "rb", buffering=0) as screen:
        with open(terminal, "wb", buffering=0) as stdout:
            child = subprocess.Popen(ctl.argv(arguments), env=environment(ctl.variables), stdin=subprocess.DEVNULL,
                                     stdout=stdout, stderr=stdout)
        seen = b""
        try:
            while chunk := screen.read(4096):
                seen += chunk
        except OSError:  # EIO: the terminal was closed
            pass
        return child.wait(PATIENCE), seen.replace(b"\r\n", b"\n").decode()


@pytest.mark.parametrize("value", ["one line", "two\nlines\n"])
def test_on_a_terminal_the_version_follows_the_value_on_a_line_of_its_own(ctl, client, key, value):
    version = client.request("SET", key, value).prop("__ts")

    code, seen = on_a_terminal(ctl, "get", key)

    assert code == DONE
    assert seen == value.removesuffix("\n") + f"\nversion {version}\n"


def test_a_value_cannot_control_the_terminal(ctl, client, key):
    client.request("SET", key, ESCAPE_SEQUENCE)

    _, seen = on_a_terminal(ctl, "get", key)

    assert seen.startswith("\\x1B[31mred\n")
    assert "escaped" in seen
    assert ctl.ok("get", key) == ESCAPE_SEQUENCE


def test_on_a_terminal_a_value_keeps_its_lines_and_tabs(ctl, client, key):
    client.request("SET", key, "a\tb\nc\rd\x1b[2K\u202ee\n\nf")

    _, seen = on_a_terminal(ctl, "get", key)

    assert seen.startswith("a\tb\nc\\rd\\x1B[2K\\xE2\\x80\\xAEe\n\nf\n")


FORGED = "\n\tforged\r\x1b[2K"


def test_a_key_cannot_forge_a_line_on_a_terminal(ctl, client, key):
    client.request("SET", f"{key}{FORGED}", "value")

    assert on_a_terminal(ctl, "scan", f"{key}*") == (DONE, f"{key}\\n\\tforged\\r\\x1B[2K\n")
    code, seen = on_a_terminal(ctl, "get", f"{FORGED}{key}")
    assert code == NOT_MET and seen.count("\n") == 1 and "\t" not in seen and "not found" in seen


@pytest.mark.parametrize("payload, version, last", [
    (b"$5\r\nvalue\r\n", "1:0:a\u202eforged", "version 1:0:a"),  # mosquitto lets no control character pass here
    (b"-ERR no" + FORGED.replace("\r", "").encode() + b"\r\n", None, 'statestorectl: GET "key": -ERR no'),
    (b"+OK" + FORGED.replace("\r", "").encode() + b"\r\n", None, "statestorectl: unexpected reply"),
])
def test_a_reply_cannot_forge_a_line_on_a_terminal(site, payload, version, last):
    """What a store sends beside the value is printed escaped."""
    store = Connection(site.broker.port)
    store.subscribe(INVOKE)

    with ThreadPoolExecutor() as pool:
        seen = pool.submit(on_a_terminal, Ctl(site.broker.port), "get", "key")
        request = store.message()
        properties = {"UserProperty": [("__ts", version)]} if version else {}
        store.publish(request.response_topic, payload, CorrelationData=request.correlation, **properties)

    printed = seen.result()[1].removeprefix("value\n")
    assert printed.startswith(last) and printed.count("\n") == 1
    assert not {"\t", "\x1b", "\u202e"} & set(printed)


@pytest.mark.parametrize("arguments", [["get"], ["scan"]])
def test_json_cannot_control_the_terminal(ctl, client, key, arguments):
    name = f"{key}\x1b\u009b"
    client.request("SET", name, name)

    _, seen = on_a_terminal(ctl, *arguments, name, "--json")

    assert "\\u001b\\u009b" in seen
    assert not {"\x1b", "\u009b"} & set(seen)


def test_the_reply_to_a_test_command_cannot_control_the_terminal(site):
    store = Connection(site.broker.port)
    store.subscribe(CONTROL)

    with ThreadPoolExecutor() as pool:
        seen = pool.submit(on_a_terminal, Ctl(site.broker.port), "test", "requests")
        request = store.message()
        store.publish(request.response_topic, b"$%d\r\n%s\r\n" % (len(ESCAPE_SEQUENCE), ESCAPE_SEQUENCE),
                      CorrelationData=request.correlation)

    assert seen.result() == (DONE, "\\x1B[31mred")


# Errors of writing to stdout


def test_a_full_disk_is_an_error(ctl, key):
    ctl.ok("set", key, "value")

    with open("/dev/full", "wb") as full:
        ended = ctl.run("get", key, stdout=full)

    assert ended.returncode == USAGE
    assert "cannot write" in ended.stderr.decode()


def test_a_closed_pipe_ends_the_command_without_an_error_text(ctl, key):
    ctl.ok("set", key, "value")
    reader, writer = os.pipe()
    os.close(reader)

    with open(writer, "wb") as pipe:
        ended = ctl.run("get", key, stdout=pipe)

    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("closed, arguments", [(1, ["get", "key"]), (0, ["set", "key", "-"])])
def test_a_closed_descriptor_is_not_reused_for_the_broker(site_ctl, closed, arguments):
    site_ctl.ok("set", "key", "value")

    ended = site_ctl.run(*arguments, preexec_fn=lambda: os.close(closed))

    assert ended.returncode == USAGE
    assert site_ctl.ok("get", "key") == b"value"


def test_on_a_terminal_scan_long_names_its_columns(ctl, client, key):
    client.request("SET", key, "value")

    code, seen = on_a_terminal(ctl, "scan", "--long", key)
    header, line = seen.splitlines()

    assert code == DONE
    assert header.split("\t") == ["KEY", "SIZE", "EXPIRES_IN", "TOKEN", "TIME"]
    assert line.split("\t")[:4] == [key, "5", "-", "-"]
    assert on_a_terminal(ctl, "scan", key) == (DONE, f"{key}\n")
    assert on_a_terminal(ctl, "scan", "--long", "--json", key)[1].startswith("{")
