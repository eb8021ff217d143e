# SPDX-License-Identifier: Apache-2.0
"""Tests of a user that run in two processes and share the double in STATESTORE_URL: see test_control_parallel.py."""

import json
import os

import pytest
from statestore import Refused, StateStore

N_ROUNDS = 10


@pytest.fixture(scope="module")
def store():
    with StateStore(os.environ["STATESTORE_URL"], timeout=60) as store:
        yield store


@pytest.mark.parametrize("side", [pytest.param(side, marks=pytest.mark.xdist_group(str(side))) for side in range(2)])
@pytest.mark.parametrize("number", range(N_ROUNDS))
def test_a_round(store, number, side):
    prefix = f"round-{number}/{side}"

    def control(*words):
        return store.ask(*words, topic="control/invoke").value

    def meet(place):
        """Wait until the test of the other process is here, too."""
        store.set(f"{place}-{number}/{side}", "")
        assert control("wait-for", "key", f"{place}-{number}/*", "verb", "SET", "count", 2, "timeout", "1m") == 1

    meet("start")
    control("fault", "error", f"for {side}", "key", f"{prefix}/*", "verb", "SET", "count", 1)
    control("fault", "error", f"for {side}", "key", f"{prefix}/never", "verb", "DEL")
    with store.watch(f"{prefix}/lease"), pytest.raises(Refused, match=f"for {side}"):
        store.set(f"{prefix}/lease", "")
    store.set(f"{prefix}/lease", "", expires=3600)
    store.set(f"{prefix}/key", "value")
    control("expire", f"{prefix}/lease")
    meet("middle")

    if number % 2 == side:
        control("reset", "key", f"{prefix}/*")
    meet("end")

    requests = [json.loads(line)["verb"] for line in control("requests", "key", f"{prefix}/*").splitlines()]
    if number % 2 == side:
        assert (requests, store.get(f"{prefix}/key")) == ([], None)
        assert not store.delete(f"{prefix}/never"), "the rule was removed"
    else:
        assert requests.count("SET") == 3
        with pytest.raises(Refused, match=f"for {side}"):
            store.delete(f"{prefix}/never")
        assert (store.get(f"{prefix}/lease"), store.get(f"{prefix}/key")) == (None, b"value")
