# SPDX-License-Identifier: Apache-2.0
"""A client whose replies show whether each of its requests was executed once."""

from support import resp
from support.client import INVOKE
from support.wire_client import WireClient

DELETION = b"deletion"


class Writer:
    """Creates its key and deletes it, again and again, without waiting for replies. Both requests have another reply if they are
    executed twice. The deletion has no timestamp and always the same Correlation Data, so only its number identifies it."""

    def __init__(self, site, value_length=1):
        """value_length: at least. A value is the number of the pair."""
        self.client = site.connect(kind=WireClient)
        self.key = f"key-{self.client.id}"
        self.n_sent = 0
        self._value_length = value_length

    def send(self, n_pairs):
        for n in range(self.n_sent, self.n_sent + n_pairs):
            self.client.begin("SET", self.key, b"%0*d" % (self._value_length, n), "NX", correlation=b"%d" % n)
            self.client.send(self.client.encode_publish(INVOKE, resp.request("DEL", self.key), CorrelationData=DELETION,
                                                        ResponseTopic=self.client.response_topic))
        self.n_sent += n_pairs

    def receive(self):
        """Receive the replies to all requests, in the order of the requests, and no further one. Return a pair of payloads for
        each pair of requests."""
        def payload_of(correlation):
            reply = self.client.message(self.client.response_topic)
            assert reply.correlation == correlation
            return reply.payload

        pairs = [(payload_of(b"%d" % n), payload_of(DELETION)) for n in range(self.n_sent)]
        assert self.client.messages() == []
        return pairs
