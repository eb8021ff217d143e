# SPDX-License-Identifier: Apache-2.0
"""Clients that know the expected content of the store, even if the store is killed at any time.

A lane has its own key and one outstanding request. The answers determine the value of its key. If a request was not
answered, the lane repeats it, and that answer shows whether the first one was executed.
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
    after: Optional[ExpectedEntry] = None  # content of the key after the request; version None: that of the answer
    answer: Optional[Message] = None
    n_answers: int = 0

    def send(self, client):
        return client.send(*self.words, **self.properties)


@dataclass
class Lane:
    """Sends requests from start() until stop(). Each answer triggers the next request, on the thread of the client."""

    client: object
    key: str
    random: object
    token: Optional[Hlc] = None  # of the last SET, where the key is fenced
    is_fenced: bool = False
    entry: Optional[ExpectedEntry] = None
    outstanding: Optional[Request] = None
    answered: list = field(default_factory=list)  # since the last start()
    faults: list = field(default_factory=list)

    def __post_init__(self):
        self._lock = threading.RLock()
        self._is_stopped = True
        self._n = 0

    def start(self):
        with self._lock:
            self.answered.clear()
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
        request.send(self.client).add_done_callback(lambda done: self._on_answer(request, done.result()))

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

    def _on_answer(self, request, answer):
        with self._lock:
            request.n_answers += 1
            if request.answer:
                if not is_same(answer, request.answer):
                    self.faults.append(f"{request.words}: {request.answer}, and repeated {answer}")
                return
            request.answer = answer
            self._apply(request, answer)
            self.answered.append(request)
            self.outstanding = None
            self._send_next()

    def _apply(self, request, answer):
        if answer.payload != request.expected:
            self.faults.append(f"{request.words}: {request.expected} was expected, {answer.payload} came")
        before, self.entry = self.entry, request.after
        if self.entry and not self.entry.version:
            self.entry.version = answer.ts
            if before and answer.ts <= before.version:
                self.faults.append(f"{request.words}: version {answer.ts} after {before.version}")
        elif before and answer.ts != before.version:
            self.faults.append(f"{request.words}: version {answer.ts}, not {before.version}")

    def check(self):
        """Check that the key has the expected value."""
        assert not self.faults, self.faults
        answer = self.client.request("GET", self.key)
        if self.entry is None:
            assert answer.payload == b"$-1\r\n", self.key
        else:
            assert resp.read(answer.payload) == self.entry.value, self.key
            assert answer.ts == self.entry.version, self.key
        if self.is_fenced and self.entry:
            refused = self.client.request("SET", self.key, "never", ft=Hlc(0, 0, "older"))
            assert refused.payload.startswith(b"-ERR the request fencing token is a lower version"), refused

    def check_remembered(self, n):
        """Repeat up to n requests of this run, and check that the store remembers their answers."""
        requests = self.random.sample(self.answered, min(n, len(self.answered)))
        seen = [request.n_answers for request in requests]
        for request in requests:
            self._send(request)
        wait_until(lambda: all(request.n_answers > n_seen for request, n_seen in zip(requests, seen)),
                   "what was repeated is answered")
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

    def _on_answer(self, request, answer):
        with self._lock:
            if request.answer:
                return
            request.answer = answer
            if answer.payload != request.expected:
                self.faults.append(f"{request.words}: {answer.payload}")
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
        """Repeat unanswered requests until they are answered: a broker that is killed drops some."""
        repeated = 0

        def is_answered():
            nonlocal repeated
            if all(one.is_idle() for one in self.all):
                return True
            if time.monotonic() > repeated + 1:
                repeated = time.monotonic()
                for one in self.all:
                    one.send_again()
            return False

        wait_until(is_answered, "every lane is answered")

    def check(self, n_remembered=5):
        for one in self.all:
            one.check()
        for lane in self.lanes:
            lane.check_remembered(n_remembered)
        for lane in self.lanes:
            lane.check()

    def n_answered(self):
        return sum(len(lane.answered) for lane in self.lanes)
