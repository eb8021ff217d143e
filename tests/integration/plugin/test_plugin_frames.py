# SPDX-License-Identifier: Apache-2.0
"""The plugin sends requests to the store in frames, in turn between the clients, and keeps each until its end."""

import re
from pathlib import Path

import pytest

from support import companion
from support.broker import passwords, version
from support.client import INVOKE
from support.connection import KICKED, NOT_AUTHORIZED, SUCCESS
from support.plugin import CONTROL, peer, site, site_with  # noqa: F401 fixtures
from support.process import BUILD
from support.stepped_clock import SteppedClock

REPLIES = "clients/c/replies"
TOO_MANY = b"-ERR too many requests are waiting\r\n"
UNAVAILABLE = b"-ERR the state store is not available\r\n"


@pytest.fixture
def manual(peer):
    """A fake store that reports no end by itself."""
    peer.ends_at_once = False
    return peer


def payloads(records):
    return [record.payload for record in records]


def subscribed(site, **more):
    client = site.connect(**more)
    assert client.subscribe(REPLIES) == 1
    return client


def next_frame_payloads(peer):
    frame = peer.next_frame()
    peer.records.clear()
    return payloads(frame.records)


def publish_many(client, messages, **more):
    client.send(b"".join(client.encode_publish(INVOKE, message, ResponseTopic=REPLIES, **more) for message in messages))
    for _ in messages:
        assert client.acknowledgement() == SUCCESS


# Packing


def test_a_request_leaves_at_once_if_nothing_is_outstanding_and_waits_otherwise(site, manual):
    client = site.connect()
    publish_many(client, [b"1"])
    assert next_frame_payloads(manual) == [b"1"]

    publish_many(client, [b"2", b"3"])
    assert manual.take_records() == []
    manual.end(1)

    assert next_frame_payloads(manual) == [b"2", b"3"]


def test_waiting_clients_are_served_in_turn(site, manual):
    flooder, other, late = (site.connect() for _ in range(3))
    publish_many(flooder, [b"first"])
    publish_many(flooder, [b"f%d" % n for n in range(20)])
    publish_many(other, [b"o0", b"o1"])
    publish_many(late, [b"l0"])
    assert next_frame_payloads(manual) == [b"first"]

    manual.end(1)

    assert next_frame_payloads(manual)[:7] == [b"f0", b"o0", b"l0", b"f1", b"o1", b"f2", b"f3"]


def test_two_connections_of_a_client_share_its_queue_in_the_order_of_their_requests(site, manual):
    other = site.connect()
    publish_many(other, [b"first"])
    client = site.connect("client")
    publish_many(client, [b"1", b"2"])
    again = site.connect("client")
    client.wait_until_closed()
    publish_many(again, [b"3"])
    publish_many(other, [b"other"])
    next_frame_payloads(manual)

    manual.end(1)

    assert next_frame_payloads(manual) == [b"1", b"other", b"2", None, b"3"], "None: the end of the first connection"


def test_at_most_two_frames_are_outstanding(site, manual):
    client = site.connect()
    publish_many(client, [b"%d" % n for n in range(500)])
    assert next_frame_payloads(manual) == [b"0"]

    manual.end(1)
    manual.ping()
    sizes = [len(frame.records) for frame in manual.frames]
    assert sizes == [1, 32, 32]

    manual.end(manual.frames[1].records[-1].number)
    manual.ping()
    assert [len(frame.records) for frame in manual.frames] == [1, 32, 32, 64]
    assert [record.number for frame in manual.frames for record in frame.records] == list(range(1, 130))


def test_a_frame_has_as_many_records_as_execute_in_2_ms(site, manual):
    client = site.connect()
    publish_many(client, [b"%d" % n for n in range(300)])
    n_ended = 0

    def frames_after(work_ns):
        """Report this time for each outstanding record. Return the sizes of the frames that follow."""
        n = len(manual.frames)
        nonlocal n_ended
        last = manual.frames[-1].records[-1].number
        manual.end(last, work_ns * (last - n_ended))
        n_ended = last
        manual.ping()
        return [len(frame.records) for frame in manual.frames[n:]]

    manual.ping()
    assert frames_after(100_000) == [20, 20]
    assert frames_after(1_000_000) == [2, 2]
    assert frames_after(5_000_000) == [1, 1]
    assert frames_after(1_000) == [2, 2], "the number doubles at most"
    assert frames_after(1_000) == [4, 4]
    assert frames_after(0) == [8, 8], "a clock that did not advance"


