# SPDX-License-Identifier: Apache-2.0
"""The network between two parties, which can fail."""

import selectors
import socket
import struct
import threading

CHUNK = 1 << 16

CUT, SWALLOW, HOLD, MEND, END = b"c", b"s", b"h", b"m", b"e"


class Proxy:
    """Passes on what comes to its port."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ours, self._orders = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._orders, selectors.EVENT_READ)
        self._others = {}  # each end of a connection -> its other end
        self._near = set()
        self._swallowed, self._held = set(), set()
        self._is_cut = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self):
        self._order(END)
        self._thread.join()
        for one in (self._listener, self._ours, self._orders, self._selector):
            one.close()

    def cut(self):
        """Resets what is connected and, until mend(), whatever connects."""
        self._order(CUT)

    def swallow(self):
        """What is connected stays so, but nothing arrives any more. New connections are not concerned."""
        self._order(SWALLOW)

    def hold(self):
        """What those who are connected send is not taken from them, until mend(); what is sent to them is."""
        self._order(HOLD)

    def mend(self):
        self._order(MEND)

    def _order(self, order):
        self._ours.send(order)
        self._ours.recv(1)  # done

    # On its own thread

    def _run(self):
        order = None
        while order != END:
            for key, _ in self._selector.select():
                if key.fileobj is self._orders:
                    order = self._orders.recv(1)
                    self._obey(order)
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj in self._others:
                    self._pass_on(key.fileobj)

    def _obey(self, order):
        if order == SWALLOW:
            self._swallowed = set(self._others)
        elif order == HOLD:
            self._held = set(self._near)
            for one in self._held:
                self._selector.unregister(one)
        else:
            self._is_cut = order in (CUT, END)
            for one in self._held:
                self._selector.register(one, selectors.EVENT_READ)
            self._held = set()
        if self._is_cut:
            for one in list(self._others):
                self._reset(one)
        self._orders.send(order)

    def _accept(self):
        near, _ = self._listener.accept()
        try:
            if self._is_cut:
                raise ConnectionRefusedError
            far = socket.create_connection(("127.0.0.1", self._target))
        except ConnectionError:
            near.close()
            return
        self._near.add(near)
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._others[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, one):
        other = self._others[one]
        try:
            data = one.recv(CHUNK)
            if data and one not in self._swallowed:
                other.sendall(data)
        except ConnectionError:
            data = b""
        if not data:
            self._reset(one)
            self._reset(other)

    def _reset(self, one):
        if self._others.pop(one, None):
            self._swallowed.discard(one)
            self._near.discard(one)
            if one not in self._held:
                self._selector.unregister(one)
            self._held.discard(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()
