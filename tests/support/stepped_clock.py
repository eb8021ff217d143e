# SPDX-License-Identifier: Apache-2.0
"""The system clock as a store sees it, in the hands of a test."""

import os
import struct
from pathlib import Path

from support.hlc import Hlc, wall_ms
from support.process import BUILD

SHIM = BUILD / "tests" / "libclock_shim.so"


class SteppedClock:
    def __init__(self, directory):
        self.path = Path(directory) / "clock"
        self.step_to(0)

    def environment(self):
        """What the store is to be started with."""
        sanitizer = os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": str(SHIM), "STATESTORE_CLOCK": str(self.path),
                "ASAN_OPTIONS": f"{sanitizer}:verify_asan_link_order=0"}

    def step_to(self, ahead_ms):
        """How far it is ahead of the real one, from now on."""
        self.ahead_ms = ahead_ms
        data = struct.pack("=q", ahead_ms)
        if self.path.exists():
            with open(self.path, "r+b") as file:
                file.write(data)
        else:
            self.path.write_bytes(data)

    def reading(self, node):
        """A timestamp of a client whose clock is the same."""
        return Hlc(max(0, wall_ms() + self.ahead_ms), 0, node)
