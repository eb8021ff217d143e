# SPDX-License-Identifier: Apache-2.0
"""--seed FILE: initial keys of a store; and the other commands that read such files."""

import json
import time

import pytest

from support.ctl import DONE, Ctl


@pytest.fixture
def seed(tmp_path):
    return tmp_path / "seed.json"


def value(client, key):
    return client.request("GET", key).payload


def test_exported_lines_are_stored_before_the_store_is_ready(site, seed):
    fence = "001696374425000:00000:Client1"
    seed.write_text("\n".join(json.dumps(line) for line in (
        {"key": "text", "value": "välue\n"},
        {"key_base64": "Yv9i", "value_base64": "AP8="},
        {"key": "locked", "value": "me", "token": fence, "version": "1:2:elsewhere"},
        {"key": "going", "value": "v", "deadline": int(time.time() * 1000) + 3600000},
        {"key": "gone", "value": "v", "deadline": 1},
    )) + "\n")
    store = site.start_store("--seed", str(seed))
    client = site.connect()

    assert value(client, "text") == b"$7\r\nv\xc3\xa4lue\n\r\n"
    assert value(client, b"b\xffb") == b"$2\r\n\0\xff\r\n"
    assert value(client, "going") == b"$1\r\nv\r\n"
    assert value(client, "gone") == b"$-1\r\n"
    assert b"a fencing token is required" in client.request("SET", "locked", "you").payload
    assert client.request("SET", "locked", "you", ft=fence).payload == b"+OK\r\n"
    store.wait_for_log(f"seeded from {seed}: set=4 existing=0 expired=1")


def test_a_list_of_objects_is_a_valid_seed(site, seed):
    seed.write_text('[\n  {\n    "factoryId": "factoryA"\n  },\n  {\n    "limits": { "max": 7 }\n  }\n]\n')
    site.start_store("--seed", str(seed))
    client = site.connect()

    assert value(client, "factoryId") == b"$8\r\nfactoryA\r\n"
    assert value(client, "limits") == b'$9\r\n{"max":7}\r\n'


def test_a_restart_does_not_overwrite_keys_with_the_seed(site, seed, tmp_path):
    seed.write_text('{"key":"kept","value":"seed"}\n{"key":"deleted","value":"seed"}\n')
    flags = ("--seed", str(seed), "--data-dir", str(tmp_path / "data"))
    store = site.start_store(*flags)
    client = site.connect()
    client.request("SET", "kept", "mine")
    client.request("DEL", "deleted")

    assert store.kill() < 0
    store.start()
    store.wait_for_log("set=1 existing=1 ")
    assert value(client, "kept") == b"$4\r\nmine\r\n"
    assert value(client, "deleted") == b"$4\r\nseed\r\n"


def test_seeded_keys_are_durable(site, seed, tmp_path):
    seed.write_text('{"key":"k","value":"seed"}\n')
    store = site.start_store("--seed", str(seed), "--data-dir", str(tmp_path / "data"))
    version = site.connect().request("GET", "k").ts
    assert store.kill() < 0

    store.flags = ("--data-dir", str(tmp_path / "data"))
    store.start()
    reply = site.connect().request("GET", "k")
    assert (reply.payload, reply.ts) == (b"$4\r\nseed\r\n", version)


@pytest.mark.parametrize("text, flags, fault", [
    ('{"key":"a","value":"b"}\n{"key":"b"}\n', (), ':2: "value" or "value_base64" was expected'),
    ('[{"a":"b"},\n{"c":null}]', (), ":2: null is not a value"),
    ('{"key":"a","value":"b"}\n{"key":"b","value":"b"}\n', ("--max-keys", "1"), ":2: the quota has been exceeded"),
    (None, (), ": No such file or directory"),
])
def test_an_invalid_seed_prevents_the_start_and_stores_nothing(site, seed, tmp_path, text, flags, fault):
    if text is not None:
        seed.write_text(text)
    data = tmp_path / "data"
    store = site.launch_store("--seed", str(seed), "--data-dir", str(data), *flags)

    assert store.wait() == 2
    assert f"cannot start: --seed {seed}{fault}" in store.log().replace("\\\"", "\"")
    assert not store.is_ready()

    store.flags = ("--data-dir", str(data))
    store.start()
    assert value(site.connect(), "a") == b"$-1\r\n"


@pytest.mark.parametrize("text", [
    '{"key":"a","value":"1"}\n\n{"key":"b","value":"{\\"x\\":[2]}"}\n',
    ' [\n{"a": "1"},\n{"b": {"x": [2]}}\n]\n',
], ids=["lines", "list"])
def test_all_commands_accept_the_same_files(site, seed, tmp_path, text):
    seed.write_text(text)
    site.start_store("--control", "--seed", str(seed))
    client, ctl = site.connect(), Ctl(site.broker.port)

    def contents():
        return {key: value(client, key) for key in ("a", "b")}

    seeded = contents()
    assert seeded == {"a": b"$1\r\n1\r\n", "b": b'$9\r\n{"x":[2]}\r\n'}
    for arguments in ["import", seed], ["import", "-"], ["test", "seed", seed], ["test", "seed", "-"]:
        ctl.ok("test", "reset")
        assert ctl.run(*arguments, stdin=text.encode()).returncode == DONE
        assert contents() == seeded, arguments

    assert ctl.run("import", seed, "--data-dir", tmp_path / "data").returncode == DONE
    exported = ctl.ok("export", "--data-dir", tmp_path / "data").splitlines()
    assert {line["key"]: line["value"] for line in map(json.loads, exported)} == {"a": "1", "b": '{"x":[2]}'}
