# SPDX-License-Identifier: Apache-2.0
"""A store whose files cannot grow: to it the disk is full."""

import subprocess

from support.store import Store

ROOM = 400 * 1024


def limited(argv, room=ROOM):
    """Return the command line that runs argv with limited file sizes. This needs no privilege."""
    return ["env", "--ignore-signal=XFSZ", "prlimit", f"--fsize={room}:unlimited", "--", *argv]


class LimitedStore(Store):
    """Limits the file size of the store. The test can remove the limit at run time."""

    room = ROOM

    def spawn(self, argv, environment=None):
        super().spawn(limited(argv, self.room), environment)

    def lift(self):
        subprocess.run(["prlimit", "--pid", str(self.child.pid), "--fsize=unlimited:unlimited"], check=True)
