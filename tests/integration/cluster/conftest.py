# SPDX-License-Identifier: Apache-2.0
"""Machines that share a state in etcd."""

import itertools

import pytest

from support.cluster import Cluster
from support.cluster_client import ClusterClient
from support.counter import Counter, wait_for_all


@pytest.fixture
def make_cluster(until_end, tmp_path):
    numbers = itertools.count()

    def make(**more):
        directory = tmp_path / f"cluster-{next(numbers)}"
        directory.mkdir()
        return until_end(Cluster(directory, **more))

    return make


@pytest.fixture
def cluster(make_cluster):
    return make_cluster()


@pytest.fixture
def slow_cluster(make_cluster):
    """A cluster whose leader stays the same while a busy machine starts a process."""
    return make_cluster(flags=["--lease", "20s"])


@pytest.fixture
def counters():
    """Starts clients that count. After the test, each acknowledged write must be there once."""
    started = []

    def start(cluster, n_counters=4):
        started.extend(Counter(ClusterClient(cluster)) for _ in range(n_counters))
        wait_for_all(started)
        return started

    yield start
    for counter in started:
        counter.stop()
    assert not [counter.lost for counter in started if counter.lost]
    assert not [counter.doubled for counter in started if counter.doubled]
