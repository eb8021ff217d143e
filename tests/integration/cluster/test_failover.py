# SPDX-License-Identifier: Apache-2.0
"""One member leads. Another one does when it, its broker, or its machine is lost."""

import contextlib
import signal
import time

import pytest

from support.broker import free_port
from support.cluster_client import ClusterClient
from support.counter import wait_for_all
from support.ctl import Ctl
from support.process import Process, wait_until
from support.wire_client import WireClient, was_set

LOCK_MS = 60_000


@pytest.fixture
def second_process(tmp_path):
    store = Process("statestored", tmp_path / "statestored.log")
    yield store
    if store.child:
        store.kill()


@pytest.fixture
def without_plugin():
    """Runs the broker, which is not running, without the plugin for the duration of a block."""

    @contextlib.contextmanager
    def run(broker):
        lines, broker.lines = broker.lines, []
        broker.start()
        yield
        broker.kill()
        broker.lines = lines

    return run


def test_one_member_leads_and_the_others_say_which(slow_cluster):
    cluster = slow_cluster
    leader = cluster.wait_for_leader()
    standby = cluster.other_than(leader).member

    wait_until(lambda: standby.waits_for(f'standby: "{leader.name}" leads'), "the standby names the leader")
    assert leader.member.pages.metrics()["statestore_leads"] == 1
    assert standby.pages.metrics()["statestore_leads"] == 0
    assert 0 < leader.member.pages.metrics()["statestore_lease_remaining_seconds"] <= 20
    assert standby.pages.metrics()["statestore_lease_remaining_seconds"] == 0
    assert standby.pages.metrics()["statestore_term"] == leader.member.pages.metrics()["statestore_term"]

    ctl = Ctl(leader.broker.port)
    ctl.variables["HTTP"] = f"http://127.0.0.1:{standby.pages.port}"
    assert ctl.ok("stat").splitlines() == [b'ready          no: standby: "%s" leads' % leader.name.encode(),
                                           b"cluster        standby, term %d" % standby.pages.metrics()["statestore_term"]]


def test_a_machine_killed_under_load_loses_nothing(cluster, counters):
    holder, contender = ClusterClient(cluster), ClusterClient(cluster)
    assert holder.ask("SET", "lock", "holder", "NX", "PX", LOCK_MS) == b"+OK\r\n"
    running = counters(cluster)
    killed = cluster.wait_for_leader()

    killed.kill()
    wait_for_all(running)

    assert cluster.wait_for_leader() is cluster.other_than(killed)
    assert contender.ask("SET", "lock", "contender", "NX", "PX", LOCK_MS) == b":-1\r\n"
    assert holder.value_of("lock") == b"holder"

    killed.start()
    wait_until(lambda: killed.member.waits_for("leads"), "the killed machine comes back as a standby")


def test_a_lock_ends_on_the_member_that_leads_next(cluster):
    client = ClusterClient(cluster)
    killed = cluster.wait_for_leader()
    sent = time.monotonic()
    assert client.ask("SET", "lock", "holder", "NX", "PX", 4000) == b"+OK\r\n"
    killed.kill()

    wait_until(lambda: client.ask("SET", "lock", "other", "NX") == b"+OK\r\n", "the lock ends")

    assert time.monotonic() - sent >= 4, "the lock has ended early"


def test_the_killed_store_of_the_leader_serves_again(slow_cluster, counters):
    cluster = slow_cluster
    leader = cluster.wait_for_leader()
    term = leader.member.pages.metrics()["statestore_term"]
    watcher, writer = (WireClient(leader.broker.port) for _ in range(2))
    watcher.subscribe_to_notifications()
    watcher.register("watched")
    running = counters(cluster)

    for n in range(3):
        correlation = writer.begin("SET", "watched", n)
        leader.member.end_process()
        assert writer.reply_to(correlation).payload == b"+OK\r\n"
        wait_for_all(running)

    assert watcher.changes() == [was_set(n) for n in range(3)]
    assert cluster.wait_for_leader() is leader
    assert leader.member.pages.metrics()["statestore_term"] == term + 3


def test_a_leader_steps_down(cluster, counters):
    running = counters(cluster)
    for _ in range(2):
        leader = cluster.wait_for_leader()
        leader.member.end_process(signal.SIGUSR2)
        cluster.wait_for_leader(cluster.other_than(leader))
        wait_for_all(running)
        assert leader.member.exit_codes == [0]
        leader.member.exit_codes.clear()


def test_a_standby_does_not_step_down(slow_cluster):
    cluster = slow_cluster
    leader = cluster.wait_for_leader()
    standby = cluster.other_than(leader).member
    wait_until(lambda: standby.waits_for("leads"), "the standby waits")

    standby.send_signal(signal.SIGUSR2)

    wait_until(lambda: standby.waits_for(f'"{leader.name}" leads'), "the standby still waits")
    assert standby.exit_codes == []
    leader.member.end_process(signal.SIGUSR2)
    cluster.wait_for_leader(cluster.other_than(leader))


