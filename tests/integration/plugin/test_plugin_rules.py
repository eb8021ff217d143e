# SPDX-License-Identifier: Apache-2.0
"""Access rules of the operator and of other plugins apply beside the plugin. Without rules all other topics are allowed."""

import json
import subprocess

import pytest

from support.broker import free_port, passwords, version
from support.client import INVOKE, NOTIFY_PREFIX, notify_topic
from support.connection import NO_SUBSCRIBERS, NOT_AUTHORIZED, SUCCESS, Connection
from support.plugin import CONTROL, PLUGIN, SYS, VERSION, peer, site, site_with  # noqa: F401 fixtures

DYNAMIC_SECURITY = "/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so"


def is_open(client, topic):
    """Return whether the client receives a message that it publishes to the topic."""
    client.subscribe(topic)
    client.publish(topic, b"echo")
    return [message.topic for message in client.messages()] == [topic]


RULES = """\
topic readwrite open/#
topic write statestore/#
user store
topic readwrite open/#
"""


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "acl"
    path.write_text(RULES)
    return path


def test_a_broker_without_rules_allows_other_topics(site, peer):
    client = site.connect()

    for topic in ("open/x", "closed/x", "clients/other", "statestore/v1/other", "$other/x"):
        assert is_open(client, topic), topic


def test_access_rules_apply(site_with, rules):
    client = site_with(f"acl_file {rules}").connect()

    assert is_open(client, "open/x")
    assert not is_open(client, "closed/x")
    assert client.publish("closed/x") == NOT_AUTHORIZED


def test_empty_access_rules_deny_everything(site_with, rules):
    rules.write_text("")
    client = site_with(f"acl_file {rules}").connect()

    assert not is_open(client, "open/x")
    assert client.publish("open/x") == NOT_AUTHORIZED


def test_the_store_needs_no_rules_for_its_topics(site_with, rules, tmp_path):
    site = site_with(f"acl_file {rules}", "plugin_opt_statestored_username store", "allow_anonymous true",
                     f"password_file {passwords(tmp_path, store='secret')}")
    peer = site.served(username="store", password="secret")
    peer.subscribe(SYS + "plugin")
    assert peer.message().payload == VERSION
    client = site.connect()

    number = peer.number_of(client)
    peer.notify("key", number)

    assert len(client.messages()) == 1
    assert peer.publish("closed/x") == NOT_AUTHORIZED
    assert peer.publish(notify_topic("x", "y")) in (SUCCESS, NO_SUBSCRIBERS)


def test_access_rules_can_deny_requests(site_with, rules):
    rules.write_text("topic readwrite open/#\n")
    site = site_with(f"acl_file {rules}")
    site.served()

    assert site.connect().request() == NOT_AUTHORIZED


def test_rules_that_allow_everything_do_not_grant_the_stores_topics(site_with, rules):
    rules.write_text("topic readwrite #\ntopic readwrite $CONTROL/#\ntopic readwrite $SYS/#\n")
    site = site_with(f"acl_file {rules}")
    site.served()
    stranger = site.connect()

    assert stranger.subscribe(INVOKE) == NOT_AUTHORIZED
    assert stranger.publish(notify_topic("x", "y")) == NOT_AUTHORIZED
    assert stranger.publish(CONTROL + "hello", b"x") == NOT_AUTHORIZED
    assert is_open(stranger, "any/topic")


def test_rules_do_not_keep_a_client_from_its_own_notifications(site_with, rules):
    """The store's ordinary PUBLISH to a notify topic shows which clients may read it."""
    rules.write_text("topic deny #\ntopic write statestore/#\n")
    site = site_with(f"acl_file {rules}")
    peer = site.served()
    readers = {client_id: site.connect(client_id) for client_id in ("a", "A", "aa", "61", "b")}
    for reader in readers.values():
        for topic in (f"{NOTIFY_PREFIX}#", notify_topic("a", "key")):
            reader.subscribe(topic)

    peer.publish(notify_topic("a", "key"), b"for a")

    assert {client_id for client_id, reader in readers.items() if reader.messages()} == {"a"}


