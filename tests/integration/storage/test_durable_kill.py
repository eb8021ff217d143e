# SPDX-License-Identifier: Apache-2.0
"""A store with a data directory is killed at any moment, under load: what it has acknowledged is there.

Every answered request has had its effect, once; every unanswered one gets the answer that it would have got; no
registration is lost, and none comes back.
"""

import random
import time
import uuid

import pytest

from support.lanes import Lanes
from support.process import wait_until
from support.site import kill_broker, kill_store

N_ROUNDS = 12
N_ANSWERED = 50  # in each round, before the kill


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def run_round(site, lanes, dice, kill):
    lanes.start()
    wait_until(lambda: lanes.n_answered() >= N_ANSWERED, "the lanes move")
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


@pytest.mark.parametrize("seed", range(5))
def test_a_store_that_is_killed_again_and_again_forgets_nothing(make_site, data, seed):
    dice = random.Random(seed)
    site = make_site()
    site.start_store("--data-dir", data)
    lanes = Lanes(site, dice)

    for _ in range(N_ROUNDS):
        run_round(site, lanes, dice, kill_store)


@pytest.mark.parametrize("kill", [kill_broker, kill_both])
def test_nor_does_it_when_the_broker_is_killed(make_site, data, kill):
    dice = random.Random(kill.__name__)
    site = make_site()
    site.start_store("--data-dir", data)
    lanes = Lanes(site, dice, with_registrars=False)

    for _ in range(5):
        run_round(site, lanes, dice, kill)


def test_nor_does_one_that_is_asked_to_end(make_site, data):
    dice = random.Random(0)
    site = make_site()
    site.start_store("--data-dir", data)
    lanes = Lanes(site, dice)

    for _ in range(5):
        run_round(site, lanes, dice, stop_store)


@pytest.mark.parametrize("words", [("SET", "key", "value", "NX"), ("DEL", "key"), ("VDEL", "key", "value"),
                                   ("KEYNOTIFY", "key", "STOP")], ids=lambda words: words[0])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_was_answered_is_answered_the_same_by_the_next_one(make_site, data, words, end):
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


def test_no_version_goes_back_behind_one_that_was_only_handed_out(make_site, data):
    """KEYNOTIFY of a registered key changes no row, and is answered with the store's clock."""
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
