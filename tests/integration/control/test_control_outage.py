# SPDX-License-Identifier: Apache-2.0
"""statestored --control: outages of the broker and of the store."""

import socket
import struct
from pathlib import Path

import pytest

from support.control import CONTROL, Control, value_of
from support.double import is_gone, running_double
from support.process import PATIENCE, wait_until

OK = b"+OK\r\n"
DOWN, SERVING = "disconnected for a pause", "ready: serving"


@pytest.fixture
def own_double(tmp_path):
    """A double for one test."""
    with running_double(tmp_path, "--control") as double:
        yield double


def brokers_of(double):
    return Path(f"/proc/{double.pid}/task/{double.pid}/children").read_text().split()


def test_during_an_outage_of_the_store_requests_wait(own_double):
    control, client = own_double.connect("control", Control), own_double.connect("client")
    client.watch("key")
    assert client.request("SET", "other", "value").payload == OK

    assert control.ask("outage", "store", "500ms") == OK
    wait_until(lambda: DOWN in own_double.log(), "the outage begins")
    set_reply = client.send("SET", "key", "value")
    client.wait_until_sent()

    assert set_reply.result(PATIENCE).payload == OK
    assert client.next_change() == [b"SET", b"VALUE", b"value"], "the registration is still there"
    assert value_of(client, "other") == b"value"
    assert own_double.log().count(SERVING) == 2
    assert own_double.stop() == 0


def test_control_requests_during_an_outage_of_the_store_are_executed_after_it(own_double):
    control = own_double.connect("control", Control)
    control.request("SET", "key", "value")
    control.do("outage", "store", "500ms")
    wait_until(lambda: DOWN in own_double.log(), "the outage begins")

    assert control.ask("reset") == OK
    assert value_of(control, "key") is None
    assert own_double.log().count(SERVING) == 2
    assert control.ask("outage", "store", "1ms") == OK
    wait_until(lambda: own_double.log().count(SERVING) == 3, "the second outage ends")
    assert own_double.stop() == 0


def test_after_an_outage_of_the_broker_keys_remain_and_registrations_do_not(own_double):
    control, client = own_double.connect("control", Control), own_double.connect("client")
    client.watch("key")
    client.request("SET", "key", "value")
    first = own_double.broker_pid

    assert control.ask("outage", "broker", "300ms") == OK
    client.wait_until_reconnected()
    control.wait_until_reconnected()
    wait_until(lambda: own_double.log().count(SERVING) == 2, "the store is back, maybe after the clients")

    assert is_gone(first)
    [own_double.broker_pid] = map(int, brokers_of(own_double))
    assert value_of(client, "key") == b"value"
    assert client.request("KEYNOTIFY", "key", "STOP").payload == b":0\r\n"
    assert [line["client"] for line in control.lines("requests", "verb", "SET")] == ["client"], "the journal remains"
    assert control.ask("outage", "broker", "1ms") == OK
    wait_until(lambda: own_double.log().count(SERVING) == 3, "the second outage ends")
    [own_double.broker_pid] = map(int, brokers_of(own_double))
    assert own_double.stop() == 0


def test_during_an_outage_of_the_broker_its_port_is_reserved(own_double):
    control = own_double.connect("control", Control)
    # The client resets the connection: TIME_WAIT at the broker's end would also keep the port.
    control._paho.socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    control.do("outage", "broker", "1h")
    wait_until(lambda: not brokers_of(own_double), "the broker has ended")
    control.close()

    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.1", own_double.port)) != 0
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", own_double.port))
    assert own_double.stop() == 0, "an outage does not delay the stop"


def test_a_double_stops_during_an_outage_of_the_store(own_double):
    own_double.connect("control", Control).do("outage", "store", "1h")
    wait_until(lambda: DOWN in own_double.log(), "the outage begins")

    assert own_double.stop() == 0


def test_of_two_outages_at_once_the_second_is_refused_or_follows(own_double):
    control = own_double.connect("control", Control)

    replies = [control.send("outage", "store", "1ms", topic=CONTROL, ts=None) for _ in range(20)]

    began = [reply.result(PATIENCE).payload for reply in replies].count(OK)
    assert {reply.result(PATIENCE).payload for reply in replies} <= {OK, b"-ERR another outage is about to begin\r\n"}
    wait_until(lambda: own_double.log().count(SERVING) == 1 + began, "each outage ends")
    assert own_double.stop() == 0


def test_the_broker_of_a_site_is_not_stopped(site):
    store = site.start_store("--control")
    control = site.connect(kind=Control)

    assert control.ask("outage", "broker", "1s") == \
        b"-ERR only statestored --dev can stop its broker: the store did not start this one\r\n"
    assert control.ask("outage", "store", "1ms") == OK
    store.wait_for_log(f"{DOWN}(.|\n)*{SERVING}")
    assert value_of(control, "key") is None
