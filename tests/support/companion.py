# SPDX-License-Identifier: Apache-2.0
"""A second implementation of common/protocol/companion.h: HELLO, WELCOME and frames. The class Peer in plugin.py uses it to
play the store for the plugin."""

import ctypes
import ctypes.util
import hashlib
import struct
from dataclasses import dataclass, field
from typing import Optional

VERSION = 10
KEY_SIZE = 32
NONCE_SIZE = 24
TAG_SIZE = 16

_sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))


class Forged(Exception):
    """A box was not made by the plugin."""


def open_box(box, key):
    nonce, sealed = box[:NONCE_SIZE], box[NONCE_SIZE:]
    text = ctypes.create_string_buffer(len(sealed) + 1)
    if len(sealed) < TAG_SIZE or _sodium.crypto_secretbox_open_easy(text, sealed, ctypes.c_ulonglong(len(sealed)), nonce, key) != 0:
        raise Forged("box")
    return text.raw[:len(sealed) - TAG_SIZE]


def frame_key(hello_key):
    return hashlib.blake2b(b"frames to the store", digest_size=KEY_SIZE, key=hello_key).digest()


# To the plugin


def hello(key, instance, run=1, number=1, version=VERSION, served_broker_run=0):
    return struct.pack("!BQQQ", version, run, number, served_broker_run) + key + instance


def _text(data):
    return struct.pack("!H", len(data)) + data


def _blob(data):
    return struct.pack("!I", len(data)) + data


def properties(user):
    return b"".join(_text(part.encode()) for pair in user for part in pair)


def reply(number, payload=None, user=(), tracked=False, untracked=False):
    """payload None: no message."""
    flags = tracked | untracked << 1 | (payload is not None) << 2
    return struct.pack("!BBQ", 1, flags, number) + _blob(properties(user)) + _blob(payload or b"")


def notification(sequence, key, recipients, payload, user=(), index=0, is_last=True):
    numbers = b"".join(struct.pack("!Q", int(number)) for number in recipients)
    return (struct.pack("!BBQI", 2, is_last, sequence, index) + _blob(key) + _blob(numbers) + _blob(properties(user))
            + _blob(payload))


def kick(connection):
    return struct.pack("!BBQ", 3, 0, int(connection))


def end(number, work_ns=0):
    return struct.pack("!BBQQ", 4, 0, number, work_ns)


def frame(*records):
    return bytes([VERSION]) + b"".join(records)


@dataclass
class Notification:
    """A record of read_frame_to_plugin()."""
    index: int
    is_last: bool
    key: bytes
    recipients: tuple


def read_frame_to_plugin(data):
    """Return the records of a frame: a Notification, or the kind of another record."""
    reader = _Reader(data)
    assert reader.unpack("B") == (VERSION,)
    records = []
    while reader.at < len(data):
        kind, flags, _number = reader.unpack("BBQ")
        records.append(kind)
        if kind == 1:
            reader.blob(), reader.blob()
        elif kind == 2:
            index, = reader.unpack("I")
            key, recipients = reader.blob(), reader.blob()
            records[-1] = Notification(index, bool(flags & 1), key, struct.unpack(f"!{len(recipients) // 8}Q", recipients))
            reader.blob(), reader.blob()
        elif kind == 4:
            reader.unpack("Q")
        else:
            assert kind == 3
    return records


# From the plugin


@dataclass
class Welcome:
    is_takeover: bool
    broker_run: int
    published: int
    idle: set  # numbers, as text
    pending: set


def welcome(text):
    version, flags, run, published = struct.unpack_from("!BBQQ", text)
    assert version == VERSION and flags < 2
    connections = [struct.unpack_from("!BQ", text, at) for at in range(18, len(text), 9)]
    return Welcome(bool(flags), run, published, {str(number) for flags, number in connections if flags == 1},
                   {str(number) for flags, number in connections if flags & 2})


@dataclass
class Record:
    """A request, or the end of a connection (then qos is None)."""
    number: int
    connection: str
    client_id: str
    qos: Optional[int] = None
    is_slow_watcher: bool = False
    username: Optional[str] = None
    response_topic: Optional[str] = None
    correlation: Optional[bytes] = None
    user: list = field(default_factory=list)
    payload: Optional[bytes] = None

    @property
    def is_request(self):
        return self.qos is not None


@dataclass
class Frame:
    number: int
    first: int
    published: int
    n_too_many: int
    n_unavailable: int
    n_dropped: int
    n_denied: int
    records: list
    size: int = 0


class _Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, n):
        assert self.at + n <= len(self.data)
        self.at += n
        return self.data[self.at - n:self.at]

    def unpack(self, form):
        return struct.unpack("!" + form, self.take(struct.calcsize("!" + form)))

    def text(self):
        return self.take(self.unpack("H")[0])

    def optional(self):
        return self.text() if self.unpack("?")[0] else None

    def blob(self):
        return self.take(self.unpack("I")[0])


def _pairs(data):
    reader, pairs = _Reader(data), []
    while reader.at < len(data):
        pairs.append((reader.text().decode(), reader.text().decode()))
    return pairs


def _record(reader, number):
    kind, flags, connection = reader.unpack("BBQ")
    record = Record(number, str(connection), reader.text().decode())
    if kind == 2:
        record.is_slow_watcher = bool(flags & 1)
        return record
    assert kind == 1
    username, topic, record.correlation = reader.optional(), reader.optional(), reader.optional()
    record.qos = flags
    record.username = None if username is None else username.decode()
    record.response_topic = None if topic is None else topic.decode()
    record.user = _pairs(reader.blob())
    record.payload = reader.blob()
    return record


def read_frame(text):
    reader = _Reader(text)
    version, *header = reader.unpack("BQQQQQQQ")
    assert version == VERSION
    records = []
    while reader.at < len(text):
        records.append(_record(reader, header[1] + len(records)))
    return Frame(*header, records, size=len(text))
