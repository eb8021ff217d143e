# SPDX-License-Identifier: Apache-2.0
"""A store with a data directory is killed at random moments under load, and loses no acknowledged write.

Each request with a reply took effect once. Each request without a reply, repeated, gets the reply of its first execution. No
registration is lost, and no removed registration returns.
"""

import random
import time
import uuid

import pytest

from support.lanes import Lanes
from support.process import wait_until
from support.site import kill_broker, kill_store

N_ROUNDS = 12
N_REPLIES = 50  # in each round, before the kill


def run_round(site, lanes, dice, kill):
    lanes.start()
    wait_until(lambda: lanes.n_replies() >= N_REPLIES, "requests have their replies")
    time.sleep(dice.uniform(0, 0.1))
    kill(site)
    lanes.stop()
    lanes.finish()
    lanes.check()


def kill_both(site):
    site.broker.kill()
    site.store.kill()
    site.broker.start_again()
    site.store.start()


def stop_store(site):
    assert site.store.stop() == 0
    site.store.start()


@pytest.mark.parametrize("seed", [
    0, *(pytest.param(seed, marks=pytest.mark.not_sanitized("seed 0 executes the same code")) for seed in range(1, 5))])
def test_repeatedly_killing_the_store_loses_no_acknowledged_write(make_site, data, seed):
    dice = random.Random(seed)
    site = make_site()
    site.start_store("--data-dir", data)
    lanes = Lanes(site, dice)

    for _ in range(N_ROUNDS):
        run_round(site, lanes, dice, kill_store)


@pytest.mark.parametrize("kill", [kill_broker, kill_both])
def test_killing_the_broker_loses_no_acknowledged_write(make_site, data, kill):
    dice = random.Random(kill.__name__)
    site = make_site()
    site.start_store("--data-dir", data)
    lanes = Lanes(site, dice, with_registrars=False)

    for _ in range(5):
        run_round(site, lanes, dice, kill)


def test_stopping_the_store_loses_no_acknowledged_write(make_site, data):
    dice = random.Random(0)
    site = make_site()
    site.start_store("--data-dir", data)
    lanes = Lanes(site, dice)

    for _ in range(5):
        run_round(site, lanes, dice, stop_store)


@pytest.mark.parametrize("words", [("SET", "key", "value", "NX"), ("DEL", "key"), ("VDEL", "key", "value"),
                                   ("KEYNOTIFY", "key", "STOP")], ids=lambda words: words[0])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_repeated_request_gets_the_same_reply_after_a_restart(make_site, data, words, end):
    site = make_site()
    store = site.start_store("--data-dir", data)
    client = site.connect()
    if words[0] in ("DEL", "VDEL"):
        client.request("SET", "key", "value")
    client.watch("key")
    request = {"ts": client.clock.now(), "correlation": uuid.uuid4().bytes}
    first = client.request(*words, **request)

    getattr(store, end)()
    store.start()
    second = client.request(*words, **request)

    assert second.payload == first.payload
    assert second.prop("__ts") == first.prop("__ts")


def test_versions_continue_above_versions_that_only_replies_contained(make_site, data):
    """KEYNOTIFY of a registered key changes no row, and its reply contains the clock of the store."""
    site = make_site()
    store = site.start_store("--data-dir", data)
    client = site.connect()
    client.watch("key")
    ahead = client.clock.now()
    ahead = ahead._replace(wall_ms=ahead.wall_ms + 50000)
    client.request("GET", "key", ts=ahead)
    seen = client.request("KEYNOTIFY", "key", ts=None, correlation=b"short").ts
    assert seen.wall_ms >= ahead.wall_ms

    store.kill()
    store.start()

    assert client.request("SET", "key", "value").ts > seen
