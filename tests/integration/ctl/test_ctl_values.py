# SPDX-License-Identifier: Apache-2.0
"""statestorectl set, get, del, vdel, scan and ping."""

import pytest

from support.ctl import NOT_MET, STORE_ERROR
from support.process import wait_until


def test_get_prints_exactly_the_value(ctl, key):
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


def test_a_missing_key_is_not_found(ctl, key):
    for arguments in ["get", key], ["del", key], ["vdel", key, "value"]:
        ended = ctl.run(*arguments)
        assert (ended.returncode, ended.stdout) == (NOT_MET, b"")
        assert ended.stderr.decode() == f'statestorectl: "{key}": not found\n'


def test_an_empty_value_is_a_value(ctl, key):
    ctl.ok("set", key, "")

    assert ctl.ok("get", key) == b""


def test_del_prints_the_version_of_the_deleted_value(ctl, client, key):
    version = client.request("SET", key, "value").prop("__ts")

    assert ctl.ok("del", key).decode() == f"deleted {version}\n"
    assert client.request("GET", key).payload == b"$-1\r\n"


@pytest.mark.parametrize("dialect", ["sdk", "document"], indirect=True)
def test_vdel_deletes_only_the_given_value(ctl, client, key):
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


def test_nex_without_a_value_sets_an_equal_value_again(ctl, key):
    ctl.ok("set", key, "me", "--nex")
    ctl.ok("set", key, "me", "--nex", "--px", "10m")
    ctl.ok("set", "--nex", key, "me")

    assert ctl.run("set", key, "you", "--nex").returncode == NOT_MET


def test_nex_with_a_value_sets_a_key_that_has_that_value(ctl, key):
    ctl.ok("set", key, "old")

    assert ctl.run("set", key, "new", "--nex=other").returncode == NOT_MET
    ctl.ok("set", key, "new", "--nex=old")
    ctl.ok("set", "--nex=new", key, "newer")
    ctl.ok("set", key, "--nex=newer", "newest", "--px", "10m")
    assert ctl.ok("get", key) == b"newest"


def test_px_lets_a_key_expire(ctl, key):
    ctl.ok("set", key, "value", "--px", "1ms")

    wait_until(lambda: ctl.run("get", key).returncode == NOT_MET, "the key expires")


def test_each_writing_command_accepts_a_fencing_token(ctl, key):
    token = ctl.ok("set", key, "value").decode().split()[1]
    ctl.ok("set", key, "value", "--fence", token)

    for arguments in ["set", key, "other"], ["del", key], ["vdel", key, "value"]:
        verb = arguments[0].upper()
        ended = ctl.run(*arguments)
        assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
        assert ended.stderr.decode() == f'statestorectl: {verb} "{key}": -ERR a fencing token is required for this request\n'
    ctl.ok("vdel", key, "value", "--fence", token)
    ctl.ok("set", key, "value", "--fence", token)
    ctl.ok("del", key, "--fence", token)


def test_the_stores_error_is_printed_with_command_and_key(ctl):
    ended = ctl.run("get", "")

    assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
    assert ended.stderr == b'statestorectl: GET "": -ERR the key length is zero\n'


# scan


def test_scan_lists_the_keys_that_match(ctl, client, key):
    for name in "a", "b", "other":
        client.request("SET", f"{key}/{name}", "value")

    assert sorted(ctl.ok("scan", f"{key}/?").decode().splitlines()) == [f"{key}/a", f"{key}/b"]
    assert f"{key}/other" in ctl.ok("scan").decode().splitlines()
    assert ctl.ok("scan", f"{key}/none") == b""


def test_scan_prints_all_pages(ctl, client, key):
    keys = {f"{key}/{i}" for i in range(2500)}
    client.request_all(("SET", each, "") for each in keys)

    assert set(ctl.ok("scan", f"{key}/*").decode().splitlines()) == keys


def test_scan_shows_a_key_with_control_characters_on_one_line(ctl, client, key):
    name = f"{key}\n\t\x1b\u009b\\"
    client.request("SET", name, "value")

    assert ctl.ok("scan", f"{key}*").decode() == f"{key}\\n\\t\\x1B\\xC2\\x9B\\\\\n"
    assert ctl.json("scan", f"{key}*") == name
    assert bytes.fromhex(ctl.ok("scan", f"{key}*", "--hex").decode()) == name.encode()


@pytest.mark.parametrize("character", ["\u00ad", "\u200b", "\u2028", "\u202e", "\u2066", "\ufeff"])
def test_scan_escapes_characters_that_make_a_key_look_like_another_one(ctl, client, key, character):
    """Invisible characters, a line separator, and changes of the direction of text."""
    client.request("SET", f"{key}-ü", "value")
    client.request("SET", f"{key}-{character}ü", "value")

    escaped = "".join(f"\\x{byte:02X}" for byte in f"{character}ü".encode())
    assert set(ctl.ok("scan", f"{key}-*").decode().split("\n")) == {f"{key}-ü", f"{key}-{escaped}", ""}


# ping


def test_ping_prints_the_node_id_and_the_round_trip_time(ctl):
    words = ctl.ok("ping").decode().split()
    assert words[:4] == ["pong", "from", "StateStore", "in"]
    assert float(words[4]) > 0
    assert words[5:] == ["ms"]

    shown = ctl.json("ping")
    assert shown["from"] == "StateStore"
    assert shown["rtt_ms"] > 0
