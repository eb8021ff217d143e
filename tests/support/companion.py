# SPDX-License-Identifier: Apache-2.0
"""A second implementation of common/protocol/companion.h: frames, MACs and boxes. The class Peer in plugin.py uses it to
play the store for the plugin."""

import ctypes
import ctypes.util
import hashlib
import hmac
import struct
from dataclasses import dataclass

KEY_SIZE = 32
NONCE_SIZE = 24
TAG_SIZE = 16
MAC_SIZE = 16
RESERVED = "statestore-"
ABSENT = (1 << 64) - 1

_sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))


class Forged(Exception):
    """A box or a MAC was not made by the plugin."""


def frame(sequence, key, recipients, payload, index=0, is_last=True, wants_acknowledgement=False):
    """A notification for the connections with these numbers: common/protocol/companion_frame.h."""
    numbers = b"".join(struct.pack("!Q", int(number)) for number in recipients)
    flags = is_last | wants_acknowledgement << 1
    return struct.pack("!BBQIII", 1, flags, sequence, index, len(recipients), len(key)) + key + numbers + payload


def open_box(box, key):
    text = ctypes.create_string_buffer(len(box))
    nonce, sealed = box[:NONCE_SIZE], box[NONCE_SIZE:]
    if len(sealed) < TAG_SIZE or _sodium.crypto_secretbox_open_easy(text, sealed, ctypes.c_ulonglong(len(sealed)),
                                                                    nonce, key) != 0:
        raise Forged("box")
    return text.raw[:len(sealed) - TAG_SIZE]


def _onetime_mac(data, nonce, key):
    """Return Poly1305 of the data, with the first bytes of the XSalsa20 stream as the key."""
    onetime_key, result = ctypes.create_string_buffer(KEY_SIZE), ctypes.create_string_buffer(MAC_SIZE)
    _sodium.crypto_stream(onetime_key, ctypes.c_ulonglong(KEY_SIZE), nonce, key)
    _sodium.crypto_onetimeauth(result, data, ctypes.c_ulonglong(len(data)), onetime_key)
    return result.raw


def _number(number):
    return struct.pack("<Q", number)


def _digest(user):
    """Return the digest of the user properties that are not reserved: zeros if there are none."""
    others = [(name.encode(), value.encode()) for name, value in user if not name.startswith(RESERVED)]
    if not others:
        return b"\0" * 32
    data = b"".join(_number(len(name)) + _number(len(value)) + name + value for name, value in others)
    return hashlib.blake2b(data, digest_size=32).digest()


def mac(key, connection, sequence, client_id, username, message):
    """Return the MAC of a request in hexadecimal digits. username None: the client has none."""
    parts = [client_id.encode(), None if username is None else username.encode(),
             None if message.response_topic is None else message.response_topic.encode(), message.correlation]
    data = b"".join(_number(ABSENT if part is None else len(part)) for part in parts)
    data += _number(len(message.payload)) + _digest(message.user)
    data += b"".join(part or b"" for part in parts) + message.payload
    return _onetime_mac(data, _number(connection) + _number(sequence) + bytes(8), key).hex()


@dataclass
class Identity:
    connection: int
    sequence: int
    client_id: str
    username: str


def verified(message, key):
    """Return the identity that the plugin has verified. Raises Forged if the MAC is wrong."""
    reserved = [name for name, _ in message.user if name.startswith(RESERVED)]
    mac_property, client_id = message.prop("statestore-mac"), message.prop("statestore-client-id")
    username = message.prop("statestore-username")
    expected = ["statestore-mac", "statestore-client-id", *([] if username is None else ["statestore-username"])]
    if reserved != expected:
        raise Forged(f"identity properties {reserved}")
    connection, sequence, actual_mac = mac_property.split(":")
    expected_mac = mac(key, int(connection), int(sequence), client_id, username, message)
    if not hmac.compare_digest(actual_mac, expected_mac):
        raise Forged("MAC")
    return Identity(int(connection), int(sequence), client_id, username)
