# SPDX-License-Identifier: Apache-2.0
"""What a cluster loses and how long its clients wait; started by tests/cluster.sh.

usage: table.py [ROUNDS | --quick] [--keys N]
"""

import argparse
import contextlib
import json
import math
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.cluster import Cluster, etcdctl  # noqa: E402
from support.cluster_client import ClusterClient  # noqa: E402
from support.counter import Counter, wait_for_all  # noqa: E402
from support.process import wait_until  # noqa: E402
from support.wire_client import WireClient, was_set  # noqa: E402

N_COUNTERS = 4
N_READS = 20
LOCK_MS = 5000
N_KEYS = 10_000  # while machines are lost
VALUE = b"v" * 200
N_OUTSTANDING = 500
MIB = 1 << 20


def percentile(values, part):
    return sorted(values)[math.ceil(part / 100 * len(values)) - 1]


class Table:
    def __init__(self):
        self.n_faults = 0

    def row(self, what, figures):
        print(f"| {what} | {figures} |", flush=True)

    def waits(self, what, seconds, more=""):
        self.row(what, f"{len(seconds)} rounds: p50 {percentile(seconds, 50):.2f} s, p99 {percentile(seconds, 99):.2f} s, "
                       f"longest {max(seconds):.2f} s{more}")

    def faults(self, what, n):
        self.n_faults += n
        self.row(what, n)


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


def fill(port, n_keys):
    client = WireClient(port)
    sent = []
    for n in range(n_keys):
        sent.append(client.begin("SET", f"key-{n}", VALUE))
        if len(sent) > N_OUTSTANDING:
            client.reply_to(sent.pop(0))
    for correlation in sent:
        client.reply_to(correlation)
    client.close()


def has_etcd_leader(machine):
    [status] = json.loads(etcdctl(machine.etcd.url, "endpoint", "status", "--write-out", "json"))
    return status["Status"]["leader"] == status["Status"]["header"]["member_id"]


class Measured:
    """A cluster whose clients count."""

    def __init__(self, directory, table, n_rounds, **more):
        self.cluster = Cluster(directory, **more)
        self.table = table
        self.n_rounds = n_rounds
        self.leader = self.cluster.wait_for_leader()
        self.counters = [Counter(ClusterClient(self.cluster)) for _ in range(N_COUNTERS)]
        wait_for_all(self.counters)

    def close(self):
        self.cluster.close()

    def longest_wait(self, lose):
        """Do something to the leader. Return the longest time for which a client waited since then."""
        self.leader = self.cluster.wait_for_leader()
        began = time.monotonic()
        lose(self.leader)
        wait_for_all(self.counters)
        return max(end - max(start, began) for counter in self.counters for start, end in counter.times if end > began)

    def finish(self, what):
        """Stop the clients, and count what was lost or executed twice."""
        for counter in self.counters:
            counter.stop()
        writes = sum(counter.count for counter in self.counters)
        self.table.faults(f"{what}: lost, of {writes} acknowledged writes", sum(len(one.lost) for one in self.counters))
        self.table.faults(f"{what}: executed twice", sum(len(one.doubled) for one in self.counters))

    def is_restored(self):
        wait_until(lambda: all(machine.member.readiness() for machine in self.cluster.members), "all members run")
        self.cluster.wait_for_etcd()


def lose_machines(measured):
    cluster, table = measured.cluster, measured.table
    fill(measured.leader.broker.port, N_KEYS)
    holder, contender = ClusterClient(cluster), ClusterClient(cluster)
    with_etcd_leader, without, n_early = [], [], 0
    for n in range(measured.n_rounds):
        measured.is_restored()
        leader = cluster.wait_for_leader()
        seconds = with_etcd_leader if has_etcd_leader(leader) else without
        lock = Lock(holder, contender, f"lock-{n}")
        seconds.append(measured.longest_wait(lambda machine: machine.kill()))
        n_early += lock.ended_early()
        measured.leader.start()
    table.waits(f"a machine is killed, {N_KEYS} keys: until a client has a reply", with_etcd_leader + without,
                f"; in {len(with_etcd_leader)} rounds with the leader of etcd")
    measured.finish("a machine is killed")
    table.faults("a machine is killed: locks that ended early", n_early)


