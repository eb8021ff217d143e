# SPDX-License-Identifier: Apache-2.0
"""Servers as child processes that never outlive the test run."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

# Timeout for every wait, in seconds. It detects hangs only: a machine ten times slower and busy must not reach it.
PATIENCE = 120

POLL_INTERVAL = 0.005

REPOSITORY = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("STATESTORE_BUILD", REPOSITORY / "build" / "debug")).resolve()
STATESTORED = BUILD / "server" / "statestored"
CTL = BUILD / "server" / "statestorectl"


def killed_with_parent(argv):
    """Return the command line that runs argv as a process that the kernel kills when this process ends."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *map(str, argv)]


def preload(shim):
    """Return the environment that preloads one of the shims of tests/support."""
    sanitizer = os.environ.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": str(BUILD / "tests" / f"lib{shim}.so"), "ASAN_OPTIONS": f"{sanitizer}:verify_asan_link_order=0"}


def wait_until(condition, what, patience=PATIENCE):
    """Poll until the function returns a true value, and return it."""
    deadline = time.monotonic() + patience
    while True:
        reply = condition()
        if reply:
            return reply
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {patience} s")
        time.sleep(POLL_INTERVAL)


@contextlib.contextmanager
def paused(child):
    """Suspend the process for the duration of the block. The block begins when the process is suspended."""
    child.send_signal(signal.SIGSTOP)
    state = Path(f"/proc/{child.pid}/stat")
    try:
        wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "the process is suspended")
        yield
    finally:
        child.send_signal(signal.SIGCONT)


class Process:
    """One server. Its stdout and stderr are its log file."""

    def __init__(self, name, log_path):
        self.name = name
        self.log_path = Path(log_path)
        self.child = None

    def spawn(self, argv, environment=None):
        assert not self.running(), f"{self.name} is running already"
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen(
                killed_with_parent(argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
            )

    def running(self):
        return self.child is not None and self.child.poll() is None

    def wait(self):
        """Wait until it ends by itself. Return its exit code, or -N if signal N ended it."""
        child, self.child = self.child, None
        return child.wait(PATIENCE)

    def send_signal(self, number):
        self.child.send_signal(number)

    def signal_and_wait(self, number):
        self.send_signal(number)
        child, self.child = self.child, None
        try:
            return child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise AssertionError(f"{self.name} did not end on signal {number}\n{self.log()}") from None

    def stop(self, number=signal.SIGTERM):
        return self.signal_and_wait(number)

    def kill(self):
        return self.signal_and_wait(signal.SIGKILL)

    def paused(self):
        return paused(self.child)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_for_log(self, pattern, after=0):
        """Wait until the log, after its first `after` characters, matches the pattern; case is ignored."""
        expression = re.compile(pattern, re.IGNORECASE)
        return wait_until(lambda: expression.search(self.log(), after), f"{self.name} logs {pattern!r}")
