# SPDX-License-Identifier: Apache-2.0
"""Inspects the sockets of another process."""

import ctypes
import os
import socket
from pathlib import Path

SYS_PIDFD_GETFD = 438


def sockets_of(pid):
    """Return duplicates of the sockets that the process has open."""
    pidfd = os.pidfd_open(pid)
    try:
        for path in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(path).startswith("socket:"):
                duplicate = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, int(path.name), 0)
                assert duplicate >= 0, os.strerror(ctypes.get_errno())
                yield socket.socket(fileno=duplicate)
    finally:
        os.close(pidfd)
