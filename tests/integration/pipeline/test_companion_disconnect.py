# SPDX-License-Identifier: Apache-2.0
"""The end of a connection, in every way, ends its registrations (PROTOCOL.md "Notifications" and "Broker abilities")."""

import pytest

from support import disconnects
from support.wire_client import NOT_REGISTERED, WireClient, was_set


@pytest.fixture
def writer(shared_plugin_site):
    return shared_plugin_site.connect(kind=WireClient)


def connect_holder(shared, leave, **more):
    return shared.connect(None, WireClient, keepalive=disconnects.keepalive(leave), **more)


@pytest.mark.parametrize("leave", disconnects.WAYS, ids=disconnects.name)
def test_a_disconnected_client_leaves_no_registration(shared_plugin_site, writer, key, leave):
    holders = [connect_holder(shared_plugin_site, leave, session_expiry=expiry) for expiry in (0, 1000)]
    for holder in holders:
        holder.subscribe_to_notifications()
        holder.register(key)

    came_back = [leave(shared_plugin_site, holder) for holder in holders]
    assert writer.ask("SET", key, "value") == b"+OK\r\n"

    for holder, again in zip(holders, came_back):
        again = again or shared_plugin_site.connect(holder.id, WireClient, clean_start=False)
        again.subscribe_to_notifications()
        assert writer.ask("SET", key, "value") == b"+OK\r\n"
        assert again.stop(key) == NOT_REGISTERED
        assert again.changes() == []


@pytest.fixture(params=disconnects.QUICK_WAYS, ids=disconnects.name)
def leave(request):
    return request.param


def test_a_disconnect_ends_the_registrations_of_that_client_only(shared_plugin_site, writer, key, leave):
    keys = [f"{key}-{n}" for n in range(5)]
    other = shared_plugin_site.connect(kind=WireClient)
    other.register(*keys)
    holder = shared_plugin_site.connect(kind=WireClient)
    holder.register(*keys)

    again = leave(shared_plugin_site, holder) or shared_plugin_site.connect(holder.id, WireClient)

    for each in keys:
        assert again.stop(each) == NOT_REGISTERED
        writer.ask("SET", each, "value")
    assert other.changes() == [was_set("value")] * 5


def test_a_disconnect_frees_the_quota_of_registrations(make_site):
    """This shows that the store itself has removed the registrations."""
    site = make_site()
    site.start_store("--max-registrations", 3)
    for way in disconnects.QUICK_WAYS:
        holder = site.connect(kind=WireClient)
        holder.register("one", "two", "three")
        assert holder.ask("KEYNOTIFY", "four").startswith(b"-ERR")
        way(site, holder)


def test_a_client_that_reconnects_and_registers_again_is_notified_once(shared_plugin_site, writer, key, leave):
    holder = shared_plugin_site.connect(kind=WireClient)
    holder.subscribe_to_notifications()
    holder.register(key)
    again = leave(shared_plugin_site, holder) or shared_plugin_site.connect(holder.id, WireClient)

    again.subscribe_to_notifications()
    again.register(key)
    writer.ask("SET", key, "value")

    assert again.changes() == [was_set("value")]


def test_a_client_that_reconnects_before_disconnected_arrives_has_no_registrations(shared_plugin_site, writer, key, leave):
    holder = shared_plugin_site.connect(kind=WireClient)
    holder.register(key)

    with shared_plugin_site.store.paused():
        again = leave(shared_plugin_site, holder) or shared_plugin_site.connect(holder.id, WireClient)
        change = writer.begin("SET", key, "value")
        stop = again.begin("KEYNOTIFY", key, "STOP")

    assert writer.reply_to(change).payload == b"+OK\r\n"
    assert again.reply_to(stop).payload == NOT_REGISTERED
    assert again.changes() == []


def test_keynotify_of_a_disconnected_client_registers_nothing(shared_plugin_site, writer, key):
    with shared_plugin_site.store.paused():
        holder = shared_plugin_site.connect(kind=WireClient)
        holder.begin_and_disconnect("KEYNOTIFY", key)
        change = writer.begin("SET", key, "value")
        again = shared_plugin_site.connect(holder.id, WireClient)
        stop = again.begin("KEYNOTIFY", key, "STOP")

    assert writer.reply_to(change).payload == b"+OK\r\n"
    assert again.reply_to(stop).payload == NOT_REGISTERED
    assert again.changes() == []


def test_a_late_keynotify_of_an_ended_connection_keeps_the_registrations_of_the_next_one(
        shared_plugin_site, writer, key):
    with shared_plugin_site.store.paused():
        holder = shared_plugin_site.connect(kind=WireClient)
        holder.begin_and_disconnect("KEYNOTIFY", key)
        again = shared_plugin_site.connect(holder.id, WireClient)
        registered = again.begin("KEYNOTIFY", key)
    assert again.reply_to(registered).payload == b"+OK\r\n"
    assert again.still_works(), "the store has processed the disconnect of the first connection by now"

    writer.ask("SET", key, "value")

    assert again.changes() == [was_set("value")]


def test_hundreds_of_simultaneous_disconnects_leave_no_registration(shared_plugin_site, writer, key):
    holders = [shared_plugin_site.connect(kind=WireClient) for _ in range(200)]
    for holder in holders:
        holder.begin("KEYNOTIFY", key)
    for holder in holders:
        holder.ping()
    stays = shared_plugin_site.connect(kind=WireClient)
    stays.register(key)

    for n, holder in enumerate(holders):
        holder.cut() if n % 2 else holder.disconnect()

    for holder in holders:
        assert shared_plugin_site.connect(holder.id, WireClient).stop(key) == NOT_REGISTERED
    writer.ask("SET", key, "value")
    assert stays.changes() == [was_set("value")]
