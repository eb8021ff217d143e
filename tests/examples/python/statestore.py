# SPDX-License-Identifier: Apache-2.0
"""A client of the state store in one file. Copy it. It needs Python 3.11 and paho-mqtt 1.6, or newer.

    with StateStore("mqtt://127.0.0.1:1883") as store:
        store.set("greeting", "hello", expires=60)
        with store.lock("lock") as lock:
            store.set("counter", "1", fence=lock.token)
        for change in store.watch("door"):
            print(change.value)  # None: the key does not exist

Threads can share a StateStore. When the connection is lost, it connects again, subscribes, repeats the requests that have no
reply, registers for the watched keys again, and reads them. The store executes a repeated request once.
"""
import queue
import socket
import ssl
import threading
import time
import uuid
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from math import ceil, inf
from typing import Any, Iterator, NamedTuple
from urllib.parse import unquote, urlsplit

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

SERVICE = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"
NOTIFY_SET = b"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n"  # the value follows
RECONNECT = 1.0  # seconds until the next attempt to connect


class StateStoreError(Exception):
    """Base of the errors below. Raised itself if the client is closed."""


class Refused(StateStoreError):
    """The store refused the request. str() is its text, such as "not authorized"."""


class NoReply(StateStoreError, TimeoutError):
    """Nothing arrived in time. The store may have executed the request."""


class LockLost(StateStoreError):
    """The lock is not held: it was released, or its lease could not be renewed."""


class Value(NamedTuple):
    value: Any  # of a key: bytes, or None if the key does not exist
    version: str | None = None

    def order(self) -> list:
        return [int(part) if part.isdigit() else part for part in (self.version or f"{1 << 63}:0:").split(":")]


def encode(words) -> bytes:
    if wrong := [word for word in words if not isinstance(word, (bytes, str, int, float))]:
        raise TypeError(f"bytes, a string or a number was expected, not {wrong[0]!r}")
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def decode(payload: bytes) -> Any:
    """Return a string, a number, or None for an absent value. Raise an error reply."""
    line, rest = payload.split(b"\r\n", 1)
    if line.startswith(b"-ERR "):
        raise Refused(line[5:].decode())
    if line.startswith(b"$"):
        return None if line == b"$-1" else rest[:-2]
    return line[1:] if line.startswith(b"+") else -1 if line == b"-1" else int(line[1:])  # "-1": document dialect


class _Closes(AbstractContextManager):
    def __exit__(self, *_: Any) -> None:
        self.close()


class Watch(_Closes):
    """The changes of a key, the present value first. While the connection is lost, all but the last can be missed. Close it."""
    def __init__(self, store: "StateStore", key: bytes):
        self.key, self._store, self._queue, self._lock, self._last = key, store, queue.Queue(), threading.Lock(), Value(b"", "0:0:")
        self._registration = store._registrations.setdefault(key, threading.Lock())
        store._watches.add(self)
        self._register()

    def close(self) -> None:
        with self._registration, suppress(StateStoreError):
            self._store._watches.discard(self)
            any(other.key == self.key for other in list(self._store._watches)) or self._store.ask("KEYNOTIFY", self.key, "STOP")

    def next(self, timeout: float | None = None) -> Value | None:
        """Wait for the next change. Return None after `timeout` seconds. Raise Refused if the client may not watch the key."""
        with suppress(queue.Empty):
            change = self._queue.get(timeout=timeout if timeout is None else max(0, timeout))
            if isinstance(change, Exception):
                raise change
            return change

    def __iter__(self) -> Iterator[Value]:
        return iter(self.next, None)

    def _register(self) -> None:
        with self._lock:
            read = self._read = self._newest = object()
        try:
            with self._registration:
                if self in self._store._watches and read is self._newest:  # else it was closed, or lost the connection again
                    self._store.ask("KEYNOTIFY", self.key)
                    self._offer(self._store.ask("GET", self.key), read)
        except StateStoreError as error:
            self._queue.put(error)

    def _offer(self, change: Value, read: object = None) -> None:
        """Queue a change unless it is known or outdated. A notification, or a later registration, outdates what a GET read."""
        with self._lock:
            last, is_outdated = self._last, read and read is not self._read
            if is_outdated or change == last or change.order() < last.order():
                return
            self._read, self._last = None, Value(change.value, change.version or last.version)
            (change.value, last.value) != (None, None) and self._queue.put(change)


