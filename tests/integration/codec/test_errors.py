# SPDX-License-Identifier: Apache-2.0
"""Every error, and the order in which errors are checked (PROTOCOL.md "Errors")."""

import pytest

from support import resp
from support.hlc import Hlc, wall_ms
from support.message import error

SYNTAX = error("syntax error")
VERB = error("unknown command")
NUMBER = error("wrong number of arguments")
EMPTY = error("the key length is zero")
NO_TS = error("missing timestamp")
MALFORMED = error("malformed timestamp")
TS_AHEAD = error("the request timestamp is too far in the future; "
                 "ensure that the client and broker system clocks are synchronized")
FT_AHEAD = error("the request fencing token timestamp is too far in the future; "
                 "ensure that the client and broker system clocks are synchronized")
FT_MISSING = error("a fencing token is required for this request")
FT_LOWER = error("the request fencing token is a lower version than the fencing token protecting the resource")

AHEAD = "ahead"  # replaced by a timestamp that is too far in the future


def with_clock(properties):
    ahead = Hlc(wall_ms() + 3_600_000, 0, "ahead")
    return {name: ahead if value is AHEAD else value for name, value in properties.items()}


# The numbers in the comments are those of the table in PROTOCOL.md "Errors".

WORDS = [
    # 2, 3: the verb and the number of its arguments
    (["FOO"], VERB),
    (["FOO", "k", "v"], VERB),
    ([""], VERB),
    (["set", "k", "v"], VERB),
    (["Get", "k"], VERB),
    (["del", "k"], VERB),
    (["vdel", "k", "v"], VERB),
    (["keynotify", "k"], VERB),
    (["scan", "*"], VERB),
    (["GET ", "k"], VERB),
    (["GETX", "k"], VERB),
    (["GE", "k"], VERB),
    (["SET\0", "k", "v"], VERB),
    (["SET"], NUMBER),
    (["SET", "k"], NUMBER),
    (["GET"], NUMBER),
    (["GET", "k", "x"], NUMBER),
    (["DEL"], NUMBER),
    (["DEL", "k", "x"], NUMBER),
    (["VDEL"], NUMBER),
    (["VDEL", "k"], NUMBER),
    (["VDEL", "k", "v", "x"], NUMBER),
    (["KEYNOTIFY"], NUMBER),
    (["KEYNOTIFY", "k", "STOP", "x"], NUMBER),
    (["SCAN"], NUMBER),
    (["SCAN", "*", "t", "x"], NUMBER),
    # 4: the key
    (["SET", "", "v"], EMPTY),
    (["GET", ""], EMPTY),
    (["DEL", ""], EMPTY),
    (["VDEL", "", "v"], EMPTY),
    (["KEYNOTIFY", ""], EMPTY),
    (["KEYNOTIFY", "", "STOP"], EMPTY),
    # 5: the options
    (["SET", "k", "v", "BOGUS"], SYNTAX),
    (["SET", "k", "v", "nx"], SYNTAX),
    (["SET", "k", "v", "px", "1000"], SYNTAX),
    (["SET", "k", "v", "nex"], SYNTAX),
    (["SET", "k", "v", ""], SYNTAX),
    (["SET", "k", "v", "XX"], SYNTAX),
    (["SET", "k", "v", "EX", "10"], SYNTAX),
    (["SET", "k", "v", "NX", "NX"], SYNTAX),
    (["SET", "k", "v", "NX", "NEX"], SYNTAX),
    (["SET", "k", "v", "NX", "NEX", "x"], SYNTAX),
    (["SET", "k", "v", "NEX", "x", "NX"], SYNTAX),
    (["SET", "k", "v", "NEX", "x", "y"], SYNTAX),
    (["SET", "k", "v", "NEX", "PX", "x"], SYNTAX),
    (["SET", "k", "v", "NEX", "x", "PX", "y"], SYNTAX),
    (["SET", "k", "v", "NEX", "x", "y", "1000"], SYNTAX),
    (["SET", "k", "v", "PX"], SYNTAX),
    (["SET", "k", "v", "NX", "PX"], SYNTAX),
    (["SET", "k", "v", "PX", "NX"], SYNTAX),
    (["SET", "k", "v", "PX", "1000", "PX", "1000"], SYNTAX),
    (["SET", "k", "v", "PX", "1000", "NEX", "PX", "1000"], SYNTAX),
    (["KEYNOTIFY", "k", "BOGUS"], SYNTAX),
    (["KEYNOTIFY", "k", "stop"], SYNTAX),
    (["KEYNOTIFY", "k", ""], SYNTAX),
    (["SCAN", ""], SYNTAX),
]

PX_VALUES = ["0", "-1", "+1", "", " 1", "1 ", "1.5", "1e3", "0x10", "ten", "9223372036854775808",
             "18446744073709551616", "99999999999999999999999"]


@pytest.mark.parametrize("words, payload", WORDS + [(["SET", "k", "v", "PX", px], SYNTAX) for px in PX_VALUES])
def test_an_invalid_request_gets_its_error(client, words, payload):
    reply = client.request(*words)

    assert reply.payload == payload
    assert reply.status == "200", "clients read -ERR only under status 200"
    assert reply.prop("__ts") is None


