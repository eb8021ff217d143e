# SPDX-License-Identifier: Apache-2.0
"""The checker accepts linearizable histories, and rejects all others."""

import random

import pytest

from support.hlc import Hlc
from support.linearizability import Operation, Outcome, find_violation


def version(number):
    return Hlc(1000, number, "StateStore")


def op(kind, start, end, outcome=None, client="c", key="k", **what):
    ended = {} if outcome is None else {"end": end, "outcome": outcome}
    return Operation(client, kind, key, start, **ended, **what)


def sets(value, start, end, number=None, kind="SET", **what):
    return op(kind, start, end, Outcome("done", version(number)) if number else None, value=value, **what)


def gets(value, start, end, number=None, **what):
    return op("GET", start, end, Outcome("value", version(number), value) if number else Outcome("absent"), **what)


def deletes(start, end, number=None, kind="DEL", **what):
    return op(kind, start, end, Outcome("deleted", version(number)) if number else Outcome("nothing"), **what)


def unmet(kind, start, end, number, **what):
    return op(kind, start, end, Outcome("unmet", version(number)), value=b"mine", **what)


EXPLAINED = {
    "an empty history": [],
    "a read after a SET": [sets(b"a", 0, 1, 1), gets(b"a", 2, 3, 1)],
    "a read during a SET, the former value": [sets(b"a", 0, 9, 1), gets(None, 1, 2)],
    "a read during a SET, the new value": [sets(b"a", 0, 9, 1), gets(b"a", 1, 2, 1)],
    "two reads during a SET, the former and the new value": [sets(b"a", 0, 9, 1), gets(None, 1, 2), gets(b"a", 3, 4, 1)],
    "of two concurrent SETs the greater version stays": [
        sets(b"a", 0, 9, 2), sets(b"b", 0, 9, 1), gets(b"a", 10, 11, 2)],
    "a SET without reply that took effect": [sets(b"a", 0, 9), gets(b"a", 1, 2, 1)],
    "a SET without reply that took no effect": [sets(b"a", 0, 9), gets(None, 1, 2), gets(None, 100, 101)],
    "a SET without reply that took effect late": [
        sets(b"a", 0, 9), gets(None, 100, 101), gets(b"a", 102, 103, 1)],
    "one of two concurrent NX succeeds": [sets(b"a", 0, 9, 1, "NX"), unmet("NX", 0, 9, 1)],
    "NX after a deletion": [sets(b"a", 0, 1, 1, "NX"), deletes(2, 3, 1), sets(b"b", 4, 5, 2, "NX")],
    "NEX by its holder": [sets(b"a", 0, 1, 1), sets(b"b", 2, 3, 2, "NEX", expected=b"a")],
    "VDEL of another value": [sets(b"a", 0, 1, 1), unmet("VDEL", 2, 3, 1, expected=b"b"), gets(b"a", 4, 5, 1)],
    "a newer token": [sets(b"a", 0, 1, 1, token=version(1)), sets(b"b", 2, 3, 2, token=version(2))],
    "an older token is refused": [
        sets(b"a", 0, 1, 1, token=version(2)),
        op("SET", 2, 3, Outcome("fence too old"), value=b"b", token=version(1))],
    "a missing token is refused": [
        sets(b"a", 0, 1, 1, token=version(2)), op("DEL", 2, 3, Outcome("fence required"))],
    "a token is deleted with its key": [
        sets(b"a", 0, 1, 1, token=version(2)), deletes(2, 3, 1, token=version(2)), sets(b"b", 4, 5, 2)],
    "keys are independent": [sets(b"a", 0, 1, 1), gets(None, 2, 3, key="other")],
}

UNEXPLAINED = {
    "a lost write": [sets(b"a", 0, 1, 1), gets(None, 2, 3)],
    "an old value": [sets(b"a", 0, 1, 1), sets(b"b", 2, 3, 2), gets(b"a", 4, 5, 1)],
    "a value that no client set": [sets(b"a", 0, 1, 1), gets(b"b", 2, 3, 1)],
    "a value before it was set": [gets(b"a", 0, 1, 1), sets(b"a", 2, 3, 1)],
    "a value that disappears without a deletion": [sets(b"a", 0, 9), gets(b"a", 1, 2, 1), gets(None, 3, 4)],
    "two versions of one value": [sets(b"a", 0, 9), gets(b"a", 1, 2, 1), gets(b"a", 3, 4, 2)],
    "a version that is not the value's": [sets(b"a", 0, 1, 1), gets(b"a", 2, 3, 2)],
    "the lesser version stays": [sets(b"a", 0, 9, 2), sets(b"b", 0, 9, 1), gets(b"b", 10, 11, 1)],
    "a version that shrinks": [sets(b"a", 0, 1, 2), sets(b"b", 2, 3, 1)],
    "a version that shrinks from key to key": [sets(b"a", 0, 1, 2), sets(b"b", 2, 3, 1, key="other")],
    "a version that shrinks over a deletion": [sets(b"a", 0, 1, 2), deletes(2, 3, 2), sets(b"b", 4, 5, 1)],
    "a version of two values": [sets(b"a", 0, 1, 1), sets(b"b", 2, 3, 1)],
    "two concurrent NX succeed": [sets(b"a", 0, 9, 1, "NX"), sets(b"b", 0, 9, 2, "NX")],
    "NX fails on a missing key": [unmet("NX", 0, 1, 1)],
    "NX fails on a deleted key": [sets(b"a", 0, 1, 1), deletes(2, 3, 1), unmet("NX", 4, 5, 1)],
    "NEX succeeds on another value": [sets(b"a", 0, 1, 1), sets(b"b", 2, 3, 2, "NEX", expected=b"c")],
    "VDEL of another value": [sets(b"a", 0, 1, 1), deletes(2, 3, 1, "VDEL", expected=b"b")],
    "a deletion twice": [sets(b"a", 0, 1, 1), deletes(2, 9, 1), deletes(2, 9, 1)],
    "DEL of a missing key succeeds": [deletes(0, 1, 1)],
    "DEL finds no key, although it exists": [sets(b"a", 0, 1, 1), deletes(2, 3)],
    "an older token is accepted": [
        sets(b"a", 0, 1, 1, token=version(2)), sets(b"b", 2, 3, 2, token=version(1))],
    "a missing token is accepted": [sets(b"a", 0, 1, 1, token=version(2)), deletes(2, 3, 1)],
    "a token outlives its key": [
        sets(b"a", 0, 1, 1, token=version(2)), deletes(2, 3, 1, token=version(2)),
        op("SET", 4, 5, Outcome("fence required"), value=b"b")],
    "a write executed twice": [
        sets(b"a", 0, 1, 1), sets(b"b", 2, 3, 2), gets(b"b", 4, 5, 2), gets(b"a", 6, 7, 3)],
}


