# SPDX-License-Identifier: Apache-2.0
"""Permitted response topics (PROTOCOL.md "Requests")."""

import queue

import pytest

from support import resp
from support.broker import refuses_response_topic
from support.client import INVOKE, SERVICE
from support.connection import PROTOCOL_ERROR, SUCCESS
from support.wire_client import WireClient

INVALID_TOPICS = {
    "none": None,
    "the invoke topic": INVOKE,
    "the notify prefix": f"clients/{SERVICE}",
    "below the notify prefix": f"clients/{SERVICE}/636C69656E74/command/notify/6B6579",
    "beginning with the notify prefix": f"clients/{SERVICE}X",
    "empty": "",
    "a + wildcard": "clients/+/replies",
    "a + inside a level": "clients/a+b/replies",
    "a # wildcard": "clients/replies/#",
    "101 levels": "a" + 100 * "/a",
}


def requests_and_replies_seen(listener):
    """Return all messages with Correlation Data received so far. Keys of earlier tests may expire: notifications have none."""
    seen = []
    for source in (listener.others, listener.notifications):
        try:
            while True:
                seen.append(source.get_nowait())
        except queue.Empty:
            pass
    return [message for message in seen if message.correlation]


@pytest.mark.parametrize("topic", INVALID_TOPICS.values(), ids=INVALID_TOPICS.keys())
def test_a_request_with_a_forbidden_response_topic_is_not_executed(shared, client, key, topic):
    listener = shared.connect()
    listener.subscribe("#")

    offender = shared.connect(kind=WireClient)
    offender.send(offender.encode_publish(INVOKE, resp.request("SET", key, "value"), ResponseTopic=topic, CorrelationData=b"1",
                                          user=[("__ts", str(offender.clock.now())), ("__srcId", offender.id)]))
    if refuses_response_topic(topic):
        assert offender.wait_until_closed() == PROTOCOL_ERROR
    else:
        assert offender.acknowledgement() == SUCCESS
    assert client.request("GET", key).payload == b"$-1\r\n"

    listener.request("GET", key)  # after this reply the listener has received all earlier messages
    published = [message.topic for message in requests_and_replies_seen(listener)]
    assert published.count(INVOKE) == 3 - refuses_response_topic(topic), "the requests and no reply"
    assert set(published) <= {INVOKE, client.response_topic, listener.response_topic}


def test_each_forbidden_response_topic_is_logged(site):
    store = site.start_store()
    client = site.connect()

    for topic in (None, INVOKE, f"clients/{SERVICE}", "clients/+/replies"):
        if refuses_response_topic(topic):
            continue
        seen = len(store.log())
        client.send("GET", "key", response_topic=topic)
        store.wait_for_log("response topic", after=seen)

    assert client.request("GET", "key").status == "200"


@pytest.mark.parametrize("topic", [
    "a",
    "/",
    "replies/of/mine",
    "clients/x",
    "clients/statestore/v1",
    "clients/statestore/v2/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8",
    f"{SERVICE}/command",
    f"{INVOKE}/response",
    f"{INVOKE}r",
    f"x{INVOKE}",
    "with space/é/日本/𝄞",
    "l/" + "o" * 60000,
    "a" + 99 * "/a",
], ids=lambda topic: topic[:40])
def test_every_other_response_topic_is_accepted(client, key, topic):
    client.subscribe(topic)

    reply = client.request("GET", key, response_topic=topic)

    assert reply.topic == topic
    assert reply.payload == b"$-1\r\n"