TIMESTAMPS = [
    (["SET", "v"], {"ts": None}, NO_TS),
    (["SET", "v"], {"ts": "yesterday"}, MALFORMED),
    (["SET", "v"], {"ft": "yesterday"}, MALFORMED),
    (["DEL"], {"ft": "yesterday"}, MALFORMED),
    (["VDEL", "v"], {"ft": "yesterday"}, MALFORMED),
    (["GET"], {"ts": "yesterday"}, MALFORMED),
    (["DEL"], {"ts": "yesterday"}, MALFORMED),
    (["VDEL", "v"], {"ts": "yesterday"}, MALFORMED),
    (["KEYNOTIFY"], {"ts": "yesterday"}, MALFORMED),
    (["KEYNOTIFY", "STOP"], {"ts": "yesterday"}, MALFORMED),
    (["SCAN"], {"ts": "yesterday"}, MALFORMED),
    (["SET", "v"], {"ts": AHEAD}, TS_AHEAD),
    (["GET"], {"ts": AHEAD}, TS_AHEAD),
    (["DEL"], {"ts": AHEAD}, TS_AHEAD),
    (["VDEL", "v"], {"ts": AHEAD}, TS_AHEAD),
    (["KEYNOTIFY"], {"ts": AHEAD}, TS_AHEAD),
    (["SCAN"], {"ts": AHEAD}, TS_AHEAD),
    (["SET", "v"], {"ft": AHEAD}, FT_AHEAD),
    (["DEL"], {"ft": AHEAD}, FT_AHEAD),
    (["VDEL", "v"], {"ft": AHEAD}, FT_AHEAD),
]


@pytest.mark.parametrize("words, properties, payload", TIMESTAMPS)
def test_a_request_with_an_invalid_timestamp_gets_its_error_and_changes_nothing(client, key, words, properties, payload):
    version = client.request("SET", key, "kept").ts
    verb, *arguments = words

    reply = client.request(verb, key, *arguments, **with_clock(properties))

    assert reply.payload == payload
    assert reply.status == "200"
    assert reply.prop("__ts") is None
    now = client.request("GET", key)
    assert now.payload == b"$4\r\nkept\r\n"
    assert now.ts == version


# Each request has two or more errors; the reply is the first in the protocol's order. KEY is a fenced key.
KEY = "the key"
ORDER = {
    "1 before 2": (b"*1\r\n$3\r\nFOO\r\nx", {}, SYNTAX),
    "1 before 3": (b"*1\r\n$3\r\nGET\r\nx", {}, SYNTAX),
    "1 before 8": (b"*2\r\n$3\r\nGET\r\n$1\r\nkk\r\n", {"ts": AHEAD}, SYNTAX),
    "2 before 3": (["FOO"], {}, VERB),
    "2 before 4": (["FOO", ""], {}, VERB),
    "2 before 7": (["FOO", KEY], {"ts": "x"}, VERB),
    "3 before 4": (["GET", "", "x"], {}, NUMBER),
    "3 before 6": (["SET", KEY], {"ts": None}, NUMBER),
    "4 before 5": (["SET", "", "v", "BOGUS"], {}, EMPTY),
    "4 before 6": (["SET", "", "v"], {"ts": None}, EMPTY),
    "4 before 7": (["GET", ""], {"ts": "x"}, EMPTY),
    "5 before 6": (["SET", KEY, "v", "BOGUS"], {"ts": None}, SYNTAX),
    "5 before 7": (["KEYNOTIFY", KEY, "BOGUS"], {"ts": "x"}, SYNTAX),
    "5 before 8": (["SET", KEY, "v", "PX", "0"], {"ts": AHEAD}, SYNTAX),
    "5 before 11": (["SET", KEY, "v", "PX", "0"], {}, SYNTAX),
    "6 before 7": (["SET", KEY, "v"], {"ts": None, "ft": "x"}, NO_TS),
    "6 before 9": (["SET", KEY, "v"], {"ts": None, "ft": AHEAD}, NO_TS),
    "6 before 11": (["SET", KEY, "v"], {"ts": None}, NO_TS),
    "7 before 8": (["SET", KEY, "v"], {"ts": AHEAD, "ft": "x"}, MALFORMED),
    "7 before 9": (["SET", KEY, "v"], {"ts": "x", "ft": AHEAD}, MALFORMED),
    "7 before 11": (["DEL", KEY], {"ts": "x"}, MALFORMED),
    "7 before 12": (["DEL", KEY], {"ts": "x", "ft": "1:0:n"}, MALFORMED),
    "8 before 9": (["SET", KEY, "v"], {"ts": AHEAD, "ft": AHEAD}, TS_AHEAD),
    "8 before 11": (["SET", KEY, "v"], {"ts": AHEAD}, TS_AHEAD),
    "8 before 12": (["VDEL", KEY, "v"], {"ts": AHEAD, "ft": "1:0:n"}, TS_AHEAD),
    "9 before 13": (["SET", KEY, "v", "NX"], {"ft": AHEAD}, FT_AHEAD),
    "11 before 13": (["SET", KEY, "v", "NX"], {}, FT_MISSING),
    "12 before 13": (["VDEL", KEY, "other"], {"ft": "1:0:n"}, FT_LOWER),
}


@pytest.mark.parametrize("request_, properties, payload", ORDER.values(), ids=ORDER.keys())
def test_the_reply_is_the_first_error_in_order(client, key, request_, properties, payload):
    client.request("SET", key, "kept", ft="5:0:n")
    if not isinstance(request_, bytes):
        request_ = resp.request(*(key if word is KEY else word for word in request_))

    assert client.request(payload=request_, **with_clock(properties)).payload == payload
    assert client.request("GET", key).payload == b"$4\r\nkept\r\n"
