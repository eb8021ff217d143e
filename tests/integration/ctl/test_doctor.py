# SPDX-License-Identifier: Apache-2.0
"""statestorectl doctor reports exactly what is wrong with a mosquitto or a store."""

import itertools
import json
import re
import subprocess

import pytest

from support.broker import passwords
from support.control import Control
from support.ctl import environment
from support.limited_store import LimitedStore
from support.process import CTL, PATIENCE, REPOSITORY, wait_until
from support.stepped_clock import SteppedClock
from support.store import Store

OK, WARN, FAIL = 0, 1, 4
FULL = b"-ERR the disk is full\r\n"

GOOD = {"broker", "store", "plugin", "queue", "size", "clock", "latency", "one store", "notifications"}

# Above this doctor warns.
PACKET_SIZE = "max_packet_size 4325376"


@pytest.fixture
def good_site(make_site):
    """Makes a site with a packet size that doctor accepts, unless `lines` has another one."""

    def make(*lines, **more):
        if not any("max_packet_size" in line for line in lines):
            lines = (PACKET_SIZE, *lines)
        return make_site(*lines, **more)

    return make


def doctor(site, *arguments):
    return subprocess.run([CTL, "doctor", "--port", str(site.broker.port), *map(str, arguments)],
                          env=environment({"TIMEOUT": "10s"}),
                          capture_output=True, text=True, timeout=PATIENCE)


def findings(site, *arguments):
    """Return severity and text by check. The exit status must agree with the final line."""
    result = doctor(site, *arguments)
    assert result.stderr == ""
    *lines, last = result.stdout.splitlines()
    found = {}
    for line in lines:
        severity, text = line[:7].strip(), line[9:]
        check, said = text.split(": ", 1)
        assert check not in found
        assert ("  change: " in said) == (severity in ("warn", "fail")) or check == "broker"
        found[check] = severity, said
    count = {severity: sum(entry[0] == severity for entry in found.values()) for severity in ("fail", "warn", "ok", "skipped")}
    assert last == "{fail} fail, {warn} warn, {ok} ok, {skipped} skipped".format(**count)
    assert result.returncode == (FAIL if count["fail"] else WARN if count["warn"] else OK)
    return found


def wrong(found):
    return {check: severity for check, (severity, _) in found.items() if severity != "ok"}


def findings_when(is_as_expected, site, *arguments):
    """Run the doctor until its findings are as expected, and return them. On a busy machine messages may take longer than the
    doctor waits, or hide the delay by Nagle's algorithm."""
    last = None

    def find():
        nonlocal last
        last = findings(site, *arguments)
        return is_as_expected(last)

    try:
        wait_until(find, "the expected findings")
    except TimeoutError:
        raise AssertionError(last) from None
    return last


def findings_with(expected, site, *arguments):
    """Return findings whose severities other than "ok" are these, by check."""
    return findings_when(lambda found: wrong(found) == expected, site, *arguments)


def test_doctor_passes_on_a_good_broker_and_leaves_nothing_behind(good_site):
    site = good_site()
    site.start_store()

    assert set(findings_with({}, site)) == GOOD
    keys = site.connect().request("SCAN", "*").payload
    assert keys == b"*1\r\n*0\r\n"


def test_each_finding_is_an_object_in_json(good_site):
    site = good_site()
    site.start_store()

    def severities():
        lines = map(json.loads, doctor(site, "--json").stdout.splitlines())
        return {line["check"]: line["severity"] for line in lines}

    wait_until(lambda: severities() == dict.fromkeys(GOOD, "ok"), "the doctor finds nothing wrong")


