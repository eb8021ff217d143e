# SPDX-License-Identifier: Apache-2.0
"""Latency of well-behaved clients beside a flood, compared with the same flood to a topic without subscribers."""

import subprocess

import cores
import tools
from figures import Series
from subjects import TOOLS, Subject

# The costliest requests, and their number per second. A higher rate would saturate the broker's connection to the
# store. The store cannot divide that connection between clients.
FLOODS = [("scan_stars", 200), ("scan_many_keys", 200), ("set_1_mb", 30), ("get_1_mb", 30), ("keynotify", 2000)]

# Several clients together ask for more pages of SCAN than the store can make.
HOSTILE_CLIENTS = 16
PAGES_PER_SECOND = 1600

CLIENTS, DEPTH = 16, 1

# As long as the store's topic, so that the broker reads as many bytes.
UNREAD_TOPIC = "otherstore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"


def p99_beside_flood(directory, name, milliseconds, *flags):
    """Each flood has a broker and a store of its own: requests that still wait would disturb the next measurement."""
    subject = Subject(name, directory)
    try:
        tools.fill(subject)
        flood = subprocess.Popen([TOOLS / "bench_flood", "--port", str(subject.port), *flags], stdout=subprocess.PIPE,
                                 text=True)
        try:
            if flood.stdout.readline() != "ready\n":
                raise RuntimeError(f"{name}: the flood has not started")
            return tools.load(subject, CLIENTS, DEPTH, "--measure-ms", milliseconds)["p99_us"]
        finally:
            flood.kill()
            flood.communicate()
    finally:
        subject.stop()


def measure(directory, name, kind, per_second, effort, n_clients=1):
    """p99 beside the flood, and beside the same flood to a topic without subscribers, in each round."""
    flags = ["--kind", kind, "--per-second", str(per_second), "--clients", str(n_clients)]
    beside, unread = [], []
    for n in range(effort.n_flood_rounds):
        beside.append(p99_beside_flood(directory, f"{name}_{n}", effort.measure_ms // 2, *flags))
        unread.append(p99_beside_flood(directory, f"{name}_{n}_unread", effort.measure_ms // 2, *flags, "--topic",
                                       UNREAD_TOPIC))
    return Series(beside), Series(unread)


@cores.left_to_servers()
def fairness(figures, directory, effort):
    figures.section(f"Beside a client that floods ({CLIENTS}x{DEPTH})", ("unread",))
    for kind, per_second in FLOODS:
        beside, unread = measure(directory, kind, kind, per_second, effort)
        figures.row(f"{kind} p99", f"flood_{kind}_p99_us", "us", beside, [("unread", unread)], ("<=", 3))

    beside, unread = measure(directory, "hostile", "scan_many_keys", PAGES_PER_SECOND, effort, HOSTILE_CLIENTS)
    added = Series((with_flood - without) / 1000 for with_flood, without in zip(beside.values, unread.values))
    figures.section(f"Beside {HOSTILE_CLIENTS} clients that flood with SCAN")
    figures.row("p99 is higher by", "flood_hostile_added_ms", "ms", added, target=("<=", 20))
