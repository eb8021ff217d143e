# SPDX-License-Identifier: Apache-2.0
"""What the published clients send, and doubles that send the same.

`sh tests/published.sh` records the real clients and compares them with this table: Rust always, Go if it is given a clone of
Azure/iot-operations-sdks. The row of .NET was read in the source files that it names.
"""

from typing import NamedTuple, Optional

from support.client import INVOKE, NOTIFY_PREFIX, Client, base16

OWN_NOTIFICATIONS = NOTIFY_PREFIX + "{hex}/command/notify/+"


class Published(NamedTuple):
    """In texts, {id} is the client id, {hex} is its upper case hexadecimal form, and {hlc} is a timestamp."""

    response_topic: str
    notify_filter: Optional[str]  # the subscription before the first KEYNOTIFY
    no_local: bool  # options of the subscriptions
    retain_as_published: bool
    user: tuple  # user properties of a request; a fencing token, if any, is another one
    user_is_ordered: bool
    content_type: str
    format_indicator: Optional[int]


# Crates azure_iot_operations_services 1.5.0-beta1 and azure_iot_operations_protocol 1.1.0:
# services/src/state_store/client.rs:28-34 and 171-195; protocol/src/rpc_command/invoker.rs:1049 and 1141-1160
RUST = Published(
    response_topic=f"clients/{{id}}/services/{INVOKE}/response",
    notify_filter=OWN_NOTIFICATIONS,
    no_local=False,
    retain_as_published=True,
    user=(("__srcId", "{id}"), ("__ts", "{hlc}"), ("__protVer", "1.0"), ("$partition", "{id}"), ("$high_priority", "")),
    user_is_ordered=True,
    content_type="application/octet-stream",
    format_indicator=None,
)

# Azure/iot-operations-sdks, commit febffe0, folder go: services/statestore/client.go:112-147, which starts the invoker twice, and
# not the receiver of notifications; protocol/listener.go:88; protocol/publisher.go:84; protocol/command_invoker.go:255
GO = Published(
    response_topic=f"clients/{{hex}}/{INVOKE}/response",
    notify_filter=None,
    no_local=True,
    retain_as_published=False,
    user=(("__srcId", "{id}"), ("__ts", "{hlc}"), ("__protVer", "1.0"), ("$partition", "{id}"), ("$high_priority", "")),
    user_is_ordered=False,
    content_type="application/octet-stream",
    format_indicator=0,
)

# The same commit, folder dotnet/src. In Azure.Iot.Operations.Services/StateStore: StateStoreClient.cs:22 and 279, where the
# filter matches no notification; Generated/InvokeCommandInvoker.g.cs:19 and 29;
# Generated/Common/PassthroughSerializer.cs:15. In Azure.Iot.Operations.Protocol: RPC/CommandInvoker.cs:127-165, 208 and 545-599;
# RPC/CommandRequestMetadata.cs:153
DOTNET = Published(
    response_topic=f"clients/{{id}}/{INVOKE}",
    notify_filter=NOTIFY_PREFIX + "{id}/command/notify",
    no_local=False,
    retain_as_published=False,
    user=(("__protVer", "1.0"), ("$partition", "{id}"), ("__srcId", "{id}"), ("__invId", "{id}"), ("__ts", "{hlc}"),
          ("$high_priority", "")),
    user_is_ordered=True,
    content_type="application/octet-stream",
    format_indicator=0,
)

TIMEOUT_SECONDS = 10  # of a request, unless the program gives another


def named(text, client_id, hlc=""):
    return text.format(id=client_id, hex=base16(client_id), hlc=hlc)


class _PublishedClient(Client):
    PUBLISHED: Published

    def __init_subclass__(cls):
        cls.SUBSCRIPTION = {"noLocal": cls.PUBLISHED.no_local, "retainAsPublished": cls.PUBLISHED.retain_as_published}

    @classmethod
    def reply_topic(cls, client_id):
        return named(cls.PUBLISHED.response_topic, client_id)

    def send(self, *words, ft=None, **more):
        fence = [] if ft is None else [("__ft", str(ft))]
        hlc = self.clock.now().padded()
        user = fence + [(name, named(value, self.id, hlc)) for name, value in self.PUBLISHED.user]
        if self.PUBLISHED.format_indicator is not None:
            more["PayloadFormatIndicator"] = self.PUBLISHED.format_indicator
        return super().send(*words, ts=None, source=None, user=user, expiry=TIMEOUT_SECONDS,
                            ContentType=self.PUBLISHED.content_type, **more)

    def watch(self, *keys):
        topic = self.PUBLISHED.notify_filter and named(self.PUBLISHED.notify_filter, self.id)
        if topic and topic not in self._topics:
            self.subscribe(topic)
        for reply in self.request_all(("KEYNOTIFY", key) for key in keys):
            assert reply.payload == b"+OK\r\n"


class RustClient(_PublishedClient):
    PUBLISHED = RUST


class GoClient(_PublishedClient):
    PUBLISHED = GO


class DotnetClient(_PublishedClient):
    PUBLISHED = DOTNET


ALL = [GoClient, DotnetClient, RustClient]
