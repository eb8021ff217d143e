# SPDX-License-Identifier: Apache-2.0
"""A store without a data directory restarts without registrations: the plugin disconnects registered clients, so that they
register again."""

from support import disconnects
from support.connection import KICKED
from support.wire_client import NOT_REGISTERED, WireClient, was_set, wire_clients


def test_a_restart_of_a_store_in_memory_disconnects_only_registered_clients(make_site, end):
    site = make_site()
    store = site.start_store()
    holder, of_two, stopped, asked, silent = wire_clients(site, 5)
    holder.register("key")
    of_two.register("key", "other")
    stopped.register("key", "other")
    assert (of_two.stop("key"), stopped.stop("key"), stopped.stop("other")) == (b"+OK\r\n",) * 3
    asked.ask("SET", "key", "value")

    end(store)
    store.start()

    assert holder.wait_until_closed() == KICKED
    assert of_two.wait_until_closed() == KICKED
    assert all(client.still_works() for client in (stopped, asked, silent))


def test_a_disconnected_client_registers_again_and_is_notified(make_site, end):
    site = make_site()
    store = site.start_store()
    writer, holder = wire_clients(site, 2)
    holder.register("key")

    for n in range(3):
        end(store)
        store.start()
        assert holder.wait_until_closed() == KICKED
        holder = site.connect(holder.id, WireClient)
        holder.register("key")
        writer.ask("SET", "key", n)
        assert holder.changes() == [was_set(n)]


def test_a_keynotify_that_waited_for_the_store_registers_at_the_new_store(make_site, end):
    site = make_site()
    store = site.start_store()
    client, = wire_clients(site, 1)

    end(store)
    registered = client.begin("KEYNOTIFY", "key")
    client.ping()
    store.start()

    assert client.reply_to(registered).payload == b"+OK\r\n"
    client.ask("SET", "key", "value")
    assert client.changes() == [was_set("value")]


def test_a_client_that_disconnected_while_the_store_was_away_has_no_registration(make_site, end):
    site = make_site()
    store = site.start_store()
    for way in disconnects.QUICK_WAYS:
        leaves, = wire_clients(site, 1)
        leaves.register("key")

        end(store)
        again = way(site, leaves) or site.connect(leaves.id, WireClient)
        store.start()

        assert again.stop("key") == NOT_REGISTERED
        assert again.changes() == []
