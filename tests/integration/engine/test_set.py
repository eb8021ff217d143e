# SPDX-License-Identifier: Apache-2.0
"""SET and its conditions (PROTOCOL.md "Request syntax" and "Commands")."""

import pytest

OK = b"+OK\r\n"
NOT_MET = b":-1\r\n"
MISSING = b"$-1\r\n"

# The value before, the options of SET key new, whether the SET succeeds.
CONDITIONS = [
    (None, [], True),
    ("old", [], True),
    (None, ["PX", "60000"], True),
    ("old", ["PX", "9223372036854775807"], True),
    (None, ["NX"], True),
    ("old", ["NX"], False),
    ("", ["NX"], False),
    (None, ["NX", "PX", "60000"], True),
    (None, ["PX", "60000", "NX"], True),
    ("old", ["NX", "PX", "60000"], False),
    ("old", ["PX", "60000", "NX"], False),
    # NEX without a value compares with the value being set.
    (None, ["NEX"], True),
    ("new", ["NEX"], True),
    ("old", ["NEX"], False),
    ("new", ["NEX", "PX", "60000"], True),
    ("old", ["NEX", "PX", "60000"], False),
    ("PX", ["NEX", "PX", "60000"], False),
    ("new", ["PX", "60000", "NEX"], True),
    ("old", ["PX", "60000", "NEX"], False),
    # NEX with a value compares with that value.
    (None, ["NEX", "other"], True),
    ("old", ["NEX", "old"], True),
    ("old", ["NEX", "other"], False),
    ("new", ["NEX", "other"], False),
    ("", ["NEX", ""], True),
    ("old", ["NEX", ""], False),
    ("old", ["NEX", "old", "PX", "60000"], True),
    ("old", ["NEX", "other", "PX", "60000"], False),
    ("old", ["PX", "60000", "NEX", "old"], True),
    ("old", ["PX", "60000", "NEX", "other"], False),
    # A value can be equal to an option name.
    ("PX", ["NEX", "PX"], True),
    ("new", ["NEX", "PX"], False),
    ("NX", ["NEX", "NX"], True),
    ("PX", ["NEX", "PX", "PX", "60000"], True),
    ("old", ["NEX", "PX", "PX", "60000"], False),
    ("PX", ["PX", "60000", "NEX", "PX"], True),
]


@pytest.mark.parametrize("held, options, done", CONDITIONS)
def test_set_takes_effect_only_if_its_condition_is_met(client, key, held, options, done):
    before = client.request("SET", key, held) if held is not None else None

    reply = client.request("SET", key, "new", *options)

    now = client.request("GET", key)
    if done:
        assert reply.payload == OK
        assert now.payload == b"$3\r\nnew\r\n"
        assert now.ts == reply.ts
    else:
        assert reply.payload == NOT_MET
        assert reply.ts == before.ts, "the stored version"
        assert now.payload == f"${len(held)}\r\n{held}\r\n".encode()
        assert now.ts == before.ts


def test_nx_succeeds_on_a_deleted_key(client, key):
    client.request("SET", key, "old")
    client.request("DEL", key)

    assert client.request("SET", key, "new", "NX").payload == OK


def test_the_version_is_greater_than_the_requests_timestamp(client, key):
    for _ in range(20):
        ts = client.clock.now()
        assert client.request("SET", key, "value", ts=ts).ts > ts


def test_versions_grow_over_all_keys_and_clients(shared, key):
    clients = [shared.connect() for _ in range(3)]
    versions = [clients[n % 3].request("SET", f"{key}-{n % 5}", n).ts for n in range(60)]

    assert versions == sorted(set(versions))


def test_versions_grow_with_many_requests_at_once(client, key):
    replies = client.request_all(("SET", key, n) for n in range(500))

    versions = [reply.ts for reply in replies]
    assert versions == sorted(set(versions))


def test_a_timestamp_from_the_past_is_accepted(client, key):
    reply = client.request("SET", key, "value", ts="1696374425000:0:Client1")

    assert reply.payload == OK
    assert client.clock.now().wall_ms - reply.ts.wall_ms < 3_600_000, "the version has the present time"


def test_an_empty_value_is_a_value(client, key):
    version = client.request("SET", key, "").ts

    reply = client.request("GET", key)
    assert reply.payload == b"$0\r\n\r\n"
    assert reply.ts == version
