# SPDX-License-Identifier: Apache-2.0
"""statestorectl, as a process."""

import json
import os
import queue
import subprocess
import threading

from support.process import CTL, PATIENCE, killed_with_parent

DONE, NOT_MET, USAGE, NO_REPLY, STORE_ERROR, TOO_LARGE = range(6)

# The default of 5 s may be too short for a busy machine.
TIMEOUT = "100s"

BINARY = bytes(range(256)) + b"\r\n\0"
ESCAPE_SEQUENCE = b"\x1b[31mred"


def environment(variables):
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith("STATESTORE_") or name == "STATESTORE_BUILD"}
    return {**inherited, **{f"STATESTORE_{name}": str(value) for name, value in {"TIMEOUT": TIMEOUT, **variables}.items()}}


class Ctl:
    """Runs statestorectl against one broker, which the environment names."""

    def __init__(self, port):
        self.variables = {"HOST": "127.0.0.1", "PORT": port}

    def argv(self, arguments):
        return killed_with_parent([CTL]) + [argument if isinstance(argument, bytes) else str(argument)
                                            for argument in arguments]

    def run(self, *arguments, stdin=b"", variables=None, **popen):
        popen.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(self.argv(arguments), input=stdin, stderr=subprocess.PIPE, check=False,
                              env=environment(self.variables if variables is None else variables), timeout=PATIENCE,
                              **popen)

    def ok(self, *arguments, **popen):
        """Run it, and return its stdout. It must succeed and print nothing on stderr."""
        ended = self.run(*arguments, **popen)
        assert (ended.returncode, ended.stderr) == (DONE, b"")
        return ended.stdout

    def json(self, *arguments, **popen):
        return json.loads(self.ok(*arguments, "--json", **popen))


class RunningCtl:
    """statestorectl while it runs, with its output."""

    def __init__(self, ctl, *arguments, stdout=subprocess.PIPE):
        self.child = subprocess.Popen(ctl.argv(arguments), env=environment(ctl.variables),
                                      stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
        self._events = self._read(self.child.stdout) if self.child.stdout else None
        self._notes = self._read(self.child.stderr)

    @staticmethod
    def _read(stream):
        def read():
            for line in stream:
                lines.put(line)

        lines = queue.SimpleQueue()
        threading.Thread(target=read, daemon=True).start()
        return lines

    def has_event(self):
        return not self._events.empty()

    def line(self):
        return self._events.get(timeout=PATIENCE)

    def wait_for_note(self, text):
        """Wait for a line on stderr that contains the text."""
        while text not in self._notes.get(timeout=PATIENCE).decode():
            pass
        return self

    def stop(self):
        self.child.kill()
        self.child.wait(PATIENCE)