def test_the_brokers_time_to_publish_replies_and_notifications_counts_as_work(site, peer):
    clients = [site.connect() for _ in range(20)]
    connections = [peer.number_of(client) for client in clients]
    peer.ping()
    peer.ends_at_once = False
    publish_many(clients[0], [b"%d" % n for n in range(300)])
    peer.ping()

    def sizes_after(*records, work_ns=0):
        """Publish these records, and report this time for all outstanding requests. Return the sizes of the frames that follow."""
        n, last = len(peer.frames), peer.frames[-1].records[-1].number
        peer.send_frame(*records, companion.end(last, work_ns))
        peer.ping()
        return [len(frame.records) for frame in peer.frames[n:] if frame.records]

    def replies(length):
        last = peer.frames[-1].records[-1].number
        return [companion.reply(number, bytes(length)) for number in range(last - 3, last + 1)]

    assert sizes_after(work_ns=1_000_000_000) == [1, 1]
    assert sizes_after() == [2, 2]
    assert sizes_after(companion.notification(1, b"key", connections, bytes(180_000))) == [2, 2]
    assert sizes_after(*replies(900_000)) == [2, 2]
    assert sizes_after(*replies(10)) == [4, 4]


def test_a_frame_has_at_most_256_kib_or_one_request(site, manual):
    client = site.connect()
    publish_many(client, [b"first"])
    publish_many(client, [bytes([n]) * 100_000 for n in range(4)] + [b"l" * 1_000_000, b"last"])
    next_frame_payloads(manual)

    manual.end(1)
    manual.ping()
    manual.end(5)
    manual.ping()

    assert [[len(record.payload) for record in frame.records] for frame in manual.frames] == [
        [5], [100_000] * 2, [100_000] * 2, [1_000_000], [4]]
    assert all(frame.size <= 256 * 1024 + 100 or len(frame.records) == 1 for frame in manual.frames)


# Limits


def test_a_request_beyond_its_clients_share_gets_an_error_and_others_do_not(site_with):
    site = site_with("plugin_opt_statestored_queue_bytes 510000")
    peer = site.served()
    peer.ends_at_once = False
    flooder, victim = subscribed(site), site.connect()
    publish_many(flooder, [b"first"])
    publish_many(flooder, [b"x" * 100_000] * 4, CorrelationData=b"accepted")
    assert flooder.messages() == []

    publish_many(flooder, [b"x" * 100_000], CorrelationData=b"refused")
    publish_many(victim, [b"victim"])

    error = flooder.message(REPLIES)
    assert (error.payload, error.correlation, error.qos) == (TOO_MANY, b"refused", 1)
    assert error.user == [("__stat", "200"), ("__protVer", "1.0"), ("__srcId", "StateStore")]
    assert (error.content_type, error.format_indicator) == ("application/octet-stream", 0)
    peer.end(1)
    peer.ping()
    assert b"victim" in payloads(peer.records)
    assert peer.frames[-1].n_too_many == 1
    assert "too many requests are waiting" in site.broker.log()


def test_long_client_ids_count_in_the_waiting_bytes(site_with):
    """The broker keeps a client id of a waiting request twice: in its connection and its queue."""
    limit, length = 1_000_000, 60_000
    site = site_with(f"plugin_opt_statestored_queue_bytes {limit}")
    peer = site.served()
    peer.ends_at_once = False
    publish_many(site.connect(), [b"first"])
    reader = subscribed(site)  # all have the same response topic
    clients = [site.connect(f"{n:0{length}}") for n in range(12)]

    for client in clients:
        publish_many(client, [b"1"])
    refused = payloads(reader.messages()).count(TOO_MANY)

    assert 0 < (len(clients) - refused) * 2 * length <= limit


