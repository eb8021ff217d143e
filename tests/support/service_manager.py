# SPDX-License-Identifier: Apache-2.0
"""The notification socket of a service manager (sd_notify)."""

import os
import queue
import socket
import threading
import time
import uuid

from support.process import PATIENCE

END, MARKER = "END", "MARKER"  # fields that close() and drain() send themselves


class ServiceManager:
    """Reads each datagram at once: the kernel blocks a service whose datagrams are not read."""

    def __init__(self, directory, watchdog_s=None):
        self._path = os.path.join(directory, "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._watchdog_s = watchdog_s
        self._received = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def close(self):
        self._send(END)
        self._reader.join()
        self._socket.close()

    def _read(self):
        fields = {}
        while END not in fields:
            fields = dict(line.split("=", 1) for line in self._socket.recv(4096).decode().splitlines())
            self._received.put(fields)

    def _send(self, name, value=""):
        self._socket.sendto(f"{name}={value}".encode(), self._path)

    def environment(self):
        """Return the environment for the service."""
        watchdog = {} if self._watchdog_s is None else {"WATCHDOG_USEC": str(int(self._watchdog_s * 1e6))}
        return {"NOTIFY_SOCKET": self._path, **watchdog}

    def receive(self, patience=PATIENCE):
        """Return the next datagram as a dictionary, or None after the timeout."""
        try:
            return self._received.get(timeout=patience)
        except queue.Empty:
            return None

    def receive_until(self, name):
        """Return the datagrams up to and including the first with this field."""
        got = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            datagram = self.receive(deadline - time.monotonic())
            assert datagram is not None, f"no {name} among {got}"
            got.append(datagram)
            if name in datagram:
                return got
        raise AssertionError(f"no {name} among {got}")

    def drain(self):
        """Return all datagrams until now."""
        marker = uuid.uuid4().hex
        self._send(MARKER, marker)
        return [datagram for datagram in self.receive_until(MARKER) if MARKER not in datagram]
