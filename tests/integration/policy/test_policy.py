# SPDX-License-Identifier: Apache-2.0
"""A policy through the broker, with the plugin and without."""

import re
import signal
import subprocess

import pytest

from support.control import Control
from support.process import STATESTORED
from support.wire_client import WireClient, was_set

DENIED = b"-ERR not authorized\r\n"
OK = b"+OK\r\n"
NO_VALUE = b"$-1\r\n"

RULES = """
[settings]
access = read
any = yes
pattern = settings/*

[own]
access = readwrite
any = yes
pattern = own/{client}/*

[gateway]
access = readwrite
user = gateway
pattern = *

[markers]
access = readwrite
any = yes
pattern = marker-*

[write only]
access = write
any = yes
pattern = inbox/*
"""


@pytest.fixture
def policy(tmp_path):
    file = tmp_path / "policy.conf"
    file.write_text(RULES)
    return file


@pytest.fixture
def plugin_site(make_site, policy):
    site = make_site()
    site.start_store("--policy", policy)
    return site


def replace(store, policy, text, said="SIGHUP: configuration reloaded"):
    n = store.log().count(said)
    policy.write_text(text)
    store.child.send_signal(signal.SIGHUP)
    store.wait_for_log(rf"(?s)(?:{said}.*){{{n + 1}}}")


def test_requests_that_no_rule_grants_are_denied(plugin_site):
    client = plugin_site.connect("c1", kind=WireClient)

    assert client.ask("GET", "settings/a") == NO_VALUE
    assert client.ask("SET", "settings/a", 1) == DENIED
    assert client.ask("GET", "other") == DENIED
    assert re.search('msg="request refused" client=c1 verb=get reason="not authorized" .* user="" identity=verified',
                     plugin_site.store.log())
    assert client.ask("KEYNOTIFY", "other") == DENIED
    assert client.ask("SET", "own/c1/a", 1) == OK
    assert client.ask("SET", "own/c2/a", 1) == DENIED
    assert client.ask("SET", "own/c2/a", 1, source="c2") == DENIED


def test_a_client_that_may_only_write_can_test_values_and_learns_versions(plugin_site):
    gateway = plugin_site.connect("g", kind=WireClient, username="gateway")
    writer = plugin_site.connect("c1", kind=WireClient)
    gateway.ask("SET", "inbox/pin", "7")
    version = gateway.reply_to(gateway.begin("GET", "inbox/pin")).prop("__ts")

    for command in ("GET", "inbox/pin"), ("KEYNOTIFY", "inbox/pin"):
        assert writer.ask(*command) == DENIED
    assert b"pin" not in writer.ask("SCAN", "*")

    for guess in ("SET", "inbox/pin", "5", "NEX", "6"), ("SET", "inbox/pin", "5", "NX"), ("VDEL", "inbox/pin", "6"):
        refused = writer.reply_to(writer.begin(*guess))
        assert (refused.payload, refused.prop("__ts")) == (b":-1\r\n", version)
    assert writer.ask("VDEL", "inbox/none", "6") == b":0\r\n"
    assert writer.ask("SET", "inbox/pin", "7", "NEX", "7") == OK, "the guess is right"
    assert writer.ask("VDEL", "inbox/pin", "7") == b":1\r\n"


def test_a_user_rule_applies_to_the_user_name_at_the_broker(plugin_site):
    gateway = plugin_site.connect("g", kind=WireClient, username="gateway")
    other = plugin_site.connect("gateway", kind=WireClient)

    assert gateway.ask("SET", "anything", 1) == OK
    assert other.ask("GET", "anything") == DENIED
    assert other.ask("GET", "anything", user=[("statestore-username", "gateway")]) == DENIED


def test_wildcards_in_a_client_id_are_literal(plugin_site):
    victim = plugin_site.connect("victim", kind=WireClient)
    assert victim.ask("SET", "own/victim/a", 1) == OK

    for client_id in "*", "[a-z]", "v?ctim", "[!x]*", "victi[m]":
        hostile = plugin_site.connect(client_id, kind=WireClient)
        assert hostile.ask("GET", "own/victim/a") == DENIED
        assert hostile.ask("SET", f"own/{client_id}/a", 1) == OK


def test_scan_lists_only_readable_keys(plugin_site):
    gateway = plugin_site.connect("g", kind=WireClient, username="gateway")
    for key in "own/c1/a", "own/c2/a", "settings/a", "secret":
        assert gateway.ask("SET", key, 1) == OK

    client = plugin_site.connect("c1", kind=WireClient)
    page = client.ask("SCAN", "*")

    assert b"own/c1/a" in page and b"settings/a" in page
    assert b"own/c2/a" not in page and b"secret" not in page
    assert b"secret" in gateway.ask("SCAN", "*")


def test_an_unverified_client_is_granted_nothing(site, policy):
    store = site.start_store("--policy", policy)
    client = site.connect("c1")

    assert client.request("GET", "settings/a").payload == DENIED
    assert client.request("SCAN", "*").payload == DENIED
    assert "the policy denies all requests" in store.log()


def test_a_reload_that_grants_nothing_to_any_client_logs_a_warning(site, policy, tmp_path):
    configuration = tmp_path / "statestored.conf"
    configuration.write_text("")
    store = site.start_store("--config", configuration)

    configuration.write_text(f"[policy]\nfile = {policy}\n")
    store.child.send_signal(signal.SIGHUP)

    store.wait_for_log("the policy denies all requests")


