# SPDX-License-Identifier: Apache-2.0
"""A store serves a broker, then another one, then the first again, which was not restarted. The first one still keeps the
requests that it numbered before, and sessions: its plugin ends it.

The lost requests are DELs without a timestamp and with short Correlation Data: the store recognizes other repeated requests by
their content, too.
"""

import pytest

from support import stored
from support.process import wait_until

OK = b"+OK\r\n"


class TwoBrokers:
    """Two brokers with the plugin, and one store with data. A proxy in front of the first can hide it from the store."""

    def __init__(self, make_site, proxy_of, data):
        self.data = data
        self.first, self.second = make_site(), make_site()
        self.proxy = proxy_of(self.first)
        self.store = self.first.start_store(
            "--data-dir", data, "--host", f"127.0.0.1:{self.proxy.port},127.0.0.1:{self.second.broker.port}")

    def wait_until_served(self, port, after):
        self.store.wait_for_log(f"ready: serving 127.0.0.1:{port} .*the plugin", after=after)

    def delete_without_reply(self, client, key):
        """Have the store commit the DEL of an existing key, and lose the frame with the reply and the end. Return the future of
        the reply. The first broker receives nothing more from the store until their connection ends."""
        assert client.request("SET", key, "before").payload == OK
        self.proxy.hold()
        reply = client.send("DEL", key, ts=None, correlation=key.encode())
        wait_until(lambda: key.encode() not in stored.entries(self.data), "the deletion is committed")
        return reply

    def leave_first(self, kills_store):
        seen = len(self.store.log())
        if kills_store:
            self.store.kill()
        self.proxy.cut()
        if kills_store:
            self.store.launch()
        self.wait_until_served(self.second.broker.port, seen)

    def return_to_first(self):
        """The first broker ends, and is started again."""
        seen = len(self.store.log())
        self.proxy.mend()
        self.second.broker.kill()
        assert self.first.broker.wait() == 1
        self.first.broker.start_again()
        self.wait_until_served(self.proxy.port, seen)


@pytest.fixture
def brokers(make_site, proxy_of, data):
    return TwoBrokers(make_site, proxy_of, data)


@pytest.mark.parametrize("kills_store", [False, True], ids=["connection ends", "store is killed"])
def test_a_request_executed_before_another_broker_was_served_is_not_executed_again(brokers, kills_store):
    client = brokers.first.connect()
    lost = brokers.delete_without_reply(client, "key")

    brokers.leave_first(kills_store)
    assert brokers.second.connect().request("SET", "key", "after").payload == OK
    brokers.return_to_first()

    assert brokers.first.connect().request("GET", "key").payload == b"$5\r\nafter\r\n"
    assert not lost.done()
    assert "this broker ends, and so do its sessions: the state store has served another broker" in brokers.first.broker.log()
