# SPDX-License-Identifier: Apache-2.0
"""What the rows of the table have in common: a cluster whose clients count, and the table."""

import contextlib
import dataclasses
import json
import math
import time
from pathlib import Path

from support.cluster import Cluster
from support.cluster_client import ClusterClient
from support.counter import Counter, wait_for_all
from support.process import wait_until
from support.wire_client import WireClient

N_COUNTERS = 4
VALUE = b"v" * 200
N_OUTSTANDING = 500


def percentile(values, part):
    return sorted(values)[math.ceil(part / 100 * len(values)) - 1]


def waits_text(seconds):
    return (f"{len(seconds)} rounds: p50 {percentile(seconds, 50):.2f} s, p99 {percentile(seconds, 99):.2f} s, "
            f"longest {max(seconds):.2f} s")


class Table:
    def __init__(self):
        self.n_faults = 0

    def row(self, what, figures):
        print(f"| {what} | {figures} |", flush=True)

    def waits(self, what, seconds):
        self.row(f"{what}: until a client has a reply", waits_text(seconds) if seconds else "not measured: too few rounds")

    def faults(self, what, n):
        """A figure that must be 0."""
        self.n_faults += n
        self.row(what, n)


@dataclasses.dataclass
class Run:
    """One row, or several that one measurement gives. directory: on a disk, deleted if there is no fault."""

    table: Table
    directory: Path
    n_rounds: int
    n_keys: list  # that are loaded
    flood_seconds: float  # of all floods together

    def below(self, name):
        """The same run in a directory of its own."""
        directory = self.directory / name
        directory.mkdir()
        return dataclasses.replace(self, directory=directory)


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


def status_of(etcd):
    [status] = json.loads(etcd.ctl("endpoint", "status", "--write-out", "json"))
    return status["Status"]


def leads_etcd(machine):
    status = status_of(machine.etcd)
    return status["leader"] == status["header"]["member_id"]


def etcd_leader(cluster):
    """Return the machine whose etcd leads, when one does."""
    return wait_until(lambda: next(filter(leads_etcd, cluster.machines), None), "an etcd leads")


def place_etcd_leader(cluster, leader, is_with_leader):
    """Let the etcd on the leader's machine lead, or another one."""
    present = etcd_leader(cluster)
    if (present is leader) != is_with_leader:
        wanted = leader if is_with_leader else cluster.other_than(leader)
        present.etcd.ctl("move-leader", f"{status_of(wanted.etcd)['header']['member_id']:x}")
        wait_until(lambda: leads_etcd(wanted), f"the etcd of {wanted.name} leads")


class Measured:
    """A cluster whose clients count. more: arguments of Cluster."""

    def __init__(self, run, n_counters=N_COUNTERS, **more):
        self.cluster = Cluster(run.directory, **more)
        self.table = run.table
        self.n_rounds = run.n_rounds
        self.counters = []
        try:
            self.leader = self.cluster.wait_for_leader()
            self.counters = [Counter(ClusterClient(self.cluster)) for _ in range(n_counters)]
            wait_for_all(self.counters)
        except BaseException:
            self.cluster.close()
            raise

    def longest_wait(self, disturb):
        """Do something to the leader. Return the longest time for which a client waited since then."""
        self.leader = self.cluster.wait_for_leader()
        began = time.monotonic()
        disturb(self.leader)
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


class BenchSubject:
    """The broker and the store of a leader, as tests/bench/tools.py puts them under load."""

    def __init__(self, leader):
        self.name = leader.name
        self.port = leader.broker.port
        self.broker = leader.broker
        self.pid = leader.member.child.pid


@contextlib.contextmanager
def measured(run, **more):
    one = Measured(run, **more)
    with contextlib.closing(one.cluster):
        yield one


def repeat(run, what, disturb, **more):
    """Disturb a cluster in each round, and measure how long clients wait. disturb(cluster, leader) may repair it."""
    with measured(run, **more) as one:
        seconds = [one.longest_wait(lambda leader: disturb(one.cluster, leader)) for _ in range(run.n_rounds)]
        run.table.waits(what, seconds)
        one.finish(what)
