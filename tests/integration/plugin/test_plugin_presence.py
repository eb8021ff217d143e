# SPDX-License-Identifier: Apache-2.0
"""The plugin reports the end of tracked connections, and of no others."""

import pytest

from support.broker import passwords
from support import companion
from support.client import INVOKE
from support.connection import KICKED, NOT_AUTHORIZED
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
def test_the_end_of_a_tracked_connection_is_reported_once(site, peer, leave, session_expiry):
    keepalive = 10 if leave is leave_by_keepalive else 0
    held = site.connect("held", session_expiry=session_expiry, keepalive=keepalive)
    other = site.connect("other", session_expiry=session_expiry, keepalive=keepalive)
    peer.number_of(other)
    number = peer.track(held)
    peer.track(held)

    leave(site, other)
    leave(site, held)

    assert peer.next_disconnect() == number
    peer.number_of(site.connect())
    assert peer.disconnects() == []
    assert peer.hello() == set()


def connect_tracked(site, peer):
    client = site.connect()
    client.number = peer.track(client)
    return client


def test_ends_that_the_store_has_not_executed_are_sent_again_after_hello(site, peer):
    clients = [connect_tracked(site, peer) for _ in range(3)]
    peer.ends_at_once = False
    for client in clients:
        client.disconnect()
    first = peer.next_record()
    assert (first.is_request, first.connection, first.client_id) == (False, clients[0].number, clients[0].id)

    assert peer.hello() == set()
    again = [peer.next_record() for _ in range(3)]
    assert [(record.number, record.connection) for record in again] == [
        (first.number + n, client.number) for n, client in enumerate(clients)]

    peer.end(again[1].number)
    peer.hello()
    assert peer.next_record() == again[2]


def test_the_end_of_an_untracked_connection_is_not_reported(site, peer):
    client = site.connect()
    peer.track(client)
    peer.untrack(client)

    client.disconnect()

    assert peer.disconnects() == []


def test_a_connection_with_a_request_that_has_not_ended_is_reported_behind_it(site, peer):
    peer.ends_at_once = False
    client, other = site.connect(), site.connect()
    client.request(payload=b"1")
    other.request(payload=b"other")
    client.request(payload=b"2")
    client.disconnect()

    first = peer.next_record()
    peer.answer(first)
    rest = [peer.next_record() for _ in range(3)]
    assert [record.payload for record in [first, *rest]] == [b"1", b"other", b"2", None]
    assert rest[-1].connection == first.connection


def test_the_end_of_a_connection_is_not_reported_if_its_requests_have_ended_without_a_registration(site, peer):
    peer.ends_at_once = False
    client, other = site.connect(), site.connect()
    other.request(payload=b"1")
    client.request(payload=b"2")
    other.request(payload=b"3")
    client.disconnect()

    peer.answer(peer.next_record(), work_ns=10**9)  # from now on, a frame has one record
    second, third = peer.next_record(), peer.next_record()
    assert (second.payload, third.payload) == (b"2", b"3")
    peer.answer(second)
    peer.answer(third)

    assert peer.take_records() == []
    assert peer.hello() == set() and not peer.welcome.pending


def test_a_registration_of_an_ended_connection_is_followed_by_its_end(site, peer):
    peer.ends_at_once = False
    client = site.connect()
    client.request()
    request = peer.next_record()
    client.disconnect()

    peer.answer(request, tracked=True)

    assert peer.next_disconnect() == request.connection


def test_the_end_of_a_slow_watcher_says_so(site_with):
    site = site_with("log_dest stderr", "log_dest topic", "max_queued_messages 3")
    peer = site.served()
    peer.subscribe("$SYS/broker/log/N", 0)
    slow, other = site.connect(properties=b"\x21\x00\x01"), site.connect()  # Receive Maximum 1
    numbers = [peer.track(slow), peer.track(other)]

    for _ in range(10):
        peer.notify("key", *numbers)
    other.ping()
    other.disconnect()

    ends = [peer.next_record(False) for _ in range(2)]
    assert {(end.connection, end.is_slow_watcher) for end in ends} == {(numbers[0], True), (numbers[1], False)}


def test_kick_ends_one_connection_and_publishes_its_will(site, peer):
    victim, other = site.connect(will=("wills", b"gone")), site.connect()
    number = peer.number_of(victim)
    peer.number_of(other)
    other.subscribe("wills")

    peer.kick(number)

    assert victim.wait_until_closed() == KICKED
    assert other.message("wills").payload == b"gone"
    other.ping()


