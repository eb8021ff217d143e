# SPDX-License-Identifier: Apache-2.0
"""SCAN lists every key that matches, page by page (PROTOCOL.md "Listing keys")."""

import pytest

from support.ctl import Ctl
from support.scan import page, pages, scan
from support.site import kill_store

SYNTAX = b"-ERR syntax error\r\n"


def store_all(client, keys):
    for reply in client.request_all(("SET", key, "value") for key in keys):
        assert reply.payload == b"+OK\r\n"


def test_a_scan_of_nothing_is_one_empty_page(site):
    site.start_store()

    assert site.connect().request("SCAN", "*").payload == b"*1\r\n*0\r\n"


def test_a_single_page_has_exactly_these_bytes(site):
    site.start_store()
    client = site.connect()
    client.request("SET", "key", "value")

    assert client.request("SCAN", "k*").payload == b"*1\r\n*1\r\n$3\r\nkey\r\n"


def test_thousands_of_keys_are_listed_once_each_over_several_pages(site):
    site.start_store()
    client = site.connect()
    keys = {b"key-%d" % n for n in range(4000)}
    store_all(client, keys | {b"other-%d" % n for n in range(1000)})

    listed = list(pages(client, "key-*"))

    assert len(listed) > 1, "the number of keys on a page is limited"
    assert sorted(key for keys in listed for key in keys) == sorted(keys)


def test_long_keys_are_listed_over_several_pages(site):
    site.start_store()
    client = site.connect()
    keys = {b"%05d" % n + b"x" * 60000 for n in range(200)}
    store_all(client, keys)

    listed = list(pages(client, "*"))

    assert len(listed) > 1, "the bytes of a page are limited"
    assert sorted(key for keys in listed for key in keys) == sorted(keys)


def test_keys_that_stay_are_listed_while_others_come_and_go(site):
    site.start_store()
    client = site.connect()
    stay = {b"stay-%d" % n for n in range(2000)}
    store_all(client, stay)
    store_all(client, {b"go-%d" % n for n in range(2000)})

    listed, token, n_page = set(), None, 0
    while True:
        keys, token = page(client, "*", token)
        listed.update(keys)
        if token is None:
            break
        first = n_page * 200
        client.request_all(("DEL", f"go-{n}") for n in range(first, first + 200))
        client.request_all(("SET", f"come-{n_page}-{n}", "value") for n in range(50))
        client.request_all(("SET", f"stay-{n}", "changed") for n in range(first % 2000, first % 2000 + 50))
        n_page += 1

    assert listed >= stay


def test_deleted_keys_are_not_listed(client, key):
    store_all(client, [f"{key}-1", f"{key}-2", f"{key}-3"])
    client.request("DEL", f"{key}-2")

    assert sorted(scan(client, f"{key}*")) == [f"{key}-1".encode(), f"{key}-3".encode()]


def test_expired_keys_are_not_listed(client, key):
    client.watch(f"{key}-expires")
    store_all(client, [f"{key}-stays"])
    client.request("SET", f"{key}-expires", "value", "PX", "30")
    client.notification()
    assert client.notification().payload.endswith(b"DELETE\r\n")

    assert scan(client, f"{key}*") == [f"{key}-stays".encode()]


@pytest.mark.parametrize("tail", [
    b"\xff",
    b"\x80",
    b"\xc3",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
], ids=repr)
def test_keys_that_are_not_utf_8_are_never_listed(client, key, tail):
    store_all(client, [f"{key}-é", key.encode() + tail, key.encode() + tail + b"x"])

    assert scan(client, f"{key}*") == [f"{key}-é".encode()]


@pytest.mark.parametrize("tail", [b"\0", b"\r\n", b" ", b"/", b"\x7f", "𝄞".encode()], ids=repr)
def test_all_utf_8_keys_are_listed(client, key, tail):
    store_all(client, [key.encode() + tail])

    assert scan(client, f"{key}?*") == [key.encode() + tail]


