# SPDX-License-Identifier: Apache-2.0
"""The side of a test double that tests steer: statestored --control."""

import json

from support import resp
from support.client import SERVICE, Client
from support.process import PATIENCE

CONTROL = f"{SERVICE}/control/invoke"


class Control(Client):
    """Asks on the control topic."""

    def ask(self, *words, **more):
        """What it is answered, be it an error."""
        return self.send(*words, topic=CONTROL, ts=None, **more).result(PATIENCE).payload

    def do(self, *words):
        answer = self.ask(*words)
        assert not answer.startswith(b"-"), answer
        return answer

    def lines(self, *words):
        """The objects of an answer that is lines of JSON."""
        return [json.loads(line) for line in resp.read(self.do(*words)).splitlines()]


def value_of(client, key):
    """None where there is none."""
    payload = client.request("GET", key, ts=None).payload
    return None if payload == b"$-1\r\n" else resp.read(payload)
