#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs that fuzzing begins with, and that every test run repeats: seeds/TARGET/NAME.

It changes no other file there: inputs that once made a target fail are stored in the same folders.
"""

import pathlib
import struct
import sys

SERVICE = b"statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"


def request(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def text(data):
    """As input_text() takes it."""
    return bytes([len(data)]) + data


def glob(pattern, subject, budget=255):
    return bytes([budget]) + text(subject) + pattern


def numbered(*inputs):
    return {f"{number:02}": data for number, data in enumerate(inputs)}


RESP3 = numbered(
    request(b"SET", b"key", b"value"), request(b"SET", b"k", b"v", b"NX", b"PX", b"1000"),
    request(b"GET", b"a\r\nb\0c"), request(b"SET", b"k", b""), request(b"A", *[b"x"] * 12),
    b"", b"*0\r\n", b"*-1\r\n", b"*01\r\n$1\r\na\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$2\r\na\r\n", b"*1\r\n$1\r\na\r\n\r\n",
    b"*1\r\n*1\r\n$1\r\na\r\n", b"*18446744073709551616\r\n", b"*1\r\n$9223372036854775807\r\na\r\n", b"*1\n$1\na\n",
    b":12\r\n:-12\r\n+OK\r\n-ERR no\r\n$-1\r\n$3\r\nabc\r\n*2\r\n", b":-0\r\n:+1\r\n", b"\x03\x01a\x02\r\n\x00",
)

HLC = numbered(
    b"1696374425000:0:Client1", b"001696374425000:00000:Client1\n1696374425000:1:Client1",
    b"9223372036854775807:18446744073709551615:n\n9223372036854775808:0:n", b"0:0:a\n0:0:b", b"0:0:a\n0:0:aa",
    b"1:2", b"1:2:", b"1:2:a:b", b":2:a", b"-1:2:a", b"1:+2:a", b" 1:2:a", b"1:2:\xff", b"1:2:\xc3\xa4", b"1::a",
    b"1:18446744073709551616:a", b"000000000000000000000000001:1:a\n1:1:a",
)

EXPORT_READER = numbered(
    b"", b" \r\n", b'{"key":"a","value":"b"}\n', b'{"key":"a","value":"b","deadline":3,"token":"4:5:m"}\r\n\n',
    b'{"key_base64":"/w==","value_base64":"/v8="}', b'{"key":"a","value":"b"}\nhello', b'{"key":"","value":"b"}',
    b"[]", b"[{}, {}]", b'[\n{"a":"b"},\n{"c":"d","e":{"f":[1,2.5,true]}}]\n', b'[{"key":"a","value":"b"},{"c":7}]',
    b'[{"a":null}]', b'[{"a":"b"},]', b'[{"a":"b"}', b'[{"a":"b","a":"c"}]', b"[[]]", b"[]{}", b'[{"":"b"}]',
    b'[{"a":"\\u0000"}]', b"[{\"a\":\"\xff\"}]", b"[" * 3000, b'[{"a":' * 600,
)

PARSE = numbered(
    b"", b"0", b"007", b"18446744073709551615", b"18446744073709551616", b"9223372036854775807ms",
    b"9223372036854775808", b"1s", b"20m", b"3h", b"106751991167d", b"106751991168d", b"1MiB", b"17179869183GiB",
    b"17179869184GiB", b"1KiB ", b"1.5s", b"+1", b"s", b"1mss", b"99999999999999999999999999999999999999999999999999s",
)

GLOB = numbered(
    glob(b"*", b"key"), glob(b"a*b*c", b"abxbxc"), glob(b"[a-c][!0-9]?", b"bx\xc3\xa4"), glob(b"[]a]", b"]"),
    glob(b"[!]a]", b"b"), glob(b"[a-]", b"-"), glob(b"[abc", b"[abc"), glob(b"[*]", b"*"), glob(b"[\xc3\xa0-\xe2\x82\xac]", b"\xcf\x80"),
    glob(b"*a*a*a*a*b", b"aaaaaaaaaaaaa"), glob(b"*a*a*a*a*b", b"aaaaaaaaaaaaa", 3), glob(b"", b""), glob(b"a", b""),
    glob(b"\xff*", b"\xffa"), glob(b"?", b"\xf0\x9f\x98\x80"), glob(b"[c-a]", b"b"), glob(b"[!", b"[!"), glob(b"[", b"["),
    glob(b"*" * 60 + b"[a", b"a" * 100), glob(b"a/**/b", b"a/x/b"), glob(b"**/b", b"b"), glob(b"a/**", b"a/b"), glob(b"**/*b", b"a/b"),
    glob(b"a/**b", b"a/b"), glob(b"a**", b"a"), glob(b"***", b"a"), glob(b"*a" * 60 + b"b", b"a" * 100),
    glob(b"**/a/" * 30 + b"b", b"a/" * 50),
)

TOPICS = numbered(
    b"client-1\nkey", b"\0\xff\n\r\n", b"534F4D454B4559", b"534f", b"53A", b"clients/me/replies", b"clients//x", b"clients/me",
    SERVICE + b"/command/invoke", b"clients/" + SERVICE + b"/a", b"$SYS/x", b"a/+/b", b"a/#", b"a\xff", b"a/c/b\na/{client}/b",
    b"a/c/b/d\na/{client}/#", b"a/c\na/{client}/#", b"a/c\n+/{client}", b"a/c/d\na/{client}", b"a//b\na/{client}/b",
    b"a/b\n{client}/{client}", b"a\n#",
)

ENDPOINT = numbered(
    b"localhost", b"localhost:1883", b"a,b:1,c:65535", b"[::1]:1883", b"::1", b"[fe80::1%eth0]", b"/run/mosquitto.sock",
    b"/run/a,/run/b", b"", b",", b"a,", b"a:0", b"a:65536", b"a:", b":1", b"[::1", b"[::1]x", b"[]", b"[a]:1", b"x" * 255, b"x" * 256,
    b"a::]",
)

CONFIG = numbered(
    b"", b"--host\nlocalhost:1,b\n--port=18830", b"--keepalive\n5s\n--client-id=a\n--node-id\nn", b"--dialect=document",
    b"--max-keys=1\n--max-bytes=1KiB\n--max-registrations=0", b"--persist=custom\n--persist-pattern=a*\n--persist-property=a=b",
    b"--persist-property=off", b"--persist-property==x", b"--presence-topic=clients/{client}/gone\n--log-level=debug",
    b"--presence-topic=clients/gone", b"--tls=on\n--tls-certificate=/c\n--tls-key=/k", b"--tls-key=/k",
    b"--password-file=/p", b"--password-file=/p\n--user=u", b"--host", b"--no-such", b"word", b"--port=0", b"--keepalive=4s",
    b"--keepalive=1ms", b"--data-dir=/var/lib/x\n--ready-file=/run/r", b"--check-config",
    b"\n[broker]\nhost = a, b\nport = 1\n[log]\nlevel = debug\n", b"\n[broker]\nhost=a\nhost=b\n", b"\n[no]\nsuch = option\n", b"\nwhat\n",
    b"\n[broker\n", b"\n" + b"x" * 300 + b"\n", b"--port=2\n\n[broker]\nport = 1\n; comment\n# comment\n  continued\n",
)

WHOLE_POLICY = (
    b"# access rules\n[settings]\naccess = read\nany = yes\npattern = settings/*\n\n"
    b"[corner]\naccess=readwrite\nany=yes\npattern=users/{user}/*\nstring={client}\n\n"
    b"[gateway]\nuser = gateway\nclient: c\npattern = s/[0-9]?\nbinary = AP8=\naccess = write\n"
)


def policy(file, *questions, allows_unverified=0):
    """As fuzz_policy.c takes it."""
    return bytes([0 if allows_unverified else 255]) + text(file) + b"".join(questions)


def question(how, client, user, key):
    """how, as bits: 1 to write, 4 from an unverified client, 8 with at most 9 steps."""
    return bytes([how] + [9] * (how >> 3 & 1)) + b"".join(bytes([11, len(name)]) + name for name in (client, user)) + text(key)


POLICY = numbered(
    policy(b""), policy(WHOLE_POLICY, *(
        question(how, client, user, key) for how in (0, 1, 4, 8)
        for client, user, key in ((b"c", b"u", b"settings/x"), (b"c", b"u", b"users/u/x"), (b"*", b"*", b"users/u/x"),
                                  (b"c", b"gateway", b"s/0x"), (b"x", b"gateway", b"\0\xff"), (b"c", b"", b"c")))),
    policy(WHOLE_POLICY, question(4, b"x", b"u", b"users/u/x"), allows_unverified=1),
    *(policy(bytes(file), *(question(how, b"a", b"b", bytes(key)) for how in (0, 1) for key in ([22], [23], [22, 24], [15, 26], [25])))
      for file in ([1, 2, 3], [1, 24, 7, 17, 4], [3, 16, 8, 15, 16, 7, 18, 25, 19], [1, 4, 7, 20, 21], [1, 11, 27])),
    *(policy(b"[a]\naccess = read\nany = yes\n" + line) for line in (
        b"pattern = a ;b", b"string = a\t; b", b"pattern = a;b", b"string = a\x7f", b"string = a\n~ string = b", b"access = read\nstring = b",
        b"client = *", b"string = b\n[a]\naccess = read\nany = yes\nstring = b", b"pattern = [{user}]", b"string = [{user}]",
        b"pattern = {users}", b"pattern = [{]users}", b"string = {user}" + b"{client}" * 4, b"string = \xff", b"binary = /w==",
        b"pattern = {principal.clientId}/**/x", b"string = {principal.username}", b"pattern = {principal.attributes.a}/*",
        b"pattern = {client}**", b"pattern = a/**b", b"pattern = [{principal.clientId}]", b"string = { client }", b'string = {"a":1}',
        b"string = " + b"x" * 189, b"string = " + b"x" * 191, b"string", b"= b", b"string : b\n[b] ;", b"string = b\n[" + b"b" * 50 + b"]")),
    policy(b"\xef\xbb\xbf[a]\r\naccess = read\r\nany = yes\r\nstring = b\r\n", question(0, b"", b"", b"b")),
)

INVOCATION = numbered(*(
    # the words; QoS, response topic, correlation, expiry; the properties
    payload + bytes([0]) + bytes(rest)
    for payload in (bytes([3, 0, 10, 11]), bytes([5, 0, 10, 11, 7, 8]), bytes([7, 0, 10, 11, 7, 11, 8, 15]),
                    bytes([2, 1, 10]), bytes([3, 3, 10, 11]), bytes([3, 4, 10, 9]), bytes([2, 5, 10]), bytes([1, 16]),
                    bytes([6, 0, 10, 11, 8, 12, 6]), bytes([0, 4]) + b"*0\r\n")
    for rest in ([2, 2, 0, 0, 9] + [2] * 6, [2, 2, 0, 0, 0, 2, 1, 1, 1, 1, 1])
))

# A step takes one byte for its kind, and then what the kind takes: see step() in fuzz_broker_messages.c.
WELCOME = bytes([5, 0, 0, 0, 255, 1, 0, 1, 1, 0, 255])


def framed(payload, client=0):
    return bytes([client, 0, payload, 0, 0, 0, 0, 0])


def frame(*records):
    return bytes([8, 255, 255, 0, 0, len(records)]) + b"".join(records) + bytes([255])


def next_frame(*records):
    return bytes([8, 255, 255, 255, 0, len(records)]) + b"".join(records) + bytes([255])


END_OF_CONNECTION = bytes([0, 255, 255])
REQUESTS = frame(framed(0), framed(2), framed(4), framed(6, 1))
BROKER_MESSAGES = numbered(
    b"", WELCOME, WELCOME + REQUESTS, WELCOME + REQUESTS + next_frame(framed(1, 2), framed(3)) + WELCOME,
    WELCOME + frame(framed(4), framed(0, 1), framed(5), framed(7)) + next_frame(END_OF_CONNECTION),
    WELCOME + bytes([3]) + REQUESTS + bytes([2, 4, 0]) + WELCOME + REQUESTS, WELCOME + bytes([1, 0]) + WELCOME + REQUESTS,
    WELCOME + frame(framed(4)) + bytes([3]) + next_frame(framed(0)) + bytes([2, 4, 0]) + WELCOME + frame(framed(0)),
    bytes([5, 0, 0, 255]) + text(b"\10" + bytes(17)), bytes([5, 0, 255]) + WELCOME[3:], bytes([3, 0, 2, 4, 0]) + WELCOME,
    WELCOME + bytes([8, 0]) + text(b"\10" + bytes(56)) + bytes([255]), WELCOME + bytes(range(8, 250, 3)),
)

def stored(*strings):
    return b"".join(len(string).to_bytes(4, "big") + string for string in strings)


STORED_FORM_VERSION = struct.pack("!I", 10)
STORED_NUMBER = struct.pack("!Q", 1)
STORED_VERSION = struct.pack("!QI", 1000, 2)
STORED_RESULT = stored(b"done") + b"\1" + STORED_VERSION
STATE_HEADER = b"H" + stored(b"StateStore") + bytes(3 * 16 + 64) + stored(b"0" * 32) + bytes(8) + STORED_VERSION + bytes(1 + 4 * 8)


def etcd_header(name):
    """The header in etcd, of a member with this name."""
    return (b"\6" + STORED_FORM_VERSION + stored(STATE_HEADER) + STORED_NUMBER * 4 + struct.pack("!H", len(name)) + name
            + STORED_NUMBER * 2 + b"\0" + STORED_NUMBER + struct.pack("!Q", 10**9) + STORED_NUMBER * 2 + bytes(16))


STORED_FORM = numbered(
    b"\5" + STATE_HEADER, b"\1R" + stored(b"client", b"key") + bytes(8) + stored(b"user"),
    b"\2A" + STORED_NUMBER + bytes(16) + STORED_RESULT + STORED_NUMBER, b"\3E" + STORED_NUMBER + STORED_RESULT,
    b"\4N" + STORED_NUMBER + STORED_VERSION + stored(b"key") + b"\1" + stored(b"value", b"recipients"),
    b"\4N" + STORED_NUMBER + STORED_VERSION + stored(b"key") + b"\0" + stored(b""), b"\1R\xff\xff\xff\xff",
    b"\0K" + stored(b"key", b"value") + STORED_VERSION + STORED_NUMBER + b"\1" + STORED_NUMBER * 2 + stored(b"node"),
    b"\0K" + stored(b"key", b"") + STORED_VERSION + STORED_NUMBER + b"\0",
    etcd_header(b"a"), etcd_header(b"\0"), b"\6" + struct.pack("!I", 8) + STATE_HEADER,
)

CONTROL = numbered(
    bytes([1, 0]), bytes([3, 2, 3, 9]), bytes([2, 2, 4, 2, 0, 0, 0]), bytes([4, 2, 6, 30, 9]), bytes([3, 7, 16, 0, 0, 0, 2, 200]),
    bytes([2, 1, 60, 8]) + b'{"a":1}', bytes([3, 7, 17, 26, 0, 1, 2, 9, 2, 3, 8]), bytes([5, 9, 20, 27, 21, 28, 0, 0, 9]),
    bytes(range(1, 120, 2)), bytes(range(250, 5, -3)), bytes([0, 20]) + b"*1\r\n$5\r\nreset\r\n" + bytes(20),
)

# An event is a client, a kind, and what the kind takes: properties, a payload, QoS, the retain flag. In a list of properties,
# each takes six bytes here: name, value, no data, two numbers, kind.
HELLO = bytes([0, 8, 0, 0, 7, 8]) + b"instance"
REQUEST = bytes([2, 12, 1, 0, 3, 0, 3, 0, 1, 1, 0, 3]) + b"abc" + bytes([1, 0, 0])
# Frames of the store: a reply that tracks the connection, and an end; a notification; no record.
REPLY = bytes([0, 9, 0, 0, 2, 0, 1, 0, 1, 2, 1, 0, 0, 0, 9])
NOTIFY = bytes([0, 9, 0, 0, 1, 3, 0, 1, 0, 1, 0, 0, 1]) + b"k"
STARVED_NOTIFY = NOTIFY[:-2] + bytes([18]) + b"no memory for this"
# A notification without recipients: memory is short only for the frame to the store.
STARVED_FRAME = bytes([0, 9, 0, 0, 1, 3, 0, 0, 1, 0, 0, 18]) + b"no memory for this"
EMPTY = bytes([0, 9, 0, 0, 0])
DROP = bytes([0, 7, 2, 0, 255])
TICK = bytes([0, 2])
STARVED = bytes([0, 8, 0, 0, 7, 18]) + b"no memory for this"
PLUGIN = numbered(
    HELLO, REQUEST, HELLO + REQUEST, HELLO + REQUEST * 3 + bytes([2, 1]) + REQUEST, bytes([0, 0, 1, 0, 2, 0, 3, 0]),
    bytes([0, 4, 0, 0, 1, 4, 0, 0, 2, 4, 5, 1]), TICK + bytes([0, 3]) + HELLO, STARVED + TICK + HELLO + REQUEST,
    REQUEST * 5 + HELLO + REPLY * 5 + HELLO + REQUEST, bytes(range(0, 250, 3)), bytes(range(250, 0, -3)),
    HELLO + REQUEST + NOTIFY + TICK, HELLO + REQUEST + NOTIFY * 2 + HELLO, HELLO + REQUEST * 4 + TICK * 20 + EMPTY,
    HELLO + REQUEST + REPLY + DROP + TICK, HELLO + REQUEST + DROP + REPLY + TICK, DROP + HELLO + REQUEST + REPLY + TICK,
    HELLO + REQUEST + STARVED_NOTIFY + NOTIFY + TICK + HELLO + NOTIFY, HELLO + REQUEST + STARVED_FRAME + EMPTY,
)

def wire_text(data):
    return struct.pack("!H", len(data)) + data


def wire_blob(data):
    return struct.pack("!I", len(data)) + data


PROPERTIES = wire_blob(wire_text(b"__ts") + wire_text(b"1:2:x") + wire_text(b"") + wire_text(b""))
ONE = struct.pack("!Q", 1)
VERSION = b"\x0a"  # COMPANION_VERSION_NUMBER
FRAMES = numbered(
    VERSION + ONE * 6,
    VERSION + ONE * 6 + b"\1\5" + ONE + wire_text(b"id") + b"\1" + wire_text(b"user") + b"\1" + wire_text(b"clients/c/r")
    + b"\0" + PROPERTIES + wire_blob(b"payload") + b"\2\1" + ONE + wire_text(b"id"),
    VERSION + b"\1\5" + ONE + PROPERTIES + wire_blob(b"+OK\r\n") + b"\4\0" + ONE + ONE,
    VERSION + b"\2\1" + ONE + bytes(4) + wire_blob(b"key") + wire_blob(ONE) + PROPERTIES + wire_blob(b"p") + b"\3\0" + ONE,
    VERSION + b"\1\2" + ONE + wire_blob(b"") * 2, VERSION + b"\3" + ONE * 2 + b"\1" + ONE + b"\3" + ONE, VERSION, b"",
)



def field(number, data):
    """A field of a protobuf message, with up to 127 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


