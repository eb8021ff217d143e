# SPDX-License-Identifier: Apache-2.0
"""The guard of the store's client id: which CONNECT packets the plugin checks, and which it refuses."""

import pytest

from support.broker import passwords
from support.flood import text
from support.plugin import (ACCEPT, BASIC_AUTH, DEFER, EXTENDED_AUTH_START, PLUGIN, build_plugin,
                            site_with)  # noqa: F401 fixtures

BAD_AUTHENTICATION_METHOD = "refused: 0x8c"
REFUSED = "refused: 0x87"
METHOD = b"\x15" + text(b"a-method")
STORE = {"username": "statestored", "password": "of the store"}
ALICE = {"username": "alice", "password": "of alice"}


@pytest.fixture
def authenticating(site_with, tmp_path):
    """Other plugins are loaded before or after the companion plugin."""
    users = {entry["username"]: entry["password"] for entry in (STORE, ALICE)}

    def start(before=(), after=()):
        lines = [f"plugin {path}" for path in before]
        lines += [f"plugin {PLUGIN}", "plugin_opt_statestored_username statestored", "plugin_opt_undecided allow"]
        lines += [f"plugin {path}" for path in after]
        return site_with("allow_anonymous false", f"password_file {passwords(tmp_path, **users)}", *lines, plugin=False)

    return start


def refuse(site, **credentials):
    with pytest.raises(AssertionError, match=REFUSED):
        site.connect(**credentials)


def test_a_connect_with_a_wrong_password_does_not_mark_the_store_as_unguarded(authenticating):
    site = authenticating()
    store = site.peer("statestored", **STORE)
    for client_id in ("statestored-2", "statestored", None):
        refuse(site, client_id=client_id, username="statestored", password="guessed")

    store.hello()

    assert store.welcome.is_guarded


def test_the_connects_of_other_clients_of_the_stores_user_do_not_mark_it_as_unguarded(authenticating):
    site = authenticating()
    others = [site.connect(**STORE) for _ in range(20)]
    store = site.peer("statestored", **STORE)
    others += [site.connect(**STORE) for _ in range(20)]
    for other in others:
        other.cut()

    store.hello()

    assert store.welcome.is_guarded


def test_an_ended_connection_does_not_affect_the_next_one(authenticating, tmp_path):
    """The broker reuses the client's memory for the next client, whose CONNECT the plugin has not seen."""
    unseen = build_plugin(tmp_path, BASIC_AUTH, f'strncmp(client_id, "unseen", 6) ? {DEFER} : {ACCEPT}')
    site = authenticating(before=[unseen])
    for n in range(10):
        seen = site.peer("statestored", **STORE)
        seen.hello()
        assert seen.welcome.is_guarded
        seen.disconnect()
        refuse(site, username="statestored", password="guessed")
        store = site.peer(f"unseen-{n}", **STORE)
        store.hello()
        assert not store.welcome.is_guarded
        store.disconnect()


def test_without_another_plugin_enhanced_authentication_is_refused(authenticating):
    site = authenticating()
    for more in ({}, ALICE, STORE):
        with pytest.raises(AssertionError, match=BAD_AUTHENTICATION_METHOD):
            site.connect("alice", properties=METHOD, **more)
        refuse(site, client_id="statestored", properties=METHOD, **more)


def test_enhanced_authentication_cannot_take_the_stores_client_id(authenticating, tmp_path):
    site = authenticating(after=[build_plugin(tmp_path, EXTENDED_AUTH_START, ACCEPT)])
    store = site.served("any-id", **STORE)
    assert store.welcome.is_guarded

    for client_id in ("statestored", "any-id"):
        refuse(site, client_id=client_id, properties=METHOD, username="statestored")

    assert site.connect("alice", properties=METHOD).ping() is None
    assert store.ping() is None


def test_a_store_that_connects_by_enhanced_authentication_is_unguarded(authenticating, tmp_path):
    site = authenticating(before=[build_plugin(tmp_path, EXTENDED_AUTH_START, ACCEPT)])
    store = site.peer("statestored", properties=METHOD, username="statestored")

    store.hello()

    assert not store.welcome.is_guarded
