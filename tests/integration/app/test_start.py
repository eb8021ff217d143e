# SPDX-License-Identifier: Apache-2.0
"""The start of statestored: retries, fatal errors, and the ready file."""

import os

import pytest

from support.broker import Broker
from support.fake_broker import (CONNACK_ACCEPTED, CONNACK_OF_A_BROKER_WITHOUT_MQTT_5, PUBACK, SUBSCRIBE)
from support.process import PATIENCE


@pytest.fixture
def broker_of(tmp_path):
    """Creates a broker without starting it, and stops it after the test."""
    brokers = []

    def make(**options):
        brokers.append(Broker(tmp_path, **options))
        return brokers[-1]

    try:
        yield make
    finally:
        for broker in brokers:
            if broker.running():
                broker.kill()


def test_the_store_waits_for_a_broker_that_is_not_running_yet(broker_of, store_of):
    broker = broker_of()
    store = store_of(broker.port).launch()
    store.wait_for_log("refused|retry|again|cannot|could not|unreachable|failed|lost")
    assert store.running()
    assert not store.is_ready()

    broker.start_again()

    store.wait_until_ready()
    assert store.stop() == 0


def test_sigterm_ends_waiting_for_a_broker(broker_of, store_of):
    store = store_of(broker_of().port).launch()
    store.wait_for_log(".")

    assert store.stop() == 0


def test_refused_credentials_end_the_start(broker_of, store_of):
    broker = broker_of(anonymous=False).start()
    store = store_of(broker.port).launch()

    assert store.wait() == 1
    assert "authori" in store.log().lower()
    assert not store.is_ready()


def test_a_client_id_that_mqtt_does_not_allow_ends_the_start(broker_of, store_of):
    store = store_of(broker_of().port)
    store.flags = ("--client-id", "a\u0080b")
    store.launch()

    assert store.wait() == 1
    assert "--client-id" in store.log()


def test_a_broker_without_mqtt_5_ends_the_start(fake_broker, store_of):
    store = store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_OF_A_BROKER_WITHOUT_MQTT_5)

    assert store.wait() == 1
    assert "mqtt" in store.log().lower()
    assert not store.is_ready()


def test_the_ready_file_is_created_after_the_subscription_is_confirmed(fake_broker, store_of):
    store = store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    subscribes = fake_broker.receive_until(SUBSCRIBE)
    fake_broker.publish_something()
    subscribes += fake_broker.receive_until(PUBACK)

    assert not store.is_ready()

    for body in subscribes:
        fake_broker.confirm(body)
    store.wait_until_ready()


def test_a_stale_ready_file_is_removed_at_start(fake_broker, store_of):
    store = store_of(fake_broker.port)
    store.ready_file.write_text("left behind by one that was killed")
    store.launch(keep_ready_file=True)
    fake_broker.accept()

    assert not store.is_ready()


def test_the_ready_file_is_not_written_through_a_symbolic_link(broker_of, store_of, tmp_path):
    store = store_of(broker_of().start().port)
    other = tmp_path / "other"
    other.write_text("untouched")
    store.ready_file.with_name("ready.new").symlink_to(other)

    store.start()

    assert other.read_text() == "untouched"
    assert not store.ready_file.is_symlink()


def test_a_pipe_beside_the_ready_file_does_not_block_the_store(broker_of, store_of):
    store = store_of(broker_of().start().port)
    os.mkfifo(store.ready_file.with_name("ready.new"))

    store.start()

    assert store.ready_file.is_file()


def test_requests_are_served_when_the_ready_file_exists(site):
    site.start_store()

    assert site.connect().send("GET", "key").result(PATIENCE).payload == b"$-1\r\n"
