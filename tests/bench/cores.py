# SPDX-License-Identifier: Apache-2.0
"""Which cores a program may use.

The server that is asked, a broker or Redis, has one for itself; all else shares the others. Where the scheduler places
three busy programs on two cores, one turn may answer twice as much as the next, whoever answers.
"""

import os

_ALL = sorted(os.sched_getaffinity(0))
_SERVERS = set(_ALL[:1])
_OTHERS = set(_ALL[1:]) or _SERVERS


def leave_to_servers():
    """Of the calling program and all that it starts from now on."""
    os.sched_setaffinity(0, _OTHERS)


def give_to_server(pid):
    os.sched_setaffinity(pid, _SERVERS)
