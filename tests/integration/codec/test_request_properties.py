# SPDX-License-Identifier: Apache-2.0
"""The MQTT properties of a request (PROTOCOL.md "Requests"), except the Response Topic."""

import pytest

from support.client import base16, notify_topic


def assert_refused(reply, status, name, value):
    assert reply.status == status
    assert reply.prop("__stMsg")
    assert reply.prop("__propName") == name
    assert reply.prop("__propVal") == value
    assert reply.prop("__protVer") == "1.0"
    assert reply.prop("__srcId") == "StateStore"
    assert reply.prop("__ts") is None
    assert reply.qos == 1


def assert_error_payload(reply):
    assert reply.payload.startswith(b"-ERR ")
    assert reply.payload.endswith(b"\r\n")
    assert reply.payload.count(b"\r\n") == 1


@pytest.mark.parametrize("qos", [0, 2])
def test_a_request_at_another_qos_is_refused_and_not_executed(client, key, qos):
    reply = client.request("SET", key, "value", qos=qos)

    assert_refused(reply, "400", "QoS", str(qos))
    assert_error_payload(reply)
    assert client.request("GET", key).payload == b"$-1\r\n"


def test_a_request_without_correlation_data_is_refused_and_not_executed(client, key):
    reply = client.request("SET", key, "value", correlation=None)

    assert_refused(reply, "400", "Correlation Data", "")
    assert_error_payload(reply)
    assert reply.correlation is None
    assert client.request("GET", key).payload == b"$-1\r\n"


def test_properties_are_checked_before_the_payload(client):
    assert client.request("FOO", qos=0).status == "400"
    assert client.request("FOO", protocol="2.0").status == "505"


@pytest.mark.parametrize("version", ["2.0", "2.1", "3.0", "17.0", "65536.0"])
def test_another_major_version_is_not_supported_and_not_executed(client, key, version):
    reply = client.request("SET", key, "value", protocol=version)

    assert_refused(reply, "505", "__protVer", version)
    assert reply.prop("__supProtMajVer") == "0 1"
    assert reply.prop("__requestProtVer") == version
    assert client.request("GET", key).payload == b"$-1\r\n"


@pytest.mark.parametrize("version", [None, "1.0", "1.1", "1.99", "0.0", "0.1"])
def test_major_versions_0_and_1_are_served(client, key, version):
    reply = client.request("SET", key, "value", protocol=version)

    assert reply.status == "200"
    assert reply.payload == b"+OK\r\n"
    assert reply.prop("__protVer") == "1.0"


def test_other_properties_are_ignored(client, key):
    user = [("$partition", client.id), ("$high_priority", ""), ("colour", "blue"), ("colour", "red"), ("", "")]

    assert client.request("SET", key, "value", user=user).payload == b"+OK\r\n"


@pytest.mark.parametrize("properties", [
    {"ContentType": "application/octet-stream", "PayloadFormatIndicator": 0},
    {"ContentType": "application/json", "PayloadFormatIndicator": 1},
    {"ContentType": ""},
], ids=str)
def test_content_type_and_format_of_a_request_are_ignored(client, key, properties):
    value = b"\xff is not UTF-8"
    assert client.request("SET", key, value, **properties).payload == b"+OK\r\n"

    reply = client.request("GET", key, **properties)

    assert reply.payload == b"$%d\r\n%s\r\n" % (len(value), value)
    assert reply.content_type == "application/octet-stream"


@pytest.mark.parametrize("name", ["__TS", "__Ts", "_ts", "ts", "__ts "])
def test_property_names_are_compared_exactly(client, key, name):
    reply = client.request("SET", key, "value", ts=None, user=[(name, str(client.clock.now()))])

    assert reply.payload == b"-ERR missing timestamp\r\n"


def test_many_other_properties_do_not_hide_the_properties_of_the_protocol(client, key):
    user = [(f"name-{n}", "x" * 100) for n in range(100)]

    assert client.request("SET", key, "value", ts=None, user=user + [("__ts", "yesterday")]).payload == \
        b"-ERR malformed timestamp\r\n"


def test_the_first_of_repeated_properties_counts(client, key):
    now = [("__ts", str(client.clock.now()))]
    later = [("__ts", "yesterday")] * 100

    assert client.request("SET", key, "value", ts=None, user=now + later).payload == b"+OK\r\n"
    assert client.request("SET", key, "value", ts=None, user=now + later + [("__ft", "yesterday")]).payload == \
        b"-ERR malformed timestamp\r\n"


# The client id: without the plugin notifications go to the client that the request names.

def notified_topic(watcher, changer, key, **identity):
    """Return the topic of the notification of this key after a KEYNOTIFY with these properties."""
    watcher.subscribe("clients/statestore/#")
    reply = watcher.request("KEYNOTIFY", key, **identity)
    assert reply.payload == b"+OK\r\n"
    changer.request("SET", key, "value")
    while True:
        topic = watcher.notification().topic  # the subscription receives notifications of keys of earlier tests, too
        if topic.endswith(f"/{base16(key)}"):
            return topic


def test_the_source_id_is_the_client_id(shared, client, key):
    assert notified_topic(client, shared.connect(), key, source="client-2") == notify_topic("client-2", key)


def test_the_source_id_takes_precedence_over_the_response_topic(shared, client, key):
    topic = "clients/another/services/statestore/replies"
    client.subscribe(topic)

    where = notified_topic(client, shared.connect(), key, source="client-2", response_topic=topic)

    assert where == notify_topic("client-2", key)


@pytest.mark.parametrize("level", ["plain", "636C69656E74", "with space", "é"])
def test_without_a_source_id_the_response_topic_has_the_client_id(shared, client, key, level):
    topic = f"clients/{level}/services/statestore/replies"
    client.subscribe(topic)

    where = notified_topic(client, shared.connect(), key, source=None, response_topic=topic)

    assert where == notify_topic(level, key)
