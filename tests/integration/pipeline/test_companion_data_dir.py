# SPDX-License-Identifier: Apache-2.0
"""A store with a data directory restarts: clients that stayed connected keep their registrations."""

import sqlite3

import pytest

from support import disconnects, stored
from support.connection import KICKED
from support.ctl import DONE, Ctl
from support.process import wait_until
from support.wire_client import NOT_REGISTERED, WireClient, was_set, wire_clients


def test_after_a_restart_connected_clients_are_notified_and_disconnected_ones_are_not_registered(make_site, data, end):
    site = make_site()
    store = site.start_store("--data-dir", data)
    stays, silent, *leave = wire_clients(site, 2 + len(disconnects.QUICK_WAYS))
    for client in (stays, *leave):
        client.register("key")

    end(store)
    came_back = [way(site, client) or site.connect(client.id, WireClient)
                 for way, client in zip(disconnects.QUICK_WAYS, leave)]
    change = came_back[0].begin("SET", "key", "value")
    store.start()

    assert came_back[0].reply_to(change).payload == b"+OK\r\n"
    for again in came_back:
        assert again.stop("key") == NOT_REGISTERED
        assert again.changes() == []
    assert stays.changes() == [was_set("value")]
    assert silent.still_works()


def test_registrations_of_disconnected_clients_free_their_quota_after_a_restart(make_site, data, end):
    site = make_site()
    store = site.start_store("--data-dir", data, "--max-registrations", 3)
    leaves, other = wire_clients(site, 2)
    leaves.register("one", "two", "three")

    end(store)
    leaves.disconnect()
    store.start()

    other.register("one", "two", "three")


def test_a_registration_survives_several_restarts_of_the_store(make_site, data, end):
    site = make_site()
    store = site.start_store("--data-dir", data)
    client, = wire_clients(site, 1)
    client.register("key")

    for n in range(3):
        end(store)
        store.start()
        client.ask("SET", "key", n)
        assert client.changes() == [was_set(n)]

    assert client.stop("key") == b"+OK\r\n"


def test_a_client_that_stopped_and_registered_again_is_tracked_again(make_site, data):
    site = make_site()
    store = site.start_store("--data-dir", data)
    client, = wire_clients(site, 1)
    client.register("key")
    client.stop("key")
    client.register("key")
    store.kill()
    store.start()

    disconnects.by_cut(site, client)

    assert site.connect(client.id, WireClient).stop("key") == NOT_REGISTERED


def n_registrations(data):
    with sqlite3.connect(f"file:{data}/statestored.db?mode=ro", uri=True) as database:
        return database.execute("SELECT count(*) FROM registrations").fetchone()[0]


@pytest.mark.parametrize("n_before", [0, 1], ids=["its first", "its second"])
def test_a_committed_registration_without_reply_is_answered_after_the_restart(make_site, data, proxy_of, n_before):
    """The plugin has not received TRACK, so WELCOME does not list the connection, and its registrations end. The store must
    execute the repeated KEYNOTIFY again, and not send the remembered reply."""
    site = make_site()
    proxy = proxy_of(site)
    store = site.start_store("--data-dir", data, "--port", proxy.port)
    client, writer = wire_clients(site, 2)
    client.register(*["before"] * n_before)

    proxy.hold()  # from now on the broker receives nothing from the store
    registration = client.begin("KEYNOTIFY", "key")
    wait_until(lambda: n_registrations(data) == n_before + 1, "the registration is committed")
    store.kill()
    proxy.cut()
    proxy.mend()
    store.start()

    assert client.reply_to(registration).payload == b"+OK\r\n"
    for key in ["key"] + ["before"] * n_before:
        writer.ask("SET", key, "value")
    assert client.changes() == [was_set("value")] * (1 + n_before)
    disconnects.by_cut(site, client)
    assert site.connect(client.id, WireClient).stop("key") == NOT_REGISTERED


def restore_backup(ctl, data, tmp_path):
    ctl.ok("backup", data, tmp_path / "copy.db")
    data.rename(tmp_path / "former")
    ctl.ok("restore", tmp_path / "copy.db", data)


def import_into_another(ctl, data, tmp_path):
    (tmp_path / "keys.jsonl").write_bytes(ctl.ok("export", "--data-dir", data))
    data.rename(tmp_path / "former")
    assert ctl.run("import", tmp_path / "keys.jsonl", "--data-dir", data).returncode == DONE


@pytest.mark.parametrize("copy", [restore_backup, import_into_another])
def test_a_request_executed_before_the_keys_were_copied_is_not_executed_on_the_copy(make_site, data, proxy_of, tmp_path, copy):
    """The plugin keeps a DEL whose reply was lost. It has neither a timestamp nor long Correlation Data: so only its number could
    tell that it was executed."""
    site = make_site()
    proxy = proxy_of(site)
    store = site.start_store("--data-dir", data, "--port", proxy.port)
    client = site.connect()
    assert client.request("SET", "key", "before").payload == b"+OK\r\n"
    proxy.hold()
    deletion = client.send("DEL", "key", ts=None, correlation=b"DEL")
    wait_until(lambda: b"key" not in stored.entries(data), "the deletion is committed")
    store.kill()
    proxy.cut()

    ctl = Ctl(site.broker.port)
    (tmp_path / "later.jsonl").write_text('{"key": "key", "value": "later"}\n')
    assert ctl.run("import", tmp_path / "later.jsonl", "--data-dir", data).returncode == DONE
    copy(ctl, data, tmp_path)
    proxy.mend()
    store.start()

    assert client.request("GET", "key").payload == b"$5\r\nlater\r\n"
    assert not deletion.done()


def test_a_lost_data_directory_disconnects_registered_clients(make_site, data, tmp_path):
    site = make_site()
    store = site.start_store("--data-dir", data)
    holder, other = wire_clients(site, 2)
    holder.register("key")
    other.ask("GET", "key")

    store.stop()
    data.rename(tmp_path / "lost")
    store.start()

    assert holder.wait_until_closed() == KICKED
    assert other.still_works()


@pytest.mark.parametrize("with_data", [False, True], ids=["memory", "data"])
@pytest.mark.parametrize("end_broker", ["stop", "kill"])
def test_the_brokers_end_loses_waiting_requests_and_nothing_else_does(make_site, data, tmp_path, with_data, end_broker):
    """Even an orderly end, with `persistence true`: the plugin keeps the requests."""
    site = make_site("persistence true", f"persistence_location {tmp_path}/")
    store = site.start_store(*["--data-dir", data] * with_data)

    store.stop()
    client, = wire_clients(site, 1)
    waiting = client.begin("SET", "waiting", "value")
    client.ping()  # the plugin has the request
    store.start()
    assert client.reply_to(waiting).payload == b"+OK\r\n"

    store.stop()
    client.begin("SET", "lost", "value")
    client.ping()
    getattr(site.broker, end_broker)()
    site.broker.start_again()
    store.start()

    again = site.connect(client.id, WireClient, clean_start=False)
    assert again.ask("GET", "lost") == b"$-1\r\n"
    assert again.ask("GET", "waiting") == (b"$5\r\nvalue\r\n" if with_data else b"$-1\r\n")
    assert again.messages() == []
