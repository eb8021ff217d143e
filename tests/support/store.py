# SPDX-License-Identifier: Apache-2.0
"""A real statestored."""

from pathlib import Path

from support.process import STATESTORED, Process, wait_until

# The store counts in whole milliseconds.
GRANULARITY_S = 0.001

# A restart can move a deadline by a millisecond: timescale.h.
RESTART_S = 0.01


class Store(Process):
    def __init__(self, directory, port, flags=(), environment=None):
        directory = Path(directory)
        super().__init__("statestored", directory / "statestored.log")
        self.ready_file = directory / "ready"
        self.port = port
        self.flags = flags
        self.environment = environment or {}

    def launch(self, keep_ready_file=False):
        """Start it without waiting."""
        if not keep_ready_file:
            self.ready_file.unlink(missing_ok=True)
        self.spawn([STATESTORED, "--host", "127.0.0.1", "--port", self.port, "--ready-file", self.ready_file,
                    *self.flags], self.environment)
        return self

    def events(self):
        """Return the log lines after the one about the start."""
        first, *others = self.log().splitlines()
        assert "statestored " in first, first
        return others

    def start(self):
        self.launch()
        self.wait_until_ready()
        return self

    def is_ready(self):
        return self.ready_file.exists()

    def wait_until_ready(self):
        wait_until(lambda: self.is_ready() or not self.running(), "statestored is ready")
        assert self.running(), f"statestored ended with {self.child.returncode}\n{self.log()}"
