# SPDX-License-Identifier: Apache-2.0
"""A shell on a terminal that executes the commands of a document in order."""

import os
import pty
import re
import select
import shlex
import subprocess
import termios
import time
import uuid
from pathlib import Path

from support.ctl import TIMEOUT
from support.process import BUILD, CTL, PATIENCE, REPOSITORY, STATESTORED, killed_with_parent, wait_until

COMMAND_SECONDS = 2 * PATIENCE


def write_program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def make_tree(folder):
    """Make the folder, with the files of the repository, and the tested build as build/release and build/debug."""
    folder.mkdir(exist_ok=True)
    for path in REPOSITORY.iterdir():
        if not path.name.startswith((".", "build")):
            (folder / path.name).symlink_to(path)
    (folder / ".ci").symlink_to(REPOSITORY / ".ci")
    (folder / "build").mkdir()
    for name in "release", "debug":
        (folder / "build" / name).symlink_to(BUILD)
    return folder


class Terminal:
    """A shell in a make_tree().

    ports: port number in the documents -> port in this test. places: path in the documents -> path in this test. here()
    replaces both in a text.
    """

    def __init__(self, folder, ports, environment=None):
        self.folder = Path(folder)
        self.ports = ports
        self.places = {}
        self.background = []
        self.on_service = None
        make_tree(self.folder)
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        self._make_pipes()
        self._make_programs()
        self._pty, theirs = pty.openpty()
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        variables = {"PATH": f"{self.programs}:{os.environ['PATH']}", "HOME": str(self.folder), "TERM": "dumb",
                     "SERVICES": str(self.folder), "COLUMNS": "300", "STATESTORE_TIMEOUT": TIMEOUT, **(environment or {})}
        inherited = {name: value for name, value in os.environ.items()
                     if name == "STATESTORE_BUILD" or not name.startswith(("STATESTORE_", "AIO_"))}
        self._shell = subprocess.Popen(killed_with_parent(["bash", "--norc"]), cwd=self.folder, stdin=subprocess.PIPE,
                                       stdout=theirs, stderr=theirs, env={**inherited, **variables}, text=True)
        os.close(theirs)

    def _make_programs(self):
        """Programs for PATH. sudo only executes its command, because a test writes only below its own folder."""
        write_program(self.programs / "statestored", f'exec {shlex.quote(str(STATESTORED))} "$@"')
        write_program(self.programs / "statestorectl", f'exec {shlex.quote(str(CTL))} "$@"')
        write_program(self.programs / "sudo", 'exec "$@"')
        write_program(self.programs / "systemctl",
                      'echo "$*" >"$SERVICES/asked" && read -r status <"$SERVICES/answered" && exit "$status"')

    def _make_pipes(self):
        """Pipes through which the fake systemctl passes its arguments to on_service()."""
        for name in "asked", "answered":
            os.mkfifo(self.folder / name)
        self._asked, self._answered = (os.open(self.folder / name, os.O_RDWR) for name in ("asked", "answered"))

    def here(self, text):
        """Replace the ports and paths of the documents by those of this test."""
        for place, instead in self.places.items():
            text = re.sub(rf"(?<![\w.]){re.escape(place)}", str(instead), text)
        return re.sub(r"\b(1[12]?883|8883|9464)\b", lambda found: str(self.ports[int(found[1])]), text)

    def run(self, command, text=""):
        """Execute the command with this text as stdin. Return its output and exit status."""
        end = f"end-{uuid.uuid4().hex}"
        (self.folder / "typed").write_text(text)
        self._shell.stdin.write(f"{{ {command}\n}} <typed; printf '%s %d\\n' {end} $?\n")
        self._shell.stdin.flush()
        output = b""
        deadline = time.monotonic() + COMMAND_SECONDS
        while not re.search(rb"%b \d+\n" % end.encode(), output):
            ready, _, _ = select.select([self._pty, self._asked], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{command}: not within {COMMAND_SECONDS} s\n{output.decode(errors='replace')}"
            if self._asked in ready:
                self._serve(os.read(self._asked, 4096).decode().split())
            if self._pty in ready:
                output += os.read(self._pty, 1 << 16)
        shown, status = re.fullmatch(rf"(.*?){end} (\d+)\n", output.decode(errors="replace"), re.DOTALL).groups()
        return shown, int(status)

    def _serve(self, words):
        self.on_service(words)
        os.write(self._answered, b"0\n")

    def start(self, command, name):
        """Execute the command, one program with its variables and redirections, in the background. Return the file with its
        output, and its process id. setpriv executes the program without a shell, so this is the id of the program itself."""
        output = self.folder / f"{name}.output"
        shown, _ = self.run(f">{output} 2>&1 setpriv --pdeathsig TERM -- env {command} & echo $!")
        pid = int(shown.split()[-1])
        self.background.append(pid)
        return output, pid

    def stop(self, pid):
        self.background.remove(pid)
        self.run(f"kill -TERM {pid}; wait {pid}")

    def close(self):
        try:
            for pid in list(self.background):
                self.stop(pid)
        finally:
            self._shell.stdin.close()
            try:
                self._shell.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._shell.kill()
                self._shell.wait()
            for descriptor in (self._pty, self._asked, self._answered):
                os.close(descriptor)


def wait_for_file(path, is_done):
    """Wait until is_done(text), and return the text."""
    return wait_until(lambda: path.exists() and is_done(path.read_text()) and path.read_text(), f"{path} is complete")
