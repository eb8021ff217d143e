# SPDX-License-Identifier: Apache-2.0
"""Thousands of requests outstanding at once: none is lost, none is mixed up."""

from support import resp

N_REQUESTS = 5000


def test_5000_requests_outstanding_at_once_are_all_answered(site):
    site.start_store()
    client = site.connect()

    stored = client.request_all(("SET", f"key-{n}", f"value-{n}") for n in range(N_REQUESTS))
    assert {answer.payload for answer in stored} == {b"+OK\r\n"}

    read = client.request_all(("GET", f"key-{n}") for n in range(N_REQUESTS))
    assert [resp.read(answer.payload) for answer in read] == [b"value-%d" % n for n in range(N_REQUESTS)]
    assert [answer.ts for answer in read] == [answer.ts for answer in stored]


def test_a_watcher_misses_none_of_thousands_of_changes(site):
    site.start_store()
    watcher, writer = site.connect(), site.connect()
    watcher.watch("key")

    writer.request_all(("SET", "key", n) for n in range(2000))

    values = [resp.read(watcher.notification().payload)[-1] for _ in range(2000)]
    assert values == [b"%d" % n for n in range(2000)]
