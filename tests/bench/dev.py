# SPDX-License-Identifier: Apache-2.0
"""statestored --dev: time to start and to reset."""

import time
from pathlib import Path

from figures import Series
from support.control import Control
from support.double import Double, running_double

N_KEYS = 3
N_RESETS = 100


def milliseconds_since(begin):
    return (time.monotonic() - begin) * 1000


def start(directory):
    """Time until it replies to requests, including the start of its mosquitto."""
    begin = time.monotonic()
    double = Double(directory).start()
    took = milliseconds_since(begin)
    double.stop()
    return took


def reset(control):
    """Time of a reset, less the time of a control command that changes nothing."""
    for key in range(N_KEYS):
        control.request("SET", f"key-{key}", "value")
    begin = time.monotonic()
    control.do("reset")
    took = milliseconds_since(begin)
    begin = time.monotonic()
    control.do("clock", "resume")
    return took - milliseconds_since(begin)


def dev(figures, directory, effort):
    directory = Path(directory) / "dev"
    directory.mkdir()
    figures.section("A test double (--dev)")
    figures.row("start", "dev_start", "ms", Series(start(directory) for _ in range(2 * effort.n_rounds)),
                target=("<=", 50))

    with running_double(directory, "--control") as double:
        control = double.connect("control", Control)
        figures.row(f"reset of {N_KEYS} keys", "dev_reset", "ms", Series(reset(control) for _ in range(N_RESETS)),
                    target=("<=", 1))
