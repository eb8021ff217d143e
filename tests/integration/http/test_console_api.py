# SPDX-License-Identifier: Apache-2.0
"""What users and operators of the console see and change."""

import json
import select
import socket
import threading

import pytest

from support import hlc, resp
from support.console import Console, Users
from support.control import CONTROL
from support.double import running_double
from support.flood import Flood
from support.process import PATIENCE, preload, wait_until

POLICY = """
[own]
access = readwrite
user = alice
pattern = alice/*
pattern = shared/*

[bob]
access = readwrite
user = bob
pattern = *
"""


class ServedUsers(Users):
    """The users of the console of a store."""

    def __init__(self, site, directory, *flags, **more):
        super().__init__(directory)
        self.site = site
        self.console = Console(site.start_store("--http-listen", "0", "--console-users", self.file, *flags, **more))

    def request(self, *words, token=None, **headers):
        return self.console.request(token or self.bob, *words, **headers)[0]


@pytest.fixture(params=[False, True], ids=["plain", "plugin"])
def site(request, make_site):
    return make_site(plugin=request.param)


@pytest.fixture
def users(site, tmp_path):
    return ServedUsers(site, tmp_path, "--data-dir", tmp_path / "data")


@pytest.fixture
def users_with_policy(site, tmp_path):
    policy = tmp_path / "policy"
    policy.write_text(POLICY)
    return ServedUsers(site, tmp_path, "--policy", policy)


def test_a_request_has_the_reply_of_the_protocol(users):
    client = users.site.connect()

    assert users.request("SET", "key", "value") == b"+OK\r\n"
    assert client.request("GET", "key").payload == b"$5\r\nvalue\r\n"
    body, headers = users.console.request(users.alice, "GET", "key")
    assert body == b"$5\r\nvalue\r\n"
    assert headers["Statestore-Version"].endswith(":StateStore")
    assert "Statestore-Expires-In-Ms" not in headers
    assert users.request("DEL", "key") == b":1\r\n"
    assert users.request("GET", "key") == b"$-1\r\n"
    assert users.request("KEYNOTIFY", "key") == b"-ERR unknown command\r\n"
    assert users.request("nonsense") == b"-ERR unknown command\r\n"
    assert users.request("SET", "long", "x" * 500_000) == b"+OK\r\n"
    assert len(users.request("GET", "long")) > 500_000


def test_a_watcher_is_notified(users):
    client = users.site.connect()
    client.watch("key")

    users.request("SET", "key", "value")

    assert client.notification().payload.endswith(b"value\r\n")


def test_if_version_protects_the_change_of_another(users):
    users.request("SET", "key", "1")
    version = users.console.request(users.alice, "GET", "key")[1]["Statestore-Version"]
    users.request("SET", "key", "2", token=users.bob)

    changed = b"-ERR the version has changed\r\n"
    for words in ("SET", "key", "3"), ("DEL", "key"), ("VDEL", "key", "2"):
        assert users.request(*words, token=users.alice, Statestore_If_Version=version) == changed
    assert users.request("SET", "key", "3", Statestore_If_Version="none") == changed
    version = users.console.request(users.alice, "GET", "key")[1]["Statestore-Version"]
    assert users.request("SET", "key", "3", token=users.alice, Statestore_If_Version=version) == b"+OK\r\n"
    assert users.request("SET", "key", "3", token=users.alice, Statestore_If_Version=version) == changed
    assert users.request("SET", "new", "1", Statestore_If_Version="none") == b"+OK\r\n"
    assert users.console.post("/api/request", users.bob, "DEL", "key", Statestore_If_Version="x")[0] == 400


def test_a_fenced_key_needs_its_token(users):
    client = users.site.connect()
    token = "001696374425000:00001:holder"
    client.request("SET", "lock", "holder", "PX", "600000", ft=token)

    assert users.request("DEL", "lock").startswith(b"-ERR a fencing token is required")
    headers = users.console.request(users.bob, "GET", "lock")[1]
    assert headers["Statestore-Fence"] == token
    assert 0 < int(headers["Statestore-Expires-In-Ms"]) <= 600_000
    assert users.request("DEL", "lock", Statestore_Fence=token) == b":1\r\n"


def test_a_long_fencing_token_has_no_header(users):
    client = users.site.connect()
    longest, too_long = (f"001696374425000:00001:{'h' * n}" for n in (1002, 1003))
    for key, token in ("a", longest), ("b", too_long):
        client.request("SET", key, "value", ft=token)

    assert users.console.request(users.bob, "GET", "a")[1]["Statestore-Fence"] == longest
    assert users.request("DEL", "a", Statestore_Fence=longest) == b":1\r\n"
    assert "Statestore-Fence" not in users.console.request(users.bob, "GET", "b")[1]
    status, _, body = users.console.post("/api/request", users.bob, "DEL", "b", Statestore_Fence=too_long)
    assert (status, json.loads(body)) == (400, {"error": "Statestore-Fence: at most 1024 bytes were expected"})
    assert users.request("DEL", "b").startswith(b"-ERR a fencing token is required")


