# SPDX-License-Identifier: Apache-2.0
"""statestorectl leader."""

import json
import signal

import pytest

from support.ctl import DONE, NO_REPLY, NOT_MET, USAGE, Ctl
from support.ctl_run import Run


@pytest.fixture
def watch():
    watches = []

    def start(ctl, *arguments):
        watches.append(Run(ctl, "leader", *arguments, "--watch"))
        watches[-1].wait_for_note("watching the leader")
        return watches[-1]

    yield start
    for each in watches:
        each.kill()


def test_leader_prints_the_name(ctl, client, key):
    version = client.request("SET", key, "one", "NEX", "PX", "1000000").prop("__ts")

    assert ctl.ok("leader", key) == b"one\n"
    assert ctl.json("leader", key) == {"key": key, "leader": "one", "version": version}
    assert ctl.ok("leader", key.encode().hex(), "--hex") == b"6F6E65\n"


def test_leader_says_that_there_is_none(ctl, key):
    text, as_json = ctl.run("leader", key), ctl.run("leader", key, "--json")

    assert (text.returncode, text.stdout) == (NOT_MET, b"")
    assert text.stderr == f'statestorectl: "{key}": no leader\n'.encode()
    assert as_json.returncode == NOT_MET
    assert json.loads(as_json.stdout) == {"key": key, "leader": None, "version": None}


def test_leader_without_a_broker_exits_with_3():
    assert Ctl(1).run("leader", "key").returncode == NO_REPLY


def test_leader_watch_prints_the_present_leader_and_each_new_one(ctl, client, key, watch):
    client.request("SET", key, "one")
    watching, as_json = watch(ctl, key), watch(ctl, key, "--json")

    client.request("SET", key, "one")  # a renewal
    client.request("DEL", key)
    version = client.request("SET", key, "two").prop("__ts")

    assert [watching.line() for _ in range(3)] == ["one", "", "two"]
    changes = [json.loads(as_json.line()) for _ in range(3)]
    assert [each["leader"] for each in changes] == ["one", None, "two"]
    assert changes[2] == {"key": key, "leader": "two", "version": version}


def test_leader_watch_ends_when_its_output_cannot_be_written(ctl, client, key):
    client.request("SET", key, "one")

    with open("/dev/full", "wb") as full:
        ended = ctl.run("leader", key, "--watch", stdout=full)

    assert ended.returncode == USAGE
    assert ended.stderr == b"statestorectl: cannot write to stdout: No space left on device\n"


def test_leader_watch_prints_a_change_that_it_has_missed(site, proxy_of, watch):
    site.start_store()
    proxy, client = proxy_of(site), site.connect()
    client.request("SET", "key", "one")
    watching = watch(Ctl(proxy.port), "key")
    assert watching.line() == "one"

    proxy.cut()
    watching.wait_for_note("changes are being missed")
    client.request("SET", "key", "two")
    proxy.mend()

    assert watching.line() == "two"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_leader_watch_exits_with_0(ctl, key, watch, number):
    watching = watch(ctl, key)
    assert watching.line() == ""

    watching.send_signal(number)

    assert watching.status() == DONE
