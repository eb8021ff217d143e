# SPDX-License-Identifier: Apache-2.0
"""The broker survives hostile packets without memory errors; it runs under valgrind."""

import random
import struct
import subprocess

import pytest

from support import companion
from support.client import INVOKE, NOTIFY_PREFIX, notify_topic
from support.downloads import require_program
from support.connection import Disconnected
from support.packets import number, packet, text
from support.plugin import (CONTROL, FrameMissing, Peer, disconnect_while_notified,  # noqa: F401 fixtures
                            sanitizer_libraries, site_with)

VALGRIND = ["valgrind", "-q", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible",
            "--show-leak-kinds=definite,indirect,possible", "--error-exitcode=99", "--keep-debuginfo=yes",
            "--num-callers=20", "--child-silent-after-fork=yes",
            "--soname-synonyms=somalloc=nouserintercepts"]  # so that a test can have an allocator of its own


@pytest.fixture
def memory_checked_site(site_with):
    """Start a broker under valgrind, or with sanitizers, which detect the same errors."""
    if sanitizer_libraries():
        return lambda *lines, **more: site_with(*lines, count_leaks=True, **more)
    require_program("valgrind")
    return lambda *lines, **more: site_with(*lines, wrapper=VALGRIND, **more)


def hostile_publishes(rng):
    """Generate well-formed PUBLISH packets with invalid contents."""
    topics = [INVOKE, INVOKE, CONTROL + "hello", CONTROL + "frame", CONTROL + "frame", CONTROL + "x",
              notify_topic("a", "b"), NOTIFY_PREFIX, "$SYS/statestore/v1/frame", "other", "$CONTROL/"]
    names = ["statestore-", "statestore-mac", "statestore-client-id", "x", "", "s", "statestore-" + "x" * 60000]

    def user():
        return b"\x26" + text(rng.choice(names).encode()) + text(b"v" * rng.choice([0, 1, 60000]))

    def response():
        return b"\x08" + text(rng.choice([b"", b"a", b"#", INVOKE.encode(), notify_topic("a", "b").encode(),
                                          b"$SYS/x", b"x" * 65535, "\u0444".encode(), b"\xff", b"a\0b"]))

    def correlation():
        return b"\x09" + text(rng.choice([b"", b"1", b"1:2", b"3:18446744073709551615", b"\0" * 65535]))

    def other():
        return rng.choice([b"\x03" + text(b"text"), b"\x01\x01", b"\x02\x00\x00\x00\x01", b"\x23\x00\x01", b"\x0b\x01",
                           b"\x7f", b"\x01\x02\x01\x02"])

    def properties():
        makers = [user, user, user, response, correlation, other]
        return b"".join(rng.choice(makers)() for _ in range(rng.choice([0, 1, 2, 5, 300])))

    payloads = [b"", b"\0", b"1", b"x" * 100000, b"9" * 30, b"*1\r\n$4\r\nPING\r\n", companion.frame(b"\1\3" + bytes(20)),
                companion.frame(bytes(33)),
                companion.frame(companion.notification(rng.getrandbits(64) or 1, b"key", range(100), b"payload")),
                companion.frame(companion.notification(1, b"key", [1], b"", index=2**32 - 1)), companion.frame(companion.kick(1)),
                companion.frame(companion.notification(1, b"k" * 70000, [1], b""), companion.end(1)),
                companion.frame(companion.reply(1, b"x", [("a", "b"), ("\0", "x")]), companion.end(2**64 - 1)),
                companion.hello(bytes(32), b"instance"), companion.hello(bytes(32), b"x" * 64)]
    while True:
        packed = properties()
        qos = rng.choice([0, 1, 1, 2])
        body = text(rng.choice(topics).encode()) + (struct.pack("!H", rng.randrange(1, 100)) if qos else b"")
        body += number(len(packed)) + packed + rng.choice(payloads)
        yield packet(0x30 | qos << 1 | rng.randrange(2), body)


def attack(site, client_id, n_packets, seed):
    """Send all packets, and reconnect whenever the broker disconnects. Returns when the broker has read all of them."""
    rng = random.Random(seed)
    publishes = hostile_publishes(rng)
    client = site.connect(client_id)
    for _ in range(n_packets):
        try:
            client.send(next(publishes))
            if rng.randrange(4) == 0:
                client.ping()
        except (Disconnected, OSError):
            client = site.connect(client_id, clean_start=rng.randrange(2) == 0,
                                  session_expiry=rng.choice([0, 1000]))
        client._messages.clear()
    try:
        client.ping()
    except (Disconnected, OSError):
        pass


@pytest.mark.parametrize("client_id", ["stranger", "statestored"])
def test_the_broker_survives_hostile_packets(memory_checked_site, client_id):
    """Also from a client with the store's client id, at a broker that does not authenticate."""
    site = memory_checked_site()
    attack(site, client_id, 400, seed=client_id)

    peer = site.served()
    client = site.connect()
    connection = peer.track(client)
    peer.notify("key", connection)
    assert len(client.messages()) == 1