def test_a_refused_request_is_not_copied(site_with):
    """The broker itself has a packet twice: what it has read, and the payload."""
    n_bytes = 64 << 20
    site = site_with("plugin_opt_statestored_queue_bytes 1")
    peer = site.served()
    peer.ends_at_once = False
    client = subscribed(site)
    publish_many(client, [b"first"])

    publish_many(client, [b"x" * n_bytes])

    assert client.message(REPLIES).payload == TOO_MANY
    status = Path(f"/proc/{site.broker.child.pid}/status").read_text()
    assert int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10 < 2.5 * n_bytes


@pytest.mark.parametrize("qos", [0, 2])
def test_floods_at_another_qos_are_limited(site_with, qos):
    site = site_with("plugin_opt_statestored_queue_bytes 100000")
    peer = site.served()
    peer.ends_at_once = False
    flooder, victim = subscribed(site), site.connect()
    flooder.send(b"".join(flooder.encode_publish(INVOKE, qos=qos, ResponseTopic=REPLIES, CorrelationData=b"c" * 10_000)
                          for _ in range(30)))
    flooder.ping()

    publish_many(victim, [b"victim"])
    errors = [message.payload for message in flooder.messages()]

    assert errors and set(errors) == {TOO_MANY}
    peer.end(1)
    peer.ping()
    assert b"victim" in payloads(peer.records)


# Replies


def test_a_reply_has_the_topic_and_correlation_data_of_its_request(site, manual):
    client = subscribed(site)
    publish_many(client, [b"1"], CorrelationData=b"\0\xff")

    manual.answer(manual.next_request(), b"+OK\r\n", user=[("__stat", "200"), ("", ""), ("ключ", "значение")])

    reply, = client.messages()
    assert (reply.topic, reply.payload, reply.correlation, reply.qos, reply.retain) == (REPLIES, b"+OK\r\n", b"\0\xff", 1, False)
    assert reply.user == [("__stat", "200"), ("", ""), ("ключ", "значение")]
    assert (reply.content_type, reply.format_indicator, reply.expiry) == ("application/octet-stream", 0, None)


def test_a_request_gets_one_reply_while_it_is_kept(site, manual):
    client = subscribed(site)
    publish_many(client, [b"1"])
    number = manual.next_request().number

    manual.send_frame(companion.reply(number, b"first"), companion.reply(number, b"second"))
    manual.send_frame(companion.reply(number, b"third"), companion.end(number), companion.reply(number, b"fourth"))
    manual.send_frame(companion.reply(number + 1, b"unknown"))
    manual.ping()

    assert payloads(client.messages()) == [b"first"]


def test_a_reply_is_published_although_the_sender_has_disconnected(site, manual):
    sender, listener = site.connect(), subscribed(site)
    publish_many(sender, [b"1"])
    sender.disconnect()

    manual.answer(manual.next_request())

    assert listener.message(REPLIES).payload == b"+OK\r\n"


UNDECIDED = ["plugin_opt_undecided deny", "plugin_opt_undecided allow"]


@pytest.mark.parametrize("lines, denied, granted", [
    (["acl_file {acl}", UNDECIDED[version() < (2, 1)]], ["client/x", "clients", "mine/x"], ["clients/x", "clients/"]),
    (["acl_file {acl}", UNDECIDED[0], "plugin_opt_statestored_reply_prefix mine/"], ["min/x", "mine"], ["clients/x", "mine/x"]),
    ([UNDECIDED[1]], [], ["clients/x", "other/x", "x"]),
], ids=["rules", "rules and a prefix", "no rules"])
def test_the_plugin_takes_only_requests_whose_reply_it_may_publish(site_with, tmp_path, lines, denied, granted):
    """The plugin's publish needs no permission. In mosquitto 2.1, plugin_opt_undecided alone tells the plugin of rules."""
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite #\n")
    site = site_with(*(line.format(acl=rules) for line in lines))
    peer, client = site.served(), site.connect()
    peer.ends_at_once = False
    client.subscribe("#")

    assert [client.request(ResponseTopic=topic) for topic in denied] == [NOT_AUTHORIZED] * len(denied)
    assert [client.request(ResponseTopic=topic) for topic in granted] == [SUCCESS] * len(granted)
    for _ in granted:
        peer.answer(peer.next_request())

    assert [client.message().topic for _ in granted] == granted
    assert peer.frames[-1].n_denied == len(denied)
    assert site.broker.log().count("response topic does not begin with clients/") == min(len(denied), 1)


