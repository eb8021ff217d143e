# SPDX-License-Identifier: Apache-2.0
"""Which cores a program may use.

The server under load, a broker or Redis, has one core for itself. Clients and responder share the others. If the
scheduler placed three busy programs on two cores, one turn could do twice as much as the next.
"""

import contextlib
import os

_ALL = sorted(os.sched_getaffinity(0))
_SERVERS = set(_ALL[:1])
_OTHERS = set(_ALL[1:]) or _SERVERS


def give_to_server(pid):
    os.sched_setaffinity(pid, _SERVERS)


@contextlib.contextmanager
def left_to_servers():
    """Keep programs that are started meanwhile off the core of the servers; also a decorator."""
    os.sched_setaffinity(0, _OTHERS)
    try:
        yield
    finally:
        os.sched_setaffinity(0, _ALL)
