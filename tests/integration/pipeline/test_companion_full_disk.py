# SPDX-License-Identifier: Apache-2.0
"""A disk that fills and has room again under load, and kills of the store meanwhile: with the plugin each request gets one
reply, and a request that was refused changed nothing.

STATESTORE_KILLS sets the number of kills.
"""

import os
import random

from support.limited_store import LimitedStore
from support.writer import Writer

N_KILLS = int(os.environ.get("STATESTORE_KILLS", "20"))
N_WRITERS = 4
N_PAIRS = 20  # of each writer between two kills
VALUE_LENGTH = 4000
ROOM = 60 * 1024  # for a new database and some of the requests

OK, EXISTS, DELETED, ABSENT = b"+OK\r\n", b":-1\r\n", b":1\r\n", b":0\r\n"
FULL = b"-ERR the disk is full\r\n"


def test_each_request_gets_one_reply_while_the_disk_fills_and_the_store_is_killed(make_site, data):
    site = make_site()
    site.store = LimitedStore(site.directory, site.broker.port, ("--data-dir", data))
    site.store.room = ROOM
    site.store.start()
    writers = [Writer(site, VALUE_LENGTH) for _ in range(N_WRITERS)]
    dice = random.Random(1)

    for n in range(N_KILLS):
        for writer in writers:
            writer.send(N_PAIRS)
        if dice.random() < 0.5:
            site.store.lift()
        if dice.random() < 0.5:
            site.store.kill()
            site.store.start()
    site.store.lift()

    n_of = dict.fromkeys((OK, EXISTS, DELETED, ABSENT, FULL), 0)
    for writer in writers:
        exists = False
        for created, deleted in writer.receive():
            n_of[created] += 1
            n_of[deleted] += 1
            if created != FULL:
                assert created == (EXISTS if exists else OK)
                exists = True
            if deleted != FULL:
                assert deleted == (DELETED if exists else ABSENT)
                exists = False
    assert n_of[OK] and n_of[FULL], n_of
