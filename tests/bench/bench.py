# SPDX-License-Identifier: Apache-2.0
"""Run all measurements; started by run.sh.

usage: bench.py [--quick] [--only SECTION[,SECTION]] [--max-packet BYTES]
"""

import argparse
import dataclasses
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import alone  # noqa: E402
import console  # noqa: E402
import dev  # noqa: E402
import durable  # noqa: E402
import fairness  # noqa: E402
import notifications  # noqa: E402
import through_broker  # noqa: E402
from figures import Figures  # noqa: E402
from support.broker import version  # noqa: E402
from support.process import BUILD  # noqa: E402

# Highest load at the start without a warning: with another busy program on two cores the figures mean nothing.
QUIET = 1.0


@dataclasses.dataclass
class Effort:
    """Number and duration of the measurements."""

    n_rounds: int = 5
    n_load_rounds: int = 9
    n_flood_rounds: int = 3
    n_unread_rounds: int = 1  # of them also beside the same flood at full speed to a topic without subscribers
    n_flood_keys: int = 20_000
    patience_ms: int = 5_000  # a request beside a flood without a reply counts as this latency
    max_packet_bytes: int = 1 << 20  # of the broker, in floods
    n_turns: int = 18  # of each subject in a round
    turn_ms: int = 50
    warm_up_ms: int = 20  # of each turn; a reply to one of 64 clients with 4 outstanding requests takes 16 ms
    measure_ms: int = 2000  # of a measurement without turns; some take a fraction of it
    n_counted: int = 5_000  # requests whose system calls are counted
    n_redis: int = 20_000  # requests of each kind
    n_keys: int = 1_000_000
    n_resident: int = 1_000_000
    n_stored: int = 1_000_000
    n_watcher_sizes: int = 3
    waits_for_replies: bool = True  # wait until the store has forgotten the replies to the load
    disk: Path = BUILD


QUICK = Effort(n_rounds=1, n_load_rounds=1, n_flood_rounds=1, n_unread_rounds=0, n_flood_keys=1000, patience_ms=200,
               n_turns=3, measure_ms=250, n_counted=2000, n_redis=5000, n_keys=100_000, n_resident=100_000,
               n_stored=50_000, n_watcher_sizes=2, waits_for_replies=False)

SECTIONS = {
    "responders": through_broker.responders,
    "plugin": through_broker.plugin,
    "fairness": fairness.fairness,
    "neighbours": fairness.neighbours,
    "engine": alone.engine,
    "memory": alone.memory,
    "notifications": notifications.notifications,
    "durable": durable.durable,
    "console": console.console,
    "dev": dev.dev,
}


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(prog="run.sh")
    parser.add_argument("--quick", action="store_true", help="check only that the measurements work, in about two minutes")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of: {', '.join(SECTIONS)}")
    parser.add_argument("--max-packet", type=int, default=Effort.max_packet_bytes,
                        help="largest packet in floods, in bytes")
    arguments = parser.parse_args()
    effort = dataclasses.replace(QUICK if arguments.quick else Effort(), max_packet_bytes=arguments.max_packet)
    begin = time.monotonic()
    busy = os.getloadavg()[0]

    print(f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}, "
          f"mosquitto {'.'.join(map(str, version()))}, load {busy:.2f} at the start")
    if busy > QUIET:
        print("another program is running: the figures will be worse, and differ more between rounds")
    figures = Figures()
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.only.split(","):
            SECTIONS[name](figures, directory, effort)

    figures.line("load_at_start", busy, "1")
    figures.line("took", time.monotonic() - begin, "s")
    figures.finish()


if __name__ == "__main__":
    main()
