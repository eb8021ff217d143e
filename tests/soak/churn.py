# SPDX-License-Identifier: Apache-2.0
"""Clients that send requests, watch keys and disconnect in every way. At most N_CONNECTED are connected at a time.

One thread: notifications are read between requests, so that no connection waits for long.
"""

import contextlib
import random
import selectors
import time

from support import disconnects
from support.connection import Disconnected
from support.wire_client import WireClient

N_IDS = 1000
N_CONNECTED = 300
N_KEYS = 200
N_WATCHED = 2

REQUESTS_PER_S = 150
DISCONNECTS_PER_S = 8

SESSION_EXPIRY_S = 1000
KEEPALIVE_S = 3  # of the clients that disconnect by keepalive

GONE = (Disconnected, OSError)


def by_cut(_churn, client):
    client.cut()


# With by_keepalive the broker ends the connection when the keep-alive has passed. All other ways end it in leave().
WAYS = [disconnects.by_disconnect, disconnects.by_disconnect_with_will, by_cut, disconnects.by_takeover,
        disconnects.by_takeover_of_the_session, disconnects.by_protocol_error, disconnects.by_being_kicked,
        disconnects.by_keepalive]


class SoakClient(WireClient):
    def __init__(self, port, client_id, way=None, **more):
        super().__init__(port, client_id, keepalive=KEEPALIVE_S * (way is disconnects.by_keepalive), **more)
        self.way = way
        self.seen = set()

    def fileno(self):
        return self._socket.fileno()

    def drain(self):
        """Read the available packets. There must be at least one: this does not wait."""
        data = self._socket.recv(1 << 16)
        if not data:
            raise Disconnected(self._reason)
        self._received += data
        while packet := self._take_packet():
            self._handle(*packet)

    def take_notifications(self):
        """Return the number of new notifications, and how many of them this connection had already received."""
        taken = [(message.topic, message.prop("__ts"), message.payload) for message in self._messages]
        self._messages.clear()
        n_repeated = sum(one in self.seen for one in taken) + len(taken) - len(set(taken))
        self.seen.update(taken)
        return len(taken), n_repeated


class Churn:
    def __init__(self, port, seed):
        self.port = port
        self.random = random.Random(seed)
        self.ids = [f"soak-{n}" for n in range(N_IDS)]
        self.clients = {}
        self.selector = selectors.DefaultSelector()
        self.latencies = []
        self.n_notifications = self.n_repeated = self.n_wrong = 0
        self.n_disconnected = dict.fromkeys(WAYS, 0)
        self.n_steps = 0
        self.next_at = time.monotonic()

    # Connecting and disconnecting

    def connect(self, client_id, _kind=None, **more):
        """Connect a client. The functions of disconnects.py that take over a client id call this as site.connect()."""
        way = self.random.choice(WAYS)
        client = SoakClient(self.port, client_id, way, **more)
        self.clients[client_id] = client
        self.selector.register(client, selectors.EVENT_READ, client)
        with self.forgetting_if_closed(client):
            if self.random.random() < 0.5:
                client.subscribe_to_notifications()
            for key in self.random.sample(range(N_KEYS), N_WATCHED):
                self.ask(client, "KEYNOTIFY", f"key-{key}")
        return client

    def join(self):
        client_id = self.random.choice(self.ids)
        if client_id in self.clients:
            return
        keeps = self.random.random() < 0.5
        self.connect(client_id, clean_start=not keeps, session_expiry=SESSION_EXPIRY_S * keeps)

    @contextlib.contextmanager
    def forgetting_if_closed(self, client):
        """Run the block. If the broker closes the connection meanwhile, forget the client."""
        try:
            yield
        except GONE:
            self.n_disconnected[disconnects.by_keepalive] += client.way is disconnects.by_keepalive
            self.forget(client)

    def forget(self, client):
        self.selector.unregister(client)
        client.close()
        if self.clients.get(client.id) is client:
            del self.clients[client.id]

    def leave(self):
        client = self.random.choice(list(self.clients.values()))
        if client.way is disconnects.by_keepalive:
            return  # the broker ends its connection
        self.n_disconnected[client.way] += 1
        self.selector.unregister(client)
        del self.clients[client.id]
        with contextlib.suppress(*GONE):
            client.way(self, client)
        client.close()

    # Asking

    def ask(self, client, *words):
        begin = time.perf_counter()
        reply = client.ask(*words)
        self.latencies.append(time.perf_counter() - begin)
        self.n_wrong += reply.startswith(b"-")
        self.count(client)

    def count(self, client):
        n, n_repeated = client.take_notifications()
        self.n_notifications += n
        self.n_repeated += n_repeated

    def request(self):
        client = self.random.choice(list(self.clients.values()))
        if client.way is disconnects.by_keepalive:
            return  # sends nothing, so that its keepalive expires
        key, dice = f"key-{self.random.randrange(N_KEYS)}", self.random.random()
        if dice < 0.5:
            words = "SET", key, self.random.randbytes(64)
        elif dice < 0.6:
            words = "SET", key, self.random.randbytes(64), "PX", self.random.randrange(1, 60_000)
        elif dice < 0.85:
            words = "GET", key
        elif dice < 0.95:
            words = "DEL", key
        else:
            words = "KEYNOTIFY", key, *["STOP"] * (dice < 0.975)
        with self.forgetting_if_closed(client):
            self.ask(client, *words)

    # Time

    def drain(self, client):
        with self.forgetting_if_closed(client):
            client.drain()
            self.count(client)

    def wait(self):
        """Read packets until the next step is due."""
        while True:
            left = self.next_at - time.monotonic()
            for key, _ in self.selector.select(max(left, 0)):
                self.drain(key.data)
            if left <= 0:
                return

    def step(self):
        self.n_steps += 1
        if len(self.clients) < N_CONNECTED:
            with contextlib.suppress(*GONE):
                self.join()
        elif self.n_steps % (REQUESTS_PER_S // DISCONNECTS_PER_S) == 0:
            self.leave()
        if self.clients:
            self.request()

    def run_for(self, seconds):
        """Make the same number of steps on every machine; a slow machine takes longer."""
        self.next_at = time.monotonic()
        for _ in range(int(seconds * REQUESTS_PER_S)):
            self.next_at += 1 / REQUESTS_PER_S
            self.wait()
            self.step()

    def close(self):
        for client in list(self.clients.values()):
            self.forget(client)
        self.selector.close()
