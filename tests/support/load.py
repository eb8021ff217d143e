# SPDX-License-Identifier: Apache-2.0
"""A client with a constant number of outstanding requests."""

import threading
import uuid

from support.process import PATIENCE


class Load:
    """Sets key after key until stop(). Each reply triggers the next request."""

    def __init__(self, client, depth=50):
        self.client = client
        self.replies = {}  # request number -> its reply
        self._requests = []  # timestamp and correlation data of each request, for repetitions
        self._stopped = False
        self._changed = threading.Condition(threading.RLock())
        for _ in range(depth):
            self._send_next()

    def key(self, number):
        return f"load-{self.client.id}-{number}"

    def _send(self, number):
        return self.client.send("SET", self.key(number), number, **self._requests[number])

    def _send_next(self):
        with self._changed:
            if self._stopped:
                return
            number = len(self._requests)
            self._requests.append({"ts": self.client.clock.now(), "correlation": uuid.uuid4().bytes})
            reply = self._send(number)
        reply.add_done_callback(lambda done: self._on_reply(number, done.result()))

    def _on_reply(self, number, reply):
        with self._changed:
            self.replies[number] = reply
            self._changed.notify_all()
        self._send_next()

    def _without_reply(self):
        return [number for number in range(len(self._requests)) if number not in self.replies]

    def wait_for_progress(self, n_more=200):
        with self._changed:
            target = len(self.replies) + n_more
            assert self._changed.wait_for(lambda: len(self.replies) >= target, PATIENCE), "no progress"

    def repeat_requests_without_reply(self):
        """Send the outstanding requests again, as a client does after a timeout. The first reply to either copy counts."""
        with self._changed:
            for number in self._without_reply():
                self._send(number)

    def stop(self):
        with self._changed:
            self._stopped = True

    def wait_for_all(self):
        with self._changed:
            self._changed.wait_for(lambda: not self._without_reply(), PATIENCE)
            without_reply = self._without_reply()
        assert not without_reply, f"{len(without_reply)} of {len(self._requests)} requests without a reply"


def start_loads(site):
    loads = [Load(site.connect()) for _ in range(3)]
    for load in loads:
        load.wait_for_progress()
    return loads


def finish_loads(loads):
    """Check that all go on, and that each request gets its reply."""
    for load in loads:
        load.wait_for_progress()
        load.stop()
    for load in loads:
        load.wait_for_all()
        assert {reply.payload for reply in load.replies.values()} == {b"+OK\r\n"}
