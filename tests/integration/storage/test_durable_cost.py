# SPDX-License-Identifier: Apache-2.0
"""What a write costs the store: a line of common/protocol/THREATS.md."""

from pathlib import Path

N_LARGE, LARGE = 8, 1_000_000
N_WRITES = 20


def bytes_of_system_calls(store):
    """How many bytes the process has read and written so far."""
    lines = Path(f"/proc/{store.child.pid}/io").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar:", "wchar:")))


def test_a_large_value_does_not_make_the_writes_of_others_expensive(site, data):
    """The keys of the large values lie before, between and after those of the other client, in every order."""
    store = site.start_store("--data-dir", data)
    client = site.connect()
    for i in range(N_LARGE):
        assert client.request("SET", f"users/{i}", "x" * LARGE).payload == b"+OK\r\n"
    store.stop()
    store.start()  # with an empty page cache

    before = bytes_of_system_calls(store)
    for i in range(N_WRITES):
        assert client.request("SET", f"users/{i % N_LARGE}-small-{i}", "value").payload == b"+OK\r\n"

    spent = bytes_of_system_calls(store) - before
    assert spent < N_WRITES * 100_000, spent
