# SPDX-License-Identifier: Apache-2.0
"""Eight clients take turns at one lock and add to one counter, as published lock clients do."""

from concurrent.futures import ThreadPoolExecutor

from support import resp

N_CLIENTS = 8
N_TURNS = 25

LOCK = "lock"
COUNTER = "counter"


def wait_for_release(client, version):
    """Wait for the notification that the lock of this or a later version was deleted. Never poll."""
    while True:
        notification = client.notification()
        if notification.payload.endswith(b"DELETE\r\n") and notification.ts >= version:
            return


def acquire(client):
    """Returns the lock's version: the fencing token."""
    while True:
        reply = client.request("SET", LOCK, client.id, "NX", "PX", "600000")
        if reply.payload == b"+OK\r\n":
            return reply.ts
        assert reply.payload == b":-1\r\n"
        wait_for_release(client, reply.ts)


def add_one(client, token):
    reply = client.request("GET", COUNTER)
    count = 0 if reply.payload == b"$-1\r\n" else int(resp.read(reply.payload))
    assert client.request("SET", COUNTER, count + 1, ft=token).payload == b"+OK\r\n"


def take_turns(client):
    client.watch(LOCK)
    for _ in range(N_TURNS):
        token = acquire(client)
        add_one(client, token)
        assert client.request("VDEL", LOCK, client.id).payload == b":1\r\n"


def test_eight_clients_at_one_lock_lose_no_count(site):
    site.start_store()
    clients = [site.connect() for _ in range(N_CLIENTS)]

    with ThreadPoolExecutor(N_CLIENTS) as pool:
        for turns in [pool.submit(take_turns, client) for client in clients]:
            turns.result()

    assert clients[0].request("GET", COUNTER).payload == b"$3\r\n200\r\n"


def test_a_lock_of_a_vanished_owner_is_acquired_after_its_expiry(site):
    site.start_store()
    owner, successor = site.connect(), site.connect()
    successor.watch(LOCK)
    stale = owner.request("SET", LOCK, owner.id, "NX", "PX", "200").ts
    owner.close()

    token = acquire(successor)

    assert token > stale
    add_one(successor, token)
    late = successor.request("SET", COUNTER, "from the past", ft=stale)
    assert late.payload.startswith(b"-ERR the request fencing token is a lower version")
