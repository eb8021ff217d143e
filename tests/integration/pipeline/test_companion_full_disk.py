# SPDX-License-Identifier: Apache-2.0
"""A disk that fills and has room again under load, and kills of the store meanwhile: with the plugin each request gets one
reply, and a request that was refused changed nothing.

STATESTORE_KILLS sets the number of kills.
"""

import os
import random

from support import resp
from support.client import INVOKE
from support.limited_store import LimitedStore
from support.wire_client import WireClient

N_KILLS = int(os.environ.get("STATESTORE_KILLS", "20"))
N_WRITERS = 4
N_PAIRS = 20  # of each writer between two kills
VALUE = b"v" * 4000
ROOM = 60 * 1024  # for a new database and some of the requests

OK, EXISTS, DELETED, ABSENT = b"+OK\r\n", b":-1\r\n", b":1\r\n", b":0\r\n"
FULL = b"-ERR the disk is full\r\n"


class Writer:
    """Creates its key and deletes it, again and again, without waiting for replies. The deletion has no timestamp, so only its
    number identifies it."""

    def __init__(self, site):
        self.client = site.connect(kind=WireClient)
        self.key = f"key-{self.client.id}"
        self.n_sent = 0

    def send(self):
        for n in range(self.n_sent, self.n_sent + N_PAIRS):
            self.client.begin("SET", self.key, VALUE, "NX", correlation=b"set-%d" % n)
            self.client.send(self.client.encode_publish(INVOKE, resp.request("DEL", self.key), CorrelationData=b"del-%d" % n,
                                                        ResponseTopic=self.client.response_topic))
        self.n_sent += N_PAIRS

    def replies(self):
        """Receive the replies to all requests, in the order of the requests, and no further one."""
        for n in range(self.n_sent):
            for verb in b"set", b"del":
                reply = self.client.message(self.client.response_topic)
                assert reply.correlation == b"%s-%d" % (verb, n)
                yield verb, reply.payload
        assert self.client.messages() == []


def test_each_request_gets_one_reply_while_the_disk_fills_and_the_store_is_killed(make_site, data):
    site = make_site("plugin_opt_statestored_wait 0")  # however long a start of the store takes
    site.store = LimitedStore(site.directory, site.broker.port, ("--data-dir", data))
    site.store.room = ROOM
    site.store.start()
    writers = [Writer(site) for _ in range(N_WRITERS)]
    dice = random.Random(1)

    for n in range(N_KILLS):
        for writer in writers:
            writer.send()
        if dice.random() < 0.5:
            site.store.lift()
        if dice.random() < 0.5:
            site.store.kill()
            site.store.start()
    site.store.lift()

    n_of = dict.fromkeys((OK, EXISTS, DELETED, ABSENT, FULL), 0)
    for writer in writers:
        exists = False
        for verb, payload in writer.replies():
            n_of[payload] += 1
            if payload != FULL:
                assert payload == ((EXISTS if exists else OK) if verb == b"set" else (DELETED if exists else ABSENT))
                exists = verb == b"set"
    assert n_of[OK] and n_of[FULL], n_of