def test_kick_of_an_ended_connection_ends_no_other(site, peer):
    victim = site.connect()
    number = peer.number_of(victim)
    again = site.connect(victim.id)
    victim.wait_until_closed()

    peer.kick(number)

    again.ping()


def test_kick_does_not_end_the_stores_own_connection(site, peer):
    peer.kick(peer.number_of(peer))

    peer.ping()


def test_welcome_lists_tracked_connections_that_are_alive(site, peer):
    held = [site.connect() for _ in range(5)]
    numbers = [peer.track(client) for client in held]
    peer.number_of(site.connect())
    peer.untrack(held[0])
    held[1].disconnect()

    assert peer.next_disconnect() == numbers[1]
    assert peer.hello() == set(numbers[2:])


def test_welcome_omits_connections_that_ended_while_the_store_was_away(site, peer):
    stays, leaves = site.connect(), site.connect()
    numbers = [peer.track(stays), peer.track(leaves)]

    peer.cut()
    leaves.disconnect()
    run, peer = peer.welcome.broker_run, site.peer()

    assert peer.hello() == {numbers[0]}
    assert peer.welcome.broker_run == run


def test_a_new_instance_disconnects_only_clients_tracked_for_the_former_one(site, peer):
    held, held_too, other, silent = (site.connect() for _ in range(4))
    for client in (held, held_too):
        peer.track(client)
    peer.number_of(other)
    peer.cut()

    peer = site.peer()
    assert peer.hello("instance-2") == set()

    assert held.wait_until_closed() == KICKED
    assert held_too.wait_until_closed() == KICKED
    for client in (other, silent):
        client.ping()
    assert peer.disconnects() == []
    assert peer.hello("instance-2") == set()


def says_served(peer, run, instance="instance-1"):
    """Send HELLO of a store whose data were served with this broker run last."""
    peer.n_hellos += 1
    peer.served_broker_run = run
    peer.send(peer.encode_hello(instance, bytes(32)))


def test_a_broker_ends_after_the_store_has_served_another_one(site, peer):
    says_served(peer, peer.welcome.broker_run ^ 1)

    assert site.broker.wait() == 1
    assert "this broker ends, and so do its sessions: the state store has served another broker" in site.broker.log()


@pytest.mark.parametrize("instance, bits", [("instance-1", 0), ("instance-2", 1)], ids=["no other broker", "another store"])
def test_a_broker_stays_if_the_store_has_not_served_another_one_since(site, peer, instance, bits):
    client = site.connect()

    says_served(peer, peer.welcome.broker_run ^ bits, instance)

    assert peer.message(SYS + "welcome")
    client.ping()


def test_a_broker_stays_if_the_store_cannot_commit_that_it_serves_it(site):
    """A store whose disk is full names the run before at each start. But this may also be a later time, in which that run was
    served again: so it does not get the requests that have a number. A run that is neither still ends the broker."""
    peer = site.peer()
    peer.served_broker_run = 2
    peer.ends_at_once = False
    peer.hello()
    peer.serve()
    client = site.connect()
    client.request(payload=b"numbered")
    peer.next_request()
    client.request(payload=b"waits")

    peer.hello()
    peer.serve()
    assert peer.next_request().payload == b"waits"

    says_served(peer, 3)
    assert site.broker.wait() == 1


@pytest.mark.parametrize("instance, served_broker_run, is_sent",
                         [("instance-2", 0, True), ("instance-2", 2, False), ("instance-2", "this", False), ("instance-1", "this", True)],
                         ids=["empty", "copy", "another store of this broker", "the same store"])
def test_a_numbered_request_is_sent_only_to_a_store_that_knows_what_was_executed(site, peer, instance, served_broker_run, is_sent):
    """A copy may be of the time after the execution. Another store of this broker knows only its own executions."""
    peer.ends_at_once = False
    client, leaves = site.connect(), connect_tracked(site, peer)
    client.request(payload=b"numbered")
    numbered = peer.next_request()
    client.request(payload=b"waits")
    leaves.disconnect()

    peer.served_broker_run = peer.welcome.broker_run if served_broker_run == "this" else served_broker_run
    peer.hello(instance)
    peer.ends_at_once = True
    peer.serve()

    if is_sent:
        assert peer.next_request().payload == b"numbered"
    assert (waits := peer.next_request()).payload == b"waits"
    assert waits.number == numbered.number + 1


