# SPDX-License-Identifier: Apache-2.0
"""The syntax of requests (PROTOCOL.md "Request syntax")."""

import pytest

MALFORMED = [
    b"",
    b"\r\n",
    b"GET k\r\n",
    b"+GET\r\n",
    b"$3\r\nGET\r\n",
    b"-ERR\r\n",
    b":1\r\n",
    b"\0",
    b"\xff\xff\xff\xff",
    # the array's head
    b"*",
    b"*\r\n",
    b"*2",
    b"*2\r",
    b"*2\r\n",
    b"*2\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*2\r$3\r\nGET\r\n$1\r\nk\r\n",
    b"*2\n\r$3\r\nGET\r\n$1\r\nk\r\n",
    b"*2\rx$3\r\nGET\r\n$1\r\nk\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*-2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*+2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*02\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"* 2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*2 \r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*0x2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*2.0\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*x\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"**2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b" *2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    # the number of items
    b"*1\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*3\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*4294967298\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*9223372036854775807\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*18446744073709551615\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*18446744073709551618\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*99999999999999999999999999999999\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    # a blob's head
    b"*2\r\n$3\r\nGET\r\n$",
    b"*2\r\n$3\r\nGET\r\n$1",
    b"*2\r\n$3\r\nGET\r\n$1\r",
    b"*2\r\n$3\r\nGET\r\n$1\r\n",
    b"*2\r\n$3\r\nGET\r\n$\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\rk\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\rxk\r\n",
    b"*2\r\n$3\r\nGET\r\n$-1\r\n",
    b"*2\r\n$3\r\nGET\r\n$-1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$+1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$01\r\nk\r\n",
    b"*2\r\n$03\r\nGET\r\n$1\r\nk\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$00\r\n\r\n",
    b"*2\r\n$3\r\nGET\r\n$ 1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$1 \r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$0x1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$?\r\n$1\r\nk\r\n$0\r\n",
    # a blob's length and its end
    b"*2\r\n$3\r\nGET\r\n$1\r\nk",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\nkx\n",
    b"*2\r\n$3\r\nGET\rx$1\r\nk\r\n",
    b"*2\r\n$3\r\nGETx\n$1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\nkk\r\n",
    b"*2\r\n$3\r\nGET\r\n$2\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$3\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$4\r\nk\r\n",
    b"*2\r\n$4\r\nGET\r\n$1\r\nk\r\n",
    b"*2\r\n$2\r\nGET\r\n$1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$2147483648\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$4294967297\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$9223372036854775807\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$18446744073709551614\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$18446744073709551615\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$18446744073709551617\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$99999999999999999999999999999999\r\nk\r\n",
    # after the end
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nx",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\0",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    # other types
    b"*2\r\n+GET\r\n$1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n+k\r\n",
    b"*2\r\n$3\r\nGET\r\n:1\r\n",
    b"*2\r\n$3\r\nGET\r\n_\r\n",
    b"*2\r\n$3\r\nGET\r\n#t\r\n",
    b"*2\r\n$3\r\nGET\r\n=5\r\ntxt:k\r\n",
    b"*2\r\n$3\r\nGET\r\n*1\r\n$1\r\nk\r\n",
    b"*1\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"~2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b">2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"%1\r\n$3\r\nGET\r\n$1\r\nk\r\n",
]


@pytest.mark.parametrize("payload", MALFORMED, ids=repr)
def test_a_payload_other_than_an_array_of_blobs_is_a_syntax_error(client, payload):
    reply = client.request(payload=payload)

    assert reply.payload == b"-ERR syntax error\r\n"
    assert reply.status == "200"


@pytest.mark.parametrize("word", [b"\r\n", b"a\r\nb", b"\0", b"$1\r\nk\r\n", b"*1\r\n", b"\xff\x00\xfe", b" ", b"\n\r"])
def test_blobs_can_contain_any_bytes(client, key, word):
    binary_key = key.encode() + word
    assert client.request("SET", binary_key, word).payload == b"+OK\r\n"

    reply = client.request("GET", binary_key)

    assert reply.payload == b"$%d\r\n%s\r\n" % (len(word), word)
    assert client.request("VDEL", binary_key, word).payload == b":1\r\n"


@pytest.mark.parametrize("value", ["PX", "NX", "NEX", "GET", "STOP", "1000"])
def test_keys_and_values_may_be_spelled_like_options(client, value):
    assert client.request("SET", value, value).payload == b"+OK\r\n"
    assert client.request("GET", value).payload == b"$%d\r\n%s\r\n" % (len(value), value.encode())
    assert client.request("DEL", value).payload == b":1\r\n"
