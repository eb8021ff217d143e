# SPDX-License-Identifier: Apache-2.0
"""Packets of MQTT 5: encoding their parts, and finding packets in bytes and in a stream."""

import struct


def text(data):
    return struct.pack("!H", len(data)) + data


def number(value):
    """Encode a variable byte integer of MQTT."""
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def number_at(data, at):
    """Return the variable byte integer at this place, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def packet(head, body):
    return bytes([head]) + number(len(body)) + body


def packet_at(data, at=0):
    """Return the first byte of the packet at this place, its body, and where it ends. None: it is not complete."""
    length = shift = 0
    for start, byte in enumerate(data[at + 1:at + 5], at + 2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (data[at], data[start:start + length], start + length) if start + length <= len(data) else None
    return None


def packets(data):
    """Yield the first byte and the body of each complete packet."""
    at = 0
    while found := packet_at(data, at):
        head, body, at = found
        yield head, body


def read_packet(read):
    """Return the first byte and the body of a packet of a stream. read(n) returns n bytes."""
    start = read(2)
    while start[-1] >= 0x80:
        start += read(1)
    length = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(start[1:]))
    return start[0], read(length)
