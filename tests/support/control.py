# SPDX-License-Identifier: Apache-2.0
"""A client of the control topic of statestored --control."""

import json

from support import resp
from support.client import SERVICE, Client
from support.process import PATIENCE

CONTROL = f"{SERVICE}/control/invoke"


class Control(Client):
    """Sends control requests."""

    def ask(self, *words, **more):
        """Return the reply, which may be an error."""
        return self.send(*words, topic=CONTROL, ts=None, **more).result(PATIENCE).payload

    def do(self, *words):
        """Return the reply, which must not be an error."""
        reply = self.ask(*words)
        assert not reply.startswith(b"-"), reply
        return reply

    def lines(self, *words):
        """Return the objects of a reply that consists of lines of JSON."""
        return [json.loads(line) for line in resp.read(self.do(*words)).splitlines()]


def value_of(client, key):
    """Return the value of the key, or None if the key does not exist."""
    payload = client.request("GET", key, ts=None).payload
    return None if payload == b"$-1\r\n" else resp.read(payload)
