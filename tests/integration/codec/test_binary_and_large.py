# SPDX-License-Identifier: Apache-2.0
"""Keys and values with any bytes, and very long ones."""

import random

import pytest

from support import resp

OK = b"+OK\r\n"
MIB = 1024 * 1024


def test_each_byte_is_a_distinct_key(client, key):
    keys = [key.encode() + bytes([byte]) for byte in range(256)]

    assert all(reply.payload == OK for reply in client.request_all(("SET", each, each) for each in keys))

    replies = client.request_all(("GET", each) for each in keys)
    assert [resp.read(reply.payload) for reply in replies] == keys


def test_all_bytes_in_one_key_and_value(client, key):
    everything = bytes(range(256))
    binary_key = key.encode() + everything

    client.request("SET", binary_key, everything)

    assert client.request("GET", binary_key).payload == b"$256\r\n" + everything + b"\r\n"


@pytest.mark.parametrize("inside", [b"\r\n", b"\0", b"\r\n$1\r\nx\r\n", b"\n", b"\r"], ids=repr)
def test_keys_that_differ_after_a_line_end_or_a_nul_are_distinct(client, key, inside):
    first, second = (key.encode() + inside + tail for tail in (b"1", b"2"))
    client.request("SET", first, "first")
    client.request("SET", second, "second")

    assert client.request("DEL", first).payload == b":1\r\n"
    assert client.request("GET", second).payload == b"$6\r\nsecond\r\n"


@pytest.mark.parametrize("length", [255, 256, 32767, 32768, 65535, 65536, 200_000])
def test_long_keys(client, key, length):
    long = key.encode().ljust(length, b"k")
    almost = long[:-1] + b"x"
    assert client.request("SET", long, "value").payload == OK

    assert client.request("GET", long).payload == b"$5\r\nvalue\r\n"
    assert client.request("GET", almost).payload == b"$-1\r\n"
    assert client.request("DEL", long).payload == b":1\r\n"


@pytest.mark.parametrize("length", [65535, 65536, 5 * MIB])
def test_long_values_are_stored_compared_and_notified(client, key, length):
    value = random.Random(length).randbytes(length)
    client.watch(key)

    assert client.request("SET", key, value).payload == OK

    assert resp.read(client.request("GET", key).payload) == value
    assert resp.read(client.notification().payload) == [b"NOTIFY", b"SET", b"VALUE", value]
    assert client.request("VDEL", key, value[:-1] + bytes([value[-1] ^ 1])).payload == b":-1\r\n"
    assert client.request("VDEL", key, value).payload == b":1\r\n"


def test_several_large_values_at_once(client, key):
    values = [random.Random(n).randbytes(2 * MIB) for n in range(6)]

    assert all(reply.payload == OK
               for reply in client.request_all(("SET", f"{key}-{n}", value) for n, value in enumerate(values)))

    replies = client.request_all(("GET", f"{key}-{n}") for n in range(6))
    assert [resp.read(reply.payload) for reply in replies] == values
    client.request_all(("DEL", f"{key}-{n}") for n in range(6))