def framed(message):
    return struct.pack(">BI", 0, len(message)) + message


ETCD_HEADER = field(1, b"\x08\x85\x01\x10\x07\x18\x2a\x20\x02")  # cluster, member, revision, raft term
ETCD_KEY = field(2, field(1, b"/statestore/header") + b"\x10\x01\x18\x2a\x20\x05" + field(5, b"value"))
ETCD_OK = b"\x01" + text(b"grpc-status: 0\r\n")

# A type of response, then headers, then a body.
ETCD = numbered(
    b"", b"\x00" + ETCD_OK + framed(ETCD_HEADER + ETCD_KEY + ETCD_KEY + b"\x20\x02"), b"\x00" + ETCD_OK + framed(b""),
    b"\x01" + ETCD_OK + framed(ETCD_HEADER + b"\x10\x01" + field(3, field(2, ETCD_HEADER))),
    b"\x01" + ETCD_OK + framed(ETCD_HEADER + field(3, field(1, ETCD_HEADER + ETCD_KEY))),
    b"\x00\x02" + text(b"grpc-status: 8") + text(b"Grpc-Message: etcdserver: mvcc: database space exceeded"),
    b"\x00\x02" + text(b"grpc-status: 16\r\n") + text(b"grpc-message: etcdserver: invalid auth token\r\n"),
    b"\x00\x02" + text(b"grpc-status: 18446744073709551616") + text(b"grpc-message:" + b"x" * 200),
    b"\x00\x02" + text(b"grpc-status:") + text(b"grpc-message: "), b"\x00" + ETCD_OK + framed(field(2, b"") * 2000),
    b"\x00" + ETCD_OK + b"\x00\xff\xff\xff\xff", b"\x00" + ETCD_OK + b"\x01\x00\x00\x00\x00",
    b"\x02" + ETCD_OK + framed(ETCD_HEADER + field(2, b"3.4.23")), b"\x05" + ETCD_OK + framed(field(2, b"token")),
)

TARGETS = {
    "broker_messages": BROKER_MESSAGES,
    "config": CONFIG,
    "control": CONTROL,
    "endpoint": ENDPOINT,
    "etcd": ETCD,
    "export_reader": EXPORT_READER,
    "frames": FRAMES,
    "glob": GLOB,
    "hlc": HLC,
    "invocation": INVOCATION,
    "parse": PARSE,
    "plugin": PLUGIN,
    "policy": POLICY,
    "resp3": RESP3,
    "stored_form": STORED_FORM,
    "topics": TOPICS,
}


def main():
    """With --check, write nothing, and fail if a file has other bytes."""
    root = pathlib.Path(__file__).parent / "seeds"
    if sys.argv[1:] == ["--check"]:
        if any((root / target / name).read_bytes() != data for target, seeds in TARGETS.items() for name, data in seeds.items()):
            sys.exit("the seeds are not those of this script: run it, and commit them")
        return
    for target, seeds in TARGETS.items():
        (root / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (root / target / name).write_bytes(data)
    print(f"{sum(map(len, TARGETS.values()))} seeds", file=sys.stderr)


if __name__ == "__main__":
    main()