def test_a_repeated_hello_does_not_end_the_broker(site, peer):
    client = site.connect()
    peer.number_of(client)

    peer.served_broker_run = peer.welcome.broker_run ^ 1
    peer.send(peer.encode_hello("instance-1", bytes(32)))

    peer.ping()
    client.ping()


def test_wills_of_disconnected_clients_are_published(site, peer):
    client = site.connect(will=("wills", b"a will"))
    listener = site.connect()
    listener.subscribe("wills")
    peer.track(client)

    peer.hello("instance-2")

    assert listener.message().payload == b"a will"


def test_connections_tracked_by_the_new_instance_are_reported(site, peer):
    client = site.connect()
    peer.hello("instance-2")
    number = peer.track(client)

    assert peer.hello("instance-2") == {number}
    client.cut()

    assert peer.next_disconnect() == number


def test_statestored_is_not_disconnected_by_its_own_hello(site, peer):
    peer.track(peer)

    assert peer.hello("instance-2") == set()


@pytest.mark.parametrize("data", [b"", b"x" * 55, b"x" * 56, b"x" * 121], ids=["empty", "no key", "empty behind the key", "too long"])
def test_a_hello_without_instance_is_ignored(site, peer, data):
    client = site.connect()
    number = peer.track(client)

    for payload in (data, bytes([companion.VERSION]) + data):
        peer.publish(CONTROL + "hello", payload)

    assert peer.messages() == []
    assert peer.hello() == {number}


def test_each_hello_has_its_own_welcome(peer):
    """A HELLO with a number that is not higher was repeated by the MQTT client of the store."""
    peer.run = 5
    for peer.n_hellos in (1, 1, 7, 3, 8):
        peer.send(peer.encode_hello("instance-1", bytes([peer.n_hellos]) * 32))

    welcomes = [message.payload for message in peer.messages() if message.topic == SYS + "welcome"]
    assert len(welcomes) == 3
    for number, box in zip((1, 7, 8), welcomes):
        companion.open_box(box, bytes([number]) * 32)


def test_a_run_that_returns_after_another_gets_takeover(site, peer):
    other = site.peer()  # has the same client id, so the broker disconnects the first one
    other.hello()
    assert not other.welcome.is_takeover

    back = site.peer()
    back.run, back.n_hellos = peer.run, peer.n_hellos
    back.hello()
    assert back.welcome.is_takeover
    back.hello()
    assert not back.welcome.is_takeover


def test_instances_are_compared_up_to_the_maximum_length(site, peer):
    client = site.connect()
    peer.hello("x" * 64)
    peer.track(client)
    assert len(peer.hello("x" * 64)) == 1

    assert peer.hello("x" * 63 + "y") == set()
    client.wait_until_closed()


def test_frames_before_hello_are_ignored(site):
    client = site.connect()
    peer = site.served()
    number = peer.number_of(client)
    again = site.peer()  # has the same client id, so the broker disconnects the first one

    again.kick(number)
    again.ping()
    client.ping()
    again.hello()
    again.kick(number)
    assert client.wait_until_closed() == KICKED


def test_another_client_of_the_stores_user_is_accepted_after_its_hello(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret')}")
    first = site.served("first", username="store", password="secret")
    client = site.connect()
    number = first.number_of(client)
    second = site.peer("second", username="store", password="secret")

    second.kick(number)
    second.ping()
    client.ping()

    second.hello()
    assert first.wait_until_closed() == KICKED
    second.kick(number)
    assert client.wait_until_closed() == KICKED


def test_messages_of_the_plugin_reach_only_the_store(site, peer):
    listener = site.connect()
    assert listener.subscribe("$SYS/#") == 1
    assert listener.subscribe("#") == 1
    assert listener.subscribe("$CONTROL/#") in (1, NOT_AUTHORIZED)
    client = site.connect()
    number = peer.track(client)
    peer.hello()
    peer.notify("key", number)
    client.disconnect()
    assert peer.next_disconnect() == number

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

    for topic in ("plugin", "welcome", "frame"):
        assert client.publish(SYS + topic, b"2", retain=True) == NOT_AUTHORIZED

    assert client.messages() == []
