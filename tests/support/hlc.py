# SPDX-License-Identifier: Apache-2.0
"""Hybrid logical clocks as text: {wallClock}:{counter}:{nodeId}. The tuples have the order that the protocol defines."""

import time
from typing import NamedTuple


def wall_ms():
    return time.time_ns() // 1_000_000


class Hlc(NamedTuple):
    wall_ms: int
    counter: int
    node: str

    @classmethod
    def parse(cls, text):
        wall, counter, node = text.split(":")
        return cls(int(wall), int(counter), node)

    def __str__(self):
        return f"{self.wall_ms}:{self.counter}:{self.node}"

    def padded(self):
        return f"{self.wall_ms:015}:{self.counter:05}:{self.node}"


class Clock:
    """A client's own clock. Every reading is greater than the one before."""

    def __init__(self, node):
        self.last = Hlc(0, 0, node)

    def now(self):
        now = wall_ms()
        if now > self.last.wall_ms:
            self.last = Hlc(now, 0, self.last.node)
        else:
            self.last = self.last._replace(counter=self.last.counter + 1)
        return self.last
