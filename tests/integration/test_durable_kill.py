# SPDX-License-Identifier: Apache-2.0
"""A store with a data directory is killed at any moment, under load: what it has acknowledged is there.

Every answered request has had its effect, once; every unanswered one gets the answer that it would have got; no
registration is lost, and none comes back.
"""

import random
import time

import pytest

from support.lanes import Lanes
from support.process import wait_until

N_ROUNDS = 12


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def run_round(site, lanes, dice, kill):
    lanes.start()
    wait_until(lambda: lanes.n_answered() > 20, "the lanes move")
    time.sleep(dice.uniform(0, 0.1))
    kill(site)
    lanes.stop()
    lanes.finish()
    lanes.check()
    return lanes.n_answered()


def kill_store(site):
    site.store.kill()
    site.store.start()


@pytest.mark.parametrize("seed", range(5))
def test_a_store_that_is_killed_again_and_again_forgets_nothing(make_site, data, seed):
    dice = random.Random(seed)
    site = make_site()
    site.start_store("--data-dir", data)
    lanes = Lanes(site, dice)

    n_answered = [run_round(site, lanes, dice, kill_store) for _ in range(N_ROUNDS)]

    assert sum(n_answered) > 50 * N_ROUNDS