def test_a_fencing_token_that_a_broker_refuses_is_malformed(users):
    """A reply with it to a client of the broker would end the connection of the store, or of the client."""
    for node in "\ufffe", "\x85":
        token = f"1:1:{node}".encode()
        assert users.request("SET", "key", "value", Statestore_Fence=token) == b"-ERR malformed timestamp\r\n"
    users.request("SET", "key", "value", Statestore_Fence="1:1:n")

    reply = users.site.connect().request("GET", "key", user=[("details", "1")])

    assert reply.prop("__ft") == "000000000000001:00001:n"


def test_locks_show_their_holder_and_operators_see_who_waits(users):
    waiting = users.site.connect("waiting")
    waiting.watch("lock")
    waiting.request("SET", "no lock", "value")
    waiting.request("SET", "lock", "holder", "NEX", "PX", "600000")

    [of_alice] = users.console.keys(users.alice, path="/api/locks")
    [of_bob] = users.console.keys(users.bob, path="/api/locks")

    assert (of_alice["key"], of_alice["value"]) == ("lock", "holder")
    assert "watchers" not in of_alice
    assert (of_bob["watchers"], of_bob["n_watchers"]) == (["waiting"], 1)


def test_the_policy_hides_the_keys_of_another_user(users_with_policy):
    users = users_with_policy
    for key in "alice/1", "bob/1", "shared/1":
        assert users.request("SET", key, "value") == b"+OK\r\n"

    assert {key["key"] for key in users.console.keys(users.alice)} == {"alice/1", "shared/1"}
    assert {key["key"] for key in users.console.keys(users.bob)} == {"alice/1", "bob/1", "shared/1"}
    for words in ("GET", "bob/1"), ("SET", "bob/1", "x"), ("DEL", "bob/1"):
        assert users.request(*words, token=users.alice) == b"-ERR not authorized\r\n"
    users.site.store.wait_for_log('client=console/alice verb=get reason="not authorized" request_bytes=24 user=alice '
                                  'identity=verified')


def test_a_client_of_the_broker_is_not_a_user_of_the_console(users_with_policy):
    """The client has the id of the user, claims it, and has the address of the user's replies."""
    users = users_with_policy
    users.request("SET", "alice/1", "value")
    client = users.site.connect("console/alice")

    for more in {}, {"source": "console/alice"}, {"response_topic": "clients/console"}:
        client.send("DEL", "alice/1", **more)
    assert client.request("GET", "alice/1").payload == b"-ERR not authorized\r\n"
    assert users.request("GET", "alice/1", token=users.alice) == b"$5\r\nvalue\r\n"


HOSTILE_KEYS = [b"<script>alert(1)</script>", b"a\r\nevent: gap\r\ndata: {}\r\n\r\n", b"\x00\x1b[31m", b"\xff\xfe",
                "\u202e\u2028".encode(), b"k" * 60_000]


def test_hostile_keys_are_data(users):
    for key in HOSTILE_KEYS:
        assert users.request("SET", key, key) == b"+OK\r\n"
    users.request("GET", "\r\n-ERR", Statestore_Fence="x")

    seen = users.console.keys(users.bob)
    assert {key["key"].encode() for key in seen} == {key for key in HOSTILE_KEYS if key != b"\xff\xfe"}, "SCAN lists UTF-8"
    with users.console.events(users.bob, "after=0") as events:
        kinds, data = zip(*(next(events) for _ in HOSTILE_KEYS))
    assert set(kinds) == {"message"}
    assert [each["bytes"] for each in data] == [len(key) for key in HOSTILE_KEYS]
    assert data[3]["key_base64"] == "//4="
    assert (len(data[-1]["key"]), data[-1]["key_shortened"]) == (1024, True)


def test_keys_are_listed_in_pages(users):
    client = users.site.connect()
    client.request_all([("SET", f"key/{i}", "value") for i in range(3000)])

    assert len(users.console.keys(users.alice, "key/*")) == 3000
    status, _, body = users.console.ask("/api/keys?token=wrong", users.alice)
    assert (status, json.loads(body)) == (400, {"error": "syntax error"})
    assert users.console.status("/api/keys?pattern=[", users.alice) == 400


