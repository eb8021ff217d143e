# SPDX-License-Identifier: Apache-2.0
"""Clients that know the expected content of the store, even if the store is killed at any time.

A lane has its own key and one outstanding request. The replies determine the value of its key. If a request got no
reply, the lane repeats it, and that reply shows whether the first one was executed.
"""

import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Optional

from support import resp
from support.hlc import Hlc
from support.message import Message
from support.process import wait_until

DONE, NOTHING, DELETED, NOT_MET = b"+OK\r\n", b":0\r\n", b":1\r\n", b":-1\r\n"


@dataclass
class ExpectedEntry:
    """The expected value of a key."""

    value: bytes
    version: Optional[Hlc] = None


@dataclass
class Request:
    words: tuple
    expected: bytes
    properties: dict
    after: Optional[ExpectedEntry] = None  # content of the key after the request; version None: that of the reply
    reply: Optional[Message] = None
    n_replies: int = 0

    def send(self, client):
        return client.send(*self.words, **self.properties)


@dataclass
class Lane:
    """Sends requests from start() until stop(). Each reply triggers the next request, on the thread of the client."""

    client: object
    key: str
    random: object
    token: Optional[Hlc] = None  # of the last SET, where the key is fenced
    is_fenced: bool = False
    entry: Optional[ExpectedEntry] = None
    outstanding: Optional[Request] = None
    replied: list = field(default_factory=list)  # since the last start()
    faults: list = field(default_factory=list)

    def __post_init__(self):
        self._lock = threading.RLock()
        self._is_stopped = True
        self._n = 0

    def start(self):
        with self._lock:
            self.replied.clear()
            self._is_stopped = False
            self._send_next()

    def stop(self):
        with self._lock:
            self._is_stopped = True

    def send_again(self):
        with self._lock:
            if self.outstanding:
                self._send(self.outstanding)

    def is_idle(self):
        return self.outstanding is None

    def _send_next(self):
        if self._is_stopped:
            return
        self._n += 1
        self.outstanding = self._choose()
        self._send(self.outstanding)

    def _send(self, request):
        request.send(self.client).add_done_callback(lambda done: self._on_reply(request, done.result()))

    def _choose(self):
        properties = {"ts": self.client.clock.now(), "correlation": uuid.uuid4().bytes}
        if self.is_fenced:
            properties["ft"] = self.token = self.client.clock.now()
        value = b"%d of %s" % (self._n, self.key.encode())
        kind = self.random.choice(["set", "set", "set", "set if absent", "delete", "delete equal", "delete other"])
        entry, exists = self.entry, self.entry is not None

        if kind == "set":
            return Request(("SET", self.key, value), DONE, properties, ExpectedEntry(value))
        if kind == "set if absent":
            return Request(("SET", self.key, value, "NX"), NOT_MET if exists else DONE, properties,
                           entry or ExpectedEntry(value))
        if kind == "delete":
            return Request(("DEL", self.key), DELETED if exists else NOTHING, properties)
        if kind == "delete equal":
            return Request(("VDEL", self.key, entry.value if exists else b""), DELETED if exists else NOTHING,
                           properties)
        return Request(("VDEL", self.key, b"other"), NOT_MET if exists else NOTHING, properties, entry)

    def _on_reply(self, request, reply):
        with self._lock:
            request.n_replies += 1
            if request.reply:
                if not is_same(reply, request.reply):
                    self.faults.append(f"{request.words}: {request.reply}, and repeated {reply}")
                return
            request.reply = reply
            self._apply(request, reply)
            self.replied.append(request)
            self.outstanding = None
            self._send_next()

    def _apply(self, request, reply):
        if reply.payload != request.expected:
            self.faults.append(f"{request.words}: {request.expected} was expected, {reply.payload} came")
        before, self.entry = self.entry, request.after
        if self.entry and not self.entry.version:
            self.entry.version = reply.ts
            if before and reply.ts <= before.version:
                self.faults.append(f"{request.words}: version {reply.ts} after {before.version}")
        elif before and reply.ts != before.version:
            self.faults.append(f"{request.words}: version {reply.ts}, not {before.version}")

    def check(self):
        """Check that the key has the expected value."""
        assert not self.faults, self.faults
        reply = self.client.request("GET", self.key)
        if self.entry is None:
            assert reply.payload == b"$-1\r\n", self.key
        else:
            assert resp.read(reply.payload) == self.entry.value, self.key
            assert reply.ts == self.entry.version, self.key
        if self.is_fenced and self.entry:
            refused = self.client.request("SET", self.key, "never", ft=Hlc(0, 0, "older"))
            assert refused.payload.startswith(b"-ERR the request fencing token is a lower version"), refused

    def check_remembered(self, n):
        """Repeat up to n requests of this run, and check that the store remembers their replies."""
        requests = self.random.sample(self.replied, min(n, len(self.replied)))
        seen = [request.n_replies for request in requests]
        for request in requests:
            self._send(request)
        wait_until(lambda: all(request.n_replies > n_seen for request, n_seen in zip(requests, seen)),
                   "repeated requests have replies")
        assert not self.faults, self.faults


