# SPDX-License-Identifier: Apache-2.0
"""The part of RESP3 that requests, notifications and listings use."""


def to_bytes(word):
    return word if isinstance(word, bytes) else str(word).encode()


def blob(word):
    data = to_bytes(word)
    return b"$%d\r\n%s\r\n" % (len(data), data)


def request(*words):
    return b"*%d\r\n" % len(words) + b"".join(map(blob, words))


def read(payload):
    """Decode exactly one item: arrays as lists, blobs as bytes. Anything else is a ValueError."""
    item, rest = _read_item(payload)
    if rest:
        raise ValueError(f"{len(rest)} bytes after the item")
    return item


def _read_item(data):
    head, separator, rest = data.partition(b"\r\n")
    kind, number = head[:1], head[1:]
    if not separator or not number.isdigit() or number != b"%d" % int(number):
        raise ValueError(f"not the head of an item: {head[:40]!r}")
    length = int(number)
    if kind == b"$":
        if rest[length:length + 2] != b"\r\n":
            raise ValueError("a blob without its end")
        return rest[:length], rest[length + 2:]
    if kind != b"*":
        raise ValueError(f"an item of kind {kind!r}")
    items = []
    for _ in range(length):
        item, rest = _read_item(rest)
        items.append(item)
    return items, rest
