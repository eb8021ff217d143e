# SPDX-License-Identifier: Apache-2.0
"""Latency beside a flooding client, compared with the same flood to a topic without subscribers."""

import subprocess

import cores
import tools
from figures import Series
from subjects import TOOLS, Subject

# What a client floods with, and how much a second: several times what the store can do of the costly ones, but no more
# than the broker can pass on. Beyond that the broker's connection to the store is the limit.
KINDS = [("scan", 200), ("set", 300), ("keynotify", 2000)]
CLIENTS, DEPTH = 16, 1

# As long as the store's, so that the broker has as much to read.
UNREAD_TOPIC = "nobody/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/nothing"


def p99_beside_flood(directory, name, kind, *flags, milliseconds):
    """Each flood has its own broker and store: requests that wait in one would be served during the next."""
    subject = Subject(name, directory)
    try:
        tools.fill(subject)
        flood = subprocess.Popen([TOOLS / "bench_flood", "--port", str(subject.port), "--kind", kind, *flags],
                                 stdout=subprocess.PIPE, text=True)
        try:
            if flood.stdout.readline() != "ready\n":
                raise RuntimeError(f"no flood of {kind}")
            return tools.load(subject, CLIENTS, DEPTH, "--measure-ms", milliseconds)["p99_us"]
        finally:
            flood.kill()
            flood.communicate()
    finally:
        subject.stop()


@cores.left_to_servers()
def fairness(figures, directory, effort):
    figures.section(f"Beside a client that floods ({CLIENTS}x{DEPTH})", ("unread",))
    for kind, per_second in KINDS:
        beside, unread = [], []
        rate = ["--per-second", str(per_second)]
        for n in range(effort.n_rounds):
            beside.append(p99_beside_flood(directory, f"{kind}_{n}", kind, *rate, milliseconds=effort.milliseconds))
            unread.append(p99_beside_flood(directory, f"{kind}_{n}_unread", kind, *rate, "--topic", UNREAD_TOPIC,
                                           milliseconds=effort.milliseconds))
        figures.row(f"{kind} p99", f"flood_{kind}_p99_us", "us", Series(beside), [("unread", Series(unread))], ("<=", 3))
