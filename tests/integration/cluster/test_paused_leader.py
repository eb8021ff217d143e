# SPDX-License-Identifier: Apache-2.0
"""The leader is suspended until another member leads, and continues: it answers nothing from its old state, and ends. If it
leads again, the plugin ends its broker, and with it the requests and sessions of its former term."""

import pytest

from support.cluster_client import ClusterClient
from support.process import wait_until
from support.wire_client import WireClient


@pytest.fixture
def suspended(cluster):
    """Suspends the leader while the other member wins and changes the key. Before that, the client of its broker sends one
    request, and after it the other ones. Then the leader continues. Returns the other machine."""

    def change_while_suspended(client, former, before, after=()):
        other = cluster.other_than(former)
        with former.member.paused():
            client.begin(*before)
            cluster.wait_for_leader(other)
            assert ClusterClient(cluster).ask("SET", "k", "new") == b"+OK\r\n"
            for words in after:
                client.begin(*words)
        wait_until(lambda: former.member.exit_codes, "the former leader ends")
        wait_until(lambda: former.member.waits_for(f'"{other.name}" leads'), "the former leader is a standby")
        return other

    return change_while_suspended


def start_with_old_value(cluster):
    """Return the leader, and a client of its broker that has set the key."""
    leader = cluster.wait_for_leader()
    client = WireClient(leader.broker.port)
    assert client.ask("SET", "k", "old") == b"+OK\r\n"
    return leader, client


def test_a_paused_leader_answers_no_read_with_an_old_value(cluster, suspended):
    former, client = start_with_old_value(cluster)

    suspended(client, former, ("GET", "another"), [("GET", "k")] * 10)

    assert [message.payload for message in client.messages()] == []
    assert former.member.exit_codes == [1]


def test_a_request_of_a_former_term_is_not_executed(cluster, suspended):
    former, client = start_with_old_value(cluster)
    other = suspended(client, former, ("SET", "k", "delayed"))

    other.kill()
    cluster.wait_for_leader(former)

    assert ClusterClient(cluster).value_of("k") == b"new"


def test_sessions_at_the_broker_of_a_former_leader_end(cluster, suspended):
    """A client that continued its session would not know that it has missed what happened meanwhile."""
    former, client = start_with_old_value(cluster)
    kept = WireClient(former.broker.port, clean_start=False, session_expiry=1000)
    kept.disconnect()
    other = suspended(client, former, ("GET", "k"))
    other.kill()
    cluster.wait_for_leader(former)

    again = WireClient(former.broker.port, kept.id, clean_start=False, session_expiry=1000)

    assert not again.session_present
    assert again.ask("GET", "k") == b"$3\r\nnew\r\n"


def test_sessions_stay_if_no_other_member_has_served(slow_cluster):
    leader = slow_cluster.wait_for_leader()
    kept = WireClient(leader.broker.port, clean_start=False, session_expiry=1000)
    assert kept.ask("SET", "k", "v") == b"+OK\r\n"
    leader.member.end_process()
    slow_cluster.wait_for_leader(leader)

    kept.disconnect()
    assert WireClient(leader.broker.port, kept.id, clean_start=False).session_present