def test_rules_for_subscribers_apply_to_replies_of_the_plugin(site_with, tmp_path):
    rules = tmp_path / "acl"
    rules.write_text("topic write statestore/#\ntopic readwrite open/#\n")
    site = site_with(f"acl_file {rules}")
    peer, client = site.served(), site.connect()
    peer.ends_at_once = False
    client.subscribe("#")
    client.request()

    peer.answer(peer.next_request())
    peer.ping()

    assert client.messages() == []


def test_a_notification_precedes_the_reply_behind_it(site, manual):
    client = subscribed(site)
    number = manual.track(client)
    publish_many(client, [b"1"])
    request = manual.next_request()

    manual.send_frame(companion.notification(1, b"key", [number], b"the notification"), companion.reply(request.number, b"the reply"),
                      companion.end(request.number))
    manual.ping()

    assert payloads(client.messages()) == [b"the notification", b"the reply"]


def test_a_malformed_user_property_ends_no_connection(site, manual):
    client = subscribed(site)
    publish_many(client, [b"1", b"2"])
    first = manual.next_request()

    manual.answer(first, user=[("a\0b", "x"), ("\ud7ff", "\x01")])
    manual.answer(manual.next_request(), b"second")
    manual.ping()

    assert payloads(client.messages())[-1] == b"second"


# Sending again


def test_after_hello_records_without_an_end_are_sent_again_before_new_ones(site, manual):
    clients = [site.connect() for _ in range(3)]
    for n in range(4):
        for client in clients:
            publish_many(client, [b"%d" % n])
    manual.end(1)
    manual.ping()
    sent = list(manual.records)
    manual.end(5)
    publish_many(clients[0], [b"new"])
    manual.cut()

    peer = site.peer()
    peer.ends_at_once = False
    peer.hello()
    peer.ping()
    sent_again = list(peer.records)
    peer.end(sent_again[-1].number)
    peer.ping()

    assert [record.number for record in sent_again] == list(range(6, 6 + len(sent_again)))
    assert sent_again[:len(sent) - 5] == sent[5:], "the same records"
    assert sorted(payloads(sent[:5] + peer.records)) == sorted([b"%d" % n for n in range(4)] * 3 + [b"new"])
    assert peer.records[-1].payload == b"new"
    assert peer.frames[0].first == 6 and peer.frames[0].number == 1


def test_after_hello_a_frame_is_sized_by_the_records_that_end_after_it(site, manual):
    client = site.connect()
    publish_many(client, [b"%d" % n for n in range(100)])
    manual.end(1)
    manual.ping()
    manual.end(65)
    manual.cut()

    peer = site.peer()
    peer.ends_at_once = False
    peer.hello()
    peer.ping()
    assert [record.number for record in peer.frames[0].records] == list(range(66, 82))
    n = len(peer.frames)
    peer.end(81, 16 * 1_000_000)
    peer.ping()

    assert [len(frame.records) for frame in peer.frames[n:]] == [2]


@pytest.mark.parametrize("ends", range(4))
def test_a_store_that_dies_at_any_step_gets_the_rest_from_its_successor(site, ends):
    client = subscribed(site)
    peer = site.served(session_expiry=1000)
    peer.ends_at_once = False
    publish_many(client, [b"0", b"1", b"2"])
    for n in range(ends):
        peer.answer(peer.next_request(), b"of the first store")
    peer.ping()
    peer.cut()
    publish_many(client, [b"3"])

    peer = site.peer(clean_start=False, session_expiry=1000)
    peer.ends_at_once = False
    peer.hello()
    executed = []
    while len(executed) < 4 - ends:
        record = peer.next_request()
        executed.append(record.payload)
        peer.answer(record, b"of the second store")
    peer.ping()

    assert executed == [b"%d" % n for n in range(ends, 4)]
    assert payloads(client.messages()) == [b"of the first store"] * ends + [b"of the second store"] * (4 - ends)


