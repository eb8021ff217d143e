# SPDX-License-Identifier: Apache-2.0
"""Linearizability: many clients use few keys while the store and the broker are killed.

A client repeats a request without a reply as the same request, which takes effect at most once.
"""

import uuid
from concurrent.futures import TimeoutError as NoReply

import pytest

from support.client import Client
from support.history import Recorder, end, wait_for_progress
from support.linearizability import Operation, find_violation
from support.process import PATIENCE
from support.site import kill_broker, kill_store

REPLY_WITHIN = 1


class RepeatingClient(Client):
    """A client of one broker: see Recorder."""

    def perform(self, *words, token=None):
        """Repeat the same request until its reply arrives."""
        identity = {"ts": self.clock.now(), "correlation": uuid.uuid4().bytes, "ft": token}
        first = self.send(*words, **identity)
        for _ in range(PATIENCE):
            try:
                return first.result(REPLY_WITHIN)
            except NoReply:
                self.send(*words, **identity)
        raise AssertionError(f"{words} gets no reply")


@pytest.fixture
def recorders(site):
    def start(n_clients, *flags):
        site.start_store(*flags)
        started.extend(Recorder(site.connect(kind=RepeatingClient), seed) for seed in range(n_clients))
        for recorder in started:
            recorder.start()
        return started

    started = []
    yield start
    for recorder in started:
        recorder._stopped.set()


def test_a_history_without_faults_is_linearizable(recorders):
    running = recorders(8)
    wait_for_progress(running, 500)
    assert not (violation := find_violation(end(running))), violation


def test_a_history_with_kills_of_the_store_is_linearizable(site, recorders, tmp_path):
    running = recorders(6, "--data-dir", tmp_path / "data")
    for _ in range(3):
        wait_for_progress(running)
        kill_store(site)
    assert not (violation := find_violation(end(running))), violation


def test_a_history_with_kills_of_broker_and_store_is_linearizable(site, recorders, tmp_path):
    running = recorders(6, "--data-dir", tmp_path / "data")
    for kill in (kill_broker, kill_store, kill_broker):
        wait_for_progress(running)
        kill(site)
    assert not (violation := find_violation(end(running))), violation


def test_the_checker_detects_lost_writes(site, recorders):
    """A store without a data directory loses acknowledged writes: the checker must detect that."""
    running = recorders(4)
    wait_for_progress(running)
    witness = Recorder(site.connect(kind=RepeatingClient), 0)
    witness.record(Operation("witness", "SET", "kept", 0, b"value"))
    kill_store(site)
    witness.record(Operation("witness", "GET", "kept", 0))
    assert find_violation(end(running) + witness.history)