@pytest.mark.parametrize("token", [
    b"",
    b"0",
    b"1",
    b"x",
    b"\0",
    b"\xff" * 8,
    b"\0" * 8,
    b"A" * 1000,
], ids=lambda token: repr(token[:9]))
def test_a_token_that_the_store_did_not_issue_is_a_syntax_error(client, token):
    assert client.request("SCAN", "*", token).payload == SYNTAX


def first_page(site):
    """Store keys for several pages, and return a client, the keys, those of the first page, and the token of the second one."""
    client = site.connect()
    keys = {b"%02d" % n + b"x" * 60000 for n in range(12)}
    store_all(client, keys)
    first, token = page(client, "*")
    assert token and client.request("SCAN", "*", token).payload != SYNTAX
    return client, keys, first, token


def test_a_scan_goes_on_after_the_store_was_killed(site, tmp_path):
    site.start_store("--data-dir", tmp_path / "data")
    client, keys, listed, token = first_page(site)

    while token:
        kill_store(site)
        more, token = page(client, "*", token)
        listed += more

    assert sorted(listed) == sorted(keys)


def test_a_token_ends_with_a_store_in_memory(site):
    site.start_store()
    client, _, _, token = first_page(site)

    kill_store(site)

    assert client.request("SCAN", "*", token).payload == SYNTAX


def test_a_token_of_another_store_is_a_syntax_error(site, tmp_path):
    site.start_store("--data-dir", tmp_path / "data")
    client, _, _, token = first_page(site)

    assert site.store.stop() == 0
    site.store = None
    site.start_store("--data-dir", tmp_path / "other")

    assert client.request("SCAN", "*", token).payload == SYNTAX


def test_a_token_ends_when_a_backup_is_restored(site, tmp_path):
    run = Ctl(site.broker.port).ok
    site.start_store("--data-dir", tmp_path / "data")
    client, keys, _, token = first_page(site)
    run("backup", tmp_path / "data", tmp_path / "copy.db")

    assert site.store.stop() == 0
    site.store = None
    run("restore", tmp_path / "copy.db", tmp_path / "restored")
    site.start_store("--data-dir", tmp_path / "restored")

    assert client.request("SCAN", "*", token).payload == SYNTAX
    assert sorted(scan(client, "*")) == sorted(keys)


def test_a_pattern_that_is_expensive_to_match_ends_pages_early(site):
    """Nine stars over keys of 2 KB: one match takes more than half of the steps of a page, so a page visits one key. The
    steps limit the time of a page, which other clients wait for."""
    site.start_store()
    client = site.connect()
    keys = {b"a" * 2000 + b"%03d" % n for n in range(30)}
    store_all(client, keys)
    expensive = b"*a" * 8 + b"*" + b"a" * 30

    assert len(list(pages(client, "*"))) == 1
    assert len(list(pages(client, expensive + b"b"))) == len(keys)
    listed = list(pages(client, expensive + b"0*"))
    assert {len(page) for page in listed} == {1}
    assert sorted(key for keys in listed for key in keys) == sorted(keys)


def forgeries(token):
    """Return the token with each byte replaced by another valid one, truncated, and extended."""
    alphabet = sorted(set(token))
    for at, byte in enumerate(token):
        other = alphabet[(alphabet.index(byte) + 1) % len(alphabet)]
        yield token[:at] + bytes([other]) + token[at + 1:]
    yield token[:-1]
    yield token + token[:1]


def test_a_forged_token_is_a_syntax_error(site):
    site.start_store()
    client, _, _, token = first_page(site)

    replies = client.request_all(("SCAN", "*", forgery) for forgery in forgeries(token))
    assert {reply.payload for reply in replies} == {SYNTAX}


def test_a_token_can_be_used_twice(site):
    site.start_store()
    client, _, _, token = first_page(site)

    assert page(client, "*", token) == page(client, "*", token)


def test_scan_needs_no_timestamp(client, key):
    assert not client.request("SCAN", key, ts=None).payload.startswith(b"-ERR")
