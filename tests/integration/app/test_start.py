# SPDX-License-Identifier: Apache-2.0
"""The start of statestored: retries, fatal errors, and the ready file."""

import pytest

from support.broker import Broker
from support.fake_broker import (CONNACK_ACCEPTED, CONNACK_OF_A_BROKER_WITHOUT_MQTT_5, PUBACK, SUBSCRIBE)
from support.process import PATIENCE


@pytest.fixture
def broker_of(tmp_path):
    """Makes a broker that is not running yet; it is ended after the test."""
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


def test_a_broker_that_is_not_there_yet_is_waited_for(broker_of, store_of):
    broker = broker_of()
    store = store_of(broker.port).launch()
    store.wait_for_log("refused|retry|again|cannot|could not|unreachable|failed|lost")
    assert store.running()
    assert not store.is_ready()

    broker.start_again()

    store.wait_until_ready()
    assert store.stop() == 0


def test_waiting_for_a_broker_ends_when_asked_to(broker_of, store_of):
    store = store_of(broker_of().port).launch()
    store.wait_for_log(".")

    assert store.stop() == 0


def test_a_broker_that_refuses_our_credentials_ends_the_start(broker_of, store_of):
    broker = broker_of(anonymous=False).start()
    store = store_of(broker.port).launch()

    assert store.wait() == 1
    assert "authori" in store.log().lower()
    assert not store.is_ready()


def test_a_broker_without_mqtt_5_ends_the_start(fake_broker, store_of):
    store = store_of(fake_broker.port).launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_OF_A_BROKER_WITHOUT_MQTT_5)

    assert store.wait() == 1
    assert "mqtt" in store.log().lower()
    assert not store.is_ready()


def test_the_ready_file_is_not_there_before_the_subscription_is_confirmed(fake_broker, store_of):
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


def test_a_ready_file_that_was_left_behind_does_not_say_that_we_are_ready(fake_broker, store_of):
    store = store_of(fake_broker.port)
    store.ready_file.write_text("left behind by one that was killed")
    store.launch(keep_ready_file=True)
    fake_broker.accept()

    assert not store.is_ready()


def test_requests_are_served_as_soon_as_the_ready_file_is_there(site):
    site.start_store()

    assert site.connect().send("GET", "key").result(PATIENCE).payload == b"$-1\r\n"
