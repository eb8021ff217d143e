# SPDX-License-Identifier: Apache-2.0
"""The plugin reports the end of tracked connections, and of no others."""

import pytest

from support.broker import passwords
from support.client import INVOKE
from support.connection import KICKED, NOT_AUTHORIZED, SUCCESS
from support.plugin import CONTROL, SYS, VERSION, peer, site, site_with  # noqa: F401 fixtures


def leave_by_disconnect(site, client):
    client.disconnect()


def leave_by_disconnect_keeping_the_session(site, client):
    client.disconnect(session_expiry=1000)


def leave_by_cut(site, client):
    client.cut()


def leave_by_takeover(site, client):
    site.connect(client.id)


def leave_by_takeover_that_resumes_the_session(site, client):
    assert site.connect(client.id, clean_start=False, session_expiry=1000).session_present


def leave_by_protocol_error(site, client):
    client.send(b"\xf0\x00\x00")
    client.wait_until_closed()


def leave_by_keepalive(site, client):
    client.wait_until_closed()


def leave_by_forbidden_response_topic(site, client):
    client.send(client.encode_publish(INVOKE, ResponseTopic="#"))
    client.wait_until_closed()


WAYS_TO_LEAVE = [leave_by_disconnect, leave_by_disconnect_keeping_the_session, leave_by_cut, leave_by_takeover,
                 leave_by_takeover_that_resumes_the_session, leave_by_protocol_error, leave_by_keepalive,
                 leave_by_forbidden_response_topic]


@pytest.mark.parametrize("leave, session_expiry", [
    pytest.param(leave, expiry, id=f"{leave.__name__}-session-{'stays' if expiry else 'ends'}")
    for leave in WAYS_TO_LEAVE for expiry in (0, 1000)
    if expiry or leave is not leave_by_takeover_that_resumes_the_session])
def test_the_end_of_a_tracked_connection_is_reported_until_it_is_acknowledged(site, peer, leave, session_expiry):
    keepalive = 10 if leave is leave_by_keepalive else 0
    held = site.connect("held", session_expiry=session_expiry, keepalive=keepalive)
    other = site.connect("other", session_expiry=session_expiry, keepalive=keepalive)
    number = peer.number_of(held)
    peer.number_of(other)
    peer.track(number)
    peer.track(number)

    leave(site, other)
    leave(site, held)

    assert peer.next_report("disconnected") == number
    acknowledge(peer, number)
    peer.number_of(site.connect())
    assert peer.reports("disconnected") == []
    assert peer.hello() == set()


def acknowledge(peer, number):
    """Acknowledge DISCONNECTED, and receive what the plugin has sent before."""
    peer.untrack(number)
    assert set(peer.reports("disconnected")) <= {number}


def connect_tracked(site, peer):
    client = site.connect()
    client.number = peer.number_of(client)
    peer.track(client.number)
    return client


def test_the_ends_that_are_not_acknowledged_are_repeated(site, peer):
    clients = [connect_tracked(site, peer) for _ in range(3)]
    for client in clients:
        client.disconnect()
    told = []
    while len(set(told)) < len(clients):
        told.append(peer.next_report("disconnected"))
    assert list(dict.fromkeys(told)) == [client.number for client in clients]
    assert peer.next_report("disconnected") == clients[0].number

    while clients:
        peer.untrack(clients.pop(0).number)
        remaining = {client.number for client in clients}
        told = remaining.intersection(peer.reports("disconnected"))  # only the first repetition after an acknowledgement has all
        while told != remaining:
            told.add(peer.next_report("disconnected"))
            assert told <= remaining


def test_the_end_of_a_connection_that_is_tracked_afterwards_is_repeated(site, peer):
    client = site.connect()
    number = peer.number_of(client)
    client.disconnect()

    peer.track(number)

    for _ in range(3):
        assert peer.next_report("disconnected") == number


def test_hello_ends_the_repetition(site, peer):
    first, second = connect_tracked(site, peer), connect_tracked(site, peer)
    first.disconnect()
    assert peer.next_report("disconnected") == first.number
    assert peer.hello() == {second.number}
    assert set(peer.reports("disconnected")) <= {first.number}

    second.disconnect()

    for _ in range(2):  # the earliest connection is repeated first
        assert peer.next_report("disconnected") == second.number


