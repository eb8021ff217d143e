# SPDX-License-Identifier: Apache-2.0
"""The test double: statestored --dev, which starts a broker for itself."""

import contextlib
import os
import selectors
import subprocess
from pathlib import Path

from support.client import Client
from support.plugin import sanitizer_libraries
from support.process import PATIENCE, STATESTORED, paused, wait_until


def sanitizer_environment():
    """Environment variables that load the plugin's sanitizers into a broker that was built without them."""
    runtime = sanitizer_libraries()
    return {"LD_PRELOAD": ":".join(runtime)} if runtime else {}


# For a double whose broker stops by itself: mosquitto does not free all its memory, which is not a finding.
WITHOUT_LEAK_CHECK = {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"}


def is_gone(pid):
    """Return whether the process has ended, even if its parent has not waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Double:
    """A running double. It watches its stdin, so it ends at stop() or with the test run. Its log is in its directory."""

    def __init__(self, directory, *flags, port=0, environment=None, wrapper=(), program=STATESTORED,
                 **more):
        self.log_path = Path(directory) / "double.log"
        with open(self.log_path, "ab") as log:
            more.setdefault("stdin", subprocess.PIPE)
            self.child = subprocess.Popen(
                [*wrapper, program, "--dev", "--port", str(port), "--exit-with-parent", *map(str, flags)],
                stdout=subprocess.PIPE, stderr=log, cwd=directory,
                env={**os.environ, **sanitizer_environment(), **(environment or {})}, **more)
        self.clients = []

    @property
    def pid(self):
        return self.child.pid

    def log(self):
        return self.log_path.read_text(errors="replace")

    def first_line(self):
        """Wait for the line. Return an empty text if the double ended without one."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            assert selector.select(PATIENCE), f"nothing was printed\n{self.log()}"
        return self.child.stdout.readline().decode()

    def start(self):
        """Wait until the double serves requests."""
        line = self.first_line()
        assert line.startswith("mqtt://127.0.0.1:"), f"{line!r}\n{self.log()}"
        self.url = line.rstrip("\n")
        self.port = int(self.url.rpartition(":")[2])
        [self.broker_pid] = map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())
        return self

    def connect(self, client_id, kind=Client):
        self.clients.append(kind(self.port, client_id))
        return self.clients[-1]

    def close_clients(self):
        while self.clients:
            self.clients.pop().close()

    def paused(self):
        """Suspend the store with SIGSTOP; its broker continues."""
        return paused(self.child)

    def wait(self):
        """Wait until it has ended by itself, with its broker. Return the exit code."""
        exit_code = self.child.wait(PATIENCE)
        wait_until(lambda: is_gone(self.broker_pid), "the broker is gone")
        return exit_code

    def stop(self):
        """Stop it by closing its stdin."""
        self.close_clients()
        self.child.stdin.close()
        return self.wait()

    def close(self):
        """Stop it, whatever its state."""
        self.close_clients()
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.child.stdout.close()
        if self.child.stdin:
            self.child.stdin.close()


@contextlib.contextmanager
def running_double(directory, *flags, **more):
    """A double that serves requests, and that must stop without an error at the end."""
    double = Double(directory, *flags, **more)
    try:
        yield double.start()
        assert double.stop() == 0, double.log()
    finally:
        double.close()
