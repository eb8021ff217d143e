# SPDX-License-Identifier: Apache-2.0
"""A broker restart ends every connection and so every registration."""

import pytest

from support.wire_client import NOT_REGISTERED, WireClient, was_set


@pytest.fixture(params=["forgets", "remembers"])
def site(request, make_site, tmp_path):
    """A site whose broker loses sessions at a restart, or restores them after an orderly stop."""
    persistence = ["persistence true", f"persistence_location {tmp_path}/"] if request.param == "remembers" else []
    return make_site(*persistence)


@pytest.fixture(params=["stop", "kill"])
def restart_broker(request, site):
    def restart():
        seen = len(site.store.log())
        getattr(site.broker, request.param)()
        site.broker.start_again()
        site.store.wait_for_log("ready: .*the plugin", after=seen)

    return restart


def come_back(site, client):
    """Reconnect, and resume the session if the broker still has it."""
    client.close()
    return site.connect(client.id, WireClient, clean_start=False, session_expiry=1000)


def test_a_broker_restart_ends_registrations(site, restart_broker):
    site.start_store()
    holders = [site.connect(None, WireClient, session_expiry=1000) for _ in range(3)]
    for holder in holders:
        holder.subscribe_to_notifications()
        holder.register("key", "other")

    restart_broker()
    came_back = [come_back(site, holder) for holder in holders]
    came_back[0].ask("SET", "key", "value")

    for again in came_back:
        assert again.stop("key") == NOT_REGISTERED
        assert again.stop("other") == NOT_REGISTERED
        assert again.changes() == []


def test_ended_registrations_free_their_quota(site, restart_broker):
    site.start_store("--max-registrations", 3)
    site.connect(kind=WireClient).register("one", "two", "three")

    restart_broker()

    site.connect(kind=WireClient).register("four", "five", "six")


def test_clients_that_register_again_are_notified_once(site, restart_broker):
    site.start_store()
    client = site.connect(None, WireClient, session_expiry=1000)
    client.register("key")

    for n in range(3):
        restart_broker()
        client = come_back(site, client)
        client.register("key")
        client.ask("SET", "key", n)
        assert client.changes() == [was_set(n)]


def test_registrations_end_with_a_data_directory_too(site, restart_broker, tmp_path):
    store = site.start_store("--data-dir", tmp_path / "data")
    client = site.connect(kind=WireClient)
    client.register("key")

    store.stop()
    site.broker.stop()
    site.broker.start_again()
    store.start()
    restart_broker()

    again = come_back(site, client)
    assert again.stop("key") == NOT_REGISTERED
    again.ask("SET", "key", "value")
    assert again.changes() == []


def test_registrations_end_if_the_broker_restarts_while_the_store_is_paused(site, tmp_path):
    store = site.start_store("--data-dir", tmp_path / "data")
    client = site.connect(kind=WireClient)
    client.register("key")

    with store.paused():
        site.broker.stop()
        site.broker.start_again()
        again = come_back(site, client)
    store.wait_for_log("ready: .*the plugin(.|\n)*ready: .*the plugin")

    assert again.stop("key") == NOT_REGISTERED


def test_a_request_of_the_former_broker_run_registers_no_client(make_site, tmp_path):
    """The store receives it in a frame of the former run. The requests behind it are lost with the broker."""
    site = make_site("persistence true", f"persistence_location {tmp_path}/")
    store = site.start_store()
    client = site.connect(kind=WireClient)
    client.register("other")

    with store.paused():
        client.begin("KEYNOTIFY", "key")
        client.begin("SET", "key", "value")
        client.ping()
        seen = len(store.log())
        site.broker.stop()
        site.broker.start_again()
        again = site.connect(client.id, WireClient)
    store.wait_for_log("ready: .*the plugin", after=seen)

    again.ask("SET", "key", "value")
    assert again.changes() == []
    assert again.stop("key") == NOT_REGISTERED
    assert again.stop("other") == NOT_REGISTERED


def test_clients_register_again_after_a_broker_restart_under_load(make_site):
    site = make_site()
    store = site.start_store()
    clients = [site.connect() for _ in range(4)]
    for client in clients:
        client.watch("key")
    for n in range(100):
        for client in clients:
            client.send("SET", "key", n)

    seen = len(store.log())
    site.broker.kill()
    site.broker.start_again()
    store.wait_for_log("ready: ", after=seen)
    for client in clients:
        client.wait_until_reconnected()
        client.watch("key")
    reply = clients[0].request("SET", "key", "last")

    for client in clients:
        while client.notification().ts != reply.ts:
            pass
