# SPDX-License-Identifier: Apache-2.0
"""Hostile payloads each get an error, and the store keeps serving."""

import random

import pytest

from support import resp
from support.process import PATIENCE

VALID = resp.request("SET", "hostile-key", "value", "NEX", "other", "PX", "60000")


def truncated():
    return [VALID[:length] for length in range(len(VALID))]


def prolonged():
    return [VALID + tail for tail in (b"\0", b"\r", b"\n", b"\r\n", b"*", b"$0\r\n\r\n", VALID, b"x" * 100_000)]


def random_bytes():
    source = random.Random(1)
    return [source.randbytes(source.randrange(200)) for _ in range(150)]


def random_words_of_the_grammar():
    """Random sequences of type bytes, line ends and numbers, without valid requests."""
    source = random.Random(2)
    pieces = [b"*", b"$", b"\r\n", b"\r", b"\n", b"0", b"1", b"3", b"9", b"-", b"GET", b"k", b"%d" % (2**64 - 1)]
    texts = [b"*" + b"".join(source.choices(pieces, k=source.randrange(1, 20))) for _ in range(150)]
    return [text for text in texts if not is_request(text)]


def broken_structure():
    """A valid request with one type byte or line end byte replaced by an invalid byte."""
    return [VALID[:at] + b"!" + VALID[at + 1:] for at, byte in enumerate(VALID) if byte in b"*$\r\n"]


def huge_lengths():
    numbers = [2**16, 2**24, 2**28, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40]
    return [form % number for number in numbers for form in (
        b"*%d\r\n",
        b"*%d\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"*2\r\n$3\r\nGET\r\n$%d\r\nk\r\n",
        b"*2\r\n$%d\r\nGET\r\n$1\r\nk\r\n",
    )]


def deep_nesting():
    return [b"*1\r\n" * depth + b"$1\r\nk\r\n" for depth in (2, 100, 10_000, 500_000)]


def is_request(payload):
    try:
        words = resp.read(payload)
    except ValueError:
        return False
    return isinstance(words, list) and bool(words) and all(isinstance(word, bytes) for word in words)


@pytest.mark.parametrize("make", [truncated, prolonged, random_bytes, random_words_of_the_grammar, broken_structure,
                                  huge_lengths, deep_nesting], ids=lambda make: make.__name__)
def test_each_hostile_payload_is_refused(client, key, make):
    payloads = make()
    assert len(payloads) >= 4

    replies = [future.result(PATIENCE) for future in [client.send(payload=payload) for payload in payloads]]

    assert [(payload[:60], reply.payload) for payload, reply in zip(payloads, replies)] == \
        [(payload[:60], b"-ERR syntax error\r\n") for payload in payloads]
    assert client.request("SET", key, "value").payload == b"+OK\r\n"


def test_a_request_of_very_many_words_is_refused(client):
    for words in (["SET"] * 100_000, ["SET", "k", "v"] + ["NX"] * 100_000, ["GET", "k"] + [""] * 100_000):
        assert client.request(*words).payload in (b"-ERR wrong number of arguments\r\n", b"-ERR syntax error\r\n")


def test_patterns_that_backtrack_do_not_stall_the_store(client, key):
    client.request("SET", key + "a" * 20_000, "value")
    pattern = key + "*a" * 5000 + "b"

    assert client.request("SCAN", pattern).status == "200"
    assert client.request("GET", key).payload == b"$-1\r\n"


def test_each_request_with_hostile_properties_gets_a_reply(client):
    source = random.Random(3)
    texts = ["", ":", "a" * 60_000, "é" * 10_000, "9" * 1000 + ":0:n", "1:0:" + "n" * 60_000, "\u202e", "%n%s%x"]
    texts += ["".join(source.choices("0123456789:-+ nN", k=source.randrange(30))) for _ in range(50)]

    futures = [client.send("GET", "k", **{name: text}) for text in texts for name in ("ts", "ft", "source", "protocol")]

    assert all(future.result(PATIENCE).payload for future in futures)