def test_a_reload_that_removes_the_policy_is_logged(site, policy, tmp_path):
    configuration = tmp_path / "statestored.conf"
    configuration.write_text(f"[policy]\nfile = {policy}\n")
    store = site.start_store("--config", configuration)
    client = site.connect("c1")
    assert client.request("GET", "settings/a").payload == DENIED

    configuration.write_text("")
    store.child.send_signal(signal.SIGHUP)

    store.wait_for_log('level=warning msg="the policy was removed: all clients may do everything"')
    assert client.request("GET", "settings/a").payload == NO_VALUE


def test_allow_unverified_grants_access_by_the_claimed_id(site, policy):
    site.start_store("--policy", policy, "--allow-unverified", "on")
    client = site.connect("c1")

    assert client.request("GET", "settings/a").payload == NO_VALUE
    assert client.request("SET", "own/c1/a", 1).payload == OK
    assert client.request("SET", "own/c2/a", 1).payload == DENIED


def test_a_new_policy_ends_registrations_that_it_does_not_grant(plugin_site, policy):
    gateway = plugin_site.connect("g", kind=WireClient, username="gateway")
    client = plugin_site.connect("c1", kind=WireClient)
    client.register("settings/a")
    client.register("own/c1/a")

    replace(plugin_site.store, policy, RULES.replace("settings/*", "settings/public/*"))
    assert gateway.ask("SET", "settings/a", 1) == OK
    assert gateway.ask("SET", "own/c1/a", 2) == OK

    assert client.changes() == [was_set("2")]
    assert client.ask("GET", "settings/a") == DENIED


def test_an_invalid_policy_changes_nothing(plugin_site, policy):
    client = plugin_site.connect("c1", kind=WireClient)

    replace(plugin_site.store, policy, RULES + "\n[wrong]\n", "the previous one stays in effect")

    assert client.ask("GET", "settings/a") == NO_VALUE
    assert client.ask("GET", "other") == DENIED
    policy.write_text(RULES)


def test_check_config_reports_every_error(tmp_path):
    policy = tmp_path / "policy.conf"
    policy.write_text("[a]\naccess = red\nany = yes\nstring = {id}\n")

    ended = subprocess.run([STATESTORED, "--policy", policy, "--check-config"], capture_output=True, text=True,
                           check=False)

    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        f"statestored: {policy}:2: read, write or readwrite was expected",
        f"statestored: {policy}:4: {{client}} or {{user}} was expected; for the character '{{' write [{{] in a "
        "pattern, or the key as binary = BASE64"]


@pytest.mark.parametrize("question, code, said", [
    (["c1", "", "GET", "settings/a"], 0, "granted: {policy}:5, rule [settings]"),
    (["c1", "", "SET", "settings/a"], 1, "denied: no rule of {policy} grants write"),
    (["c1", "", "SET", "own/c1/a"], 0, "granted: {policy}:10, rule [own]"),
    (["c1", "", "SET", "own/c2/a"], 1, "denied: no rule of {policy} grants write"),
    (["c1", "gateway", "SET", "own/c2/a"], 0, "granted: {policy}:15, rule [gateway]"),
    (["c1", "", "SCAN", "own/c1/a"], 0, "granted: {policy}:10, rule [own], if the plugin verifies the client"),
    (["c1", "", "SCAN", "own/c2/a"], 1, "denied: no rule of {policy} grants read"),
])
def test_explain_names_the_rule_that_decides(policy, question, code, said):
    ended = subprocess.run([STATESTORED, "--policy", policy, "--explain", *question], capture_output=True, text=True,
                           check=False)

    assert ended.stderr == ""
    assert ended.stdout.startswith(said.format(policy=policy))
    assert ended.returncode == code


def test_a_registration_granted_to_a_user_survives_a_restart(make_site, policy, tmp_path):
    site = make_site()
    store = site.start_store("--policy", policy, "--data-dir", tmp_path / "data")
    gateway = site.connect("g", kind=WireClient, username="gateway")
    gateway.register("anything")

    assert store.stop() == 0
    store.start()

    assert gateway.ask("SET", "anything", 1) == OK
    assert gateway.changes() == [was_set("1")]


def test_control_requests_need_no_rule(make_site, policy):
    site = make_site()
    site.start_store("--policy", policy, "--control")
    client = site.connect("c1", kind=WireClient)
    assert client.ask("SET", "own/c1/a", 1) == OK

    control = site.connect("test", kind=Control)
    assert control.ask("seed", '{"key":"settings/a","value":"seeded"}\n') == OK
    assert client.ask("GET", "settings/a") == b"$6\r\nseeded\r\n"
    assert control.ask("reset") == OK

    assert client.ask("GET", "own/c1/a") == NO_VALUE
    assert client.ask("GET", "other") == DENIED


def test_control_reads_the_requests_of_other_clients_without_a_rule(make_site, policy):
    site = make_site()
    site.start_store("--policy", policy, "--control")
    assert site.connect("c1", kind=WireClient).ask("SET", "own/c1/a", "secret") == OK

    control = site.connect("test", kind=Control)

    assert control.request("GET", "own/c1/a").payload == DENIED
    assert ["SET", "own/c1/a", "secret"] in [one["request"] for one in control.lines("requests")]


def test_seeding_needs_no_rule(make_site, policy, tmp_path):
    seed = tmp_path / "seed.json"
    seed.write_text('{"key":"settings/a","value":"seeded"}\n{"key":"secret","value":"seeded"}\n')
    site = make_site()
    site.start_store("--policy", policy, "--seed", seed)
    client = site.connect("c1", kind=WireClient)

    assert client.ask("GET", "settings/a") == b"$6\r\nseeded\r\n"
    assert client.ask("GET", "secret") == DENIED
