# SPDX-License-Identifier: Apache-2.0
"""A client with a constant number of outstanding requests."""

import threading
import uuid

from support.process import PATIENCE


class Load:
    """Sets key after key until stop(). Each answer triggers the next request."""

    def __init__(self, client, depth=50):
        self.client = client
        self.answers = {}  # request number -> its answer
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
            answer = self._send(number)
        answer.add_done_callback(lambda done: self._on_answer(number, done.result()))

    def _on_answer(self, number, answer):
        with self._changed:
            self.answers[number] = answer
            self._changed.notify_all()
        self._send_next()

    def _unanswered(self):
        return [number for number in range(len(self._requests)) if number not in self.answers]

    def wait_for_progress(self, n_more=200):
        with self._changed:
            target = len(self.answers) + n_more
            assert self._changed.wait_for(lambda: len(self.answers) >= target, PATIENCE), "no progress"

    def send_unanswered_again(self):
        """Send the outstanding requests again, as a client does after a timeout. The first answer to either copy counts."""
        with self._changed:
            for number in self._unanswered():
                self._send(number)

    def stop(self):
        with self._changed:
            self._stopped = True

    def wait_for_all(self):
        with self._changed:
            self._changed.wait_for(lambda: not self._unanswered(), PATIENCE)
            unanswered = self._unanswered()
        assert not unanswered, f"{len(unanswered)} of {len(self._requests)} requests unanswered"
