# SPDX-License-Identifier: Apache-2.0
"""Requests through a broker: statestored, responders with a fixed reply beside and inside a broker, and Redis without a broker."""

import csv
import io
import subprocess

import cores
import tools
from figures import Series
from subjects import TOOLS, Inside, Redis, Subject

METRICS = [
    # name, unit, target for the ratio to the null responder, by load
    ("throughput", "1/s", {load: (">=", 0.97) for load in tools.LOADS}),
    ("p50_us", "us", {(1, 1): ("<=", 1.05)}),
    ("p99_us", "us", {(16, 1): ("<=", 1.10)}),
    ("responder_cpu_us", "us", {}),
    ("syscalls", "1", {}),
]

# Targets for the ratio to replies from inside the broker.
INSIDE_THROUGHPUT = {(16, 1): (">=", 0.55), (16, 16): (">=", 0.85)}


class Rounds:
    """The figures of each subject in each round."""

    def __init__(self):
        self.measured = {}

    def add(self, subject, load, values):
        for name, value in values.items():
            self.measured.setdefault((subject, load, name), []).append(value)

    def series(self, subject, load, name):
        return Series(self.measured[subject, load, name])


def compare(subjects, loads, effort):
    rounds = Rounds()
    for load in loads:
        for subject, values in tools.load_by_turns(subjects, *load, "--rounds", effort.n_load_rounds,
                                                   "--turns", effort.n_turns, "--warm-up-ms", effort.warm_up_ms,
                                                   "--measure-ms", effort.turn_ms):
            rounds.add(subject.name, load, values)
    return rounds


def count_syscalls(rounds, subjects, effort):
    """Separate from throughput, because counting takes time."""
    for load in tools.LOADS:
        for _ in range(effort.n_rounds):
            for subject in subjects:
                rounds.add(subject.name, load, {"syscalls": tools.syscalls(subject, *load, effort.n_counted)})


def redis_benchmark(redis, n_clients, n_requests):
    """SET and GET of the same sizes, half of each: requests a second."""
    done = subprocess.run(["redis-benchmark", "-p", str(redis.port), "-P", "1", "-c", str(n_clients), "-d", "100",
                           "-r", str(tools.KEYS), "-n", str(n_requests), "-t", "set,get", "--csv"],
                          stdout=subprocess.PIPE, text=True, check=True)
    rates = [float(row["rps"]) for row in csv.DictReader(io.StringIO(done.stdout))]
    return len(rates) / sum(1 / rate for rate in rates)


def report(figures, rounds, loads, redis):
    figures.section("Through the broker (clients x depth)", ("null", "raw"))
    for name, unit, targets in METRICS:
        for load in loads:
            label = f"{load[0]}x{load[1]}"
            figures.row(f"{label} {name.removesuffix('_us')}", f"{name}_{label}", unit,
                        rounds.series("statestored", load, name),
                        [(other, rounds.series(other, load, name)) for other in ("null", "raw")], targets.get(load))
    for load in loads:
        figures.line(f"load_cpu_us_{load[0]}x{load[1]}", rounds.series("statestored", load, "load_cpu_us").median, "us")

    figures.section("Beside replies from inside the broker, in a plugin's MESSAGE callback", ("inside",))
    for name, unit, targets in (("throughput", "1/s", INSIDE_THROUGHPUT), ("p50_us", "us", {}), ("broker_cpu_us", "us", {})):
        for load in loads:
            label = f"{load[0]}x{load[1]}"
            figures.row(f"{label} {name.removesuffix('_us')}", f"beside_inside_{name}_{label}", unit,
                        rounds.series("statestored", load, name), [("inside", rounds.series("inside", load, name))],
                        targets.get(load))

    figures.section("Beside Redis (redis-benchmark -P 1, clients x depth connections; no broker between)", ("redis",))
    for load in loads:
        label = f"{load[0]}x{load[1]}"
        figures.row(f"{label} throughput", f"beside_redis_{label}", "1/s",
                    rounds.series("statestored", load, "throughput"), [("redis", redis[load])])


@cores.left_to_servers()
def responders(figures, directory, effort):
    subjects = [
        Subject("statestored", directory),
        Subject("null", directory, TOOLS / "null_responder", plugin=None),
        Subject("raw", directory, TOOLS / "raw_responder", plugin=None),
        Inside("inside", directory),
    ]
    redis_server = Redis(directory)
    try:
        tools.fill(subjects[0])
        rounds = compare(subjects, tools.LOADS, effort)
        count_syscalls(rounds, subjects[:3], effort)
        redis = {load: Series(redis_benchmark(redis_server, load[0] * load[1], effort.n_redis)
                              for _ in range(effort.n_rounds)) for load in tools.LOADS}
        report(figures, rounds, tools.LOADS, redis)
    finally:
        redis_server.stop()
        for subject in subjects:
            subject.stop()


@cores.left_to_servers()
def plugin(figures, directory, effort):
    subjects = [Subject("with_plugin", directory), Subject("without_plugin", directory, plugin=None)]
    try:
        for subject in subjects:
            tools.fill(subject)
        rounds = compare(subjects, [(16, 16)], effort)
        figures.section("The plugin: throughput with and without it", ("without",))
        figures.row("16x16 throughput", "plugin_throughput", "1/s",
                    rounds.series("with_plugin", (16, 16), "throughput"),
                    [("without", rounds.series("without_plugin", (16, 16), "throughput"))], (">=", 0.93))
    finally:
        for subject in subjects:
            subject.stop()
