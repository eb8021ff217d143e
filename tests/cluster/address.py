# SPDX-License-Identifier: Apache-2.0
"""The machine that has the address of the clients is lost. keepalived moves the address."""

from measured import measured
from support.cluster import RestartedBroker
from support.cluster_client import ClusterClient
from support.counter import Counter, wait_for_all
from support.keepalived import ADDRESS, Keepalived
from support.wire_client import WireClient

PORT = 1883
N_CLIENTS = 4


class FloatingAddress:
    """Its clients are on no machine of the cluster."""

    def __init__(self, lan):
        self._network = lan.hub

    def connect(self, client_id, **more):
        with self._network.entered():
            return WireClient(PORT, client_id, host=ADDRESS, **more)


def lose(machine, keepalived):
    """Cut the machine off first: at its end, keepalived tells the others. Its end also removes the address, as a start of the
    machine would."""
    machine.host.link.cut()
    machine.host.peer_link.cut()
    machine.kill()
    keepalived.stop()


def restore(machine, keepalived):
    machine.host.link.mend()
    machine.host.peer_link.mend()
    machine.start()
    keepalived.start()


def lose_address(run):
    what = "a machine is lost, clients at the address of keepalived"
    with measured(run, n_counters=0, has_lan=True,
                  make_broker=lambda directory: RestartedBroker(directory, listeners=[f"listener {PORT}"])) as one:
        keepalived = {machine: Keepalived(machine.directory, machine.host) for machine in one.cluster.members}
        try:
            for each in keepalived.values():
                each.start()
            address = FloatingAddress(one.cluster.lan)
            one.counters = [Counter(ClusterClient(one.cluster, home=address)) for _ in range(N_CLIENTS)]
            wait_for_all(one.counters)
            seconds = []
            for _ in range(run.n_rounds):
                one.is_restored()
                seconds.append(one.longest_wait(lambda machine: lose(machine, keepalived[machine])))
                restore(one.leader, keepalived[one.leader])
            run.table.waits(what, seconds)
            one.finish(what)
        finally:
            for each in keepalived.values():
                if each.child:
                    each.stop()
