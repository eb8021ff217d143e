# SPDX-License-Identifier: Apache-2.0
"""What clients cost others by subscribing: checks of access for each reply and each line of the log."""

import pytest

from support.client import INVOKE, NOTIFY_PREFIX, SERVICE, reply_topic
from support.connection import NOT_AUTHORIZED, SUCCESS
from support.plugin import peer, site, site_with  # noqa: F401 fixtures

MAXIMUM_PACKET_SIZE_60 = b"\x27\0\0\0\x3c"  # a property of CONNECT
GRANTED = 1  # in a SUBACK: QoS 1
LOG = "$SYS/broker/log/"
RULES = f"pattern write {INVOKE}\npattern read some/%c\n"


# The broker's log


@pytest.fixture
def logging_site(site_with, tmp_path):
    rules = tmp_path / "acl"
    rules.write_text(RULES)

    def make(has_rules):
        return site_with("log_dest topic", "log_dest stderr", *([f"acl_file {rules}"] if has_rules else []))

    return make


@pytest.mark.parametrize("client_id, has_rules, properties", [
    ("#", True, b""), ("a+", True, b""),  # acl_file logs each check
    ("small", False, MAXIMUM_PACKET_SIZE_60), ("small", True, MAXIMUM_PACKET_SIZE_60),
])
@pytest.mark.parametrize("topic", [LOG + "N", LOG + "#", "$SYS/#"])
def test_a_line_of_the_log_causes_no_further_lines(logging_site, client_id, has_rules, properties, topic):
    """The delivery of a line that logs another line ends the broker: it logs until its stack is full."""
    site = logging_site(has_rules)
    hostile = site.connect(client_id, properties=properties)
    hostile.subscribe(topic)

    site.connect("another").ping()  # the broker logs the new client

    hostile.ping()
    assert site.broker.log().count(client_id) < 10


@pytest.mark.parametrize("has_rules", [True, False])
def test_no_client_reads_the_log(logging_site, tmp_path, has_rules):
    with open(tmp_path / "acl", "a") as rules:
        rules.write("topic readwrite #\ntopic read $SYS/#\n")
    client = logging_site(has_rules).connect()
    assert [client.subscribe(topic) for topic in (LOG + "N", LOG + "#", LOG + "+")] == [NOT_AUTHORIZED] * 3
    client.subscribe("$SYS/#")

    client.subscribe("any/topic")

    assert [message for message in client.messages() if message.topic.startswith(LOG)] == []


# Client ids with wildcards


@pytest.mark.parametrize("client_id", ["#", "+", "a#", "+b", "a/+/b"])
@pytest.mark.parametrize("rules", ["", RULES, RULES + "topic readwrite #\n"], ids=["no rules", "patterns", "all topics"])
def test_a_client_id_with_a_wildcard_has_no_access(site_with, tmp_path, client_id, rules):
    (tmp_path / "acl").write_text(rules)
    site = site_with(*([f"acl_file {tmp_path / 'acl'}"] if rules else []))
    peer, client = site.served(), site.connect(client_id)

    assert client.subscribe("#") == client.subscribe("any/topic") == NOT_AUTHORIZED
    assert client.publish("any/topic") == client.request() == NOT_AUTHORIZED
    site.connect().publish("any/topic")

    assert client.messages() == peer.take_records() == []
    assert "dangerous client id" not in site.broker.log()


@pytest.mark.parametrize("length, is_monitor", [(1024, True), (1025, False)])
def test_a_client_with_a_long_id_reads_no_replies_to_others(site_with, tmp_path, length, is_monitor):
    """acl_file searches the whole id at each check."""
    (tmp_path / "acl").write_text("topic readwrite #\n")
    client = site_with(f"acl_file {tmp_path / 'acl'}", "plugin_opt_statestored_reply_prefix mine/").connect("x" * length)
    own, other = reply_topic(client.id), reply_topic("pump")
    assert client.subscribe("clients/#") == client.subscribe("mine/#") == client.subscribe("any/topic") == GRANTED

    for topic in own, other, "mine/other", "any/topic":
        client.publish(topic)

    assert [message.topic for message in client.messages()] == ([own, other, "mine/other"] if is_monitor else [own]) + ["any/topic"]


# Filters that match replies to others, or requests