def is_same(one, other):
    return one.payload == other.payload and one.prop("__ts") == other.prop("__ts")


@dataclass
class Registrar:
    """Registers its client for key after key, and ends some of the registrations, until stop()."""

    client: object
    prefix: str
    random: object
    registered: set = field(default_factory=set)
    ended: set = field(default_factory=set)
    outstanding: Optional[Request] = None
    faults: list = field(default_factory=list)

    def __post_init__(self):
        self._lock = threading.RLock()
        self._is_stopped = True
        self._n = 0

    stop, send_again, is_idle, _send_next, _send = (
        Lane.stop, Lane.send_again, Lane.is_idle, Lane._send_next, Lane._send)

    def start(self):
        with self._lock:
            self.ended.clear()
            self._is_stopped = False
            self._send_next()

    def _choose(self):
        properties = {"ts": self.client.clock.now(), "correlation": uuid.uuid4().bytes}
        if self.registered and self.random.random() < 0.4:
            return Request(("KEYNOTIFY", self.random.choice(sorted(self.registered)), "STOP"), DONE, properties)
        return Request(("KEYNOTIFY", f"{self.prefix}-{self._n}"), DONE, properties)

    def _on_reply(self, request, reply):
        with self._lock:
            if request.reply:
                return
            request.reply = reply
            if reply.payload != request.expected:
                self.faults.append(f"{request.words}: {reply.payload}")
            key = request.words[1]
            (self.registered.discard if "STOP" in request.words else self.registered.add)(key)
            if "STOP" in request.words:
                self.ended.add(key)
            self.outstanding = None
            self._send_next()

    def check(self):
        """Check that the ended registrations do not exist. Check that the others exist, by ending half of them."""
        assert not self.faults, self.faults
        for key in sorted(self.ended):
            assert self.client.request("KEYNOTIFY", key, "STOP").payload == NOTHING, key
        for key in self.random.sample(sorted(self.registered), len(self.registered) // 2):
            assert self.client.request("KEYNOTIFY", key, "STOP").payload == DONE, key
            self.registered.remove(key)


class Lanes:
    """Several lanes of each kind over a few clients. A test that kills the broker passes with_registrars=False, because
    registrations end then."""

    def __init__(self, site, random, n_clients=3, n_lanes=6, with_registrars=True):
        self.clients = [site.connect() for _ in range(n_clients)]
        self.lanes = [Lane(client, f"lane-{client.id}-{n}", random, is_fenced=n == 0)
                      for client in self.clients for n in range(n_lanes)]
        self.registrars = [Registrar(client, f"watched-{client.id}", random)
                           for client in self.clients if with_registrars]
        self.all = [*self.lanes, *self.registrars]

    def start(self):
        for one in self.all:
            one.start()

    def stop(self):
        for one in self.all:
            one.stop()

    def finish(self):
        """Repeat requests until they have their replies: a broker that is killed drops some."""
        repeated = 0

        def has_reply():
            nonlocal repeated
            if all(one.is_idle() for one in self.all):
                return True
            if time.monotonic() > repeated + 1:
                repeated = time.monotonic()
                for one in self.all:
                    one.send_again()
            return False

        wait_until(has_reply, "every lane has its reply")

    def check(self, n_remembered=5):
        for one in self.all:
            one.check()
        for lane in self.lanes:
            lane.check_remembered(n_remembered)
        for lane in self.lanes:
            lane.check()

    def n_replies(self):
        return sum(len(lane.replied) for lane in self.lanes)
