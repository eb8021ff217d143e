# SPDX-License-Identifier: Apache-2.0
"""Clients that record a history of random requests, for linearizability.py."""

import random
import threading
import time

from support import resp
from support.linearizability import Operation, Outcome
from support.message import error
from support.process import PATIENCE, wait_until

KEYS = ("key-0", "key-1", "lock")

ERRORS = {
    error("a fencing token is required for this request"): "fence required",
    error("the request fencing token is a lower version than the fencing token protecting the resource"): "fence too old",
}


def read_outcome(kind, reply):
    payload = reply.payload
    if payload in ERRORS:
        return Outcome(ERRORS[payload])
    if payload == b"+OK\r\n":
        return Outcome("done", reply.ts)
    if payload == b":-1\r\n":
        return Outcome("unmet", reply.ts)
    if payload == b":1\r\n":
        return Outcome("deleted", reply.ts)
    if payload == b":0\r\n":
        return Outcome("nothing")
    if payload == b"$-1\r\n":
        return Outcome("absent")
    assert kind == "GET", f"{kind}: {payload}"
    return Outcome("value", reply.ts, resp.read(payload))


class Recorder(threading.Thread):
    """A client with its own seed that sends one request at a time. `client` has perform(), which sends the same request again
    until the reply arrives."""

    def __init__(self, client, seed):
        super().__init__(daemon=True)
        self.client = client
        self.choice = random.Random(seed)
        self.history = []
        self.fault = None
        self._seen = {}  # key -> the last value that was read
        self._token = None  # the newest version that the client has received
        self._stopped = threading.Event()

    def stop(self):
        self._stopped.set()
        self.join(PATIENCE)
        assert not self.is_alive(), f"{self.client.id} gets no reply"
        assert self.fault is None, self.fault

    def run(self):
        try:
            while not self._stopped.is_set():
                self.record(self._choose())
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = fault

    def _choose(self):
        key = self.choice.choice(KEYS)
        kind = self.choice.choice(("SET", "NX", "NEX", "VDEL", "DEL", "GET", "GET"))
        operation = Operation(self.client.id, kind, key, 0)
        if kind in ("SET", "NX", "NEX"):
            operation.value = b"%s-%d" % (self.client.id.encode(), len(self.history))
        if kind in ("NEX", "VDEL"):
            operation.expected = self._seen.get(key, b"nothing")
        if kind != "GET" and self._token and (key == "lock" or self.choice.random() < 0.1):
            operation.token = self._token
        return operation

    def record(self, operation):
        self.history.append(operation)
        words = {"NX": ["SET", operation.key, operation.value, "NX"],
                 "NEX": ["SET", operation.key, operation.value, "NEX", operation.expected],
                 "SET": ["SET", operation.key, operation.value],
                 "VDEL": ["VDEL", operation.key, operation.expected]}.get(operation.kind, [operation.kind, operation.key])
        operation.start = time.monotonic()
        reply = self.client.perform(*words, token=operation.token)
        operation.end = reply.time
        operation.outcome = read_outcome(operation.kind, reply)
        self._learn(operation)
        return operation

    def _learn(self, operation):
        kind, version, value = operation.outcome
        if kind == "done":
            self._seen[operation.key], self._token = operation.value, version
        elif kind == "value":
            self._seen[operation.key] = value


EXPECTED = {"done", "unmet", "value", "fence too old"}


def operations_of(recorders):
    return [operation for recorder in recorders for operation in list(recorder.history)]


def wait_for_progress(recorders, n_more=150):
    """Wait until n_more further operations have begun, with every kind of outcome in EXPECTED."""
    def is_there():
        operations = operations_of(recorders)
        assert not (faults := [recorder.fault for recorder in recorders if recorder.fault]), faults
        return len(operations) >= target and {one.outcome.kind for one in operations if one.outcome} >= EXPECTED

    target = len(operations_of(recorders)) + n_more
    wait_until(is_there, f"{n_more} operations")


def end(recorders):
    """Return the history of all clients, and the final state."""
    wait_for_progress(recorders)
    for recorder in recorders:
        recorder.stop()
    for key in KEYS:
        recorders[0].record(Operation("last", "GET", key, 0))
    return operations_of(recorders)
