# SPDX-License-Identifier: Apache-2.0
"""Runs the measuring programs and parses their output."""

import csv
import itertools
import re
import shutil
import signal
import subprocess
import tempfile

from subjects import TOOLS

# (clients, outstanding requests of each)
LOADS = [(1, 1), (16, 1), (16, 16), (64, 4)]

KEYS = 10_000


def run(program, *arguments, under=()):
    """Run a tool. Return its output: name -> values, in order. under: command that starts the tool."""
    done = subprocess.run([*under, TOOLS / program, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          check=True)
    values = {}
    for line in done.stdout.splitlines():
        name, value = line.split()
        values.setdefault(name, []).append(float(value))
    return values


def check_replies(subject, clients, depth, values):
    """A missing or wrong reply or notification ends the run."""
    for name in ("without_reply", "unnotified", "errors"):
        if values[name]:
            raise RuntimeError(f"{subject.name} at {clients}x{depth}: {name}: {values[name]:.0f}")


def load_unchecked(subjects, clients, depth, *arguments, under=()):
    """Put subjects under load. Return (subject, name -> value) for each round and subject."""
    named = [word for subject in subjects
             for word in ("--subject", f"{subject.port},{subject.pid},{subject.broker.child.pid}")]
    printed = run("bench_load", *named, "--clients", clients, "--depth", depth, *arguments, under=under)
    return [(subject, dict(zip(printed, values)))
            for subject, values in zip(itertools.cycle(subjects), zip(*printed.values()))]


def load_by_turns(subjects, clients, depth, *arguments, under=()):
    """As load_unchecked(). A missing reply ends the run."""
    measured = load_unchecked(subjects, clients, depth, *arguments, under=under)
    for subject, values in measured:
        check_replies(subject, clients, depth, values)
    return measured


def load(subject, clients, depth, *arguments, under=()):
    """Put one subject under load, for one round."""
    return load_by_turns([subject], clients, depth, *arguments, under=under)[0][1]


def load_with_patience(subject, patience_ms, *arguments):
    """Put one subject under the load of one client with one request at a time. If a reply has not arrived after
    patience_ms, that is the longest latency."""
    values = load_unchecked([subject], 1, 1, "--patience-ms", patience_ms, *arguments)[0][1]
    if values["without_reply"] or not values["max_us"]:
        values["max_us"] = max(values["max_us"], patience_ms * 1000)
    for name in ("p50_us", "p99_us"):
        values[name] = values[name] or values["max_us"]
    return values


def fill(subject, n_keys=KEYS, *arguments):
    """Set each key once."""
    return load(subject, 16, 16, "--order", "once", "--keys", n_keys, "--requests", n_keys, "--get-percent", 0,
                *arguments)


def count_by_perf(pid, work):
    with tempfile.NamedTemporaryFile("r") as printed:
        work(["perf", "stat", "-x", ",", "-o", printed.name, "-e", "raw_syscalls:sys_enter", "-p", str(pid)])
        for row in csv.reader(printed):
            if len(row) > 2 and row[2].startswith("raw_syscalls") and row[0].isdigit():
                return int(row[0])
    return None


def count_by_strace(pid, work):
    counter = subprocess.Popen(["strace", "-c", "-f", "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    counter.stderr.readline()  # strace prints a line when it is attached
    try:
        work([])
    finally:
        counter.send_signal(signal.SIGINT)
        printed = counter.communicate()[1]
    total = re.search(r"(?m)^\s*100\.00\s+\S+\s+\d+\s+(\d+)(?:\s+\d+)?\s+total$", printed)
    return int(total[1])


def syscalls(subject, clients, depth, n_requests):
    """System calls of the responder per request. perf is preferred because strace slows the responder down."""
    def work(under):
        load(subject, clients, depth, "--requests", n_requests, under=under)

    count = count_by_perf(subject.pid, work) if shutil.which("perf") else None
    if count is None:
        count = count_by_strace(subject.pid, work)
    return count / n_requests
