# SPDX-License-Identifier: Apache-2.0
"""The programs that measure, and what they print."""

import csv
import io
import re
import shutil
import signal
import subprocess

from subjects import TOOLS

# (clients, requests on their way of each)
LOADS = [(1, 1), (16, 1), (16, 16), (64, 4)]

KEYS = 10_000


def run(program, *arguments):
    """Runs a tool. Returns what it has printed: name -> the values of its lines, in their order."""
    done = subprocess.run([TOOLS / program, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True)
    values = {}
    for line in done.stdout.splitlines():
        name, value = line.split()
        values.setdefault(name, []).append(float(value))
    return values


def load(subject, clients, depth, *arguments):
    """Puts a subject under load. An answer that is missing or wrong ends the run: there is no figure then."""
    values = run("bench_load", "--port", subject.port, "--clients", clients, "--depth", depth, *arguments)
    values = {name: value[0] for name, value in values.items()}
    for name in ("unanswered", "errors"):
        if values[name]:
            raise RuntimeError(f"{subject.name} at {clients}x{depth}: {name}: {values[name]:.0f}")
    return values


def fill(subject, n_keys=KEYS, *arguments):
    """Sets each key once."""
    return load(subject, 16, 16, "--order", "once", "--keys", n_keys, "--requests", n_keys, "--get-percent", 0,
                *arguments)


def count_by_perf(pid, work):
    counter = subprocess.Popen(["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", str(pid)],
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        work()
    finally:
        counter.send_signal(signal.SIGINT)
        printed = counter.communicate()[1]
    for row in csv.reader(io.StringIO(printed)):
        if len(row) > 2 and row[2].startswith("raw_syscalls") and row[0].isdigit():
            return int(row[0])
    return None


def count_by_strace(pid, work):
    counter = subprocess.Popen(["strace", "-c", "-f", "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    counter.stderr.readline()  # it says when it is attached
    try:
        work()
    finally:
        counter.send_signal(signal.SIGINT)
        printed = counter.communicate()[1]
    total = re.search(r"(?m)^\s*100\.00\s+\S+\s+\d+\s+(\d+)(?:\s+\d+)?\s+total$", printed)
    return int(total[1])


def syscalls(subject, clients, depth, n_requests):
    """System calls of the responder a request. perf does not slow it down; strace is everywhere."""
    def work():
        load(subject, clients, depth, "--requests", n_requests)

    count = count_by_perf(subject.pid, work) if shutil.which("perf") else None
    if count is None:
        count = count_by_strace(subject.pid, work)
    return count / n_requests
