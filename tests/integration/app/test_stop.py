# SPDX-License-Identifier: Apache-2.0
"""statestored stops: its disconnect, and signals."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from support.fake_broker import CONNACK_ACCEPTED, DISCONNECT, PUBACK, SUBSCRIBE, publish_packet
from support.load import Load
from support.process import STATESTORED, Process, preload, wait_until


# The store waits this long after its DISCONNECT for the broker to send more: LINGER_S in mqtt_client.c.
LINGER_S = 2


def stop_and_send_more(fake_broker, store):
    """Stop a new process of the store, and send bytes after its DISCONNECT. Return whether this was within LINGER_S."""
    store.launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    subscribes = fake_broker.receive_until(SUBSCRIBE)
    fake_broker.publish_something()
    for body in subscribes + fake_broker.receive_until(PUBACK):
        fake_broker.confirm(body)
    store.wait_until_ready()

    begin = time.monotonic()
    store.child.send_signal(signal.SIGTERM)
    fake_broker.receive_until(DISCONNECT)
    try:
        fake_broker.send(1000 * publish_packet(1))
    except ConnectionError:
        assert time.monotonic() - begin >= LINGER_S, "the store has closed the connection at once"
    is_in_time = time.monotonic() - begin < LINGER_S

    assert store.wait() == 0
    return is_in_time


def test_bytes_that_arrive_after_disconnect_are_read(fake_broker, store_of):
    """Closing the connection with unread bytes would reset it, and the last replies would be lost."""
    store = store_of(fake_broker.port)
    wait_until(lambda: stop_and_send_more(fake_broker, store), "bytes are sent while the store waits")

    assert fake_broker.error() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_process_1_ends_on_a_signal_while_it_loads_the_data_directory(tmp_path, number):
    """In a container: the kernel does not deliver signals without a handler to process 1."""
    stall = tmp_path / "stall"
    stall.touch()
    loading = Process("statestored", tmp_path / "statestored.log")
    environment = preload("stall_shim")
    environment["ASAN_OPTIONS"] += ":detect_leaks=0"  # leak detection needs the /proc of this PID namespace
    loading.spawn(["unshare", "--pid", "--fork", "--kill-child", STATESTORED, "--port", "1", "--data-dir", tmp_path / "data"],
                  {**environment, "STATESTORE_STALL": str(stall)})

    def has_ended():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for pid in Path(f"/proc/{loading.child.pid}/task/{loading.child.pid}/children").read_text().split():
                os.kill(int(pid), number)
        return not loading.running()

    wait_until(has_ended, "process 1 ends")
    assert loading.child.returncode == 0, loading.log()


def test_a_store_under_load_stops_and_keeps_acknowledged_writes(site, tmp_path):
    store = site.start_store("--data-dir", tmp_path / "data")
    load = Load(site.connect(), depth=500)
    load.wait_for_progress(2000)

    assert store.stop() == 0
    load.stop()
    acknowledged = dict(load.replies)

    store.start()
    client = site.connect()
    for number in list(acknowledged)[-20:]:
        value = str(number).encode()
        assert client.request("GET", load.key(number)).payload == b"$%d\r\n%s\r\n" % (len(value), value)
