# SPDX-License-Identifier: Apache-2.0
"""Clients that behave on the wire as the published libraries do, in what concerns notifications."""

from support.client import SERVICE, Client, base16


class RustClient(Client):
    """Subscribes to its notify topic; the raw id in its response topic."""


class _Unsubscribed(Client):
    def watch(self, *keys):
        for answer in self.request_all(("KEYNOTIFY", key) for key in keys):
            assert answer.payload == b"+OK\r\n"


class GoClient(_Unsubscribed):
    """Never subscribes to its notify topic; HEX(id) in its response topic."""

    def __init__(self, port, client_id):
        super().__init__(port, client_id)
        self.response_topic = f"clients/{base16(client_id)}/services/statestore/_any_/command/invoke/response"
        self.subscribe(self.response_topic)


class DotnetClient(_Unsubscribed):
    """Subscribes to another topic, on which nothing comes; the raw id in its response topic."""

    def __init__(self, port, client_id):
        super().__init__(port, client_id)
        self.subscribe(f"clients/{SERVICE}/{client_id}/command/notify/+")


ALL = [GoClient, DotnetClient, RustClient]
