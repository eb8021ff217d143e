# SPDX-License-Identifier: Apache-2.0
"""SCAN, page by page."""

from support import resp


def page(client, pattern, token=None):
    """Return the keys of one page, and the token of the next page or None."""
    reply = client.request("SCAN", pattern, *([] if token is None else [token]))
    assert reply.status == "200"
    assert reply.prop("__ts") is None
    keys, *rest = resp.read(reply.payload)
    assert len(rest) <= 1
    return keys, rest[0] if rest else None


def pages(client, pattern):
    token = None
    while True:
        keys, token = page(client, pattern, token)
        yield keys
        if token is None:
            return


def scan(client, pattern):
    return [key for keys in pages(client, pattern) for key in keys]
