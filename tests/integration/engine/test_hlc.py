# SPDX-License-Identifier: Apache-2.0
"""The store's hybrid logical clock (PROTOCOL.md "Hybrid logical clocks").

Clients can move it forward, so tests that do so use a store of their own.
"""

import pytest

from support.control import Control
from support.hlc import Hlc, wall_ms
from support.process import wait_until

OK = b"+OK\r\n"

NOT_A_CLOCK_READING = [
    "",
    ":",
    "::",
    "1",
    "1:0",
    "1:0:",
    "1::n",
    ":0:n",
    "1:0:n:",
    "1:0:n:m",
    ":1:0:n",
    "+1:0:n",
    "-1:0:n",
    "1:+0:n",
    "1:-1:n",
    " 1:0:n",
    "1 :0:n",
    "1: 0:n",
    "1:0 :n",
    "1.0:0:n",
    "1:0x1:n",
    "one:0:n",
    "1:zero:n",
    "1e3:0:n",
    "１:0:n",
    "9223372036854775808:0:n",
    "18446744073709551616:0:n",
    "1:18446744073709551616:n",
    "1:99999999999999999999999:n",
    "1;0;n",
    "2023-10-03T23:07:05Z",
]

CLOCK_READING = [
    "0:0:n",
    "1696374425000:0:Client1",
    "001696374425000:00000:Client1",
    "000000000000000000000000000001696374425000:0000000000000000000000000000000000007:Client1",
    "1:18446744073709551615:n",
    "1:0: ",
    "1:0:é 日本",
    "1:0:" + "n" * 1000,
]


@pytest.mark.parametrize("name", ["ts", "ft"])
@pytest.mark.parametrize("text", NOT_A_CLOCK_READING)
def test_a_malformed_timestamp_is_refused(client, key, name, text):
    assert client.request("SET", key, "value", **{name: text}).payload == b"-ERR malformed timestamp\r\n"


@pytest.mark.parametrize("name", ["ts", "ft"])
@pytest.mark.parametrize("text", CLOCK_READING)
def test_timestamps_are_accepted_padded_or_not(client, key, name, text):
    assert client.request("SET", key, "value", **{name: text}).payload == OK


@pytest.fixture
def alone(site):
    """The only client of a store."""
    site.start_store()
    return site.connect()


def ahead(milliseconds, counter=0):
    return Hlc(wall_ms() + milliseconds, counter, "ahead")


@pytest.mark.parametrize("counter", [0, 7, 99999, 2**31 - 3])
def test_a_version_follows_a_timestamp_ahead_of_the_store_by_one(alone, counter):
    ts = ahead(30_000, counter)

    assert alone.request("SET", "key", "value", ts=ts).ts == Hlc(ts.wall_ms, counter + 1, "StateStore")


@pytest.mark.parametrize("counter", [2**31 - 2**20 - 3, 2**31 - 3])
def test_a_large_counter_affects_its_own_reply_only(alone, counter):
    ts = ahead(30_000, counter)
    assert alone.request("SET", "key", "value", ts=ts).ts.counter == counter + 1

    assert alone.request("SET", "key", "value").ts == Hlc(ts.wall_ms + 1, 0, "StateStore")


@pytest.mark.parametrize("counter", [2**31 - 2, 2**31 - 1, 2**31, 2**63, 2**64 - 1])
def test_the_counter_stays_within_31_bits(alone, counter):
    ts = ahead(30_000, counter)

    version = alone.request("SET", "key", "value", ts=ts).ts

    assert version == Hlc(ts.wall_ms + 1, 0, "StateStore")


def test_the_first_version_of_a_millisecond_has_counter_0(alone):
    """The tests of the published clients compare the counters of versions."""
    versions = []
    for n in range(50):
        versions.append(alone.request("SET", "key", n, ts=ahead(0)).ts)
        wait_until(lambda: wall_ms() > versions[-1].wall_ms, "the next millisecond")

    assert {version.counter for version in versions} == {0}


def test_versions_grow_after_a_request_ahead_of_the_store(alone):
    versions = [alone.request("SET", "key", "value", ts=ts).ts
                for ts in (ahead(0), ahead(30_000), ahead(-1000), ahead(0), ahead(20_000), ahead(30_000, 5))]

    assert versions == sorted(set(versions))


def test_every_command_with_a_timestamp_moves_the_clock(alone):
    for n, words in enumerate([["GET", "k"], ["DEL", "k"], ["VDEL", "k", "v"], ["KEYNOTIFY", "k"], ["SCAN", "*"]]):
        ts = ahead(10_000 * (n + 1))
        alone.request(*words, ts=ts)
        assert alone.request("SET", "key", "value").ts > ts


def test_timestamps_are_accepted_up_to_a_minute_ahead_of_the_wall_clock(site):
    site.start_store("--control")
    client = site.connect(kind=Control)
    client.do("clock", "freeze")
    now = client.request("SET", "key", "value", ts=ahead(-60_000)).ts
    limit, beyond = (now._replace(wall_ms=now.wall_ms + ahead_ms) for ahead_ms in (60_000, 60_001))

    assert client.request("SET", "key", "value", ts=limit).payload == OK
    refused = client.request("SET", "key", "value", ts=beyond)
    assert refused.payload.startswith(b"-ERR the request timestamp is too far in the future")
    assert client.request("SET", "key", "value", ft=limit).payload == OK
    refused = client.request("SET", "key", "value", ft=beyond)
    assert refused.payload.startswith(b"-ERR the request fencing token timestamp is too far in the future")


def test_a_client_moves_the_versions_of_other_clients_by_a_minute_at_most(site):
    site.start_store("--control")
    hostile, other = site.connect(kind=Control), site.connect(kind=Control)
    hostile.do("clock", "freeze")
    now = other.request("SET", "key", "value", ts=ahead(-60_000)).ts
    limit, beyond = (now._replace(wall_ms=now.wall_ms + ahead_ms) for ahead_ms in (60_000, 60_001))

    for ts in (limit, beyond, limit, beyond):
        hostile.request("GET", "key", ts=ts)

    assert other.request("SET", "key", "value", ts=ahead(-60_000)).ts.wall_ms == limit.wall_ms


def test_a_refused_timestamp_does_not_move_the_clock(alone):
    alone.request("SET", "key", "value", ts=ahead(3_600_000))

    assert alone.request("SET", "key", "value").ts < ahead(10_000)


def test_a_version_of_the_store_is_a_valid_token(alone):
    version = alone.request("SET", "lock", "me", ts=ahead(59_000, 2**64 - 1)).ts

    assert alone.request("SET", "key", "value", ft=version).payload == OK
