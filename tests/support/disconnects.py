# SPDX-License-Identifier: Apache-2.0
"""Ways to end the connection of a client. Each function returns when the broker has ended the connection too."""

from support.client import INVOKE
from support.wire_client import WireClient


def by_disconnect(_site, client):
    client.disconnect()


def by_disconnect_with_will(_site, client):
    client.send(b"\xe0\x01\x04")
    client.wait_until_closed()


def by_cut(site, client):
    seen = len(site.broker.log())
    client.cut()
    site.broker.wait_until_disconnected(client.id, after=seen)


def by_keepalive(_site, client):
    client.wait_until_closed()


def by_takeover(site, client):
    return site.connect(client.id, WireClient)


def by_takeover_of_the_session(site, client):
    return site.connect(client.id, WireClient, clean_start=False, session_expiry=1000)


def by_protocol_error(_site, client):
    client.send(b"\xf0\x00\x00")
    client.wait_until_closed()


def by_being_kicked(_site, client):
    client.send(client.encode_publish(INVOKE, ResponseTopic=INVOKE))
    client.wait_until_closed()


QUICK_WAYS = [by_disconnect, by_disconnect_with_will, by_cut, by_takeover, by_takeover_of_the_session,
              by_protocol_error, by_being_kicked]
WAYS = [by_keepalive, *QUICK_WAYS]  # the broker looks at keepalives every five seconds


def name(way):
    return way.__name__


def keepalive(way):
    """Keep-alive in seconds: long enough for a client on a busy machine."""
    return 10 if way is by_keepalive else 0