@pytest.mark.parametrize("history", EXPLAINED.values(), ids=EXPLAINED)
def test_the_checker_accepts_linearizable_histories(history):
    assert find_violation(history) is None


@pytest.mark.parametrize("history", UNEXPLAINED.values(), ids=UNEXPLAINED)
def test_the_checker_rejects_histories_that_are_not_linearizable(history):
    assert find_violation(history)


class Register:
    """A model of a store of one key, optionally with a fault."""

    def __init__(self, choice, fault=None):
        self.choice = choice
        self.fault = fault
        self.states = [(None, 0, None)]  # value, version, token; the last state is the present one
        self.n_versions = 0
        self.last_set = None

    def strikes(self, fault):
        return self.fault == fault and self.choice.random() < 0.2

    def execute(self, operation):
        if self.strikes("forgets") and len(self.states) > 3:  # like a restart without a data directory
            del self.states[-2:]
        if self.strikes("twice") and self.last_set:
            self.set(self.last_set)
        if operation.kind == "GET":
            value, number, _ = self.states[-3 if self.strikes("stale") and len(self.states) > 3 else -1]
            return Outcome("value", version(number), value) if value else Outcome("absent")

        value, number, token = self.states[-1]
        if token and not self.strikes("unfenced"):
            if operation.token is None:
                return Outcome("fence required")
            if operation.token < token:
                return Outcome("fence too old")
        return self.delete(operation) if operation.kind == "VDEL" else self.reply_set(operation)

    def delete(self, operation):
        value, number, _ = self.states[-1]
        if value is None:
            return Outcome("nothing")
        if value != operation.expected:
            return Outcome("unmet", version(number))
        self.states.append((None, number, None))
        return Outcome("deleted", version(number))

    def reply_set(self, operation):
        value, number, _ = self.states[-1]
        is_met = operation.kind == "SET" or value is None or operation.kind == "NEX" and value == operation.expected
        if not is_met and not self.strikes("race"):
            return Outcome("unmet", version(number))
        self.set(operation)
        return Outcome("done", version(self.n_versions))

    def set(self, operation):
        self.n_versions += 1
        if not self.strikes("lost"):
            self.states.append((operation.value, self.n_versions, operation.token))
            self.last_set = operation


def record(seed, fault=None, n_clients=5, n_operations=200):
    """Record overlapping operations: each is executed at some time between its start and its end."""
    choice = random.Random(seed)
    register = Register(choice, fault)
    operations = []
    for client in range(n_clients):
        time = choice.random()
        for number in range(n_operations // n_clients):
            kind = choice.choice(["SET", "NX", "NEX", "VDEL", "GET", "GET"])
            end = time + choice.random()
            operation = op(kind, time, None, client=str(client), value=b"%d-%d" % (client, number))
            operations.append((choice.uniform(time, end), end, operation))
            time = end + choice.random() / 10
    for _, end, operation in sorted(operations, key=lambda row: row[0]):
        operation.expected = register.states[-1][0]
        if operation.kind != "GET" and choice.random() < (0.8 if register.states[-1][2] else 0.3):
            operation.token = version(max(0, register.n_versions - choice.randrange(4)))
        outcome = register.execute(operation)
        if choice.random() > 0.02:  # a few operations get no reply
            operation.outcome, operation.end = outcome, end
    return [operation for _, _, operation in operations]


def test_histories_of_a_store_without_fault_are_accepted():
    for seed in range(20):
        assert find_violation(record(seed)) is None, f"seed {seed}"


@pytest.mark.parametrize("fault", ["stale", "lost", "race", "unfenced", "forgets", "twice"])
def test_a_planted_fault_is_detected(fault):
    found = sum(find_violation(record(seed, fault)) is not None for seed in range(20))
    assert found >= 18, f"{found} of 20"