def test_a_reply_is_not_repeated_although_its_end_is_lost(site, manual):
    client = subscribed(site)
    publish_many(client, [b"1"])
    first = manual.next_request().number
    manual.send_frame(companion.reply(first, b"a reply"))
    manual.ping()

    manual.hello()
    publish_many(client, [b"2"])
    second = manual.next_request()
    manual.send_frame(companion.reply(first, b"again"), companion.reply(second.number, b"another reply"))
    manual.ping()

    assert (second.number, second.payload) == (first + 1, b"2"), "the first request is not sent again"
    assert payloads(client.messages()) == [b"a reply", b"another reply"]


def test_welcome_lists_connections_with_requests_that_have_not_ended(site, manual):
    tracked, pending, both, closed, idle = (site.connect() for _ in range(5))
    manual.ends_at_once = True
    numbers = [manual.track(tracked), manual.number_of(idle), manual.track(both)]
    manual.ends_at_once = False
    for client in (pending, both, closed):
        client.request()
    closed.disconnect()

    assert manual.hello() == {numbers[0]}
    assert len(manual.welcome.pending) == 2 and numbers[2] in manual.welcome.pending


def test_a_broker_that_drops_a_frame_is_noticed_by_the_store(site_with, tmp_path, monkeypatch):
    """The fake store drops it instead. The plugin sends a frame without records after 5 s: its number reveals the loss."""
    clock, site = clocked(site_with, tmp_path, monkeypatch, "plugin_opt_statestored_wait 0")
    peer, client = site.served(), subscribed(site)
    peer.ends_at_once = False
    publish_many(client, [b"1"])
    lost = peer.next_frame()
    publish_many(client, [b"2"])

    clock.advance_monotonic(4)
    assert peer.take_records() == lost.records and len(peer.frames) == 1
    clock.advance_monotonic(5)
    probe = peer.next_frame()
    assert (probe.number, probe.records) == (2, [])
    clock.advance_monotonic(10)
    assert (peer.next_frame().number, peer.frames[-1].records) == (3, [])

    peer.hello()
    for expected in (b"1", b"2"):
        request = peer.next_request()
        assert request.payload == expected
        peer.answer(request)
    assert len([client.message(REPLIES) for _ in range(2)]) == 2


# Expiry


def clocked(site_with, tmp_path, monkeypatch, *lines):
    """Start a broker whose monotonic clock the test sets."""
    clock = SteppedClock(tmp_path)
    monkeypatch.setenv("STATESTORE_CLOCK", str(clock.path))
    clock.advance_monotonic(0)
    return clock, site_with(*lines, preload=[BUILD / "tests" / "libclock_shim.so"])


def with_session(site):
    """Let the store have a session, without a connection."""
    peer = site.served(session_expiry=1000)
    peer.disconnect(session_expiry=1000)


@pytest.mark.parametrize("lines, wait", [([], 10), (["plugin_opt_statestored_wait 3"], 3)])
def test_a_request_that_was_not_sent_in_time_gets_an_error(site_with, tmp_path, monkeypatch, lines, wait):
    clock, site = clocked(site_with, tmp_path, monkeypatch, *lines)
    with_session(site)
    client = subscribed(site)
    publish_many(client, [b"1", b"2"], CorrelationData=b"c")

    clock.advance_monotonic(wait - 1)
    publish_many(client, [b"3"])
    assert client.messages() == []
    clock.advance_monotonic(wait)

    for _ in range(2):
        error = client.message(REPLIES)
        assert (error.payload, error.correlation) == (UNAVAILABLE, b"c")
    peer = site.peer(clean_start=False, session_expiry=1000)
    peer.hello()
    assert payloads([peer.next_request()]) == [b"3"]
    assert peer.frames[-1].n_unavailable == 2
    assert client.messages() == []