def test_the_broker_survives_reloads_while_clients_connect_and_disconnect_in_every_way(memory_checked_site):
    site = memory_checked_site()
    peer = site.served(session_expiry=1000)
    rng = random.Random(1)
    clients = {}
    for turn in range(300):
        client_id = f"client-{rng.randrange(20)}"
        clients[client_id] = client = site.connect(client_id, clean_start=rng.randrange(2) == 0,
                                                   session_expiry=rng.choice([0, 1000]))
        connection = peer.track(client) if rng.randrange(2) else peer.number_of(client)
        peer.notify("key", connection)
        leave = rng.choice([client.cut, client.disconnect, lambda: client.disconnect(session_expiry=1000),
                            lambda: None, lambda: None])
        leave()
        if turn % 50 == 10:
            site.broker.reload()
        if turn % 50 == 30:
            peer.hello(f"instance-{turn}")
        if turn % 50 == 40:
            peer.cut()
            peer = site.peer(clean_start=False, session_expiry=1000)
            peer.hello(f"instance-{turn - 10}")
    peer.ping()


def test_the_broker_survives_clients_that_disconnect_while_they_are_notified(memory_checked_site):
    site = memory_checked_site()
    peer = site.served()
    for _ in range(5):
        client = site.connect()
        disconnect_while_notified(site, peer, client, peer.number_of(client))


# Once the plugin is loaded, its allocation fails if the C expression FAILS is true. It can use size and dice.
SHORT_OF_MEMORY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int fails(void *caller, size_t size) {
        static unsigned n, dice;
        Dl_info info;

        if (!dladdr(caller, &info) || !strstr(info.dli_fname, "mosquitto_statestore") || ++n < 10)
                return 0;
        dice = dice * 1103515245 + 12345;
        (void)size;
        return FAILS;
}

static void *next_malloc(size_t size) {
        static void *(*next)(size_t);

        if (!next)
                next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
        return next(size);
}

void *malloc(size_t size) {
        return fails(__builtin_return_address(0), size) ? NULL : next_malloc(size);
}

void *calloc(size_t n, size_t size) {
        void *memory = fails(__builtin_return_address(0), n * size) ? NULL : next_malloc(n * size);

        return memory ? memset(memory, 0, n * size) : NULL;
}

void *realloc(void *memory, size_t size) {
        static void *(*next)(void *, size_t);

        if (!next)
                next = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
        return fails(__builtin_return_address(0), size) ? NULL : next(memory, size);
}

char *strdup(const char *text) {
        size_t size = strlen(text) + 1;
        char *copy = fails(__builtin_return_address(0), size) ? NULL : next_malloc(size);

        return copy ? strcpy(copy, text) : NULL;
}
"""


def build_shortage(directory, fails):
    path = directory / "shortage.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", f"-DFAILS={fails}", "-x", "c", "-o", path, "-"],
                   input=SHORT_OF_MEMORY.encode(), check=True)
    return path


class WelcomeMissing(Exception):
    """The plugin has ignored HELLO, because memory was short for it or for the client id."""


class ImpatientPeer(Peer):
    """Does not wait for a WELCOME that the plugin does not send. The broker may not disconnect the store then: mosquitto 2.0.15
    to 2.0.22 ignore the error of the plugin."""

    def message(self, topic=None):
        self.ping()
        if all(message.topic != topic for message in self._messages):
            raise WelcomeMissing
        return super().message(topic)


@pytest.mark.not_sanitized("sanitizers have their own allocator")
@pytest.mark.parametrize("every", [6, 8, 10])
def test_the_broker_survives_failed_allocations_of_the_plugin(memory_checked_site, tmp_path, every):
    site = memory_checked_site(preload=[build_shortage(tmp_path, f"(dice >> 16) % {every} == 0")])
    peer, n_received = None, 0

    for turn in range(100):
        try:
            peer = peer or site.served(kind=ImpatientPeer)
            client = site.connect(f"client-{turn % 10}")
            connection = peer.track(client)
            peer.notify("key", connection, user=[("name", "value")])
            n_received += len(client.messages())
            peer.hello(f"instance-{turn // 10}")
        except (Disconnected, FrameMissing, WelcomeMissing):
            peer = None

    attack(site, "statestored", 50, seed=1)
    assert 0 < n_received < 100


@pytest.mark.not_sanitized("sanitizers have their own allocator")
def test_a_frame_for_which_the_plugin_has_no_memory_makes_the_store_send_hello(site_with, tmp_path):
    """The plugin skips the number of a frame, and ignores the frames of the store until HELLO."""
    site = site_with(preload=[build_shortage(tmp_path, "size >= 65536")])
    peer, client = site.served(), site.connect()
    connection = peer.number_of(client)

    # no memory for the topic
    peer.send(peer.encode_notification("k" * 20000, [connection], payload=bytes(65536)))
    with pytest.raises(FrameMissing):
        peer.next_frame()
    peer.notify("key", connection, payload=b"ignored")
    peer.hello()
    peer.notify("key", connection)
    assert [message.payload for message in client.messages()] == [b"a notification"]


def test_the_broker_survives_its_memory_limit(memory_checked_site):
    site = memory_checked_site("memory_limit 2000000")
    peer, client, hoarder = site.served(), site.connect("client"), site.connect("hoarder")
    peer.number_of(client)

    with pytest.raises(Disconnected):
        for n in range(10000):
            hoarder.publish(f"retained/{n}", b"x" * 5000, retain=True)
    with pytest.raises(Disconnected):
        for n in range(1000):
            client.request(payload=bytes(1000 * n), user=[(f"{n}", "value")] * 20)

    assert site.broker.running()


@pytest.mark.parametrize("n_reloads", [0, 1, 10])
def test_reload_and_stop_leak_nothing(memory_checked_site, n_reloads):
    site = memory_checked_site("plugin_opt_statestored_username store")
    client = site.connect()
    for _ in range(n_reloads):
        site.broker.reload()
        client.publish("a/topic")
