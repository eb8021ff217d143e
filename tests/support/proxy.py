# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that simulates failures of the network."""

import select
import selectors
import socket
import struct
import threading

CHUNK = 1 << 16

CUT, RESET, SWALLOW, HOLD, HOLD_REPLIES, MEND, END = b"c", b"r", b"s", b"h", b"l", b"m", b"e"


class End:
    """One of the two ends of a connection. Unsent bytes for this end are in `pending`; the other end is not read until
    they are sent."""

    def __init__(self, sock, is_near):
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.is_near = is_near  # the side that connected to the proxy
        self.other = None
        self.pending = b""
        self.is_swallowed = self.is_held = False

    def events(self):
        can_read = not self.other.pending and not self.is_held
        return selectors.EVENT_READ * can_read | selectors.EVENT_WRITE * bool(self.pending)

    def receive(self):
        data = self.socket.recv(CHUNK)
        if not data:
            raise ConnectionResetError
        if not self.is_swallowed:
            self.other.pending = data

    def send(self):
        self.pending = self.pending[self.socket.send(self.pending):]

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Proxy:
    """Forwards the connections to its port."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ours, self._orders = socket.socketpair()
        self._ends = set()
        self._is_cut = False
        self.held_after = None  # hold each further connection when its client has sent these bytes
        self.recorded = bytearray()  # what clients have sent, while is_recording
        self.is_recording = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self):
        self._order(END)
        self._thread.join()
        for one in (self._listener, self._ours, self._orders):
            one.close()

    def cut(self):
        """Reset all connections, and new ones until mend()."""
        self._order(CUT)

    def reset(self):
        """Reset the connections that exist. New connections are accepted at once."""
        self._order(RESET)

    def swallow(self):
        """Forward nothing more over the existing connections, which stay open. New connections work."""
        self._order(SWALLOW)

    def hold(self):
        """Stop reading from clients until mend(); continue to send to them."""
        self._order(HOLD)

    def hold_replies(self):
        """Stop reading from the broker until mend(); continue to send to it."""
        self._order(HOLD_REPLIES)

    def has_held_replies(self):
        """Return whether hold_replies() keeps bytes from clients."""
        return any(end.is_held and not end.is_near and select.select([end.socket], [], [], 0)[0] for end in list(self._ends))

    def mend(self):
        self._order(MEND)

    def hold_after(self, data):
        """As hold(), for connections that begin later: stop when the client has sent a packet with this data."""
        self.held_after = data

    def _order(self, order):
        self._ours.send(order)
        self._ours.recv(1)  # done

    # On its own thread

    def _run(self):
        order = None
        while order != END:
            with selectors.DefaultSelector() as selector:
                selector.register(self._listener, selectors.EVENT_READ)
                selector.register(self._orders, selectors.EVENT_READ)
                for end in self._ends:
                    if end.events():
                        selector.register(end.socket, end.events(), end)
                ready = selector.select()
            for key, events in ready:
                if key.fileobj is self._orders:
                    order = self._orders.recv(1)
                    self._obey(order)
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.data in self._ends:
                    self._pass_on(key.data, events)

    def _obey(self, order):
        self._is_cut = order in (CUT, END)
        for end in list(self._ends):
            if self._is_cut or order == RESET:
                self._reset(end)
            end.is_swallowed |= order == SWALLOW
            end.is_held = order == (HOLD if end.is_near else HOLD_REPLIES)
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
        ends = End(near, True), End(far, False)
        ends[0].other, ends[1].other = ends[1], ends[0]
        self._ends.update(ends)

    def _pass_on(self, end, events):
        try:
            if events & selectors.EVENT_READ:
                end.receive()
                self._inspect(end)
            if events & selectors.EVENT_WRITE:
                end.send()
        except ConnectionError:
            self._reset(end)

    def _inspect(self, end):
        """Look at what this end has just sent. A packet arrives whole if the client waits for the reply to its last one."""
        if not end.is_near:
            return
        if self.is_recording:
            self.recorded += end.other.pending
        if self.held_after and self.held_after in end.other.pending:
            end.is_held, self.held_after = True, None

    def _reset(self, end):
        for one in {end, end.other} & self._ends:
            self._ends.remove(one)
            one.reset()