@pytest.mark.parametrize("lines, expected, change", [
    (["set_tcp_nodelay false"], {"latency": "fail"}, "set_tcp_nodelay true"),
    (["max_queued_messages 100"], {"queue": "fail"}, "max_queued_messages 100000 "),
    (["max_queued_messages 1000"], {"queue": "fail"}, "max_queued_messages 100000 "),
    (["message_size_limit 10000"], {"notifications": "fail"}, "see the store's reply"),
    (["max_packet_size 4000000"], {"size": "warn"}, "max_packet_size 4325376"),
    (["max_packet_size 4325377"], {"size": "warn"}, "max_packet_size 4325376"),
    (["# without max_packet_size"], {"size": "warn"}, "max_packet_size 4325376"),
])
def test_doctor_detects_each_wrong_setting(good_site, lines, expected, change):
    site = good_site(*lines)
    site.start_store()

    found = findings_with(expected, site)

    assert all(change in found[check][1] for check in expected)


def test_a_broker_without_qos_1_is_reported(good_site):
    result = doctor(good_site("max_qos 0"))

    assert result.returncode == 3
    assert "fail     broker: the broker at 127.0.0.1:" in result.stdout and "at QoS 1" in result.stdout


def test_a_missing_plugin_is_reported(good_site):
    site = good_site(plugin=False)
    site.start_store()
    assert "disconnects" in findings_with({"plugin": "warn"}, site)


@pytest.mark.parametrize("text, expected", [
    ("not authorized", {"notifications": "skipped"}),
    ("no quorum", {"notifications": "fail"}),
])
def test_a_key_that_cannot_be_watched_is_reported(good_site, text, expected):
    site = good_site()
    site.start_store("--control")
    site.connect("control", Control).do("fault", "error", text, "verb", "KEYNOTIFY", "key", "statestorectl/doctor/*")

    found = findings_with(expected, site)

    assert text == "not authorized" or f': "-ERR {text}"  change: ' in found["notifications"][1]


@pytest.mark.not_sanitized("test_durable_full fills the disk")
def test_a_full_disk_is_reported(good_site, data):
    site = good_site()
    site.store = LimitedStore(site.directory, site.broker.port, ("--data-dir", data))
    site.store.start()
    client, numbers = site.connect(), itertools.count()
    wait_until(lambda: client.request("SET", f"key-{next(numbers)}", b"v" * 40_000).payload == FULL, "the disk is full")

    assert '"-ERR the disk is full"' in findings(site)["notifications"][1]


def test_a_missing_store_is_reported(good_site):
    findings_when(lambda found: wrong(found) == {"store": "fail"} and "no subscriber" in found["store"][1],
                  good_site(), "--timeout", "3s")


def test_a_missing_broker_is_reported(site):
    site.broker.kill()
    result = doctor(site)
    site.broker.start_again()

    assert result.returncode == 3
    assert result.stdout.startswith("fail     broker: cannot connect to the broker at 127.0.0.1:")


def test_a_second_store_is_reported(good_site, tmp_path):
    site = good_site(plugin=False)
    site.start_store()
    (tmp_path / "second").mkdir()
    second = Store(tmp_path / "second", site.broker.port, ("--client-id", "second"))
    try:
        second.start()
        findings_with({"plugin": "warn", "one store": "fail"}, site)
    finally:
        second.kill()


@pytest.mark.parametrize("ahead_s, severity, said", [
    (-3600, "fail", "behind this machine's; timestamps more than a minute ahead are refused"),
    (-30, "warn", "s behind this machine's"),
    (30, "warn", "s ahead of this machine's"),
    (3600, "fail", "ahead of this machine's; timestamps more than a minute ahead are refused"),
])
def test_a_wrong_clock_is_reported(good_site, tmp_path, ahead_s, severity, said):
    site = good_site()
    clock = SteppedClock(tmp_path)
    clock.step_to(ahead_s * 1000)
    site.start_store(environment=clock.environment())

    # a store that is an hour behind refuses the doctor's timestamps
    found = findings_with({"clock": severity} | ({"notifications": "fail"} if ahead_s == -3600 else {}), site)

    assert said in found["clock"][1]