def test_operators_see_who_does_what(users):
    client = users.site.connect("device")
    client.watch("key", "other")
    client.request("set", "key", "value")

    clients = {each["client"]: each for each in users.console.json("/api/clients", users.bob)["clients"]}
    assert (clients["device"]["requests"], clients["device"]["refused"], clients["device"]["registrations"]) == (3, 1, 2)
    [watcher] = users.console.json("/api/watchers?key=key", users.bob)["watchers"]
    assert (watcher["key"], watcher["client"]) == ("key", "device")
    assert len(users.console.json("/api/watchers?client=device", users.bob)["watchers"]) == 2
    assert len(users.console.json("/api/watchers", users.bob)["watchers"]) == 2
    assert users.console.status("/api/watchers?client=a&key=b", users.bob) == 400
    assert users.console.status("/api/watchers?after=x", users.bob) == 400


def test_users_do_not_see_others(users):
    for path in "/api/clients", "/api/watchers", "/api/events":
        assert users.console.status(path, users.alice) == 403
        assert users.console.status(path) == 401
    for path in "/api/keys", "/api/locks":
        assert users.console.status(path) == 401
    assert users.console.post("/api/control", users.alice, "reset")[0] == 403
    assert users.console.post("/api/control", users.bob, "reset")[0] == 404, "the store has no --control"
    assert users.console.ask("/api/request", users.bob, "POST", b"", Content_Type="text/plain")[0] == 415
    assert users.console.ask("/api/request", users.bob)[0] == 405


def test_events_are_shown_as_they_happen(users):
    client = users.site.connect("device")
    users.request("SET", "before", "value")

    with users.console.events(users.bob) as events, users.console.events(users.bob, "pattern=a/*") as filtered, \
            users.console.events(users.bob, "client=device") as of_device:
        users.request("SET", "a/1", "value")
        client.request("SET", "b", "v", "PX", "1")
        shown = [next(events)[1] for _ in range(3)]
        assert [(each["kind"], each["key"]) for each in shown] == [("set", "a/1"), ("set", "b"), ("expire", "b")]
        assert [each["client"] for each in shown] == ["console/bob", "device", None]
        assert [each.get("verb") for each in shown] == ["SET", "SET", None]
        assert next(filtered)[1]["n"] == shown[0]["n"]
        assert next(of_device)[1]["n"] == shown[1]["n"]
    with users.console.events(users.bob, f"after={shown[0]['n']}") as events:
        assert next(events)[1] == shown[1]
    assert users.console.status("/api/events?pattern=[", users.bob) == 400


def test_a_stream_shows_the_same_whatever_another_one_has_sent(users):
    """The store keeps the lines of the last 1,024 events that a stream has sent, each up to 500 bytes."""
    keys = [f"{i}".ljust(600 if i % 10 == 0 else 0, "x") for i in range(1500)]
    users.site.connect().request_all([("SET", key, "value") for key in keys])

    shown = []
    for _ in range(2):
        with users.console.events(users.bob, "after=0") as events:
            shown.append([next(events)[1] for _ in keys])
    assert [each["key"] for each in shown[0]] == keys
    assert shown[1] == shown[0]


def test_a_client_of_the_broker_cannot_have_the_id_of_a_user(users):
    device = users.site.connect("console/bob")

    with users.console.events(users.bob) as events:
        users.request("SET", "a", "value")
        assert device.request("SET", "b", "value").payload == b"-ERR not authorized\r\n"
        assert device.request("KEYNOTIFY", "a").payload == b"-ERR not authorized\r\n"
        shown = [next(events)[1] for _ in range(2)]
    assert [(each["client"], each["kind"], each["verified"]) for each in shown] == [
        ("console/bob", "set", True), ("console/bob", "refused", False)]
    clients = users.console.json("/api/clients", users.bob)["clients"]
    assert [(each["client"], each["verified"], each["requests"], each["refused"]) for each in clients] == [
        ("console/bob", False, 2, 2), ("console/bob", True, 1, 0)]


@pytest.mark.not_sanitized("test_ctl_console causes the same gap")
def test_a_slow_reader_is_told_what_it_missed(users):
    flood = users.site.connect(kind=Flood)
    users.request("SET", "key", "value")
    flood.send(12_000, "SET", "x" * 1000, "value", ts=hlc.Clock("flood").now())
    flood.receive_replies(12_000)

    with users.console.events(users.bob, "after=1") as slow:
        kind, gap = next(slow)
        numbers = [next(slow)[1]["n"] for _ in range(12_000 - gap["lost"])]
    assert kind == "gap" and gap["lost"] > 0
    assert numbers == list(range(2 + gap["lost"], 12_002))
    with users.console.events(users.bob, "after=0") as oldest:
        assert next(oldest)[1]["n"] == numbers[0], "no gap: the reader has asked for what there is"


def test_without_a_broker_the_reason_is_told(users):
    users.site.broker.stop()
    wait_until(lambda: users.console.status("/api/keys", users.bob) == 503, "the store notices")

    status, _, body = users.console.post("/api/request", users.bob, "GET", "key")
    assert status == 503 and json.loads(body)["error"]
    assert users.console.json("/api/clients", users.bob)
    users.site.broker.start_again()
    users.site.store.wait_until_ready()
    wait_until(lambda: users.console.status("/api/keys", users.bob) == 200, "the store serves again")


