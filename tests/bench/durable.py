# SPDX-License-Identifier: Apache-2.0
"""With a data directory: what it costs, how often it commits, and how long a full one takes to load."""

import tempfile

import tools
from figures import Series
from subjects import Subject
from through_broker import compare


def throughput(figures, directory, data, effort):
    subjects = [
        Subject("durable", directory, flags=["--data-dir", f"{data}/store"]),
        Subject("in_memory", directory),
    ]
    try:
        for subject in subjects:
            tools.fill(subject)
        rounds = compare(subjects, [(16, 16)], effort.n_rounds, effort.milliseconds)
        figures.row("16x16 throughput", "durable_throughput", "1/s",
                    rounds.series("durable", (16, 16), "throughput"),
                    [("memory", rounds.series("in_memory", (16, 16), "throughput"))], (">=", 0.9))
        commits(figures, subjects[0], effort)
    finally:
        for subject in subjects:
            subject.stop()


def commits(figures, subject, effort):
    """A commit syncs once; that is counted. strace slows down the syncs alone."""
    seconds = []

    def work():
        seconds.append(tools.load(subject, 16, 16, "--requests", effort.n_counted, "--get-percent", 0)["seconds"])

    n_commits = tools.count_by_strace(subject.pid, work, "fsync,fdatasync")
    if n_commits:
        figures.row("16x16 SETs: commits", "durable_commits", "1/s", Series([n_commits / seconds[0]]))
        figures.row("16x16 SETs: a commit's", "durable_sets_a_commit", "SETs", Series([effort.n_counted / n_commits]))


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
