# SPDX-License-Identifier: Apache-2.0
"""A service manager as far as a service sees one: the socket on which it says how it is."""

import os
import socket
import time

from support.process import PATIENCE


class ServiceManager:
    def __init__(self, directory, watchdog_s=None):
        self._path = os.path.join(directory, "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._watchdog_s = watchdog_s

    def close(self):
        self._socket.close()

    def environment(self):
        """What the service is to be started with."""
        asked = {} if self._watchdog_s is None else {"WATCHDOG_USEC": str(int(self._watchdog_s * 1e6))}
        return {"NOTIFY_SOCKET": self._path, **asked}

    def receive(self, patience=PATIENCE):
        """The next datagram as a dictionary; None where none comes in time."""
        self._socket.settimeout(patience)
        try:
            text = self._socket.recv(4096).decode()
        except TimeoutError:
            return None
        return dict(line.split("=", 1) for line in text.splitlines())

    def receive_until(self, name):
        """The datagrams up to the first that has this word, itself included."""
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
        """What has been said until now."""
        got = []
        self._socket.setblocking(False)
        try:
            while True:
                got.append(dict(line.split("=", 1) for line in self._socket.recv(4096).decode().splitlines()))
        except BlockingIOError:
            return got
