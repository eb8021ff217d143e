# SPDX-License-Identifier: Apache-2.0
"""What a cluster loses and how long its clients wait; started by tests/cluster.sh.

usage: table.py [ROUNDS | --quick] [--only ROW[,ROW]] [--keys N] [--minutes N]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / room) for room in ("", "bench")]

import address  # noqa: E402
import faults  # noqa: E402
import floods  # noqa: E402
import losses  # noqa: E402
import partitions  # noqa: E402
import samples  # noqa: E402
import speed  # noqa: E402
import takeover  # noqa: E402
from measured import Run, Table  # noqa: E402
from support.process import BUILD  # noqa: E402

ROWS = {
    "machine": losses.lose_machines,
    "store": losses.kill_stores,
    "step-down": losses.step_down,
    "broker": losses.kill_brokers,
    "suspended": losses.suspend,
    "cut": losses.cut,
    "both": losses.cut_both,
    "partition": partitions.partition,
    "keepalived": address.lose_address,
    "delayed": faults.delay_replies,
    "lost": faults.lose_replies,
    "nodes": faults.restart_nodes,
    "etcd": faults.restart_etcd,
    "full": faults.fill_etcd,
    "clocks": faults.step_clocks,
    "load": takeover.load,
    "floods": floods.floods,
    "speed": speed.speed,
    "samples": samples.samples,
}


def measure(name, run):
    """A row that fails is a fault; the others follow. The directory of a row with a fault is kept: it has the logs."""
    n_faults, began = run.table.n_faults, time.monotonic()
    try:
        ROWS[name](run)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        run.table.faults(f"{name}: not measured, because of an error", 1)
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return run.table.n_faults == n_faults


def main():
    parser = argparse.ArgumentParser(prog="cluster.sh")
    parser.add_argument("rounds", nargs="?", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="one round, to check that it works")
    parser.add_argument("--only", default=",".join(ROWS), help=f"some of: {', '.join(ROWS)}")
    parser.add_argument("--keys", type=int, help="also load this number of keys")
    parser.add_argument("--minutes", type=float, default=10, help="of all floods together; default 10")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := set(names) - set(ROWS):
        parser.error(f"no such row: {', '.join(unknown)}")
    table = Table()

    etcd = subprocess.run(["etcd", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    print(f"{etcd}\n\n| what | figure |\n|---|---|", flush=True)
    for name in names:
        directory = Path(tempfile.mkdtemp(prefix=f"cluster-{name}-", dir=BUILD))
        run = Run(table, directory, n_rounds=1 if arguments.quick else arguments.rounds,
                  n_keys=[1000] if arguments.quick else [1000, 10_000, 100_000, *([arguments.keys] if arguments.keys else [])],
                  flood_seconds=60 * (0.5 if arguments.quick else arguments.minutes))
        if measure(name, run):
            shutil.rmtree(directory)
        else:
            print(f"{name}: the logs are in {directory}", file=sys.stderr)
    sys.exit(1 if table.n_faults else 0)


main()
