# SPDX-License-Identifier: Apache-2.0
"""Where the broker listens: Unix sockets, IPv6, names, and several brokers that are tried in turn."""

import socket
from pathlib import Path

import pytest

from support.broker import free_port
from support.process import preload, wait_until

MISSING = b"$-1\r\n"


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            return True
    except OSError:
        return False


LOOPBACKS = ["127.0.0.2", "::1"] if has_ipv6() else ["127.0.0.2"]


def assert_served(site):
    """Clients connect to the default listener of the broker, 127.0.0.1."""
    assert site.connect().request("GET", "key").payload == MISSING


def test_a_broker_at_a_unix_socket_is_served(make_site, tmp_path):
    path = tmp_path / "mosquitto"
    site = make_site(listeners=[f"listener 0 {path}"])

    store = site.start_store("--host", path)

    store.wait_for_log(f"ready: serving {path} .*the plugin")
    assert_served(site)


def test_a_broker_at_a_unix_socket_is_served_again_after_its_restart(make_site, tmp_path):
    path = tmp_path / "mosquitto"
    site = make_site(listeners=[f"listener 0 {path}"])
    store = site.start_store("--host", path)

    for _ in range(2):
        seen = len(store.log())
        site.broker.stop()
        site.broker.start_again()
        store.wait_for_log("ready: ", after=seen)

    assert_served(site)


def test_the_store_waits_for_a_missing_unix_socket(make_site, tmp_path):
    path = tmp_path / "mosquitto"
    site = make_site(listeners=[f"listener 0 {path}"])
    site.broker.stop()
    path.unlink(missing_ok=True)
    store = site.launch_store("--host", path)
    store.wait_for_log(f"no connection to the broker at {path}: .*retrying")

    site.broker.start_again()

    store.wait_until_ready()


@pytest.mark.parametrize("address", LOOPBACKS)
@pytest.mark.parametrize("form", ["with its port", "bare"])
def test_a_broker_at_an_address_is_served(make_site, address, form):
    site = make_site(listeners=[f"listener {{port}} {address}"])
    text = f"[{address}]" if ":" in address else address

    store = site.start_store("--host", f"{text}:{site.broker.port}" if form == "with its port" else address)

    store.wait_for_log(rf"serving \[?{address}\]?:{site.broker.port} ")
    assert_served(site)


@pytest.mark.parametrize("address", sorted({info[4][0] for info in socket.getaddrinfo("localhost", None)}))
def test_each_address_of_a_name_is_tried(make_site, tmp_path, address):
    """The broker listens at one of the addresses only."""
    site = make_site(f"listener 0 {tmp_path}/other", listeners=[f"listener {{port}} {address}"])

    site.start_store("--host", f"localhost:{site.broker.port}")


def test_connecting_to_an_address_starts_no_lookup_thread(site):
    """After a process has started a thread, each allocation takes longer."""
    store = site.start_store()

    assert len(list(Path(f"/proc/{store.child.pid}/task").iterdir())) == 1


def test_an_unknown_name_is_logged_and_tried_again(make_site):
    site = make_site()

    store = site.launch_store("--host", "no-such-name.invalid")

    store.wait_for_log("no connection to the broker at no-such-name.invalid:.*the name is not known.*retrying")
    assert store.stop() == 0


def test_the_store_stops_cleanly_during_a_name_lookup(make_site, tmp_path):
    site = make_site()
    stall = tmp_path / "stall"
    stall.touch()
    store = site.launch_store("--host", "localhost", environment={**preload("stall_shim"), "STATESTORE_STALL": str(stall)})
    threads = Path(f"/proc/{store.child.pid}/task")
    wait_until(lambda: len(list(threads.iterdir())) > 1, "the lookup thread runs")

    store.child.terminate()
    store.wait_for_log("stopp")
    stall.unlink()
    assert store.wait() == 0


# Several brokers


def hosts(*sites):
    return "--host", ",".join(f"127.0.0.1:{site.broker.port}" for site in sites)


def test_unreachable_brokers_are_skipped(make_site, tmp_path):
    site = make_site()
    absent = f"127.0.0.1:{free_port()},no-such-name.invalid,{tmp_path}/none"

    store = site.start_store("--host", f"{absent},127.0.0.1:{site.broker.port}")

    store.wait_for_log(f"ready: serving 127.0.0.1:{site.broker.port} ")
    assert_served(site)


def test_when_the_first_broker_ends_the_store_serves_the_second(make_site):
    first, second = make_site(), make_site()
    store = first.start_store(*hosts(first, second))
    version = first.connect().request("SET", "key", "value").ts

    seen = len(store.log())
    first.broker.kill()

    store.wait_for_log(f"ready: serving 127.0.0.1:{second.broker.port} ", after=seen)
    reply = second.connect().request("GET", "key")
    assert (reply.payload, reply.ts) == (b"$5\r\nvalue\r\n", version)


def test_a_registration_at_the_first_broker_does_not_count_at_the_second(make_site):
    first, second = make_site(), make_site()
    store = first.start_store(*hosts(first, second))
    first.connect("client").watch("key")

    first.broker.kill()
    store.wait_for_log(f"ready: serving 127.0.0.1:{second.broker.port} ")

    client = second.connect("client")
    assert client.request("KEYNOTIFY", "key", "STOP").payload == b":0\r\n"
    client.watch("key")
    client.request("SET", "key", "value")
    assert client.notification().payload.endswith(b"\r\nvalue\r\n")


def test_when_the_second_broker_ends_the_first_is_served_again(make_site):
    first, second = make_site(), make_site()
    store = first.start_store(*hosts(first, second))
    for dies, lives in ((first, second), (second, first)):
        seen = len(store.log())
        if not lives.broker.running():
            lives.broker.start_again()
        dies.broker.kill()
        store.wait_for_log(f"ready: serving 127.0.0.1:{lives.broker.port} ", after=seen)

    assert_served(first)


def test_a_broker_that_closes_the_connection_is_served_again_at_once(make_site, proxy_of):
    """The store tries this broker first, because it has the session of the store."""
    first, second = make_site(), make_site()
    proxy = proxy_of(first)
    store = first.start_store("--host", f"127.0.0.1:{proxy.port},127.0.0.1:{second.broker.port}")

    seen = len(store.log())
    proxy.reset()

    store.wait_for_log(f"ready: serving 127.0.0.1:{proxy.port} ", after=seen)
    assert f"serving 127.0.0.1:{second.broker.port}" not in store.log()


def test_a_broker_that_refuses_a_reconnect_is_skipped(make_site):
    first, second = make_site(), make_site()
    store = first.start_store(*hosts(first, second))
    seen = len(store.log())

    first.broker.stop()
    first.broker.lines.append("allow_anonymous false")
    first.broker.start_again()

    wait_until(lambda: f"serving 127.0.0.1:{second.broker.port}" in store.log()[seen:], "the second broker is served")
    assert_served(second)
