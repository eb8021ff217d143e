# SPDX-License-Identifier: Apache-2.0
"""A client that connects to the broker of the member that serves, and to another one when that changes."""

import contextlib
import time
import uuid

from support import resp
from support.connection import Disconnected
from support.process import wait_until

# Time without a reply after which the client connects again, and repeats the request.
REPLY_SECONDS = 1

# While it waits, it looks this often whether another member serves, as a proxy in front of the brokers does.
LOOK_SECONDS = 0.1


class ClusterClient:
    """Repeats a request without a reply as the same request, which takes effect at most once, whichever member executes it."""

    def __init__(self, cluster, client_id=None, home=None):
        """home: the only machine, or address, to which it connects."""
        self.cluster = cluster
        self.home = home
        self.id = client_id or f"client-{uuid.uuid4().hex[:12]}"
        self.machine = None  # whose broker it uses
        self._connection = None
        self._clock = None
        cluster.clients.append(self)

    def close(self):
        if self._connection:
            self._connection.close()
            self._connection = None

    def _wanted(self):
        return self.home or self.cluster.leader()

    def _connect(self):
        self.machine = self._wanted() or self.machine
        if not self.machine:
            raise ConnectionRefusedError
        self._connection = self.machine.connect(self.id, patience=REPLY_SECONDS)
        if self._clock:
            self._connection.clock = self._clock
        self._clock = self._connection.clock
        self._connection.set_patience(LOOK_SECONDS)

    def _try(self, words, identity):
        """Return the reply, or None."""
        with contextlib.suppress(Disconnected, OSError):
            if not self._connection:
                self._connect()
            identity.setdefault("ts", self._clock.now())
            return self._wait_for(self._connection.begin(*words, **identity))
        self.close()
        return None

    def _wait_for(self, correlation):
        deadline = time.monotonic() + REPLY_SECONDS
        while True:
            try:
                return self._connection.reply_to(correlation)
            except TimeoutError:
                if time.monotonic() > deadline or self._wanted() not in (None, self.machine):
                    raise

    def perform(self, *words, token=None):
        """Send the request until it has a reply, and return the reply."""
        identity = {"correlation": uuid.uuid4().bytes, "user": [("__ft", str(token))] if token else []}
        return wait_until(lambda: self._try(words, identity), f"{words} gets a reply")

    def ask(self, *words):
        return self.perform(*words).payload

    def value_of(self, key):
        """Return the value of the key, or None if the key does not exist."""
        payload = self.ask("GET", key)
        return None if payload == b"$-1\r\n" else resp.read(payload)
