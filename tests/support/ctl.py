# SPDX-License-Identifier: Apache-2.0
"""statestorectl, as a process."""

import json
import os
import subprocess

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