def test_a_winner_that_cannot_serve_gives_up(make_cluster):
    """The state in etcd has the node id of the first leader."""
    cluster = make_cluster(flags=["--lease", "20s", "--node-id", "node-{name}"])
    leader = cluster.wait_for_leader()
    other = cluster.other_than(leader).member
    assert ClusterClient(cluster).ask("SET", "k", "value") == b"+OK\r\n"

    leader.member.end_process(signal.SIGUSR2)

    other.wait_for_log("this member has given up")
    cluster.wait_for_leader(leader)
    leader.member.wait_for_log("standby: the leader has given up")
    assert ClusterClient(cluster).value_of("k") == b"value"
    assert other.exit_codes == [1], "it leads again, and keeps the others from leading"


def test_a_leader_whose_broker_is_lost_gives_up(cluster, counters):
    running = counters(cluster)
    leader = cluster.wait_for_leader()

    leader.broker.kill()

    cluster.wait_for_leader(cluster.other_than(leader))
    wait_for_all(running)
    wait_until(lambda: leader.member.waits_for("leads"), "the member without a broker is a standby")


def test_a_leader_whose_broker_has_lost_the_plugin_gives_up(cluster, counters, without_plugin):
    running = counters(cluster)
    leader = cluster.wait_for_leader()

    leader.broker.kill()
    with without_plugin(leader.broker):
        cluster.wait_for_leader(cluster.other_than(leader))
        wait_for_all(running)
        wait_until(lambda: leader.member.waits_for("leads"), "the member without the plugin is a standby")
    assert leader.member.exit_codes == [0]


def test_a_member_without_a_broker_does_not_win(cluster):
    leader = cluster.wait_for_leader()
    standby = cluster.other_than(leader)
    standby.broker.kill()

    leader.kill()
    wait_until(lambda: standby.member.waits_for("the broker cannot be used"), "the standby waits for its broker")
    standby.member.wait_for_log(f"this standby has no connection to the broker at 127.0.0.1:{standby.broker.port}: .*; retrying")
    standby.broker.start()

    cluster.wait_for_leader(standby)
    standby.member.wait_for_log("this standby can use the broker")


def test_a_standby_logs_that_its_broker_refuses_it(cluster):
    standby = cluster.other_than(cluster.wait_for_leader())
    standby.broker.kill()
    standby.broker.lines += ["allow_anonymous false"]

    standby.broker.start()

    standby.member.wait_for_log("the broker at .* refuses this standby: .*; .*password")


def test_a_broker_without_the_plugin_is_not_used(cluster, without_plugin):
    leader = cluster.wait_for_leader()
    standby = cluster.other_than(leader)
    standby.broker.kill()

    with without_plugin(standby.broker):
        leader.kill()
        wait_until(lambda: standby.member.waits_for("the broker cannot be used"), "the standby waits for the plugin")
        standby.member.wait_for_log("require-plugin is on, but the broker at .* has no plugin: load")
    standby.broker.start()

    cluster.wait_for_leader(standby)


def test_a_second_process_of_a_member_does_not_start(cluster, second_process):
    member = cluster.wait_for_leader().member
    second_process.spawn([*member.command, "--http-listen", f"127.0.0.1:{free_port()}"], member.environment)

    assert second_process.wait() == 1
    assert "another process of this member holds the lock" in second_process.log()
    assert member.is_ready()


def test_clusters_with_different_prefixes_are_independent(make_cluster):
    cluster = make_cluster(n_witnesses=0, flags=["--etcd-prefix", "/{name}/"])
    one, other = [WireClient(cluster.wait_for_leader(machine).broker.port) for machine in cluster.members]

    assert one.ask("SET", "k", "one") == b"+OK\r\n"
    assert other.ask("GET", "k") == b"$-1\r\n"
    assert all(machine.member.is_ready() for machine in cluster.members)


@pytest.mark.parametrize("ahead_ms", [3_600_000, -3_600_000])
def test_a_lock_is_held_although_a_wall_clock_was_stepped(make_cluster, ahead_ms):
    """The wall clock of the member that leads next differs by an hour. It has seen the leader change the header, so its deadlines go
    on from there."""
    cluster = make_cluster(has_clocks=True)
    killed = cluster.wait_for_leader()
    next_leader = cluster.other_than(killed)
    holder, contender = ClusterClient(cluster), ClusterClient(cluster)

    wait_until(lambda: next_leader.member.waits_for(f'"{killed.name}" leads'), "the standby has read the header")
    assert holder.ask("SET", "lock", "holder", "NX", "PX", LOCK_MS) == b"+OK\r\n"
    next_leader.clock.step_to(ahead_ms)
    killed.kill()
    cluster.wait_for_leader(next_leader)
    next_leader.clock.step_to(0)  # otherwise it may refuse the timestamps of clients

    assert contender.value_of("lock") == b"holder"
    assert contender.ask("SET", "lock", "contender", "NX", "PX", LOCK_MS) == b":-1\r\n"
