# SPDX-License-Identifier: Apache-2.0
"""statestorectl set, get, del, vdel, scan and ping."""

import json
import re
import subprocess
import time

import pytest

from support.ctl import NOT_MET, STORE_ERROR, environment
from support.process import CTL, PATIENCE, wait_until


def test_get_prints_exactly_the_value(ctl, key):
    ctl.ok("set", key, "hello world")

    assert ctl.ok("get", key) == b"hello world"


def test_set_prints_ok_and_the_version(ctl, client, key):
    printed = ctl.ok("set", key, "value")

    assert printed == b"OK %s\n" % client.request("GET", key).prop("__ts").encode()


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


TOKEN = "001696374425000:00000:client-1"


def test_scan_long_shows_the_details_of_each_key(ctl, client, key):
    versions = [client.request("SET", f"{key}/{name}", "value", *options, ft=token).ts
                for name, options, token in (("a", [], None), ("b", ["PX", 7200000], TOKEN), ("c", ["PX", 50000], None))]
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(version.wall_ms // 1000)) + f".{version.wall_ms % 1000:03}Z"
             for version in versions]

    lines = sorted(line.split("\t") for line in ctl.ok("scan", "--long", f"{key}/*").decode().splitlines())

    assert [line[:2] for line in lines] == [[f"{key}/{name}", "5"] for name in "abc"]
    assert lines[0][2] == "-"
    assert re.fullmatch(r"1h5\dm", lines[1][2]) or lines[1][2] == "2h00m"
    assert re.fullmatch(r"\d\d?\.\ds", lines[2][2])
    assert [line[3] for line in lines] == ["-", TOKEN, "-"]
    assert [line[4] for line in lines] == times


def test_json_shows_the_details_of_a_key(ctl, client, key):
    version = client.request("SET", key, "value", "PX", 50000, ft=TOKEN).prop("__ts")

    for shown, member in (ctl.json("get", key), {"value": "value"}), (ctl.json("scan", key, "--long"), {"size": 5}):
        assert 0 < shown.pop("expires_in_ms") <= 50000
        assert shown == {"key": key, "version": version, "token": TOKEN, **member}
    assert bytes.fromhex(ctl.ok("scan", "-l", key, "--hex").decode().split("\t")[0]) == key.encode()


def test_scan_lists_the_keys_of_several_pages(ctl, client, key):
    keys = [f"{key}/{name}" for name in ("b", "a", "Z", "ä", "aa", "")] + [f"{key}/{i}" for i in range(1500)]
    client.request_all(("SET", each, "") for each in keys)

    assert sorted(ctl.ok("scan", f"{key}/*").splitlines()) == sorted(each.encode() for each in keys)
    assert ctl.ok("scan", f"{key}/none") == b""


# ping


def test_ping_prints_the_node_id_and_the_round_trip_time(ctl):
    words = ctl.ok("ping").decode().split()
    assert words[:4] == ["pong", "from", "StateStore", "in"]
    assert float(words[4]) > 0
    assert words[5:] == ["ms"]

    shown = ctl.json("ping")
    assert shown["from"] == "StateStore"
    assert shown["rtt_ms"] > 0


# Several keys


@pytest.fixture
def keys(client, key):
    """Three keys with the same first part, of which the second does not exist."""
    client.request("SET", f"{key}-a", "1")
    client.request("SET", f"{key}-c", "two\nlines")
    return [f"{key}-{letter}" for letter in "abc"]


def test_get_prints_a_line_for_each_of_several_keys(ctl, keys):
    ended = ctl.run("get", *keys)

    assert ended.returncode == NOT_MET
    assert ended.stdout.decode() == f"{keys[0]}\t1\n{keys[2]}\ttwo\\nlines\n"
    assert ended.stderr.decode() == f'statestorectl: "{keys[1]}": not found\n'
    assert ctl.ok("get", "-", keys[2], stdin=keys[0].encode()).count(b"\n") == 2


def test_get_prints_several_keys_as_json_and_in_hexadecimal(ctl, keys):
    printed = ctl.run("get", *keys, "--json").stdout.splitlines()
    assert [json.loads(line)["value"] for line in printed] == ["1", None, "two\nlines"]

    assert ctl.ok("get", "--hex", *[keys[n].encode().hex() for n in (0, 2)]).decode().lower() == \
        f"{keys[0].encode().hex()}\t31\n{keys[2].encode().hex()}\t{b'two'.hex()}0a{b'lines'.hex()}\n"


def test_del_deletes_several_keys(ctl, client, keys):
    versions = [client.request("GET", keys[n]).prop("__ts") for n in (0, 2)]

    ended = ctl.run("del", *keys)

    assert ended.returncode == NOT_MET
    assert ended.stdout.decode() == f"deleted {versions[0]}\t{keys[0]}\ndeleted {versions[1]}\t{keys[2]}\n"
    assert ended.stderr.decode() == f'statestorectl: "{keys[1]}": not found\n'
    assert ctl.ok("scan", f"{keys[0][:-1]}*") == b""


def test_an_error_ends_a_deletion(ctl, client, keys):
    client.request("SET", keys[0], "1", ft="001696374425000:00000:Client1")

    ended = ctl.run("del", *keys)

    assert (ended.returncode, ended.stdout) == (STORE_ERROR, b"")
    assert ctl.ok("get", keys[2])


def test_keys_of_a_pattern_are_deleted_by_the_line_in_the_help(ctl, key, keys):
    ctl.ok("set", f"{key}-a\n b", "1")

    line = f"{CTL} scan '{key}-a*' --hex | xargs -r {CTL} del --hex"
    subprocess.run(["sh", "-c", line], env=environment(ctl.variables), check=True, timeout=PATIENCE)

    assert ctl.ok("scan", f"{key}*").decode() == f"{keys[2]}\n"
