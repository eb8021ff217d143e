# SPDX-License-Identifier: Apache-2.0
"""Checks whether a history of requests and replies is linearizable.

A history is a list of operations, each with the time when it was sent and the time when its reply came. The search is
Wing and Gong's ("Testing and Verifying Concurrent Objects", 1993): in each step, try every remaining operation that was
sent before the first remaining operation ended. As proposed by Lowe, each pair of executed operations and resulting state
is tried only once. Keys are independent of each other and searched one by one.

An operation that got no reply may have taken effect at any time after it was sent, or not at all.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple, Optional

from support.hlc import Hlc


class Outcome(NamedTuple):
    """A reply. The version is that of the value that was set, deleted or read, or that prevented the change."""
    kind: str  # done, unmet, value, absent, deleted, nothing, fence required, fence too old
    version: Optional[Hlc] = None
    value: Optional[bytes] = None


@dataclass
class Operation:
    client: str
    kind: str  # SET, NX, NEX, VDEL, DEL, GET
    key: str
    start: float
    value: Optional[bytes] = None  # SET, NX, NEX: the new value
    expected: Optional[bytes] = None  # NEX, VDEL: the value that the condition requires
    token: Optional[Hlc] = None
    end: float = math.inf  # when its reply came; inf: never
    outcome: Optional[Outcome] = None


class Violation(NamedTuple):
    """The operations of a key that no order explains. `explained`: the longest sequence that an order explains."""
    key: str
    explained: list
    unexplained: list

    def __str__(self):
        lines = [f"no order explains the replies about {self.key}; these are explained:"]
        lines += [f"  {operation}" for operation in self.explained[-20:]]
        lines += ["and none of these can be next:"]
        lines += [f"  {operation}" for operation in self.unexplained[:20]]
        return "\n".join(lines)


# The store

class State(NamedTuple):
    """A key. Its version is None until a reply shows it, because the SET of the value got no reply."""
    value: Optional[bytes] = None
    version: Optional[Hlc] = None
    token: Optional[Hlc] = None


ABSENT = State()

FENCED = ("SET", "NX", "NEX", "VDEL", "DEL")


def _execute(state, operation):
    """Return the store's reply, without versions, and the next state."""
    is_there = state.value is not None
    if operation.kind == "GET":
        return ("value" if is_there else "absent"), state
    if is_there and state.token is not None and operation.kind in FENCED:
        if operation.token is None:
            return "fence required", state
        if operation.token < state.token:
            return "fence too old", state
    if operation.kind in ("DEL", "VDEL"):
        if not is_there:
            return "nothing", state
        if operation.kind == "VDEL" and state.value != operation.expected:
            return "unmet", state
        return "deleted", ABSENT
    if is_there and (operation.kind == "NX" or operation.kind == "NEX" and state.value != operation.expected):
        return "unmet", state
    return "done", State(operation.value, None, operation.token)


def _step(state, operation):
    """Return the state after the operation, or None if the store could not have given this reply."""
    kind, following = _execute(state, operation)
    outcome = operation.outcome
    if outcome is None:
        return following
    if outcome.kind != kind:
        return None
    if kind == "done":
        is_newer = state.version is None or outcome.version > state.version
        return following._replace(version=outcome.version) if is_newer else None
    if outcome.version is None:
        return following
    if state.version not in (None, outcome.version) or kind == "value" and state.value != outcome.value:
        return None
    return following if kind == "deleted" else state._replace(version=outcome.version)


# The search

def _search(operations):
    """Return the sorted operations, and None if an order explains all replies. Otherwise return the longest order found."""
    operations = sorted(operations, key=lambda operation: operation.start)
    wanted = sum(1 << i for i, operation in enumerate(operations) if operation.outcome is not None)
    tried = set()
    # (bit set of the executed operations, state, order); order: (index of the last operation, the order before it)
    stack = [(0, ABSENT, ())]
    longest = (0, ())

    while stack:
        done, state, order = stack.pop()
        if done & wanted == wanted:
            return operations, None
        if (done, state) in tried:
            continue
        tried.add((done, state))
        if bin(done).count("1") > longest[0]:
            longest = (bin(done).count("1"), order)
        stack.extend(_next(operations, done, state, order))
    return operations, longest[1]


def _next(operations, done, state, order):
    """Return the operations that can be next: those sent before the first end of a remaining operation."""
    candidates, first_end = [], math.inf
    for i, operation in enumerate(operations):
        if operation.start > first_end:
            break
        if not done >> i & 1:
            candidates.append(i)
            first_end = min(first_end, operation.end)
    for i in reversed(candidates):
        if operations[i].start <= first_end:
            following = _step(state, operations[i])
            if following is not None:
                yield done | 1 << i, following, (i, order)


def _explain(key, operations, order):
    explained = []
    while order:
        explained.append(order[0])
        order = order[1]
    explained.reverse()
    rest = [operation for i, operation in enumerate(operations) if i not in explained]
    return Violation(key, [operations[i] for i in explained], rest)


def _find_shrinking_version(history):
    """Return a violation if a SET that was sent after the reply to another SET, of any key, has no greater version."""
    done = [operation for operation in history if operation.outcome and operation.outcome.kind == "done"]
    greatest = None
    ended = sorted(done, key=lambda operation: operation.end)
    at = 0
    for operation in sorted(done, key=lambda operation: operation.start):
        while at < len(ended) and ended[at].end < operation.start:
            if greatest is None or ended[at].outcome.version > greatest.outcome.version:
                greatest = ended[at]
            at += 1
        if greatest is not None and operation.outcome.version <= greatest.outcome.version:
            return Violation("any key", [greatest], [operation])
    return None


def find_violation(history):
    """Return the first violation, or None."""
    keys = defaultdict(list)
    for operation in history:
        keys[operation.key].append(operation)
    for key, operations in keys.items():
        operations, order = _search(operations)
        if order is not None:
            return _explain(key, operations, order)
    return _find_shrinking_version(history)
