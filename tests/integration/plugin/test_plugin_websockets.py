# SPDX-License-Identifier: Apache-2.0
"""The end of connections over websockets, which the broker closes with a delay."""

import queue
import socket

import paho.mqtt.client as paho
import pytest

from support.broker import free_port
from support.client import INVOKE
from support.plugin import site_with  # noqa: F401 fixture
from support.process import PATIENCE


class WebSocketClient:
    def __init__(self, port, client_id):
        self.id = client_id
        connected, self.closed = queue.SimpleQueue(), queue.SimpleQueue()
        self._paho = paho.Client(client_id, transport="websockets", protocol=paho.MQTTv5, reconnect_on_failure=False)
        self._paho.on_connect = lambda *_: connected.put(True)
        self._paho.on_disconnect = lambda *_: self.closed.put(True)
        self._paho.connect("127.0.0.1", port)
        self._paho.loop_start()
        connected.get(timeout=PATIENCE)

    def request(self):
        self._paho.publish(INVOKE, b"a request", 1).wait_for_publish(PATIENCE)
        return 0

    def disconnect(self):
        self._paho.disconnect()

    def cut(self):
        self._paho.socket()._socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._paho.disconnect()
        self._paho.loop_stop()


@pytest.fixture
def connect_ws(site_with):
    port = free_port()
    site = site_with("listener {port} 127.0.0.1", f"listener {port} 127.0.0.1", "protocol websockets")
    clients = []

    def connect(client_id):
        clients.append(WebSocketClient(port, client_id))
        return clients[-1]

    connect.site = site
    yield connect
    for client in clients:
        client.close()


@pytest.mark.parametrize("leave", ["disconnect", "cut", "takeover"])
def test_the_end_of_a_websocket_connection_is_reported(connect_ws, leave):
    peer, client = connect_ws.site.served(), connect_ws("client")
    number = peer.track(client)

    if leave == "takeover":
        again = peer.track(connect_ws("client"))
        assert again != number
    else:
        again = None
        getattr(client, leave)()

    assert peer.next_disconnect() == number
    assert peer.hello() == {again} - {None}


def test_a_client_with_a_lost_registration_is_disconnected_over_websockets(connect_ws):
    peer, client = connect_ws.site.served(), connect_ws("client")
    peer.track(client)

    peer.hello("instance-2")

    client.closed.get(timeout=PATIENCE)
    assert peer.disconnects() == []