def test_the_end_of_an_untracked_connection_is_not_reported(site, peer):
    client = site.connect()
    number = peer.number_of(client)
    peer.track(number)
    peer.untrack(number)

    client.disconnect()

    peer.ping()
    assert peer.reports("disconnected") == []


def test_tracking_an_ended_connection_gets_disconnected(site, peer):
    client = site.connect()
    number = peer.number_of(client)
    client.disconnect()
    peer.ping()
    assert peer.reports("disconnected") == []

    peer.track(number)

    assert peer.next_report("disconnected") == number


@pytest.mark.parametrize("nonsense", [b"", b"x", b"-1", b"18446744073709551616", b"1 ", b"\0", b"9" * 100000],
                         ids=["empty", "x", "negative", "too large", "blank", "NUL", "huge"])
@pytest.mark.parametrize("what", ["track", "untrack", "kick"])
def test_a_payload_that_is_not_a_number_is_ignored(site, peer, what, nonsense):
    peer.publish(CONTROL + what, nonsense)

    peer.ping()
    assert peer.messages() == []
    assert peer.hello() == set()


def test_kick_ends_one_connection_and_publishes_its_will(site, peer):
    victim, other = site.connect(will=("wills", b"gone")), site.connect()
    number = peer.number_of(victim)
    peer.number_of(other)
    other.subscribe("wills")

    assert peer.publish(CONTROL + "kick", number.encode()) == SUCCESS

    assert victim.wait_until_closed() == KICKED
    assert other.message("wills").payload == b"gone"
    other.ping()


def test_kick_of_an_ended_connection_ends_no_other(site, peer):
    victim = site.connect()
    number = peer.number_of(victim)
    again = site.connect(victim.id)
    victim.wait_until_closed()

    peer.publish(CONTROL + "kick", number.encode())

    again.ping()


def test_kick_does_not_end_the_stores_own_connection(site, peer):
    peer.publish(CONTROL + "kick", peer.number_of(peer).encode())

    peer.ping()


def test_welcome_lists_tracked_connections_that_are_alive(site, peer):
    held = [site.connect() for _ in range(5)]
    numbers = [peer.number_of(client) for client in held]
    for number in numbers:
        peer.track(number)
    peer.number_of(site.connect())
    peer.untrack(numbers[0])
    held[1].disconnect()

    assert peer.next_report("disconnected") == numbers[1]
    assert peer.hello() == set(numbers[2:])


def test_welcome_omits_connections_that_ended_while_the_store_was_away(site, peer):
    stays, leaves = site.connect(), site.connect()
    numbers = [peer.number_of(stays), peer.number_of(leaves)]
    for number in numbers:
        peer.track(number)

    peer.cut()
    leaves.disconnect()
    mac_key, peer = peer.mac_key, site.peer()

    assert peer.hello() == {numbers[0]}
    assert peer.mac_key == mac_key, "the broker's run is the same"


def test_a_new_instance_disconnects_only_clients_tracked_for_the_former_one(site, peer):
    held, held_too, other, silent = (site.connect() for _ in range(4))
    for client in (held, held_too):
        peer.track(peer.number_of(client))
    peer.number_of(other)
    peer.cut()

    peer = site.peer()
    assert peer.hello("instance-2") == set()

    assert held.wait_until_closed() == KICKED
    assert held_too.wait_until_closed() == KICKED
    for client in (other, silent):
        client.ping()
    assert peer.reports("disconnected") == []
    assert peer.hello("instance-2") == set()


def test_wills_of_disconnected_clients_are_published(site, peer):
    client = site.connect(will=("wills", b"a will"))
    listener = site.connect()
    listener.subscribe("wills")
    peer.track(peer.number_of(client))

    peer.hello("instance-2")

    assert listener.message().payload == b"a will"


def test_connections_tracked_by_the_new_instance_are_reported(site, peer):
    client = site.connect()
    peer.hello("instance-2")
    number = peer.number_of(client)
    peer.track(number)

    assert peer.hello("instance-2") == {number}
    client.cut()

    assert peer.next_report("disconnected") == number


