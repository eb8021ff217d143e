# SPDX-License-Identifier: Apache-2.0
"""System clocks that the test can step or stop, for a store or a broker."""

import struct
from pathlib import Path

from support.hlc import Hlc, wall_ms
from support.process import preload


class SteppedClock:
    def __init__(self, directory):
        self.path = Path(directory) / "clock"
        self.step_to(0)

    def environment(self):
        """Return the environment variables for the store."""
        return {**preload("clock_shim"), "STATESTORE_CLOCK": str(self.path)}

    def step_to(self, ahead_ms):
        """Set how far it is ahead of the real clock."""
        self.ahead_ms = ahead_ms
        data = struct.pack("=q", ahead_ms)
        if self.path.exists():
            with open(self.path, "r+b") as file:
                file.write(data)
        else:
            self.path.write_bytes(data)

    def freeze_at(self, ns):
        """Stop it at this time, in nanoseconds since the epoch. Call before the process is started."""
        self.path.write_bytes(struct.pack("=qq", self.ahead_ms, ns))

    def advance_monotonic(self, seconds):
        """Set how far the monotonic clock is ahead of the real one."""
        with open(self.path, "r+b") as file:
            file.seek(16)
            file.write(struct.pack("=q", seconds * 1000))

    def reading(self, node):
        """Return a timestamp of a client with the same clock."""
        return Hlc(max(0, wall_ms() + self.ahead_ms), 0, node)
