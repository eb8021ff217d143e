# SPDX-License-Identifier: Apache-2.0
"""Two stores with the same client id disconnect each other repeatedly, and each store logs this."""

import pytest

from support.fake_broker import CONNACK_ACCEPTED, SUBSCRIBE

DISCONNECT_SESSION_TAKEN_OVER = bytes.fromhex("e0 02 8e 00")


def test_a_takeover_with_reason_code_is_logged(fake_broker, store_of):
    store = store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    for body in fake_broker.receive_until(SUBSCRIBE):
        fake_broker.confirm(body)

    fake_broker.send(DISCONNECT_SESSION_TAKEN_OVER)

    store.wait_for_log("level=warning msg=\"no connection to .*: another client has connected with our client id: "
                       "two stores with one client id disconnect each other; stop one of them")


def test_a_takeover_without_reason_code_is_logged(make_site, store_of):
    """mosquitto 2.0 closes the connection without a reason; the plugin reports the takeover."""
    site = make_site()
    first = site.start_store()
    second = store_of(site.broker.port).launch()

    for store in (first, second):
        store.wait_for_log("level=error msg=\"another statestored serves this broker, too")
    second.kill()
    assert site.connect().request("GET", "key").payload == b"$-1\r\n"


@pytest.mark.parametrize("flags", [(), ("--data-dir",)], ids=["in memory", "with a data directory"])
def test_a_restarted_store_is_no_takeover(make_site, tmp_path, flags):
    site = make_site()
    store = site.start_store(*flags, *([tmp_path / "data"] if flags else []))

    for _ in range(3):
        store.kill()
        store.start()

    assert "another statestored" not in store.log()


def test_a_reconnect_is_no_takeover(make_site, proxy_of):
    site = make_site()
    proxy = proxy_of(site)
    store = site.start_store("--port", proxy.port)

    for _ in range(3):
        seen = len(store.log())
        proxy.cut()
        store.wait_for_log("no connection", after=seen)
        proxy.mend()
        store.wait_for_log("ready", after=seen)

    assert "another statestored" not in store.log()