class Lock(_Closes):
    """A lock that StateStore.lock() took, and that is renewed until release(). Write with `fence=lock.token`: the store then
    refuses the writes of former holders. Each Lock has a value of its own, so the threads of a client exclude each other."""
    def __init__(self, store: "StateStore", key: str | bytes, lease: float, timeout: float):
        self._store, self.key, self.lease, self.holder = store, key, lease, f"{store.client_id}/{uuid.uuid4().hex[:8]}"
        self._released, self.lost = threading.Event(), threading.Event()  # lost: stop what needs the lock
        give_up = time.monotonic() + timeout
        if not self._take():
            with store.watch(key) as changes:
                while not self._take():  # until the key does not exist, and after a lease in any case
                    until = min(give_up, time.monotonic() + lease)
                    while (change := changes.next(until - time.monotonic())) and change.value is not None:
                        pass
                    if change is None and time.monotonic() >= give_up:
                        raise TimeoutError(f"the lock {key!r} has another holder")
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    @property
    def token(self) -> str:
        """The fencing token. Read it for each write: a renewal changes it. Raises LockLost."""
        if self._released.is_set() or self.lost.is_set() or time.monotonic() >= self._until:
            raise LockLost(f"the lock {self.key!r} is not held")
        return self._token

    def release(self) -> bool:
        """Return whether the lock was still held."""
        self._released.set()
        self._thread.join()
        return self._store.delete(self.key, value=self.holder)
    close = release

    def _take(self, give_up: float = inf) -> bool:
        """Take or renew. The lease counts from the moment at which the request is sent: the store's ends later."""
        sent = time.monotonic()
        version = self._store.set(self.key, self.holder, condition="NEX", expires=self.lease,
                                  timeout=max(0.001, min(self._store.timeout, self.lease, give_up - sent)))
        if version:
            self._token, self._until = version, sent + self.lease
        return bool(version)

    def _renew(self) -> None:
        while not self._released.wait(max(0, min(self.lease / 3, self._until - time.monotonic()))):
            with suppress(StateStoreError):  # try again until the lease ends
                if time.monotonic() >= self._until or not self._take(self._until):
                    return self.lost.set()


