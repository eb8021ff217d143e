# SPDX-License-Identifier: Apache-2.0
"""etcd is away, loses replies, or is full. Nothing is lost or done twice, and the members serve again by themselves."""

import concurrent.futures
import http.client
import signal

import pytest

from support.cluster import make_room
from support.cluster_client import ClusterClient
from support.console import Console, Users
from support.counter import FULL, wait_for_all
from support.process import wait_until
from support.wire_client import WireClient

# The leader stays the same while a busy machine waits for etcd.
LONG_LEASE = ["--lease", "20s"]

LARGE = "x" * 100_000


def test_writes_wait_while_etcd_is_away(cluster, counters):
    running = counters(cluster)
    leader = cluster.wait_for_leader()
    for machine in cluster.machines:
        machine.etcd.kill()

    wait_until(lambda: leader.member.waits_for("etcd confirms no commit"), "/readyz says that etcd is away")
    for machine in cluster.machines:
        machine.etcd.start()

    wait_for_all(running)


def test_a_member_waits_for_etcd_at_its_start(cluster):
    for machine in cluster.members:
        machine.member.kill()
    for machine in cluster.machines:
        machine.etcd.kill()
    for machine in cluster.members:
        machine.member.start()
    wait_until(lambda: all(machine.member.waits_for("etcd has not been read recently") for machine in cluster.members),
               "both members wait for etcd")
    for machine in cluster.machines:
        machine.etcd.start()

    cluster.wait_for_leader()
    assert not any(machine.member.exit_codes[1:] for machine in cluster.members)


def test_a_leader_that_is_stopped_during_a_commit_leads_again(make_cluster):
    """The commit does not end, because etcd is suspended: this does not delay the end of the process."""
    cluster = make_cluster(n_members=1, n_witnesses=0)
    leader = cluster.wait_for_leader()
    assert ClusterClient(cluster).ask("SET", "k", "value") == b"+OK\r\n"

    with leader.etcd.paused():
        wait_until(lambda: leader.member.waits_for("etcd confirms no commit"), "a commit waits")
        leader.member.end_process(signal.SIGTERM)

    assert cluster.wait_for_leader() is leader
    assert ClusterClient(cluster).value_of("k") == b"value"
    assert leader.member.exit_codes == [0]
    leader.member.wait_for_log("an earlier process of this member led")


def test_a_leader_that_gives_up_during_a_commit_gives_up_after_it(make_cluster):
    cluster = make_cluster(has_proxies=True, flags=LONG_LEASE)
    leader = cluster.wait_for_leader()
    client = leader.connect()

    for proxy in leader.proxies:
        proxy.hold_replies()
    client.begin("SET", "k", "value")
    wait_until(lambda: any(proxy.has_held_replies() for proxy in leader.proxies), "etcd replies")
    leader.member.send_signal(signal.SIGUSR2)
    wait_until(lambda: leader.member.readiness() is None, "the leader stops")
    for proxy in leader.proxies:
        proxy.mend()

    leader.member.wait_for_log("this member has given up")
    cluster.wait_for_leader(cluster.other_than(leader))
    assert ClusterClient(cluster).value_of("k") == b"value"


def test_a_leader_that_is_cut_off_from_etcd_serves_no_longer(make_cluster, counters):
    cluster = make_cluster(has_proxies=True)
    running = counters(cluster)
    former = cluster.wait_for_leader()
    other = cluster.other_than(former)
    client = WireClient(former.broker.port)

    for proxy in former.proxies:
        proxy.cut()
    cluster.wait_for_leader(other)
    wait_until(lambda: former.member.waits_for("etcd confirms no commit"), "the former leader does not serve")
    client.begin("GET", "k")
    wait_for_all(running)
    for proxy in former.proxies:
        proxy.mend()

    wait_until(lambda: former.member.waits_for(f'"{other.name}" leads'), "the former leader is a standby")
    assert former.member.exit_codes == [1]
    assert client.messages() == []


@pytest.mark.parametrize("path", ["/api/keys", "/api/locks"])
def test_the_console_of_a_leader_that_is_cut_off_shows_no_old_keys(make_cluster, tmp_path, path):
    users = Users(tmp_path)
    cluster = make_cluster(has_proxies=True, flags=["--console-users", str(users.file)])
    former = cluster.wait_for_leader()
    other = cluster.other_than(former)
    assert ClusterClient(cluster).ask("SET", "k", "old", "PX", "600000") == b"+OK\r\n"

    with concurrent.futures.ThreadPoolExecutor() as pool:
        for proxy in former.proxies:
            proxy.cut()
        cluster.wait_for_leader(other)
        answer = pool.submit(Console(former.member).ask, path, users.alice)
        assert ClusterClient(cluster).ask("DEL", "k") == b":1\r\n"
        for proxy in former.proxies:
            proxy.mend()

        with pytest.raises(http.client.RemoteDisconnected):
            answer.result()


def test_replies_of_etcd_are_lost(make_cluster, counters):
    """The proxy receives requests, and resets the connection without their replies. The leader finds out what is stored."""
    cluster = make_cluster(has_proxies=True, flags=LONG_LEASE)
    running = counters(cluster)
    leader = cluster.wait_for_leader()

    for _ in range(5):
        for proxy in leader.proxies:
            proxy.hold_replies()
        wait_until(lambda: any(proxy.has_held_replies() for proxy in leader.proxies), "etcd replies")
        for proxy in leader.proxies:
            proxy.cut()
            proxy.mend()
        wait_for_all(running)
    assert leader.member.exit_codes == []


def test_an_etcd_that_is_full_refuses_writes_until_there_is_room(make_cluster, counters):
    """The leader stays ready meanwhile, so no proxy ends the sessions at its broker: no other member could do better."""
    cluster = make_cluster(etcd_flags=["--quota-backend-bytes", "8000000"], flags=LONG_LEASE)
    leader = cluster.wait_for_leader()
    running = counters(cluster)
    client = ClusterClient(cluster)

    stored = 0
    while client.ask("SET", "large", f"{stored + 1}{LARGE}") != FULL:
        stored += 1
    wait_until(lambda: all(counter.n_refused for counter in running), "each client is refused a write")
    status, text = wait_until(leader.member.readiness, "/readyz answers")
    assert status == 200 and text.startswith("ready\netcd is full: ")
    assert client.value_of("large") == f"{stored}{LARGE}".encode()
    make_room([machine.etcd for machine in cluster.machines])

    wait_for_all(running)
    assert client.value_of("large") == f"{stored}{LARGE}".encode()
    assert leader.member.exit_codes == []
