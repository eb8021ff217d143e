# SPDX-License-Identifier: Apache-2.0
"""With a data directory: throughput, commits, and the time to load a full one."""

import re
import tempfile
import time
import urllib.request

import cores
import tools
from figures import Series
from subjects import Subject
from support.broker import free_port
from through_broker import Rounds, compare


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
        tools.load(subject, 16, 16, "--get-percent", 0, "--warm-up-ms", 0, "--measure-ms", effort.measure_ms)
        after, seconds = read_metrics(http), time.monotonic() - begin
        more = {name: after[name] - before[name] for name in after}
        n_commits = more["statestore_commit_seconds_count"]
        measured["commits"].append(n_commits / seconds)
        measured["rows"].append(more["statestore_commit_rows_total"] / n_commits)
        measured["ms"].append(1000 * more["statestore_commit_seconds_sum"] / n_commits)
    figures.row("16x16, SETs: commits", "durable_commits", "1/s", Series(measured["commits"]))
    figures.row("16x16, SETs: size of a commit", "durable_rows_a_commit", "rows", Series(measured["rows"]))
    figures.row("16x16, SETs: a commit takes", "durable_commit", "ms", Series(measured["ms"]))


# Number of keys that are set again and again, and number of SETs in a commit of the storage alone.
WATCHED_KEYS = 100
WATCHERS = (1, 10, 100)


@cores.left_to_servers()
def watched(figures, directory, data, effort):
    """SETs of watched keys through the broker. In memory the notifications are the same, but they are not stored."""
    subjects = [Subject("watched_durable", directory, flags=["--data-dir", f"{data}/watched"]),
                Subject("watched_in_memory", directory)]
    sizes = (0, *WATCHERS[:effort.n_watcher_sizes])
    rounds = Rounds()
    try:
        for _ in range(effort.n_rounds):
            for n in sizes:
                for subject, values in tools.load_by_turns(subjects, 16, 16, "--keys", WATCHED_KEYS, "--get-percent", 0,
                                                           "--watchers", n, "--turns", 2, "--warm-up-ms", 100,
                                                           "--measure-ms", effort.measure_ms // 4):
                    rounds.add(subject.name, n, values)
    finally:
        for subject in subjects:
            subject.stop()

    figures.section("Stored notifications through the broker, 16x16", ("memory", "unwatched"))
    for n in sizes:
        ours, memory = (rounds.series(subject.name, n, "throughput") for subject in subjects)
        figures.row(f"SETs of keys with {n} watchers", f"durable_watched_{n}", "1/s", ours,
                    [("memory", memory), ("unwatched", rounds.series("watched_durable", 0, "throughput"))])


def watched_alone(figures, data, effort):
    """What the rows of pending notifications cost: SETs of watched keys, relative to SETs of keys without watchers."""
    def sets(n_watchers, number):
        return tools.run("fill_directory", "--directory", f"{data}/watched-{n_watchers}-{number}", "--keys",
                         effort.n_stored // 10, "--keys-a-commit", WATCHED_KEYS, "--distinct-keys", WATCHED_KEYS,
                         "--watchers", n_watchers)["sets_per_s"][0]

    figures.section("Stored notifications (storage alone)", ("unwatched",))
    rounds = [{n: sets(n, number) for n in (0, *WATCHERS)} for number in range(effort.n_rounds)]
    for n in WATCHERS:
        figures.row(f"SETs of keys with {n} watchers", f"storage_watched_{n}", "1/s",
                    Series([measured[n] for measured in rounds]),
                    [("unwatched", Series([measured[0] for measured in rounds]))])


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
    # on the disk of the build directory: /tmp may be memory
    with tempfile.TemporaryDirectory(dir=effort.disk) as data:
        figures.section("Durable (--data-dir)", ("memory",))
        throughput(figures, directory, data, effort)
        full_directory(figures, directory, data, effort)
        watched(figures, directory, data, effort)
        watched_alone(figures, data, effort)