def test_statestored_is_not_disconnected_by_its_own_hello(site, peer):
    peer.track(peer.number_of(peer))

    assert peer.hello("instance-2") == set()


@pytest.mark.parametrize("instance", ["", "x" * 31, "x" * 32, "x" * 97], ids=["empty", "no key", "empty behind the key", "too long"])
def test_a_hello_without_instance_is_ignored(site, peer, instance):
    client = site.connect()
    number = peer.number_of(client)
    peer.track(number)

    peer.publish(CONTROL + "hello", instance.encode(), CorrelationData=b"%d:9" % peer.run)

    assert peer.messages() == []
    assert peer.hello() == {number}


@pytest.mark.parametrize("correlation", [None, b"", b"1", b"1:", b":1", b"x:1", b"1:2:3", b"18446744073709551616:1"])
def test_a_hello_without_run_and_sequence_is_ignored(site, peer, correlation):
    client = site.connect()
    number = peer.number_of(client)
    peer.track(number)

    peer.publish(CONTROL + "hello", b"instance-2", CorrelationData=correlation)

    assert peer.messages() == []
    assert peer.hello() == {number}


def test_each_hello_has_its_own_welcome(peer):
    for sequence in (1, 1, 7, 3):
        peer.send(peer.encode_publish(CONTROL + "hello", b"k" * 32 + b"instance-1", CorrelationData=b"5:%d" % sequence))

    assert [message.correlation for message in peer.messages() if message.topic == SYS + "welcome"] == [
        b"5:1", b"5:1", b"5:7", b"5:3"]


def test_a_run_that_returns_after_another_gets_takeover(site, peer):
    other = site.peer()  # has the same client id, so the broker disconnects the first one
    other.hello()
    assert other.reports("takeover") == []

    back = site.peer()
    back.run, back.n_hellos = peer.run, peer.n_hellos
    back.hello()
    assert back.reports("takeover") == [""]
    back.hello()
    assert back.reports("takeover") == []


def test_instances_are_compared_up_to_the_maximum_length(site, peer):
    client = site.connect()
    peer.hello("x" * 64)
    peer.track(peer.number_of(client))
    assert len(peer.hello("x" * 64)) == 1

    assert peer.hello("x" * 63 + "y") == set()
    client.wait_until_closed()


def test_messages_before_hello_are_ignored(site):
    peer = site.peer()

    peer.track("12345")

    assert peer.messages() == []


def test_another_client_of_the_stores_user_is_accepted_after_its_hello(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret')}")
    first = site.served("first", username="store", password="secret")
    client = site.connect()
    number = first.number_of(client)
    second = site.peer("second", username="store", password="secret")

    second.track(number)
    assert first.hello() == set()

    assert second.hello() == set()
    second.track(number)
    client.disconnect()
    assert second.next_report("disconnected") == number
    assert first.wait_until_closed() == KICKED


def test_messages_of_the_plugin_reach_only_the_store(site, peer):
    listener = site.connect()
    assert listener.subscribe("$SYS/#") == 1
    assert listener.subscribe("#") == 1
    assert listener.subscribe("$CONTROL/#") in (1, NOT_AUTHORIZED)
    client = site.connect()
    number = peer.number_of(client)

    peer.track(number)
    peer.hello()
    peer.deliver("key", number)
    client.disconnect()
    assert peer.next_report("disconnected") == number

    topics = {message.topic for message in listener.messages()}
    assert SYS + "plugin" in topics
    assert not {topic for topic in topics if "statestore" in topic} - {SYS + "plugin"}


def test_every_client_can_read_the_banner(site):
    client = site.connect()
    client.subscribe(SYS + "plugin")

    message = client.message()
    assert (message.topic, message.payload, message.retain) == (SYS + "plugin", VERSION, True)


def test_no_client_can_publish_the_banner(site):
    client = site.connect()
    client.subscribe(SYS + "#")
    client.message()

    for topic in ("plugin", "welcome", "disconnected"):
        assert client.publish(SYS + topic, b"2", retain=True) == NOT_AUTHORIZED

    assert client.messages() == []
