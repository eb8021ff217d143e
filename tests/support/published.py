# SPDX-License-Identifier: Apache-2.0
"""Clients with the topics of the published libraries. topic_reply_forms in common/protocol/topics.c names their sources."""

from support.client import INVOKE, SERVICE, Client, base16


class RustClient(Client):
    """Subscribes to its notify topic."""

    @staticmethod
    def reply_topic(client_id):
        return f"clients/{client_id}/services/{INVOKE}/response"


class _Unsubscribed(Client):
    def watch(self, *keys):
        for reply in self.request_all(("KEYNOTIFY", key) for key in keys):
            assert reply.payload == b"+OK\r\n"


class GoClient(_Unsubscribed):
    """Never subscribes to its notify topic. Its response topic contains HEX(client id)."""

    @staticmethod
    def reply_topic(client_id):
        return f"clients/{base16(client_id)}/{INVOKE}/response"


class DotnetClient(_Unsubscribed):
    """Subscribes to another topic, which gets no notifications."""

    @staticmethod
    def reply_topic(client_id):
        return f"clients/{client_id}/{INVOKE}"

    def __init__(self, port, client_id, **more):
        super().__init__(port, client_id, **more)
        self.subscribe(f"clients/{SERVICE}/{client_id}/command/notify")


ALL = [GoClient, DotnetClient, RustClient]
