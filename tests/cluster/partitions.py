# SPDX-License-Identifier: Apache-2.0
"""One of three machines is cut off from the others. Both brokers live, and each has a client that writes and one that reads."""

import contextlib
import functools
import itertools
import time

from losses import Lock
from measured import etcd_leader, measured, place_etcd_leader
from support.cluster_client import ClusterClient
from support.connection import Disconnected
from support.counter import Counter

CUT_SECONDS = 8
READ_SECONDS = 0.1


def links_of(machine):
    return [machine.host.link, machine.host.peer_link]


# Event: whether etcd's leader is on the machine of the store's leader, and which links of these two machines are cut.
PARTITIONS = {
    "the leader's machine is cut off, with etcd's leader": (True, lambda leader, _: links_of(leader)),
    "the leader's machine is cut off, without etcd's leader": (False, lambda leader, _: links_of(leader)),
    "another machine is cut off, with etcd's leader": (False, lambda _, etcd_leader: links_of(etcd_leader)),
    "the leader's etcd, which leads, is cut off from its peers": (True, lambda leader, _: [leader.host.peer_link]),
}


def read_beside(readers, links, change, key):
    """Cut the links, change the key, and read it at each broker until the links are mended."""
    mended_at = time.monotonic() + CUT_SECONDS
    try:
        for link in links:
            link.cut()
        change()
        while time.monotonic() < mended_at:
            for reader in readers:
                with contextlib.suppress(Disconnected):  # its member leads again, so the plugin has ended the broker
                    reader.begin("GET", key)
            time.sleep(READ_SECONDS)
    finally:
        for link in links:
            link.mend()


def n_stale_reads(one, links, client, key):
    assert client.ask("SET", key, "old") == b"+OK\r\n"
    readers = [machine.connect() for machine in one.cluster.members]
    read_beside(readers, links, lambda: client.ask("SET", key, "new"), key)
    one.is_restored()
    n_stale = 0
    for reader in readers:
        with contextlib.suppress(Disconnected):
            reader.ping()
        n_stale += sum(message.payload.endswith(b"old\r\n") for message in reader.arrived())
        reader.close()
    return n_stale


def partition(run):
    """A client that counts at one broker only waits while the other one's member leads."""
    seconds, n_stale, n_early = {what: [] for what in PARTITIONS}, 0, 0
    with measured(run, has_lan=True) as one:
        cluster = one.cluster
        local = [Counter(ClusterClient(cluster, home=machine)) for machine in cluster.members]
        client, holder, contender = (ClusterClient(cluster) for _ in range(3))

        def cut(links, key, _):
            nonlocal n_stale
            n_stale += n_stale_reads(one, links, client, key)

        for n, what in zip(range(run.n_rounds), itertools.cycle(PARTITIONS)):
            is_with_leader, links_to_cut = PARTITIONS[what]
            leader = cluster.wait_for_leader()
            place_etcd_leader(cluster, leader, is_with_leader)
            links = links_to_cut(leader, etcd_leader(cluster))
            lock = Lock(holder, contender, f"lock-{n}")
            seconds[what].append(one.longest_wait(functools.partial(cut, links, f"k-{n}")))
            n_early += lock.ended_early()
        for counter in local:
            counter.client.home = None  # the last request is repeated where the leader is
        one.counters += local
        for what, waits in seconds.items():
            run.table.waits(f"partition: {what}", waits)
        run.table.faults(f"partition, {run.n_rounds} rounds: stale reads", n_stale)
        run.table.faults("partition: locks that ended early", n_early)
        one.finish("partition")