def kill_stores(measured):
    leader = measured.leader
    watcher, writer = WireClient(leader.broker.port), ClusterClient(measured.cluster)
    watcher.subscribe_to_notifications()
    watcher.register("watched")
    seconds, n_others = [], 0
    for n in range(2 * measured.n_rounds):
        writer.ask("SET", "watched", n)
        seconds.append(measured.longest_wait(lambda machine: machine.member.end_process()))
        n_others += measured.cluster.wait_for_leader() is not leader
    measured.table.waits("the leader's store is killed: until a client has a reply", seconds)
    measured.table.row("the leader's store is killed: rounds after which another member led", n_others)
    if n_others == 0:
        changes = watcher.changes()
        expected = [was_set(n) for n in range(2 * measured.n_rounds)]
        measured.table.faults("the leader's store is killed: notifications lost", sum(one not in changes for one in expected))
        measured.table.faults("the leader's store is killed: notifications twice",
                              len(changes) - len({tuple(one) for one in changes}))
    measured.finish("the leader's store is killed")


def step_down(measured):
    measured.table.waits("the leader steps down: until a client has a reply",
                         [measured.longest_wait(lambda machine: machine.member.end_process(signal.SIGUSR2))
                          for _ in range(measured.n_rounds)])
    measured.finish("the leader steps down")


def kill_brokers(measured):
    seconds = []
    for _ in range(measured.n_rounds):
        seconds.append(measured.longest_wait(lambda machine: machine.broker.kill()))
        measured.leader.broker.start()
    measured.table.waits("the leader's broker is killed: until a client has a reply", seconds)
    measured.finish("the leader's broker is killed")


@contextlib.contextmanager
def cut_off(machine):
    for proxy in machine.proxies:
        proxy.cut()
    yield
    for proxy in machine.proxies:
        proxy.mend()


def isolate(measured, what, isolated):
    """Clients of a former leader's broker read while another member leads and changes the key."""
    cluster = measured.cluster
    n_stale = n_executed = 0
    for n in range(measured.n_rounds):
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
    measured.table.faults(f"{what}, {measured.n_rounds} rounds: stale reads", n_stale)
    measured.table.faults(f"{what}: writes of the former leader", n_executed)
    measured.finish(what)


def suspend(measured):
    isolate(measured, "the leader is suspended past its lease", lambda machine: machine.member.paused())


def cut(measured):
    isolate(measured, "the leader is cut off from etcd", cut_off)


def resident_mib(process):
    kib = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.child.pid}/status").read_text()).group(1)
    return int(kib) * 1024 // MIB


def load(directory, table, n_keys):
    """Measure how long the next leader loads the keys."""
    cluster = Cluster(directory)
    with contextlib.closing(cluster):
        leader = cluster.wait_for_leader()
        fill(leader.broker.port, n_keys)
        other = cluster.other_than(leader)
        leader.member.end_process(signal.SIGUSR2)
        cluster.wait_for_leader(other)
        load_ms = other.member.wait_for_log(r"load_ms=(\d+)").group(1)
        [status] = json.loads(etcdctl(other.etcd.url, "endpoint", "status", "--write-out", "json"))
        table.row(f"{n_keys} keys of {len(VALUE)} bytes are loaded",
                  f"{load_ms} ms; etcd: {resident_mib(other.etcd)} MiB of memory, "
                  f"{status['Status']['dbSize'] // MIB} MiB of file; store: {resident_mib(other.member)} MiB")


def main():
    parser = argparse.ArgumentParser(prog="cluster.sh")
    parser.add_argument("rounds", nargs="?", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="one round, to check that it works")
    parser.add_argument("--keys", type=int, help="also load this number of keys")
    arguments = parser.parse_args()
    table = Table()

    print("| what | figure |\n|---|---|")
    for measure in (lose_machines, kill_stores, step_down, kill_brokers, suspend, cut):
        with tempfile.TemporaryDirectory() as directory:
            measured = Measured(directory, table, 1 if arguments.quick else arguments.rounds, has_proxies=measure is cut)
            with contextlib.closing(measured):
                measure(measured)
    for n_keys in [1000] if arguments.quick else [1000, 10_000, 100_000, *([arguments.keys] if arguments.keys else [])]:
        with tempfile.TemporaryDirectory() as directory:
            load(directory, table, n_keys)
    sys.exit(1 if table.n_faults else 0)


main()
