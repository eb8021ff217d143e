# SPDX-License-Identifier: Apache-2.0
"""When memory for a message is missing, the message is dropped, logged and counted, and the next one is served."""

from support.process import preload
from support.wire_client import WireClient


def test_a_message_without_memory_is_dropped_and_logged(site):
    site.start_store(environment=preload("starve_shim"))
    client = site.connect(kind=WireClient)

    client.begin("SET", "key", "lost", correlation=b"no memory for this")

    assert client.ask("GET", "key") == b"$-1\r\n"
    site.store.wait_for_log("out of memory: a message was dropped")
