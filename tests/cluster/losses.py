# SPDX-License-Identifier: Apache-2.0
"""Machines, stores and brokers are lost, suspended and cut off."""

import contextlib
import signal
import threading
import time

from measured import fill, measured, place_etcd_leader, repeat
from support.cluster_client import ClusterClient
from support.process import wait_until
from support.wire_client import WireClient, was_set

N_READS = 20
LOCK_MS = 5000
N_KEYS = 10_000  # while machines are lost


class Lock:
    """A lock that a client holds until its time has passed, and another client wants."""

    def __init__(self, holder, contender, key):
        self.key = key
        self.is_early = None
        self.sent = time.monotonic()
        assert holder.ask("SET", key, "holder", "NX", "PX", LOCK_MS) == b"+OK\r\n"
        self._thread = threading.Thread(target=self._contend, args=[contender], daemon=True)
        self._thread.start()

    def _contend(self, contender):
        wait_until(lambda: contender.ask("SET", self.key, "contender", "NX") == b"+OK\r\n", "the lock ends")
        self.is_early = time.monotonic() - self.sent < LOCK_MS / 1000

    def ended_early(self):
        """Wait until the lock has ended."""
        self._thread.join()
        return self.is_early is not False


def lose_machines(run):
    """In every other round it is also the machine of etcd's leader."""
    what = "a machine is killed"
    with measured(run) as one:
        fill(one.leader.broker.port, N_KEYS)
        holder, contender = ClusterClient(one.cluster), ClusterClient(one.cluster)
        seconds, n_early = {True: [], False: []}, 0
        for n in range(run.n_rounds):
            one.is_restored()
            leader = one.cluster.wait_for_leader()
            with_etcd_leader = n % 2 == 0
            place_etcd_leader(one.cluster, leader, with_etcd_leader)
            lock = Lock(holder, contender, f"lock-{n}")
            seconds[with_etcd_leader].append(one.longest_wait(lambda machine: machine.kill()))
            n_early += lock.ended_early()
            one.leader.start()
        run.table.waits(f"{what}, {N_KEYS} keys, with etcd's leader", seconds[True])
        run.table.waits(f"{what}, {N_KEYS} keys, without etcd's leader", seconds[False])
        one.finish(what)
        run.table.faults(f"{what}: locks that ended early", n_early)


def kill_stores(run):
    what = "the leader's store is killed"
    with measured(run) as one:
        leader = one.leader
        watcher, writer = WireClient(leader.broker.port), ClusterClient(one.cluster)
        watcher.subscribe_to_notifications()
        watcher.register("watched")
        seconds, n_others = [], 0
        for n in range(2 * run.n_rounds):
            writer.ask("SET", "watched", n)
            seconds.append(one.longest_wait(lambda machine: machine.member.end_process()))
            n_others += one.cluster.wait_for_leader() is not leader
        run.table.waits(what, seconds)
        run.table.row(f"{what}: rounds after which another member led", n_others)
        if n_others == 0:
            changes = watcher.changes()
            expected = [was_set(n) for n in range(2 * run.n_rounds)]
            run.table.faults(f"{what}: notifications lost", sum(one not in changes for one in expected))
            run.table.faults(f"{what}: notifications twice", len(changes) - len({tuple(one) for one in changes}))
        one.finish(what)


def step_down(run):
    repeat(run, "the leader steps down", lambda cluster, leader: leader.member.end_process(signal.SIGUSR2))


def kill_brokers(run):
    what = "the leader's broker is killed"
    with measured(run) as one:
        seconds = []
        for _ in range(run.n_rounds):
            seconds.append(one.longest_wait(lambda machine: machine.broker.kill()))
            one.leader.broker.start()
        run.table.waits(what, seconds)
        one.finish(what)


@contextlib.contextmanager
def cut_off_etcd(machine):
    for proxy in machine.proxies:
        proxy.cut()
    yield
    for proxy in machine.proxies:
        proxy.mend()


@contextlib.contextmanager
def cut_off_etcd_and_broker(machine):
    """The broker is back first."""
    with cut_off_etcd(machine):
        machine.broker_proxy.cut()
        yield
        seen = len(machine.broker.log())
        machine.broker_proxy.mend()
        machine.broker.wait_for_log("new client connected .* as statestored", seen)


def isolate(run, what, isolated, **more):
    """Clients of a former leader's broker read while another member leads and changes the key."""
    with measured(run, **more) as one:
        cluster = one.cluster
        n_stale = n_executed = 0
        for n in range(run.n_rounds):
            former = cluster.wait_for_leader()
            other = cluster.other_than(former)
            reader, setter = WireClient(former.broker.port), WireClient(former.broker.port)
            assert reader.ask("SET", f"k-{n}", "old") == b"+OK\r\n"
            with isolated(former):
                reader.begin("GET", "another")
                cluster.wait_for_leader(other)
                assert ClusterClient(cluster).ask("SET", f"k-{n}", "new") == b"+OK\r\n"
                for _ in range(N_READS):
                    reader.begin("GET", f"k-{n}")
                setter.begin("SET", f"k-{n}", "from the former leader's broker")
            wait_until(lambda: former.member.waits_for(f'"{other.name}" leads'), "the former leader is a standby")
            n_stale += sum(b"old" in message.payload for message in reader.messages())
            n_executed += ClusterClient(cluster).value_of(f"k-{n}") != b"new"
            reader.close()
            setter.close()
        run.table.faults(f"{what}, {run.n_rounds} rounds: stale reads", n_stale)
        run.table.faults(f"{what}: writes of the former leader", n_executed)
        one.finish(what)


def suspend(run):
    isolate(run, "the leader is suspended past its lease", lambda machine: machine.member.paused())


def cut(run):
    isolate(run, "the leader is cut off from etcd", cut_off_etcd, has_proxies=True)


def cut_both(run):
    isolate(run, "the leader is cut off from etcd and its broker", cut_off_etcd_and_broker, has_proxies=True)
