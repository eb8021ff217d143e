# SPDX-License-Identifier: Apache-2.0
"""A client that counts in a key: each value replaces the one before, which the request names. So a write that was lost after
its reply, or executed twice, makes the next one fail."""

import threading
import time

from support.message import error
from support.process import PATIENCE, wait_until

FULL = error("the disk is full")
TOO_FAR = error("the request timestamp is too far in the future; ensure that the client and broker system clocks are synchronized")


class Counter(threading.Thread):
    """Counts until stop(). `client` has perform(): see cluster_client.py."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client = client
        self.key = f"counter-{client.id}"
        self.count = 0  # of acknowledged writes
        self.times = []  # when each one was sent, and when its reply came
        self.lost = []  # acknowledged values that were not there
        self.doubled = []  # values that a repeated request found there: it was executed twice
        self.n_refused = 0  # because etcd is full, or the store's wall clock is behind: not executed
        self.fault = None
        self._is_stopping = threading.Event()
        self.start()

    def run(self):
        try:
            while not self._is_stopping.is_set():
                self._increment()
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = fault

    def _increment(self):
        began = time.monotonic()
        condition = ("NEX", self.count) if self.count else ("NX",)
        payload = self.client.perform("SET", self.key, self.count + 1, *condition).payload
        self.times.append((began, time.monotonic()))
        if payload in (FULL, TOO_FAR):
            self.n_refused += 1
            return
        if payload == b":-1\r\n":
            self._examine()
        else:
            assert payload == b"+OK\r\n", payload
        self.count += 1

    def _examine(self):
        found = int(self.client.value_of(self.key) or 0)
        (self.doubled if found == self.count + 1 else self.lost).append((self.count, found))
        self.client.perform("SET", self.key, self.count + 1)

    def wait_for_progress(self, n_more=20):
        target = self.count + n_more
        wait_until(lambda: self.count >= target or self.fault, f"{self.client.id} counts")
        assert self.fault is None, self.fault

    def stop(self):
        """Stop, and look whether the last acknowledged value is there."""
        self._is_stopping.set()
        self.join(PATIENCE)
        assert not self.is_alive(), f"{self.client.id} gets no reply"
        assert self.fault is None, self.fault
        found = int(self.client.value_of(self.key) or 0)
        if found != self.count:
            self.lost.append((self.count, found))


def wait_for_all(counters):
    for counter in counters:
        counter.wait_for_progress()