def connect_from(console, address):
    return socket.create_connection((console.host, int(console.port)), PATIENCE, (address, 0))


def send_only(console, token, *words, address="127.0.0.1"):
    """Send a request from this address, and return the connection without reading the reply."""
    body = resp.request(*words)
    connection = connect_from(console, address)
    connection.sendall(b"POST /api/request HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                       b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s"
                       % (token.encode(), len(body), body))
    return connection


def test_test_control_is_answered(tmp_path):
    with running_double(tmp_path, "--control", "--keepalive", "1h") as double:
        console = Console(double)
        client = double.connect("device")
        client.request("SET", "key", "value")

        def control(*words):
            return console.post("/api/control", None, *words)

        assert console.request(None, "GET", "key")[0] == b"$5\r\nvalue\r\n"
        status, _, body = control("requests")
        [line] = resp.read(body).splitlines()
        assert (status, json.loads(line)["client"]) == (200, "device"), "the requests of the console are not in the journal"
        assert control("wait-for")[0] == 400
        assert control("nonsense")[2].startswith(b"-ERR usage:")
        waiting = client.send("wait-for", "key", "never", "timeout", "10m", topic=CONTROL, ts=None)
        client.request("GET", "key")  # and so the client waits
        assert control("reset")[2] == b"+OK\r\n"
        assert waiting.result(PATIENCE).payload == b":0\r\n"
        assert console.request(None, "GET", "key")[0] == b"$-1\r\n"
        assert control("outage", "store", "1ms")[2] == b"+OK\r\n"
        wait_until(lambda: double.log().count("ready: serving") == 2, "the outage of an idle link begins and ends")


@pytest.mark.parametrize("site", [True], indirect=True, ids=["plugin"])
def test_too_many_waiting_requests_are_refused_and_each_is_executed(site, tmp_path):
    """Also those whose peers have closed the connection. While the disk hangs, requests wait."""
    stall = tmp_path / "stall"
    users = ServedUsers(site, tmp_path, "--data-dir", tmp_path / "data",
                  environment={**preload("stall_shim"), "STATESTORE_STALL": str(stall)})
    stall.touch()
    waiting = [send_only(users.console, users.alice, "SET", f"key/{i}", "value", address=f"127.0.0.{2 + i % 2}")
               for i in range(17)]
    [refused] = select.select(waiting, [], [], PATIENCE)[0]
    assert refused.recv(1 << 16).startswith(b"HTTP/1.1 429")
    of_bob = send_only(users.console, users.bob, "SET", "bob", "value", address="127.0.0.4")
    for connection in waiting:
        connection.close()
    stall.unlink()

    assert of_bob.recv(1 << 16).startswith(b"HTTP/1.1 200")
    of_bob.close()
    wait_until(lambda: len(users.console.keys(users.alice, "key/*")) == 16, "each is executed")


def open_stream(console, token, address):
    """Return the connection, and the status of the response."""
    connection = connect_from(console, address)
    connection.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % token.encode())
    return connection, int(connection.recv(1 << 16).split()[1])


@pytest.mark.parametrize("site", [True], indirect=True, ids=["plugin"])
def test_too_many_streams_are_refused_until_one_ends(users):
    """The server accepts 16 connections of one address."""
    opened = [open_stream(users.console, users.bob, f"127.0.0.{2 + i // 16}") for i in range(33)]
    assert [status for _, status in opened] == [200] * 32 + [429]

    opened[0][0].close()
    wait_until(lambda: opens_a_stream(users.console, users.bob), "another stream has room")
    for connection, _ in opened:
        connection.close()


def opens_a_stream(console, token):
    connection, status = open_stream(console, token, "127.0.0.5")
    connection.close()
    return status == 200


def test_the_store_stops_with_open_streams_and_waiting_requests(users):
    with users.console.events(users.bob, "after=0"), users.console.events(users.bob):
        connections = [send_only(users.console, users.bob, "SET", f"key{i}", "value") for i in range(8)]
        assert users.site.store.stop() == 0
        for connection in connections:
            connection.close()
    users.site.store.start()


def test_many_requests_of_two_users_at_once(users):
    results = []

    def ask(token, n):
        statuses = [users.console.post("/api/request", token, "SET", f"key/{n}/{i}", "value")[0] for i in range(30)]
        results.extend(statuses)

    threads = [threading.Thread(target=ask, args=(token, n)) for n, token in enumerate([users.alice, users.bob] * 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 240 and set(results) <= {200, 429}
    assert results.count(200) == len(users.console.keys(users.bob, "key/*"))
