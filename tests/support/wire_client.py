# SPDX-License-Identifier: Apache-2.0
"""A client of the state store protocol without a thread, over a socket that the test may cut.

It reads its socket only during its calls, so a test knows the order of events.
"""

import uuid

from support import hlc, resp
from support.client import INVOKE, NOTIFY_PREFIX, base16, reply_topic
from support.connection import Connection
from support.process import wait_until

MARKER = "marker"

NOT_REGISTERED = b":0\r\n"  # the reply to KEYNOTIFY STOP


class WireClient(Connection):
    """Subscribes only to its response topic."""

    def __init__(self, port, client_id=None, **more):
        super().__init__(port, client_id, **more)
        self.clock = hlc.Clock(self.id)
        self.response_topic = reply_topic(self.id)
        self.subscribe(self.response_topic)

    def close(self):
        self._socket.close()

    # Requests

    def encode_request(self, *words, correlation=None, ts=None, source=None, response_topic=None, user=(),
                       retain=False):
        correlation = correlation or uuid.uuid4().bytes
        user = [("__ts", str(ts or self.clock.now())), ("__srcId", source or self.id), *user]
        return correlation, self.encode_publish(INVOKE, resp.request(*words), user=user, retain=retain,
                                                CorrelationData=correlation,
                                                ResponseTopic=response_topic or self.response_topic)

    def begin(self, *words, **more):
        """Send a request. Pass the returned value to reply_to() for its reply."""
        correlation, encoded = self.encode_request(*words, **more)
        self.send(encoded)
        return correlation

    def reply_to(self, correlation):
        return self._next(lambda message: message.correlation == correlation)

    def ask(self, *words, **more):
        return self.reply_to(self.begin(*words, **more)).payload

    def begin_and_disconnect(self, *words):
        """Send the request, and close the connection."""
        self.begin(*words)
        self.disconnect()

    def still_works(self):
        """Return whether the connection still works."""
        return self.ask("GET", "whatever") == b"$-1\r\n"

    def wait_until_served(self):
        """Wait until the broker has room for requests: it drops them while the queue of the store's session is full."""
        wait_until(lambda: self.begin("GET", "whatever") and self.messages(), "a request has its reply")

    # Notifications

    def subscribe_to_notifications(self):
        assert self.subscribe(f"{NOTIFY_PREFIX}{base16(self.id)}/command/notify/+") == 1

    def register(self, *keys):
        for key in keys:
            assert self.ask("KEYNOTIFY", key) == b"+OK\r\n"

    def stop(self, key):
        return self.ask("KEYNOTIFY", key, "STOP")

    def notification(self):
        return self._next(lambda message: message.topic.startswith(NOTIFY_PREFIX))

    def notifications(self):
        """Return all notifications until now.

        Notifications arrive in order: the one for a new marker key arrives after all pending ones.
        """
        marker = f"{MARKER}-{uuid.uuid4().hex}"
        self.register(marker)
        assert self.ask("SET", marker, "") == b"+OK\r\n"
        notifications = []
        while True:
            notification = self.notification()
            if notification.topic.endswith(base16(marker)):
                self.stop(marker)
                self.ping()  # the broker has its acknowledgements, and sends nothing again
                return notifications
            notifications.append(notification)

    def changes(self):
        """Return the words after NOTIFY of all notifications until now."""
        return [resp.read(notification.payload)[1:] for notification in self.notifications()]

    def _next(self, is_wanted):
        while True:
            for at, message in enumerate(self._messages):
                if is_wanted(message):
                    return self._messages.pop(at)
            self._receive()


def wire_clients(site, n_clients):
    return [site.connect(kind=WireClient) for _ in range(n_clients)]


# Changes: the words of a notification after NOTIFY.


def was_set(value):
    return [b"SET", b"VALUE", resp.to_bytes(value)]


DELETED = [b"DELETE"]