def test_the_plugin_grants_no_subscription_to_notifications(site_with):
    client = site_with("plugin_opt_undecided deny").connect("a")

    for topic in (notify_topic("a", "key"), f"{NOTIFY_PREFIX}61/command/notify/#"):
        assert client.subscribe(topic) == NOT_AUTHORIZED


def test_reloads_add_and_remove_rules(site_with, rules):
    site = site_with()
    client, without = site.connect(), list(site.broker.lines)
    assert is_open(client, "closed/1")

    for n in range(3):
        site.broker.lines = [*without, f"acl_file {rules}"]
        site.broker.reload()
        assert not is_open(client, f"closed/{n}/a")
        assert is_open(client, f"open/{n}/a")
        assert client.subscribe(INVOKE) == NOT_AUTHORIZED
        site.broker.reload()
        assert not is_open(client, f"closed/{n}/b")

        site.broker.lines = without
        site.broker.reload()
        assert is_open(client, f"closed/{n}/c")
        assert client.subscribe(INVOKE) == NOT_AUTHORIZED


def test_rules_of_a_reload_apply_to_the_wills_that_it_causes(site_with, rules, tmp_path):
    """mosquitto disconnects clients that are no longer allowed before any other client publishes."""
    site = site_with("allow_anonymous true", f"password_file {passwords(tmp_path, someone='x')}", f"acl_file {rules}")
    rules.write_text("topic readwrite #\nuser someone\ntopic readwrite #\n")
    site.broker.reload()
    listener = site.connect(username="someone", password="x")
    listener.subscribe("#")
    anonymous = site.connect(will=("closed/will", b"a will"))
    assert is_open(anonymous, "closed/x")
    listener.messages()

    rules.write_text("user someone\ntopic read #\n")
    site.broker.lines[1] = "allow_anonymous false"
    site.broker.reload()

    anonymous.wait_until_closed()
    assert listener.messages() == []


def test_rules_per_listener_apply(site_with, rules):
    """The broker then loads the plugin once for each listener; both loads share one state."""
    other = free_port()
    site = site_with(plugin=False)
    site.broker.stop()
    site.broker.first_lines = ["per_listener_settings true"]
    site.broker.lines = [f"listener {site.broker.port} 127.0.0.1", "allow_anonymous true", f"plugin {PLUGIN}",
                         f"listener {other} 127.0.0.1", "allow_anonymous true", f"plugin {PLUGIN}", f"acl_file {rules}"]
    site.broker.start_again()
    peer = site.served()
    here, there = site.connect(), Connection(other)
    site.connections.append(there)

    for n in range(2):
        assert is_open(here, f"closed/{n}")
        assert not is_open(there, f"closed/{n}")
        assert is_open(there, f"open/{n}")
        site.broker.reload()
    for client in (here, there):
        number = peer.track(client)
        assert client.subscribe(INVOKE) == NOT_AUTHORIZED
        peer.notify("key", number)
        assert len(client.messages()) == 1
        client.cut()
        assert peer.next_disconnect() == number


# Other plugins


def compiled(directory, source):
    """Compile a plugin. Returns its path."""
    path = directory / "other.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", path, "-"], input=source.encode(), check=True)
    return path


# Plugin interface 4. Denies topics that begin with "closed", allows those with "open", and defers all others.
OLD_INTERFACE = """
#include <string.h>
struct message { const char *topic; };
int mosquitto_auth_plugin_version(void) { return 4; }
int mosquitto_auth_plugin_init(void **data, void *options, int n) { return 0; }
int mosquitto_auth_plugin_cleanup(void *data, void *options, int n) { return 0; }
int mosquitto_auth_security_init(void *data, void *options, int n, _Bool reload) { return 0; }
int mosquitto_auth_security_cleanup(void *data, void *options, int n, _Bool reload) { return 0; }
int mosquitto_auth_acl_check(void *data, int access, void *client, const struct message *message)
{ return strncmp(message->topic, "closed", 6) == 0 ? 12 : strncmp(message->topic, "open", 4) == 0 ? 0 : 17; }
"""