@pytest.mark.parametrize("before_s, ahead_s, said", [
    (3600, 0, r"the store's clock is \d+ s ahead of "),
    (-3600, -7200, r"the store's clock is \d+ s behind "),
])
def test_a_clock_that_waits_for_the_wall_clock_is_reported(good_site, tmp_path, before_s, ahead_s, said):
    """After a step back of the wall clock the store's clock does not go back: it stands still."""
    site = good_site()
    clock = SteppedClock(tmp_path)
    clock.step_to(before_s * 1000)
    site.start_store(environment=clock.environment())
    site.connect().request("GET", "key", ts=None)
    clock.step_to(ahead_s * 1000)

    found = findings_with({"clock": "fail"} | ({"notifications": "fail"} if ahead_s < 0 else {}), site)

    assert re.match(said, found["clock"][1])


@pytest.fixture
def site_with_rules(good_site, tmp_path):
    """Start a broker with these access rules for anonymous clients, and with rules for the store's user."""

    def make(*rules, store=("topic readwrite #",)):
        (tmp_path / "acl").write_text("\n".join([*rules, "user statestored", *store, ""]))
        (tmp_path / "password").write_text("secret\n")
        users = passwords(tmp_path, statestored="secret")
        site = good_site(f"acl_file {tmp_path}/acl", f"password_file {users}", plugin=False)
        site.start_store("--user", "statestored", "--password-file", str(tmp_path / "password"))
        return site

    return make


INVOKE = "topic write statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"
OWN = "topic readwrite clients/#"
REPLIES = "topic read clients/#"
SKIPPED = {"queue": "skipped"}


@pytest.mark.parametrize("rules, store, expected, said", [
    ([INVOKE, OWN], None, {}, None),
    ([OWN], None, {"store": "fail"}, "Not authorized; allow this client to write statestore/v1/"),
    ([INVOKE, REPLIES], None, SKIPPED | {"disconnects": "skipped"}, "may not write"),
    ([INVOKE, "topic write clients/#"], None, {"store": "fail"} | SKIPPED, "no reply within"),
    ([INVOKE, OWN], ["topic read statestore/#"], {"store": "fail"}, "no reply within"),
    ([INVOKE, OWN], ["topic write clients/#"], {"store": "fail"}, "no reply within"),
    ([INVOKE, OWN], ["topic read statestore/#", "topic write clients/+/services/statestore/#"],
     {"notifications": "fail"}, "no notification arrived"),
])
def test_access_rules_that_suppress_messages_are_reported(site_with_rules, rules, store, expected, said):
    site = site_with_rules(*rules, **({"store": store} if store else {}))

    def is_as_expected(found):
        # a refused request ends the connection to the store
        plugin = {} if said and "Not authorized" in said else {"plugin": "warn"}
        return wrong(found) == plugin | expected and (not said or any(said in found[check][1] for check in expected))

    findings_when(is_as_expected, site, "--timeout", "3s")


@pytest.mark.parametrize("user, n_refused", [("alice", 1), ("operator", 0)])
def test_users_of_the_documented_rules_find_nothing_wrong(good_site, tmp_path, user, n_refused):
    """The rules are those of conf/mosquitto-acl.conf and conf/policy.conf, which OPERATIONS.md tells to install."""
    names = "statestored", "alice", "operator"
    for name in names:
        (tmp_path / name).write_text(f"of {name}\n")
    users = passwords(tmp_path, **{name: f"of {name}" for name in names})
    site = good_site("allow_anonymous false", f"password_file {users}", f"acl_file {REPOSITORY}/conf/mosquitto-acl.conf",
                     "plugin_opt_statestored_username statestored")
    site.start_store("--user", "statestored", "--password-file", tmp_path / "statestored",
                     "--policy", REPOSITORY / "conf/policy.conf")

    result = doctor(site, "--user", user, "--password-file", tmp_path / user)

    assert result.returncode == OK
    assert ("skipped  other checks" in result.stdout) == bool(n_refused)
    assert site.store.log().count("request refused") == n_refused
