# SPDX-License-Identifier: Apache-2.0
"""Clients that subscribe and register for notifications as the published libraries do."""

from support.client import SERVICE, Client, base16


class RustClient(Client):
    """Subscribes to its notify topic. Its response topic contains the raw client id."""


class _Unsubscribed(Client):
    def watch(self, *keys):
        for reply in self.request_all(("KEYNOTIFY", key) for key in keys):
            assert reply.payload == b"+OK\r\n"


class GoClient(_Unsubscribed):
    """Never subscribes to its notify topic. Its response topic contains HEX(client id)."""

    def __init__(self, port, client_id, **more):
        super().__init__(port, client_id, **more)
        self.response_topic = f"clients/{base16(client_id)}/services/statestore/_any_/command/invoke/response"
        self.subscribe(self.response_topic)


class DotnetClient(_Unsubscribed):
    """Subscribes to another topic, which gets no notifications. Its response topic contains the raw client id."""

    def __init__(self, port, client_id, **more):
        super().__init__(port, client_id, **more)
        self.subscribe(f"clients/{SERVICE}/{client_id}/command/notify/+")


ALL = [GoClient, DotnetClient, RustClient]