# Plugin interface 5. Consumes reload events.
RELOAD_CONSUMER = """
int mosquitto_callback_register(void *, int, int (*)(int, void *, void *), const void *, void *);
int mosquitto_plugin_version(int n, const int *versions) { return 5; }
static int on_reload(int event, void *event_data, void *data) { return 0; }
int mosquitto_plugin_init(void *id, void **data, void *options, int n)
{ return mosquitto_callback_register(id, 1, on_reload, 0, 0); }
int mosquitto_plugin_cleanup(void *data, void *options, int n) { return 0; }
"""


def dynamic_security(directory, allowed):
    """mosquitto's dynamic security plugin with only a default access."""
    path = directory / "security.json"
    kinds = ("publishClientSend", "publishClientReceive", "subscribe", "unsubscribe")
    path.write_text(json.dumps({"defaultACLAccess": {kind: allowed for kind in kinds}}))
    return [f"plugin {DYNAMIC_SECURITY}", f"plugin_opt_config_file {path}"]


UNDECIDED_MESSAGE = "to grant such accesses, write: plugin_opt_undecided allow"


@pytest.fixture
def site_without_allow(site_with):
    """A site whose configuration has only these lines about accesses that no plugin decides."""
    def start(*lines):
        site = site_with()
        site.broker.stop()
        site.broker.plugin_options = []
        site.broker.lines += lines
        site.broker.start_again()
        return site

    return start


@pytest.mark.parametrize("options", [[], ["plugin_opt_undecided deny"]])
@pytest.mark.parametrize("allowed", [True, False])
def test_decisions_of_another_plugin_apply(site_without_allow, tmp_path, options, allowed):
    site = site_without_allow(*options, *dynamic_security(tmp_path, allowed))
    client = site.connect()

    assert is_open(client, "any/topic") == allowed
    assert client.subscribe(INVOKE) == NOT_AUTHORIZED
    assert client.publish(notify_topic("x", "y")) == NOT_AUTHORIZED


@pytest.mark.parametrize("options", [[], ["plugin_opt_undecided deny"]])
def test_decisions_of_a_plugin_with_the_old_interface_apply(site_without_allow, tmp_path, options):
    site = site_without_allow(*options, f"auth_plugin {compiled(tmp_path, OLD_INTERFACE)}")
    client = site.connect()

    assert is_open(client, "open/topic")
    assert not is_open(client, "closed/topic")
    assert not is_open(client, "undecided/topic"), "the broker denies it without the companion plugin, too"
    assert client.subscribe(INVOKE) == NOT_AUTHORIZED


def test_rules_apply_after_a_reload_that_another_plugin_consumes(site_with, rules, tmp_path):
    site = site_with(plugin=False)
    site.broker.stop()
    site.broker.lines = [f"plugin {compiled(tmp_path, RELOAD_CONSUMER)}", f"plugin {PLUGIN}",
                         "plugin_opt_undecided allow", f"acl_file {rules}"]
    site.broker.start_again()
    client = site.connect()

    for n in range(3):
        assert is_open(client, f"open/{n}")
        assert not is_open(client, f"closed/{n}")
        site.broker.reload()


# mosquitto 2.1 decides an access that the plugin leaves undecided, and allows it.
UNDECIDED = ([], True, 0) if version() >= (2, 1) else ([], False, 1)


@pytest.mark.parametrize("options, allowed, n_messages", [
    UNDECIDED, (["plugin_opt_undecided deny"], False, 0), (["plugin_opt_undecided allow"], True, 0)])
def test_an_access_that_nothing_decides_is_denied_unless_the_option_allows_it(site_without_allow, options, allowed,
                                                                              n_messages):
    site = site_without_allow(*options)
    client = site.connect()

    for _ in range(3):
        assert is_open(client, "any/topic") == allowed
    assert site.broker.log().count(UNDECIDED_MESSAGE) == n_messages


@pytest.mark.parametrize("prefix, denied, granted", [
    ("apps/", "apps/pump/#", "apps2/replies"),
    ("apps/one/", "apps/#", "one/#"),
    ("apps", "apps2/replies", "app/apps"),
])
def test_no_client_may_share_a_subscription_to_a_reply_prefix(site_with, prefix, denied, granted):
    client = site_with(f"plugin_opt_statestored_reply_prefix {prefix}").connect()
    assert client.subscribe(f"$share/group/{denied}") == 0x87
    assert client.subscribe(denied) == 1
    assert client.subscribe(f"$share/group/{granted}") == 1
