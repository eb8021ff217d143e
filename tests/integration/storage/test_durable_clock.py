# SPDX-License-Identifier: Apache-2.0
"""The system clock is stepped while a store with a data directory runs or is stopped.

Versions only grow, and each key expires at its deadline.
"""

import time

import pytest

from support import stored
from support.hlc import wall_ms
from support.process import wait_until
from support.stepped_clock import SteppedClock
from support.store import RESTART_S

HOUR = 3600 * 1000
EPOCH = 50 * 365 * 24 * HOUR
NO_VALUE = b"$-1\r\n"


@pytest.fixture
def clock(tmp_path):
    return SteppedClock(tmp_path)


@pytest.fixture
def store(site, data, clock):
    return site.start_store("--data-dir", data, environment=clock.environment())


def set_key(client, clock, key, ttl_ms=None):
    words = ("SET", key, "value") if ttl_ms is None else ("SET", key, "value", "PX", ttl_ms)
    reply = client.request(*words, ts=clock.reading(client.id))
    assert reply.payload == b"+OK\r\n"
    return reply.ts


def has(client, key):
    return client.request("GET", key, ts=None).payload != NO_VALUE


@pytest.mark.parametrize("step_ms", [-HOUR, HOUR, -EPOCH], ids=["back", "forward", "1970"])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_versions_continue_above_earlier_ones(site, store, clock, step_ms, end):
    client = site.connect()
    first = set_key(client, clock, "key")

    getattr(store, end)()
    clock.step_to(step_ms)
    store.start()
    second = set_key(client, clock, "key")

    assert second > first
    if step_ms > 0:
        assert second.wall_ms >= wall_ms() + step_ms - 60000


@pytest.mark.parametrize("step_ms", [-HOUR, -EPOCH], ids=["an hour", "1970"])
def test_keys_expire_although_the_clock_was_set_back_while_stopped(site, store, clock, step_ms):
    client = site.connect()
    begun = time.monotonic()
    set_key(client, clock, "short", 1500)
    set_key(client, clock, "long", 600 * 1000)

    store.kill()
    clock.step_to(step_ms)
    store.start()

    wait_until(lambda: not has(client, "short"), "the key with the short time to live expires")
    assert time.monotonic() - begun >= 1.5 - RESTART_S
    assert has(client, "long")


def test_time_while_stopped_is_measured_by_the_system_clock(site, store, clock):
    client = site.connect()
    set_key(client, clock, "short", 600 * 1000)
    set_key(client, clock, "long", 2 * HOUR)

    store.kill()
    clock.step_to(HOUR)
    store.start()

    wait_until(lambda: not has(client, "short"), "the key with the short time to live expires")
    assert has(client, "long")


def saved(data):
    """The shift of the system clock in ms, and the number of keys, of the last commit."""
    (n_keys,), = stored.select(data, "SELECT count(*) FROM entries")
    return stored.header(data)["shift_ms"], n_keys



@pytest.mark.parametrize("first_ms", [0, -EPOCH], ids=["an hour", "out of 1970"])
def test_a_forward_step_of_the_clock_while_running_expires_no_key(site, store, clock, data, first_ms):
    store.stop()
    clock.step_to(first_ms)
    store.start()
    client = site.connect()
    begun = time.monotonic()
    set_key(client, clock, "short", 10_000)
    set_key(client, clock, "long", 600 * 1000)

    before_ms, _ = saved(data)
    clock.step_to(HOUR)
    wait_until(lambda: saved(data)[0] - before_ms > HOUR / 2, "the step is committed")
    n_keys = saved(data)[1]
    is_late = time.monotonic() - begun >= 10 - RESTART_S
    assert n_keys == 2 or is_late, "the step is committed before a key expires"
    store.kill()
    store.start()

    assert has(client, "long")
    wait_until(lambda: not has(client, "short"), "the key with the short time to live expires")
    assert time.monotonic() - begun >= 10 - RESTART_S
    assert has(client, "long")
