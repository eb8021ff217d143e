# SPDX-License-Identifier: Apache-2.0
"""User name, password and access rules: what the broker requires of the store, and what the store logs without them."""

import os
import subprocess
from pathlib import Path

import pytest

from support.client import INVOKE, SERVICE, notify_topic
from support.process import wait_until
from support.wire_client import WireClient, was_set

USER = "statestored"
DYNAMIC_SECURITY = next(Path("/usr/lib").glob("**/mosquitto_dynamic_security.so"))


class Accounts:
    """The password file of the broker, and that of the store."""

    def __init__(self, directory):
        self.broker_file, self.store_file = directory / "passwords", directory / "our-password"

    def set(self, password, **others):
        """Writes the password file that the broker reads at its start."""
        self.broker_file.unlink(missing_ok=True)
        self.broker_file.touch(mode=0o600)
        for user, word in {USER: password, **others}.items():
            subprocess.run(["mosquitto_passwd", "-b", self.broker_file, user, word], check=True, capture_output=True)

    def give(self, password):
        """Writes the password file of the store."""
        self.store_file.write_text(password)

    def lines(self):
        return f"password_file {self.broker_file}", "allow_anonymous false"

    def flags(self):
        return "--user", USER, "--password-file", self.store_file


@pytest.fixture
def accounts(tmp_path):
    accounts = Accounts(tmp_path)
    accounts.set("right", alice="anything")
    accounts.give("right")
    return accounts


@pytest.fixture
def site(make_site, accounts):
    return make_site(*accounts.lines(), f"plugin_opt_statestored_username {USER}")


def connect_alice(site, **more):
    return site.connect(None, WireClient, username="alice", password="anything", **more)


def assert_ends_with_one_line(store, *patterns):
    assert store.wait() == 1
    lines = store.events()
    assert len(lines) == 1, lines
    for pattern in patterns:
        assert pattern in lines[0]
    assert not store.is_ready()


@pytest.mark.parametrize("text", ["right", "right\n", "right\r\n", "right\nand a second line"], ids=repr)
def test_the_first_line_of_the_file_is_the_password(site, accounts, text):
    accounts.give(text)

    store = site.start_store(*accounts.flags())

    store.wait_for_log("the broker has the plugin")
    assert connect_alice(site).ask("GET", "key") == b"$-1\r\n"


@pytest.mark.parametrize("text", ["wrong", " right", "right ", "x" * 5000], ids=lambda text: repr(text[:10]))
def test_a_wrong_password_ends_the_start_with_one_line(site, accounts, text):
    accounts.give(text)

    store = site.launch_store(*accounts.flags())

    assert_ends_with_one_line(store, f"127.0.0.1:{site.broker.port}", "--password-file")
    assert text not in store.log()


def test_a_store_with_a_password_warns_of_a_broker_without_the_plugin(make_site, accounts):
    """Such a broker authenticates its clients, but any of them can send a request as another one."""
    site = make_site(*accounts.lines(), plugin=False)
    store = site.start_store(*accounts.flags())
    alice = connect_alice(site)

    assert alice.ask("SET", "key", 1, source="another") == b"+OK\r\n"

    store.wait_for_log('level=warning msg="the broker authenticates clients, but without the plugin .*require-plugin = on')


def test_a_store_without_credentials_does_not_warn_of_a_broker_without_the_plugin(make_site):
    store = make_site(plugin=False).start_store()

    store.wait_for_log("the broker has no plugin")
    assert "level=warning" not in store.log()


def test_a_missing_password_ends_the_start_with_one_line(site):
    assert_ends_with_one_line(site.launch_store(), f"127.0.0.1:{site.broker.port}", "--password-file")


def test_the_credentials_of_another_user_end_the_start(site, accounts):
    """The plugin lets only the store's user read requests."""
    accounts.give("anything")

    store = site.launch_store("--user", "alice", "--password-file", accounts.store_file)

    assert_ends_with_one_line(store, "refuses the subscription to the invoke topic", "plugin_opt_statestored_username")


def test_a_client_id_that_the_plugin_does_not_expect_ends_the_start(make_site):
    site = make_site()

    assert_ends_with_one_line(site.launch_store("--client-id", "another"),
                              "refuses the subscription to the invoke topic")


def test_the_store_waits_for_a_missing_password_file(site, accounts):
    accounts.store_file.unlink()
    store = site.launch_store(*accounts.flags())
    store.wait_for_log(f"cannot read {accounts.store_file}: No such file")

    accounts.give("right")

    store.wait_until_ready()


def make_large(file):
    file.write_bytes(b"right\n" + bytes(65_536))


def make_pipe(file):
    """Without a writer, so opening it for reading would block."""
    os.mkfifo(file)


def make_endless(file):
    file.symlink_to("/dev/zero")


