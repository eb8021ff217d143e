# SPDX-License-Identifier: Apache-2.0
"""statestorectl doctor reports exactly the wrong setting of a mosquitto."""

import json
import re
import subprocess

import pytest

from support.broker import free_port, passwords
from support.control import Control
from support.ctl import environment
from support.plugin import ACCEPT, BASIC_AUTH, PLUGIN, build_plugin
from support.process import CTL, PATIENCE, wait_until
from support.stepped_clock import SteppedClock
from support.store import Store

OK, WARN, FAIL = 0, 1, 4

GOOD = {"broker", "receive maximum", "plugin", "own topics", "queue", "size", "session", "store", "clock", "latency",
        "one store", "notifications"}


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
        severity, text = line[:6].strip(), line[6:]
        check, said = text.split(": ", 1)
        assert check not in found
        assert ("  change: " in said) == (severity != "ok") or check == "broker"
        found[check] = severity, said
    count = {severity: sum(entry[0] == severity for entry in found.values()) for severity in ("fail", "warn", "ok")}
    assert last == "{fail} fail, {warn} warn, {ok} ok".format(**count)
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


def test_doctor_passes_on_a_good_broker_and_leaves_nothing_behind(make_site):
    site = make_site()
    site.start_store()

    assert set(findings_with({}, site)) == GOOD
    keys = site.connect().request("SCAN", "*").payload
    assert keys == b"*1\r\n*0\r\n"


def test_each_finding_is_an_object_in_json(make_site):
    site = make_site()
    site.start_store()

    def severities():
        lines = map(json.loads, doctor(site, "--json").stdout.splitlines())
        return {line["check"]: line["severity"] for line in lines}

    wait_until(lambda: severities() == dict.fromkeys(GOOD, "ok"), "the doctor finds nothing wrong")


@pytest.mark.parametrize("lines, expected, change", [
    (["set_tcp_nodelay false"], {"latency": "fail"}, "set_tcp_nodelay true"),
    (["max_queued_messages 100"], {"queue": "fail"}, "max_queued_messages 1000000"),
    (["max_queued_messages 1000"], {"queue": "fail"}, "max_queued_messages 1000000"),
    (["max_inflight_messages 20"], {"receive maximum": "warn"}, "max_inflight_messages 0"),
    (["max_packet_size 100000"], {"packet size": "warn", "size": "warn"}, "max_packet_size"),
    (["message_size_limit 100000"], {"size": "warn"}, "message_size_limit"),
])
def test_doctor_detects_each_wrong_setting(make_site, lines, expected, change):
    site = make_site(*lines)
    site.start_store()

    found = findings_with(expected, site)

    assert all(change in found[check][1] for check in expected)


def test_a_broker_without_qos_1_is_reported(make_site):
    result = doctor(make_site("max_qos 0"))

    assert result.returncode == 3
    assert "fail  broker: the broker at 127.0.0.1:" in result.stdout and "at QoS 1" in result.stdout


def test_a_missing_plugin_is_reported(site):
    site.start_store()
    findings_with({"plugin": "warn"}, site)


@pytest.mark.parametrize("text, severity", [("not authorized", "warn"), ("no quorum", "fail")])
def test_a_policy_that_denies_the_doctors_key_is_reported(make_site, text, severity):
    site = make_site()
    site.start_store("--control")
    site.connect("control", Control).do("fault", "error", text, "verb", "KEYNOTIFY", "key", "statestorectl/doctor/*")

    found = findings_with({"clock": "warn", "notifications": severity}, site)

    assert f': "-ERR {text}"  change: ' in found["clock"][1]


def test_a_missing_store_is_reported(make_site):
    findings_when(lambda found: wrong(found) == {"store": "fail"} and "no store is connected" in found["store"][1],
                  make_site(), "--timeout", "3s")


def test_a_missing_broker_is_reported(site):
    site.broker.kill()
    result = doctor(site)
    site.broker.start_again()

    assert result.returncode == 3
    assert result.stdout.startswith("fail  broker: cannot connect to the broker at 127.0.0.1:")


