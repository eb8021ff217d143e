# SPDX-License-Identifier: Apache-2.0
"""A disk that fails on demand."""

from support.process import preload


class FailingDisk:
    """The disk of a store and of statestorectl: `environment` makes it fail while fails() has been called."""

    def __init__(self, path):
        self.path = path
        self.environment = {**preload("disk_shim"), "STATESTORE_DISK_FAILS": str(path)}

    def fails(self, call):
        """call: "sync" or "write" of the log; "full": no file of the database gets longer; "low": 10 MiB of 1000 are free."""
        self.path.write_text(call)

    def works(self):
        self.path.unlink()
