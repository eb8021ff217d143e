# SPDX-License-Identifier: Apache-2.0
"""How statestored takes leave of its broker."""

import signal

from support.fake_broker import CONNACK_ACCEPTED, DISCONNECT, PUBACK, SUBSCRIBE


def test_the_connection_stays_open_until_the_broker_has_closed_it(fake_broker, store_of):
    """A connection that we closed with something of the broker's unread would be reset, and our last answers lost."""
    store = store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    subscribes = fake_broker.receive_until(SUBSCRIBE)
    fake_broker.publish_something()
    for body in subscribes + fake_broker.receive_until(PUBACK):
        fake_broker.confirm(body)
    store.wait_until_ready()

    store.child.send_signal(signal.SIGTERM)
    fake_broker.receive_until(DISCONNECT)
    for _ in range(1000):
        fake_broker.publish_something()
    fake_broker.close()

    assert store.wait() == 0