def test_a_second_store_is_reported(site, tmp_path):
    site.start_store()
    (tmp_path / "second").mkdir()
    second = Store(tmp_path / "second", site.broker.port, ("--client-id", "second", "--node-id", "Second"))
    try:
        second.start()
        found = findings_with({"plugin": "warn", "one store": "fail"}, site)
    finally:
        second.kill()

    assert '"StateStore"' in found["one store"][1] and '"Second"' in found["one store"][1]


@pytest.mark.parametrize("ahead_s, severity, said", [
    (-3600, "fail", "behind this machine's; timestamps more than a minute ahead are refused"),
    (-30, "warn", "s behind this machine's"),
    (30, "warn", "s ahead of this machine's"),
    (3600, "fail", "ahead of this machine's; timestamps more than a minute ahead are refused"),
])
def test_a_wrong_clock_is_reported(make_site, tmp_path, ahead_s, severity, said):
    site = make_site()
    clock = SteppedClock(tmp_path)
    clock.step_to(ahead_s * 1000)
    site.start_store(environment=clock.environment())

    # a store that is an hour behind refuses the doctor's timestamps
    found = findings_with({"clock": severity} | ({"notifications": "fail"} if ahead_s == -3600 else {}), site)

    assert said in found["clock"][1]


@pytest.mark.parametrize("before_s, ahead_s, said", [
    (3600, 0, r"the store's clock is \d+ s ahead of "),
    (-3600, -7200, r"the store's clock is at least \d+ s behind "),
])
def test_a_clock_that_waits_for_the_wall_clock_is_reported(make_site, tmp_path, before_s, ahead_s, said):
    """After a step back of the wall clock the store's clock does not go back: it stands still."""
    site = make_site()
    clock = SteppedClock(tmp_path)
    clock.step_to(before_s * 1000)
    site.start_store(environment=clock.environment())
    site.connect().request("GET", "key", ts=None)
    clock.step_to(ahead_s * 1000)

    found = findings_with({"clock": "fail"} | ({"notifications": "fail"} if ahead_s < 0 else {}), site)

    assert re.match(said, found["clock"][1])


@pytest.fixture
def site_with_rules(make_site, tmp_path):
    """Start a broker with these access rules for anonymous clients, and with rules for the store's user."""

    def make(*rules, store=("topic readwrite #",)):
        (tmp_path / "acl").write_text("\n".join([*rules, "user statestored", *store, ""]))
        (tmp_path / "password").write_text("secret\n")
        users = passwords(tmp_path, statestored="secret")
        site = make_site(f"acl_file {tmp_path}/acl", f"password_file {users}", plugin=False)
        site.start_store("--user", "statestored", "--password-file", str(tmp_path / "password"))
        return site

    return make


INVOKE = "topic write statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"
OWN = "topic readwrite clients/#"
NO_PLUGIN = {"plugin": "warn"}


@pytest.mark.parametrize("rules, store, expected, said", [
    ([INVOKE, OWN], None, {}, None),
    ([OWN], None, {"store": "fail"}, "this client may not send requests"),
    ([INVOKE, "topic read clients/#"], None, {"own topics": "warn"}, "may not write there"),
    ([INVOKE, "pattern readwrite clients/%c/#"], None, {"own topics": "warn", "notifications": "fail"},
     "another client id"),
    ([INVOKE, "topic write clients/#"], None, {"own topics": "fail", "store": "fail"}, "does not arrive"),
    ([INVOKE, OWN], ["topic read statestore/#"], {"store": "fail"}, "no reply arrives"),
    ([INVOKE, OWN], ["topic write clients/#"], {"store": "fail"}, "no reply arrives"),
    ([INVOKE, OWN], ["topic read statestore/#", "topic write clients/+/statestorectl/#"], {"notifications": "fail"},
     "no notification arrived"),
])
def test_access_rules_that_suppress_messages_are_reported(site_with_rules, rules, store, expected, said):
    site = site_with_rules(*rules, **({"store": store} if store else {}))

    def is_as_expected(found):
        return wrong(found) == NO_PLUGIN | expected and (not said or any(said in found[check][1] for check in expected))

    findings_when(is_as_expected, site, "--timeout", "3s")


