# SPDX-License-Identifier: Apache-2.0
"""A statestorectl that runs while the test goes on."""

import queue
import subprocess
import threading

from support.ctl import environment
from support.process import PATIENCE


class Run:
    """A running statestorectl and its output."""

    def __init__(self, ctl, *arguments, stdin=subprocess.PIPE, **popen):
        self.child = subprocess.Popen(ctl.argv(arguments), env=environment(ctl.variables), stdin=stdin,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **popen)
        self._lines, self._notes = self._read(self.child.stdout), self._read(self.child.stderr)

    @staticmethod
    def _read(stream):
        def read():
            for line in stream:
                lines.put(line.decode().rstrip("\n"))
            lines.put(None)

        lines = queue.SimpleQueue()
        threading.Thread(target=read, daemon=True).start()
        return lines

    def line(self):
        """Return the next line of stdout, or None at its end."""
        return self._lines.get(timeout=PATIENCE)

    def words(self):
        return self.line().split()

    def wait_for_note(self, text):
        """Return the next line on stderr that contains the text."""
        while True:
            note = self._notes.get(timeout=PATIENCE)
            assert note is not None, f"stderr ended without {text!r}"
            if text in note:
                return note

    def say(self, line):
        self.child.stdin.write(f"{line}\n".encode())

    def send_signal(self, number):
        self.child.send_signal(number)

    def status(self):
        return self.child.wait(PATIENCE)

    def kill(self):
        self.child.kill()
        self.child.wait()
