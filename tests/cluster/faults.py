# SPDX-License-Identifier: Apache-2.0
"""etcd is restarted, full, slow to reply, and loses replies; wall clocks are stepped. Nothing may be lost or executed twice, and
the cluster must serve again by itself."""

import itertools
import time

from losses import Lock
from measured import measured, repeat
from support.cluster import make_room
from support.cluster_client import ClusterClient
from support.counter import FULL
from support.process import wait_until

DELAYS = (0.5, 2, 5)  # seconds; the lease is 3
LARGE = "x" * 100_000
QUOTA_BYTES = 8_000_000
HOUR_MS = 3_600_000


def each_proxy(machine, order):
    for proxy in machine.proxies:
        getattr(proxy, order)()


def hold_replies(machine):
    each_proxy(machine, "hold_replies")
    wait_until(lambda: any(proxy.has_held_replies() for proxy in machine.proxies), "etcd replies")


def delay_replies(run):
    delays = itertools.cycle(DELAYS)

    def delay(_, leader):
        hold_replies(leader)
        time.sleep(next(delays))
        each_proxy(leader, "mend")

    repeat(run, f"replies of etcd are delayed by {', '.join(map(str, DELAYS))} s in turn", delay, has_proxies=True)


def lose_replies(run):
    def lose(_, leader):
        hold_replies(leader)
        each_proxy(leader, "cut")
        each_proxy(leader, "mend")

    repeat(run, "replies of etcd are lost", lose, has_proxies=True)


def restart_nodes(run):
    def restart(cluster, _):
        for machine in cluster.machines:
            machine.etcd.kill()
            machine.etcd.start()
            cluster.wait_for_etcd()

    repeat(run, "one etcd after the other is killed and restarted", restart)


def restart_etcd(run):
    def restart(cluster, _):
        for machine in cluster.machines:
            machine.etcd.kill()
        for machine in cluster.machines:
            machine.etcd.start()

    repeat(run, "all of etcd is killed and restarted", restart)


def fill_etcd(run):
    """In each round the quota is exceeded, each client is refused a write, and room is made."""
    what = "etcd is full, then has room"
    with measured(run, etcd_flags=["--quota-backend-bytes", str(QUOTA_BYTES)]) as one:
        client = ClusterClient(one.cluster)
        stored, n_lost, seconds = 0, 0, []

        def fill_and_make_room(_):
            nonlocal stored
            n_refused = [counter.n_refused for counter in one.counters]
            while client.ask("SET", "large", f"{stored + 1}{LARGE}") != FULL:
                stored += 1
            wait_until(lambda: all(counter.n_refused > n for counter, n in zip(one.counters, n_refused)),
                       "each client is refused a write")
            make_room([machine.etcd for machine in one.cluster.machines])

        for _ in range(run.n_rounds):
            seconds.append(one.longest_wait(fill_and_make_room))
            n_lost += client.value_of("large") != f"{stored}{LARGE}".encode()
        run.table.waits(what, seconds)
        run.table.faults(f"{what}: the large value is not that of the last acknowledged write", n_lost)
        one.finish(what)


def step_clock(one, machine, ahead_ms):
    """Step the wall clock of a machine, lose the leader, let the other member lead, and step the clock back. Return how long
    clients waited after that."""
    machine.clock.step_to(ahead_ms)
    leader = one.cluster.wait_for_leader()
    leader.kill()
    one.cluster.wait_for_leader(one.cluster.other_than(leader))
    leader.start()
    one.is_restored()
    return one.longest_wait(lambda _: machine.clock.step_to(0))


def step_clocks(run):
    """A leader whose wall clock is an hour behind refuses the clients' timestamps: their writes are not executed until its clock
    is right again."""
    n_early, seconds = 0, []
    what = "the wall clock of a member is stepped by an hour, and back"
    with measured(run, has_clocks=True) as one:
        holder, contender = ClusterClient(one.cluster), ClusterClient(one.cluster)
        for n in range(run.n_rounds):
            for is_leader, ahead_ms in itertools.product((True, False), (HOUR_MS, -HOUR_MS)):
                leader = one.cluster.wait_for_leader()
                other = one.cluster.other_than(leader)
                machine = leader if is_leader else other
                # The wall clocks decide only if a winner has not seen the header change.
                wait_until(lambda: other.member.waits_for(f'"{leader.name}" leads'), "the standby has read the header")
                lock = Lock(holder, contender, f"lock-{n}-{is_leader}-{ahead_ms}")
                seconds.append(step_clock(one, machine, ahead_ms))
                n_early += lock.ended_early()
        run.table.waits(f"{what}, from its step back", seconds)
        run.table.row(f"{what}: refused writes", sum(counter.n_refused for counter in one.counters))
        run.table.faults(f"{what}: locks that ended early", n_early)
        one.finish(what)