@pytest.fixture
def authenticating(make_site, tmp_path):
    """Start a broker with users, the plugin and these access rules, and a store with HTTP pages."""

    def make(*lines, rules=(), flags=(), **more):
        (tmp_path / "acl").write_text("\n".join(["user statestored", "topic write clients/#",
                                                "pattern read $SYS/statestore/v1/plugin", *rules, ""]))
        (tmp_path / "store").write_text("of the store\n")
        (tmp_path / "alice").write_text("of alice\n")
        users = passwords(tmp_path, statestored="of the store", alice="of alice")
        site = make_site(*lines, "allow_anonymous false", f"password_file {users}", f"acl_file {tmp_path}/acl", **more)
        pages = f"127.0.0.1:{free_port()}"
        site.start_store("--user", "statestored", "--password-file", tmp_path / "store", "--http-listen", pages, *flags)
        (tmp_path / "conf").write_text(f"[broker]\nport = {site.broker.port}\n[http]\nlisten = {pages}\n")
        return site

    return make


BY_USER = "plugin_opt_statestored_username statestored"
REQUEST = f"pattern write {INVOKE.split()[-1]}"


def as_alice(tmp_path, *more):
    return "--user", "alice", "--password-file", tmp_path / "alice", *more


@pytest.mark.parametrize("rules, expected", [
    ([REQUEST, "pattern read clients/%c/statestorectl/doctor/response"], {"own topics": "warn"}),
    ([REQUEST, "pattern readwrite clients/%c/#"], {"own topics": "warn", "replies": "warn"}),
    (["user alice", "topic readwrite clients/#", REQUEST], {"replies": "warn"}),
    (["user alice", "topic readwrite #"], {"replies": "warn"}),
])
def test_replies_that_another_client_id_may_read_are_reported(authenticating, tmp_path, rules, expected):
    found = findings_with(expected, authenticating(BY_USER, rules=rules), *as_alice(tmp_path))

    assert ("may not read" in found["replies"][1]) == ("replies" not in expected)
    assert "client id" not in found, "the doctor does not know the URL of the store's pages"


@pytest.mark.parametrize("lines, flags, is_guarded", [
    ([BY_USER], (), True),
    ([], (), False),
    ([BY_USER, "plugin_opt_statestored_client_id statestored"], (), True),
])
def test_a_client_id_that_another_user_can_take_is_reported(authenticating, tmp_path, lines, flags, is_guarded):
    site = authenticating(*lines, rules=["user alice", "topic readwrite #"], flags=flags)
    found = findings_when(lambda found: "client id" in found, site, *as_alice(tmp_path, "--config", tmp_path / "conf"))

    assert found["client id"][0] == ("ok" if is_guarded else "warn")
    assert is_guarded or "plugin_opt_statestored_username" in found["client id"][1]


@pytest.mark.parametrize("client_id, is_guarded", [("statestored-" + "0a" * 16, True), ("chosen", False)])
def test_a_random_client_id_is_guarded_and_another_one_is_not(authenticating, tmp_path, client_id, is_guarded):
    """Another plugin accepts the store, so the broker does not call the companion plugin."""
    first = build_plugin(tmp_path, BASIC_AUTH, ACCEPT)
    site = authenticating(f"plugin {first}", f"plugin {PLUGIN}", BY_USER, "plugin_opt_undecided allow", plugin=False,
                          rules=["user alice", "topic readwrite #"], flags=("--client-id", client_id))
    found = findings_when(lambda found: "client id" in found, site, *as_alice(tmp_path, "--config", tmp_path / "conf"))

    assert found["client id"][0] == ("ok" if is_guarded else "warn")


def test_pages_that_cannot_be_read_are_reported(authenticating, tmp_path):
    site = authenticating(BY_USER, rules=["user alice", "topic readwrite #"])
    (tmp_path / "conf").write_text(f"[broker]\nport = {site.broker.port}\n[http]\nlisten = 127.0.0.1:1\n")
    found = findings_when(lambda found: "client id" in found, site, *as_alice(tmp_path, "--config", tmp_path / "conf"))

    assert found["client id"][0] == "warn" and "127.0.0.1:1/metrics" in found["client id"][1]
