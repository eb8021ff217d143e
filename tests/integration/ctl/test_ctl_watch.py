# SPDX-License-Identifier: Apache-2.0
"""statestorectl watch."""

import json
import os
import signal
import threading

import pytest

from support.ctl import BINARY, Ctl, DONE, NO_REPLY, RunningCtl, STORE_ERROR, USAGE
from support.process import PATIENCE, wait_until


class Watch(RunningCtl):
    """A running `statestorectl watch` and its output."""

    def __init__(self, ctl, *arguments, **popen):
        super().__init__(ctl, "watch", *arguments, **popen)

    def event(self):
        """The fields of the next line."""
        return self.line().removesuffix(b"\n").split(b"\t")


@pytest.fixture
def watch():
    watches = []

    def start(ctl, *arguments, **popen):
        watches.append(Watch(ctl, *arguments, **popen))
        return watches[-1].wait_for_note("watching")

    yield start
    for each in watches:
        each.stop()


@pytest.mark.parametrize("dialect", ["sdk", "document"], indirect=True)
def test_watch_prints_a_line_for_each_change(ctl, client, key, watch):
    watching = watch(ctl, key, f"{key} too")

    first = client.request("SET", key, "value").prop("__ts").encode()
    second = client.request("SET", f"{key} too", BINARY).prop("__ts").encode()
    client.request("DEL", key)

    assert watching.event() == [b"SET", first, key.encode(), b"value"]
    event, version, name, value = watching.event()
    assert (event, version, name) == (b"SET", second, f"{key} too".encode())
    assert value.startswith(rb"\x00\x01")
    assert watching.event() == [b"DELETE", first, key.encode()]


def test_watch_prints_an_expiry_as_delete(ctl, client, key, watch):
    watching = watch(ctl, key)

    client.request("SET", key, "value", "PX", "1")

    assert [watching.event()[0] for _ in range(2)] == [b"SET", b"DELETE"]


def test_watch_shows_json_and_hex(ctl, client, key, watch):
    as_json = watch(ctl, key, "--json")
    as_hex = watch(ctl, key.encode().hex(), "--hex")

    version = client.request("SET", key, b"\0\xff").prop("__ts")
    client.request("DEL", key)

    assert json.loads(as_json.line()) == {"event": "SET", "key": key, "value_base64": "AP8=", "version": version}
    assert json.loads(as_json.line()) == {"event": "DELETE", "key": key, "version": version}
    assert as_hex.event() == [b"SET", version.encode(), key.encode().hex().upper().encode(), b"00FF"]


def test_watch_accepts_a_key_of_any_bytes(ctl, client, watch):
    watching = watch(ctl, BINARY.hex(), "--hex")

    client.request("SET", BINARY, "value")

    assert bytes.fromhex(watching.event()[2].decode()) == BINARY


def test_watch_says_that_it_takes_no_patterns(ctl, client, key, watch):
    for name in f"{key}*", f"{key}/?", f"{key}[a]", f"{key}/+/b", f"{key}/#":
        watching = Watch(ctl, name).wait_for_note(f'"{name}": watch takes no patterns; it watches the key with this name')
        watching.wait_for_note("watching 1 key")
        client.request("SET", f"{key}/a", "value")
        client.request("SET", name, "value")
        assert watching.event()[2] == name.encode()
        watching.stop()

    client.request("SET", f"{key}+#", "value")
    assert ctl.ok("watch", f"{key}+#", "--count", "1", "--initial").startswith(b"SET\t")


def test_watch_ends_after_a_number_of_lines(ctl, client, key, watch):
    watching = watch(ctl, key, "--count", "3")

    for value in "abcd":
        client.request("SET", key, value)

    assert [watching.event()[3] for _ in range(3)] == [b"a", b"b", b"c"]
    assert watching.child.wait(PATIENCE) == DONE
    assert watching.child.stdout.read() == b""
    for count in "0", "-1", "one":
        assert ctl.run("watch", key, "--count", count).returncode == USAGE


def test_watch_initial_prints_the_present_values_first(ctl, client, key, watch):
    client.request("SET", key, "before")
    client.request("SET", f"{key}2", BINARY)
    watching = watch(ctl, key, f"{key}/none", f"{key}2", key, "--initial")
    client.request("SET", f"{key}/none", "later")
    client.request("DEL", key)

    lines = [watching.event() for _ in range(4)]

    assert [line[0] for line in lines] == [b"SET", b"SET", b"SET", b"DELETE"]
    assert [line[2] for line in lines] == [name.encode() for name in (key, f"{key}2", f"{key}/none", key)]
    assert (lines[0][3], lines[0][1]) == (b"before", lines[3][1])