@pytest.mark.parametrize("make, cause", [
    (make_large, "longer than 65536 bytes"), (make_pipe, "not a regular file"), (make_endless, "not a regular file"),
    (lambda file: file.write_bytes(b""), "the file is empty"),
    (lambda file: file.write_bytes(b"ri\0ght"), "its first line contains a NUL byte"),
    (lambda file: file.write_bytes(b"x" * 65_536), "its first line has more than 65535 bytes"),
], ids=["large", "pipe", "endless", "empty", "NUL", "long"])
def test_an_unusable_password_file_is_named_and_read_again(site, accounts, make, cause):
    accounts.store_file.unlink()
    make(accounts.store_file)
    store = site.launch_store(*accounts.flags())
    store.wait_for_log(f"cannot read {accounts.store_file}: {cause}")

    accounts.store_file.unlink()
    accounts.give("right")

    store.wait_until_ready()


def test_a_password_that_was_changed_while_the_broker_restarted_is_read_again(site, accounts):
    store = site.start_store(*accounts.flags())
    client = connect_alice(site)
    client.ask("SET", "key", "value")

    for password in ("another", "yet another"):
        seen = len(store.log())
        site.broker.stop()
        accounts.set(password, alice="anything")
        accounts.give(password)
        site.broker.start_again()
        store.wait_for_log("ready: ", after=seen)

    assert connect_alice(site).ask("GET", "key") == b"$5\r\nvalue\r\n"


def test_a_wrong_password_at_a_reconnect_is_logged_once_and_tried_again(site, accounts):
    store = site.start_store(*accounts.flags())
    site.broker.stop()
    accounts.set("another", alice="anything")
    seen = len(store.log())
    site.broker.start_again()
    store.wait_for_log("refused the connection", after=seen)
    attempts = site.broker.log().count("not authorised")
    wait_until(lambda: site.broker.log().count("not authorised") >= attempts + 2, "the store tries again")
    assert store.log().count("refused the connection") == 1

    accounts.give("another")

    store.wait_for_log("ready: ", after=seen)
    assert connect_alice(site).ask("GET", "key") == b"$-1\r\n"


# Access rules of clients: their reply topics, and the invoke topic

OF_CLIENTS = f"""\
pattern read clients/%c/services/statestore/_any_/command/invoke/response
pattern read clients/{SERVICE}/#
pattern write {INVOKE}
"""

# The rules in conf/OPERATIONS.md

OF_THE_STORE = """\
user statestored
topic read statestore/#
topic write clients/#
"""

# The minimal rules

LEAST_OF_THE_STORE_WITHOUT_PLUGIN = f"""\
user statestored
topic read {INVOKE}
topic write clients/#
"""

LEAST_OF_THE_STORE_WITH_PLUGIN = ""


@pytest.fixture
def site_with_rules(make_site, accounts, tmp_path):
    def make(rules, plugin=True):
        acl_file = tmp_path / "rules"
        acl_file.write_text((f"pattern write {INVOKE}\n" if plugin else OF_CLIENTS) + rules)
        acl_file.chmod(0o600)
        option = [f"plugin_opt_statestored_username {USER}"] if plugin else []
        return make_site(*accounts.lines(), *option, f"acl_file {acl_file}", plugin=plugin)

    return make


@pytest.mark.parametrize("plugin, rules", [(True, OF_THE_STORE), (True, LEAST_OF_THE_STORE_WITH_PLUGIN),
                                           (False, OF_THE_STORE), (False, LEAST_OF_THE_STORE_WITHOUT_PLUGIN)],
                         ids=["plugin", "plugin-least", "plain", "plain-least"])
def test_the_documented_rules_are_sufficient(site_with_rules, accounts, plugin, rules):
    site = site_with_rules(rules, plugin)
    store = site.start_store(*accounts.flags())
    holder, writer = connect_alice(site), connect_alice(site)
    holder.subscribe_to_notifications()

    holder.register("key")
    for n in range(3):
        assert writer.ask("SET", "key", n) == b"+OK\r\n"

    assert holder.changes() == [was_set(n) for n in range(3)]
    store.wait_for_log("the broker has the plugin" if plugin else "the broker has no plugin")


def test_clients_may_do_only_what_their_rules_grant(site_with_rules, accounts):
    site = site_with_rules(OF_THE_STORE)
    site.start_store(*accounts.flags())
    client, other = connect_alice(site), connect_alice(site)
    other.subscribe("#")

    assert client.publish("other/topic", b"x") == 0x87
    assert client.publish(notify_topic(other.id, "key"), b"x") == 0x87
    client.ask("SET", "key", "value")

    assert other.messages() == []


def test_a_broker_that_refuses_the_subscription_ends_the_start_with_one_line(make_site, tmp_path):
    """With an acl_file mosquitto accepts the subscription and drops the messages. Its dynamic security plugin refuses it."""
    rules = tmp_path / "security.json"
    rules.write_text('{"defaultACLAccess": {"publishClientSend": true, "publishClientReceive": true}}')
    site = make_site(f"plugin {DYNAMIC_SECURITY}", f"plugin_opt_config_file {rules}", plugin=False)

    assert_ends_with_one_line(site.launch_store(), f"127.0.0.1:{site.broker.port}", "invoke topic", "statestore/#")
