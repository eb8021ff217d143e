# SPDX-License-Identifier: Apache-2.0
"""Linearizability: clients use few keys while processes are killed and suspended, and the network fails, in a random order.

STATESTORE_HISTORIES sets the number of histories.
"""

import os
import random
import signal

import pytest

from support.cluster_client import ClusterClient
from support.history import Recorder, end, wait_for_progress
from support.linearizability import find_violation
from support.process import wait_until

N_HISTORIES = int(os.environ.get("STATESTORE_HISTORIES", "2"))
N_FAULTS = 5  # in each history
N_OPERATIONS = 60  # after each fault


class Faults:
    """Each method makes a fault, and repairs it when another member has served or may have."""

    def __init__(self, cluster, recorders, dice):
        self.cluster = cluster
        self.recorders = recorders
        self.dice = dice

    def _leader(self):
        return self.cluster.wait_for_leader()

    def _go_on(self):
        wait_for_progress(self.recorders, N_OPERATIONS)

    def kill_machine(self):
        leader = self._leader()
        leader.kill()
        self._go_on()
        leader.start()

    def kill_store(self):
        self._leader().member.end_process()

    def step_down(self):
        self._leader().member.end_process(signal.SIGUSR2)

    def kill_broker(self):
        broker = self._leader().broker
        broker.kill()
        if self.dice.random() < 0.5:
            self._go_on()
        broker.start()

    def suspend_store(self):
        with self._leader().member.paused():
            self._go_on()

    def suspend_etcd(self):
        with self.dice.choice(self.cluster.machines).etcd.paused():
            self._go_on()

    def kill_etcd(self):
        etcd = self.dice.choice(self.cluster.machines).etcd
        etcd.kill()
        self._go_on()
        etcd.start()

    def restart_all_etcd(self):
        for machine in self.cluster.machines:
            machine.etcd.kill()
        for machine in self.cluster.machines:
            machine.etcd.start()

    def cut_off(self):
        leader = self._leader()
        self._order(leader, "cut")
        self._go_on()
        self._order(leader, "mend")

    def lose_replies(self):
        leader = self._leader()
        self._order(leader, "hold_replies")
        wait_until(lambda: any(proxy.has_held_replies() for proxy in leader.proxies), "etcd replies")
        self._order(leader, self.dice.choice(["cut", "mend"]))
        self._order(leader, "mend")

    @staticmethod
    def _order(machine, order):
        for proxy in machine.proxies:
            getattr(proxy, order)()

    ALL = [kill_machine, kill_store, step_down, kill_broker, suspend_store, suspend_etcd, kill_etcd, restart_all_etcd, cut_off,
           lose_replies]


@pytest.mark.not_sanitized("test_failover and test_etcd_faults make the same faults")
@pytest.mark.parametrize("seed", range(N_HISTORIES))
def test_a_history_with_random_faults_is_linearizable(make_cluster, seed):
    dice = random.Random(seed)
    cluster = make_cluster(has_proxies=True)
    recorders = [Recorder(ClusterClient(cluster), f"{seed}-{n}") for n in range(5)]
    for recorder in recorders:
        recorder.start()
    wait_for_progress(recorders)
    faults = Faults(cluster, recorders, dice)

    for fault in dice.sample(Faults.ALL, N_FAULTS):
        fault(faults)
        wait_for_progress(recorders, N_OPERATIONS)

    assert not (violation := find_violation(end(recorders))), violation