def test_a_request_is_refused_in_time_while_no_client_is_connected(site_with):
    """The broker has no other reason to wake up: mosquitto 2.1 then waits for a day."""
    site = site_with("plugin_opt_statestored_wait 1", "sys_interval 0")
    peer = site.served(session_expiry=2**32 - 1)
    peer.cut()
    client = site.connect()
    publish_many(client, [b"1"])

    client.disconnect()

    site.broker.wait_for_log(rf"request refused: the state store is not available: client_id={client.id}")


def test_a_step_of_the_wall_clock_delays_no_tick(site_with, tmp_path, monkeypatch):
    """mosquitto 2.1 compares the time of the next tick with the wall clock."""
    clock, site = clocked(site_with, tmp_path, monkeypatch)
    site.served()
    offender = site.connect()
    offender.ping()

    clock.step_to(-3600 * 1000)

    assert offender.request(ResponseTopic=INVOKE) == NOT_AUTHORIZED
    assert offender.wait_until_closed() == KICKED


def test_a_request_that_was_sent_is_kept_until_its_end(site_with, tmp_path, monkeypatch):
    clock, site = clocked(site_with, tmp_path, monkeypatch)
    peer, client = site.served(), subscribed(site)
    peer.ends_at_once = False
    publish_many(client, [b"sent"])
    publish_many(client, [b"waits"])
    peer.next_request()
    peer.cut()

    clock.advance_monotonic(1000)

    assert client.message(REPLIES).payload == UNAVAILABLE
    peer = site.peer()
    peer.hello()
    peer.ping()
    assert payloads(peer.records) == [b"sent"]
    assert client.messages() == []


def test_without_a_limit_requests_wait_for_ever(site_with, tmp_path, monkeypatch):
    clock, site = clocked(site_with, tmp_path, monkeypatch, "plugin_opt_statestored_wait 0")
    with_session(site)
    client = subscribed(site)
    publish_many(client, [b"1"])

    clock.advance_monotonic(1_000_000)
    assert client.messages() == []

    peer = site.peer(clean_start=False, session_expiry=1000)
    peer.hello()
    assert peer.next_request().payload == b"1"


def test_an_ended_connection_whose_requests_expire_is_forgotten(site_with, tmp_path, monkeypatch):
    clock, site = clocked(site_with, tmp_path, monkeypatch)
    with_session(site)
    listener = subscribed(site)
    for _ in range(5):
        client = site.connect()
        publish_many(client, [b"1"])
        client.disconnect()

    clock.advance_monotonic(10)

    assert [listener.message(REPLIES).payload for _ in range(5)] == [UNAVAILABLE] * 5
    peer = site.peer(clean_start=False, session_expiry=1000)
    assert peer.hello() == set()
    assert peer.take_records() == []


# Who may send frames


def test_frames_of_another_client_of_the_stores_user_are_ignored(site_with, tmp_path):
    site = site_with("plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret')}")
    first = site.served("first", username="store", password="secret")
    client = subscribed(site)
    first.ends_at_once = False
    publish_many(client, [b"1"])
    request = first.next_request()
    bystander = site.connect("second", username="store", password="secret")

    bystander.send(bystander.encode_publish(CONTROL + "frame", companion.frame(companion.reply(request.number, b"forged")), qos=0))
    bystander.ping()
    first.answer(request, b"true")

    assert payloads([client.message(REPLIES)]) == [b"true"]
    assert client.messages() == []


def test_a_client_that_takes_over_the_stores_session_reads_no_request(site):
    """The broker does not authenticate here. The plugin sends no frame before HELLO."""
    peer = site.served(session_expiry=1000)
    client = site.connect()
    client.request(payload=b"secret")
    assert peer.next_request()

    thief = site.connect("statestored", clean_start=False, session_expiry=1000)
    client.request(payload=b"secret")

    assert thief.messages() == []
