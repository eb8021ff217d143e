# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a data directory: their form is in server/storage/stored_form.h."""

import sqlite3


class Fields:
    """The fields of a row, one after the other."""

    def __init__(self, content, kind):
        assert content[:1] == kind
        self.rest = content[1:]

    def raw(self, length):
        assert len(self.rest) >= length
        found, self.rest = self.rest[:length], self.rest[length:]
        return found

    def number(self, size=8):
        return int.from_bytes(self.raw(size), "big", signed=size == 8)

    def string(self):
        return self.raw(self.number(4))


def select(data, sql):
    database = sqlite3.connect(f"file:{data}/statestored.db?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def header(data):
    """The fields of the header, by name."""
    [(content,)] = select(data, "SELECT content FROM header")
    fields = Fields(content, b"H")
    readers = {
        "node_id": fields.string, "digest_key": lambda: fields.raw(16), "row_hash_key": lambda: fields.raw(16),
        "table_key": lambda: fields.raw(16), "token_key": lambda: fields.raw(64),
        "instance_id": fields.string,
        "served_broker_run": fields.number,
        "clock_wall_ms": fields.number, "clock_counter": lambda: fields.number(4),
        "keys_may_be_lost": lambda: fields.number(1), "notification_sequence": fields.number, "reading_ms": fields.number,
        "shift_ms": fields.number, "commits": fields.number,
    }
    found = {name: read() for name, read in readers.items()}
    assert fields.rest == b""
    return found


def entries(data):
    """The value and the wall clock of the version of each key."""
    found = {}
    for content, in select(data, "SELECT content FROM entries"):
        fields = Fields(content, b"K")
        key, value = fields.string(), fields.string()
        found[key] = value, fields.number()
    return found


def notified_keys(data):
    """The keys of the pending notifications, in order."""
    keys = []
    for content, in select(data, "SELECT content FROM notifications ORDER BY number"):
        fields = Fields(content, b"N")
        fields.raw(8 + 8 + 4)  # the sequence and the version
        keys.append(fields.string().decode())
    return keys