class StateStore(_Closes):
    """Connects to mqtt[s]://[USER:PASSWORD@]HOST[:PORT]. mqtts, or a context in `tls`: over TLS. A request without a reply
    within `timeout` seconds raises NoReply, which names the problem of the connection."""
    def __init__(self, url: str, client_id: str | None = None, *, tls: ssl.SSLContext | None = None, timeout: float = 10.0):
        self.client_id, self.timeout = client_id or f"python-{uuid.uuid4().hex[:12]}", timeout
        self._url = urlsplit(url)
        if self._url.scheme not in ("mqtt", "mqtts") or not self._url.hostname:
            raise ValueError("mqtt[s]://[USER:PASSWORD@]HOST[:PORT] was expected")
        self._tls = tls or (ssl.create_default_context() if self._url.scheme == "mqtts" else None)
        self._replies = f"clients/{self.client_id}/services/statestore/_any_/command/invoke/response"
        self._notify = f"clients/{SERVICE}/{self.client_id.encode().hex().upper()}/command/notify/"
        self._lock = threading.RLock()  # of the next two lines
        self._mqtt, self._payload_max = None, inf  # the client of paho while connected and subscribed; bytes
        self._pending = {}  # by correlation data: message, future of the reply
        self._watches, self._registrations = set(), {}  # a lock for each watched key: one KEYNOTIFY at a time
        self._closing, self._ended, self._problem = threading.Event(), threading.Event(), "not connected"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def set(self, key: str | bytes, value: str | bytes, *, condition: str | None = None, expires: float | None = None,
            fence: str | None = None, timeout: float | None = None) -> str | None:
        """Set a key, which expires after `expires` seconds. Return the new version, or None if the condition is not met: "NX"
        (the key does not exist) or "NEX" (it does not exist, or has this value)."""
        words = [*([condition] if condition else []), *(["PX", ceil(expires * 1000)] if expires is not None else [])]
        reply = self.ask("SET", key, value, *words, fence=fence, timeout=timeout)
        return reply.version if reply.value == b"OK" else None

    def get(self, key: str | bytes) -> bytes | None:
        """Return the value, or None if the key does not exist. ask("GET", key) also returns the version."""
        return self.ask("GET", key).value

    def delete(self, key: str | bytes, *, value: str | bytes | None = None, fence: str | None = None) -> bool:
        """Delete the key, with `value` only if it has that value. Return whether it was deleted."""
        return self.ask(*(["DEL", key] if value is None else ["VDEL", key, value]), fence=fence).value == 1

    def watch(self, key: str | bytes) -> Watch:
        """Register for the changes of one key; `*` is not special."""
        return Watch(self, key if isinstance(key, bytes) else key.encode())

    def lock(self, key: str | bytes, lease: float = 10.0, timeout: float = inf) -> Lock:
        """Wait until the lock is free and take it. Raise TimeoutError after `timeout` seconds, NoReply without a reply."""
        return Lock(self, key, lease, timeout)

    def ask(self, *words: Any, fence: str | None = None, timeout: float | None = None, topic: str = "command/invoke") -> Value:
        """Send a request and return its reply. Raise Refused or NoReply."""
        timeout = self.timeout if timeout is None else timeout
        properties = Properties(PacketTypes.PUBLISH)
        properties.ResponseTopic, properties.CorrelationData = self._replies, uuid.uuid4().bytes
        properties.MessageExpiryInterval = max(1, ceil(timeout))  # the store does not execute it much later
        properties.UserProperty = [("__ts", f"{time.time_ns() // 1_000_000}:0:{self.client_id}"),
                                   ("__srcId", self.client_id), *([("__ft", fence)] if fence else [])]
        message, reply = (f"{SERVICE}/{topic}", encode(words), 1, False, properties), Future()
        with self._lock:
            if self._closing.is_set():
                raise StateStoreError("the client is closed")
            self._pending[properties.CorrelationData] = message, reply
            self._mqtt and self._publish(message)  # else when connected
        try:
            payload, version = reply.result(timeout)
        except TimeoutError:
            self._pending.pop(properties.CorrelationData, None)
            raise NoReply(f"{words[0]} got no reply within {timeout:.3g} s: {self._problem}") from None
        return Value(decode(payload), version)

    def _publish(self, message: tuple) -> None:
        """Publish a request, unless the broker would close the connection because of its length."""
        if len(message[1]) <= self._payload_max:
            return self._mqtt.publish(*message)
        self._pending.pop(message[4].CorrelationData)[1].set_exception(StateStoreError("longer than the broker accepts"))

    def close(self) -> None:
        """Disconnect. The store ends the registrations of this client. Locks are not released: they expire."""
        with self._lock:
            self._closing.set()
            while self._pending:
                self._pending.popitem()[1][1].set_exception(StateStoreError("the client is closed"))
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        """Connect again and again, each time with a new mqtt.Client: an old one would send outdated requests."""
        paho_2 = (mqtt.CallbackAPIVersion.VERSION2,) if hasattr(mqtt, "CallbackAPIVersion") else ()
        while not self._closing.is_set():
            self._ended.clear()
            client = mqtt.Client(*paho_2, client_id=self.client_id, protocol=mqtt.MQTTv5, reconnect_on_failure=False)
            # with Nagle's algorithm each request would wait for the broker's delayed TCP acknowledgement
            client.on_socket_open = lambda _, __, sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.on_connect, client.on_subscribe, client.on_message = self._on_connect, self._on_subscribe, self._on_message
            client.on_disconnect = lambda *_: self._ended.set()
            self._url.username and client.username_pw_set(unquote(self._url.username), unquote(self._url.password or ""))
            self._tls and client.tls_set_context(self._tls)
            try:
                client.connect(self._url.hostname, self._url.port or (8883 if self._tls else 1883), keepalive=20)
                client.loop_start()
                self._closing.is_set() or self._ended.wait()
            except OSError as error:
                self._problem = str(error)
            self._mqtt = None
            client.disconnect()
            client.loop_stop()
            self._closing.wait(RECONNECT)

    def _on_connect(self, client: mqtt.Client, _userdata: Any, _flags: Any, reason: Any, properties: Any) -> None:
        self._payload_max = getattr(properties, "MaximumPacketSize", inf) - 1000  # for the topic and the properties
        self._problem = f"the broker says: {reason}"
        client.subscribe([(self._replies, 1), (self._notify + "+", 1)])

    def _on_subscribe(self, client: mqtt.Client, _userdata: Any, _mid: int, reasons: list, *_: Any) -> None:
        self._problem = f"the subscription to {self._replies}: {reasons[0]}"
        if reasons[0].value >= 0x80:  # the second may be refused: the plugin delivers notifications without it
            return
        with self._lock:
            self._mqtt, self._problem = client, "connected"
            for message, _ in list(self._pending.values()):
                self._publish(message)
            for watch in list(self._watches):
                threading.Thread(target=watch._register, daemon=True).start()

    def _on_message(self, _client: mqtt.Client, _userdata: Any, message: mqtt.MQTTMessage) -> None:
        version = dict(getattr(message.properties, "UserProperty", [])).get("__ts")
        with self._lock:
            _, reply = self._pending.pop(getattr(message.properties, "CorrelationData", None), (None, None))
        reply and reply.set_result((message.payload, version))
        for watch in [each for each in list(self._watches) if message.topic == self._notify + each.key.hex().upper()]:
            value = message.payload.removeprefix(NOTIFY_SET)
            watch._offer(Value(decode(value) if value != message.payload else None, version))
