# SPDX-License-Identifier: Apache-2.0
"""Notifications to the service manager, and the watchdog."""

import signal

import pytest

from support.process import preload
from support.service_manager import ServiceManager

# The store checks four times per timeout.
WATCHDOG_S = 0.4

# How long a test waits to verify that nothing is sent.
SEVERAL_LOOKS_S = 3 * WATCHDOG_S


@pytest.fixture
def make_manager(until_end, tmp_path):
    return lambda **more: until_end(ServiceManager(tmp_path, **more))


@pytest.fixture
def watching(make_manager):
    return make_manager(watchdog_s=WATCHDOG_S)


def words(datagrams):
    return [word for datagram in datagrams for word in datagram if word not in ("STATUS", "MONOTONIC_USEC")]


def test_ready_is_notified_when_requests_are_served_and_stopping_before_the_end(site, make_manager):
    manager = make_manager()
    store = site.start_store(environment=manager.environment())

    until_ready = manager.receive_until("READY")
    assert words(until_ready) == ["READY"]
    assert f"serving 127.0.0.1:{site.broker.port}" in until_ready[-2]["STATUS"]

    assert store.stop() == 0
    assert words(manager.drain()) == ["STOPPING"]


def test_ready_is_not_notified_without_a_broker(site, make_manager):
    manager = make_manager()
    site.broker.stop()

    store = site.launch_store(environment=manager.environment())
    status = manager.receive()
    assert status.keys() == {"STATUS"} and "no connection to the broker" in status["STATUS"]

    site.broker.start_again()
    assert words(manager.receive_until("READY")) == ["READY"]
    store.wait_until_ready()


def test_the_status_names_the_plugin_that_the_store_waits_for(make_site, make_manager):
    manager = make_manager()
    site = make_site(plugin=False)

    site.launch_store("--require-plugin", "on", environment=manager.environment())

    status = manager.receive()
    assert status.keys() == {"STATUS"} and "waiting for the plugin" in status["STATUS"]


def test_the_status_names_the_cause_of_a_refusal(make_site, make_manager):
    manager = make_manager()
    site = make_site("allow_anonymous false", "plugin_opt_statestored_username statestored")
    store = site.launch_store(environment=manager.environment())

    assert store.wait() == 1

    status = [datagram["STATUS"] for datagram in manager.drain() if "STATUS" in datagram]
    assert status == [f"the broker at 127.0.0.1:{site.broker.port} refused the connection: not authorized"]


@pytest.mark.parametrize("line, said", [("max-keys = 5", "configuration reloaded"), ("max-keys = many", "configuration is invalid")])
def test_a_reload_notifies_its_start_and_its_end(site, make_manager, tmp_path, line, said):
    manager = make_manager()
    file = tmp_path / "statestored.conf"
    file.write_text("[store]\n")
    store = site.start_store("--config", file, environment=manager.environment())
    manager.receive_until("READY")

    file.write_text(f"[store]\n{line}\n")
    store.child.send_signal(signal.SIGHUP)
    reloading, = manager.receive_until("RELOADING")

    assert int(reloading["MONOTONIC_USEC"]) > 0
    assert words(manager.receive_until("READY")) == ["READY"]
    store.wait_for_log(said)


def test_without_a_service_manager_nothing_is_sent(site):
    site.start_store(environment={"NOTIFY_SOCKET": "", "WATCHDOG_USEC": "1000"})
    assert site.connect().request("SET", "key", "value").payload == b"+OK\r\n"


# The watchdog


def test_the_watchdog_is_notified_while_requests_are_served(site, watching):
    site.start_store(environment=watching.environment())
    client = site.connect()
    for n in range(5):
        watching.receive_until("WATCHDOG")
        assert client.request("SET", "key", n).payload == b"+OK\r\n"


def test_watchdog_notifications_stop_while_a_commit_hangs(site, watching, tmp_path):
    """The disk blocks: the event loop runs and /healthz answers, but no request is served."""
    stall = tmp_path / "stall"
    store = site.start_store("--data-dir", tmp_path / "data", environment={
        **watching.environment(), **preload("stall_shim"), "STATESTORE_STALL": str(stall)})
    client = site.connect()
    assert client.request("SET", "key", "before").payload == b"+OK\r\n"
    watching.receive_until("WATCHDOG")

    seen = len(store.log())
    stall.touch()
    waiting = client.send("SET", "key", "after")
    store.wait_for_log("commit is stalled; watchdog notifications are suspended", after=seen)
    watching.drain()
    assert watching.receive(SEVERAL_LOOKS_S) is None
    assert not waiting.done()

    stall.unlink()
    watching.receive_until("WATCHDOG")
    assert waiting.result().payload == b"+OK\r\n"


def test_the_watchdog_is_notified_while_the_name_of_the_broker_is_looked_up(site, watching, tmp_path):
    """The resolver of the system takes 30 s to report that no name server replies."""
    stall = tmp_path / "stall"
    stall.touch()
    store = site.launch_store("--host", "localhost", environment={
        **watching.environment(), **preload("stall_shim"), "STATESTORE_STALL": str(stall)})
    for _ in range(10):
        watching.receive_until("WATCHDOG")
    assert not store.is_ready()

    stall.unlink()
    store.wait_until_ready()


def test_watchdog_notifications_stop_while_the_process_is_stopped(site, watching):
    store = site.start_store(environment=watching.environment())
    watching.receive_until("WATCHDOG")
    with store.paused():
        watching.drain()
        assert watching.receive(SEVERAL_LOOKS_S) is None
    watching.receive_until("WATCHDOG")


def test_the_watchdog_is_notified_while_the_broker_is_down(site, watching):
    """A restart of the store would not help, and would lose data that is only in memory."""
    store = site.start_store(environment=watching.environment())
    client = site.connect()
    assert client.request("SET", "key", "value").payload == b"+OK\r\n"
    site.disconnect_all()

    site.broker.stop()
    store.wait_for_log("no connection to the broker")
    watching.drain()
    for _ in range(5):
        watching.receive_until("WATCHDOG")

    site.broker.start_again()
    while "serving" not in watching.receive_until("STATUS")[-1]["STATUS"]:
        pass  # the store has tried again in the meantime
    assert site.connect().request("GET", "key").payload == b"$5\r\nvalue\r\n"