@pytest.mark.parametrize("kind", ["shared", "shared_plugin_site"], ids=["plain", "plugin"])
def test_watch_initial_has_neither_a_gap_nor_a_duplicate(request, kind, key):
    """The key changes all the time, so notifications arrive before, between and after the replies."""
    site = request.getfixturevalue(kind)
    ctl, client = Ctl(site.broker.port), site.connect()

    stop = threading.Event()

    def change():
        while not stop.is_set():
            versions.append(client.request("SET", key, "value").prop("__ts"))

    versions = [client.request("SET", key, "value").prop("__ts")]
    thread = threading.Thread(target=change)
    thread.start()
    try:
        seen = [ctl.run("watch", key, "--initial", "--json", "--count", "20").stdout.splitlines() for _ in range(10)]
    finally:
        stop.set()
        thread.join()

    for lines in seen:
        printed = [json.loads(line)["version"] for line in lines]
        first = versions.index(printed[0])
        assert printed == versions[first:first + 20]


def test_watch_registers_again_after_a_restart_of_the_broker(site, site_ctl, watch):
    watching = watch(site_ctl, "one", "two")

    site.broker.kill()
    watching.wait_for_note("changes are being missed")
    site.broker.start_again()
    watching.wait_for_note("registered again")

    client = site.connect()
    client.request("SET", "one", "value")
    client.request("SET", "two", "value")
    assert [watching.event()[2] for _ in range(2)] == [b"one", b"two"]


def test_watch_initial_reads_again_what_changed_while_it_was_not_registered(site, site_ctl, watch):
    client = site.connect()
    versions = [client.request("SET", name, "before").prop("__ts").encode() for name in ("same", "changed", "gone")]
    watching = watch(site_ctl, "same", "changed", "gone", "new", "--initial")
    assert [watching.event()[1] for _ in range(3)] == versions

    watching.child.send_signal(signal.SIGSTOP)
    site.broker.kill()
    site.broker.start_again()
    wait_until(lambda: site_ctl.run("ping", "--timeout", "1s").returncode == DONE, "the store is connected")
    client = site.connect()
    client.request("SET", "changed", "after")
    client.request("DEL", "gone")
    client.request("SET", "new", "after")
    watching.child.send_signal(signal.SIGCONT)
    watching.wait_for_note("registered again")

    assert [watching.event()[::2] for _ in range(3)] == [[b"SET", b"changed"], [b"DELETE", b"gone"], [b"SET", b"new"]]
    client.request("SET", "gone", "again")
    assert watching.event()[2:] == [b"gone", b"again"]


def test_watch_registers_again_after_a_restart_of_the_store(site, site_ctl, watch):
    watching = watch(site_ctl, "key", "--timeout", "2s")

    site.store.stop()
    watching.wait_for_note("changes are being missed")
    site.store.start()
    watching.wait_for_note("registered again")

    # On a busy machine both notes may be about a slow reply before the restart.
    client = site.connect()
    wait_until(lambda: client.request("SET", "key", "value") and watching.has_event(), "a change is printed")
    assert watching.event()[::3] == [b"SET", b"value"]


def test_watch_says_why_the_broker_ended_the_connection(make_site):
    site = make_site()
    site.start_store("--control")
    ctl = Ctl(site.broker.port)
    ctl.ok("test", "fault", "kick", "verb", "KEYNOTIFY", "count", "1")

    ended = ctl.run("watch", "key")

    assert ended.returncode == NO_REPLY
    assert b"Administrative action" in ended.stderr and b"too slowly" in ended.stderr


def test_watch_says_that_another_client_may_have_its_client_id(ctl, key, watch):
    """mosquitto 2.0.11 closes the connection without a reason, later versions name it."""
    watching = watch(ctl, key, "--client-id", f"watcher-of-{key}")

    ctl.ok("ping", "--client-id", f"watcher-of-{key}")

    watching.wait_for_note("--client-id")


def test_one_of_two_watches_with_the_same_client_id_ends(ctl, client, key, watch):
    name = f"watcher-of-{key}"
    watches = [watch(ctl, key, "--client-id", name) for _ in range(2)]

    def ended():
        return [each for each in watches if each.child.poll() is not None]

    wait_until(ended, "one of them ends")
    [ends] = ended()
    assert ends.child.returncode == NO_REPLY
    ends.wait_for_note(f'another client connects with the client id "{name}" again and again')

    [stays] = [each for each in watches if each is not ends]
    wait_until(lambda: client.request("SET", key, "value") and stays.has_event(), "the other watches again")
    assert stays.child.poll() is None


def test_watch_ends_when_its_output_is_closed(ctl, key, watch):
    reader, writer = os.pipe()
    watching = watch(ctl, key, stdout=writer)
    os.close(writer)

    os.close(reader)

    assert watching.child.wait(PATIENCE) == DONE


def test_watch_ends_when_its_output_cannot_be_written(ctl, client, key, watch):
    with open("/dev/full", "wb") as full:
        watching = watch(ctl, key, stdout=full)

    client.request("SET", key, "value")

    watching.wait_for_note("cannot write to stdout: No space left on device")
    assert watching.child.wait(PATIENCE) == USAGE


def test_watch_prints_the_stores_error(ctl):
    ended = ctl.run("watch", "")

    assert ended.returncode == STORE_ERROR
    assert ended.stderr == b'statestorectl: KEYNOTIFY "": -ERR the key length is zero\n'