REPLY = reply_topic("pump")
OF_OTHERS = [
    "clients/+", "clients/+/#", "clients/pump/#", "clients/pump/services/#", "clients/+/services/statestore/_any_/command/invoke/response",
    "clients/pump/+/statestore/_any_/command/invoke/response", "clients/me2/#", "clients/me2/+", "clients/m/#", "clients//#",
    f"clients/{SERVICE[:-1]}/+/#", "clients/statestore/+/#", "+/pump/#", "+/+/#", "+/pump/services/statestore/_any_/command/invoke/response",
    "+/+/+/+/+/+/+", f"+/+/{INVOKE}/response", f"+/a/b/{INVOKE}", "+/pump/+/statestore/+/command/+/response",
    "statestore/#", "statestore/+/#", f"statestore/+/{INVOKE.split('/', 2)[2]}", "+/+/+/+/+", "+/v1/#", f"+/{INVOKE.split('/', 1)[1]}",
    # where another client id begins with the own one
    "clients/me/+/#", "clients/me/x/+/statestore/_any_/command/invoke/response", f"clients/me/+/{INVOKE}", "clients/me/x/+/#",
]
OF_NO_OTHER = [
    "#", "+/#", "clients/#", "+", "+/state", "+/+/state", "+/+", "other/#", "other/+/#", "client/#", "clientss/+", "$SYS/#",
    "clients/me/#", "clients/me/x/#", "clients/me/+/state", "clients/me/services/+/invoke/response", "clients/me/+",
    f"{NOTIFY_PREFIX}6D65/command/notify/+", f"{NOTIFY_PREFIX}#", REPLY, "clients/me", INVOKE + "/x",
]


@pytest.mark.parametrize("has_rules", [True, False])
def test_a_client_has_few_filters_that_match_replies_to_others(site_with, tmp_path, has_rules):
    (tmp_path / "acl").write_text("topic readwrite #\n")
    site = site_with(*([f"acl_file {tmp_path / 'acl'}"] if has_rules else []))
    client = site.connect("me")

    assert [topic for topic in OF_OTHERS if client.subscribe(topic) != NOT_AUTHORIZED] == []
    assert [topic for topic in OF_NO_OTHER if client.subscribe(topic) != GRANTED] == []


def test_a_client_id_with_levels_has_filters_of_its_own(site):
    client = site.connect("me/x")

    assert [client.subscribe(topic) for topic in ("clients/me/x/#", "clients/me/x/+", "clients/me/x/y/#")] == [GRANTED] * 3
    assert [client.subscribe(topic) for topic in ("clients/me/#", "clients/me/+", "clients/me/x", "clients/me/xy/#")] == [
        NOT_AUTHORIZED, NOT_AUTHORIZED, GRANTED, NOT_AUTHORIZED]


@pytest.mark.parametrize("prefix, granted, denied", [
    ("apps/", ["apps/#", "apps/pump/#", "apps/me/+", "app/+", "+/+/replies"], ["apps/+", "apps/me2/+", "apps/+/replies"]),
    ("apps/of/", ["apps/#", "apps/of/#", "apps/of/me/+"], ["apps/+/#", "apps/of/pump/+", "apps/+/pump/replies"]),
    ("apps", ["apps/#", "app/+"], ["apps2/+", "apps/+/replies"]),
])
def test_a_reply_prefix_has_the_same_filters(site_with, prefix, granted, denied):
    client = site_with(f"plugin_opt_statestored_reply_prefix {prefix}").connect("me")

    assert [topic for topic in granted if client.subscribe(topic) != GRANTED] == []
    assert [topic for topic in denied if client.subscribe(topic) != NOT_AUTHORIZED] == []


def test_a_monitor_with_a_rule_reads_replies(site_with, tmp_path):
    """The plugin leaves the decision about replies to other clients to the rules."""
    (tmp_path / "acl").write_text(f"{RULES}user operator\ntopic read clients/#\n")
    site = site_with(f"acl_file {tmp_path / 'acl'}")
    peer, pump = site.served(), site.connect("pump")
    peer.ends_at_once = False
    monitors = {name: site.connect(f"monitor-{name}", username=name) for name in ("operator", "other")}
    for monitor in monitors.values():
        monitor.subscribe("clients/#")
    assert pump.request(ResponseTopic=REPLY) == SUCCESS

    peer.answer(peer.next_request())

    assert monitors["operator"].message().topic == REPLY
    assert monitors["other"].messages() == []
