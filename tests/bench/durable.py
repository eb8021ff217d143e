# SPDX-License-Identifier: Apache-2.0
"""With a data directory: what it costs, how often it commits, and how long a full one takes to load."""

import re
import tempfile
import time
import urllib.request

import cores
import tools
from figures import Series
from subjects import Subject
from support.broker import free_port
from through_broker import compare


@cores.left_to_servers()
def throughput(figures, directory, data, effort):
    http = f"127.0.0.1:{free_port()}"
    subjects = [
        Subject("durable", directory, flags=["--data-dir", f"{data}/store", "--http-listen", http]),
        Subject("in_memory", directory),
    ]
    try:
        for subject in subjects:
            tools.fill(subject)
        rounds = compare(subjects, [(16, 16)], effort)
        figures.row("16x16 throughput", "durable_throughput", "1/s",
                    rounds.series("durable", (16, 16), "throughput"),
                    [("memory", rounds.series("in_memory", (16, 16), "throughput"))], (">=", 0.9))
        commits(figures, subjects[0], http, effort)
    finally:
        for subject in subjects:
            subject.stop()


def read_metrics(http):
    with urllib.request.urlopen(f"http://{http}/metrics") as response:
        text = response.read().decode()
    return {name: float(value) for name, value in re.findall(r"(?m)^(\w+) (\S+)$", text)}


def commits(figures, subject, http, effort):
    measured = {name: [] for name in ("commits", "rows", "ms")}
    for _ in range(effort.n_rounds):
        before, begin = read_metrics(http), time.monotonic()
        tools.load(subject, 16, 16, "--get-percent", 0, "--warm-up-ms", 0, "--measure-ms", effort.milliseconds)
        after, seconds = read_metrics(http), time.monotonic() - begin
        more = {name: after[name] - before[name] for name in after}
        n_commits = more["statestore_commit_seconds_count"]
        measured["commits"].append(n_commits / seconds)
        measured["rows"].append(more["statestore_commit_rows_total"] / n_commits)
        measured["ms"].append(1000 * more["statestore_commit_seconds_sum"] / n_commits)
    figures.row("16x16, SETs: commits", "durable_commits", "1/s", Series(measured["commits"]))
    figures.row("16x16, SETs: a commit's", "durable_rows_a_commit", "rows", Series(measured["rows"]))
    figures.row("16x16, SETs: a commit takes", "durable_commit", "ms", Series(measured["ms"]))


def full_directory(figures, directory, data, effort):
    path = f"{data}/full"
    filled = tools.run("fill_directory", "--directory", path, "--keys", effort.n_stored)
    for name, label in (("sets_per_s", "storage alone: SETs"), ("commits_per_s", "storage alone: commits")):
        figures.row(label, f"storage_{name}", "1/s", Series(filled[name]))

    empty = Subject("empty", directory, flags=["--data-dir", f"{data}/empty"])
    full = Subject("full", directory, flags=["--data-dir", path])
    try:
        figures.row(f"loading {effort.n_stored:,} keys", "durable_load", "s",
                    Series([full.start_seconds - empty.start_seconds]))
    finally:
        full.stop()
        empty.stop()


def durable(figures, directory, effort):
    # on the disk that the tree is on: /tmp may be memory
    with tempfile.TemporaryDirectory(dir=effort.disk) as data:
        figures.section("Durable (--data-dir)", ("memory",))
        throughput(figures, directory, data, effort)
        full_directory(figures, directory, data, effort)
