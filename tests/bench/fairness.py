# SPDX-License-Identifier: Apache-2.0
"""Latency beside a flood: of a victim, one client with one small request at a time; and of clients that do not use the store.

The yardstick is the same flood to a topic without subscribers ("unread"): it costs the broker only.
"""

import contextlib
import dataclasses
import subprocess
import tempfile

import cores
import tools
from durable import read_metrics
from figures import Series
from subjects import TOOLS, Subject, resident_bytes
from support.broker import free_port

# Requests a second that neither the broker nor the store needs all its time for.
RATES = {"scan_stars": 200, "scan_many_keys": 200, "set_largest": 30, "get_largest": 30, "keynotify": 2000}


@dataclasses.dataclass
class Flood:
    """kind: a row of the table in bench_flood.c."""

    kind: str
    n_clients: int = 1
    is_durable: bool = True
    is_event: bool = False  # something happens once: there is no unread flood

    @property
    def name(self):
        clients = f"_{self.n_clients}_clients" if self.n_clients > 1 else ""
        return self.kind + clients + ("" if self.is_durable else "_in_memory")


# As fast as the broker reads.
FLOODS = [
    *(Flood(kind) for kind in ("get_largest", "get_64_kb", "get_small", "set_largest", "set_64_kb", "set_small",
                               "set_beside_largest", "set_beside_long_keys", "scan_stars", "scan_many_keys",
                               "keynotify", "watched_small", "watched_64_kb", "watched_largest", "watched_long_key",
                               "del_small", "del_largest", "user_properties", "long_address", "qos_0", "qos_2",
                               "errors")),
    *(Flood(kind, n_clients=16) for kind in ("get_largest", "set_largest", "set_small", "scan_many_keys")),
    *(Flood(kind, is_durable=False) for kind in ("get_largest", "set_largest", "set_small", "watched_64_kb")),
    *(Flood(kind, is_event=True) for kind in ("expire_together", "disconnect")),
]

# Floods beside clients that do not use the store.
NEIGHBOUR_FLOODS = ["set_small", "set_largest", "scan_many_keys", "watched_64_kb"]

# Targets for a victim beside a flood at full speed. A request waits for at most two frames, each with a commit.
P50_US, LARGEST_P50_US, WORST_US = 10_000, 30_000, 200_000

# As long as the store's topic, so that the broker reads as many bytes.
UNREAD_TOPIC = "otherstore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"

# What a packet has beside the largest value: properties, and the client id of a watcher.
PACKET_OVERHEAD = 1024


@contextlib.contextmanager
def beside(directory, name, flood, effort, *flags):
    """Put a broker and a store under a flood. They are new each time: requests that still wait would disturb the next
    measurement. flood None: without."""
    http = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(dir=effort.disk) as data:
        stored = ["--data-dir", f"{data}/store"] if flood and flood.is_durable else []
        subject = Subject(name, directory, flags=["--http-listen", http, *stored], max_packet_bytes=effort.max_packet_bytes)
        subject.http = http
        try:
            if not flood:
                yield subject
                return
            flooding = subprocess.Popen([TOOLS / "bench_flood", "--port", str(subject.port), "--kind", flood.kind,
                                         "--clients", str(flood.n_clients), "--keys", str(effort.n_flood_keys),
                                         "--largest", str(effort.max_packet_bytes - PACKET_OVERHEAD), *flags],
                                        stdout=subprocess.PIPE, text=True)
            try:
                if flooding.stdout.readline() != "ready\n":
                    raise RuntimeError(f"{name}: the flood has not started")
                yield subject
            finally:
                flooding.kill()
                flooding.communicate()
        finally:
            subject.stop()


def victim_beside(directory, name, flood, effort, *flags):
    with beside(directory, name, flood, effort, *flags) as subject:
        before = read_metrics(subject.http)
        values = tools.load_with_patience(subject, effort.patience_ms, "--keys", 1, "--warm-up-ms", 100,
                                          "--measure-ms", effort.measure_ms // 4)
        after = read_metrics(subject.http)
        values["store_mb"] = subject.resident_bytes() / 1e6
        values["broker_mb"] = resident_bytes(subject.broker.child.pid) / 1e6
    n_commits, seconds = (after[f"statestore_commit_seconds_{part}"] - before[f"statestore_commit_seconds_{part}"]
                          for part in ("count", "sum"))
    values["commit_us"] = 1e6 * seconds / n_commits if n_commits else 0
    values["beyond_commits_us"] = max(0, values["p50_us"] - 2 * values["commit_us"])
    return values


def measure(directory, name, flood, effort, n_unread_rounds, *flags):
    """The victim's figures in each round, beside the flood and beside the unread flood: label -> figure -> Series."""
    measured = {}
    for n in range(effort.n_flood_rounds):
        unread = [("unread", ["--topic", UNREAD_TOPIC])] if n < n_unread_rounds else []
        for label, more in [("", []), *unread]:
            values = victim_beside(directory, f"{name}_{n}_{label}", flood, effort, *flags, *more)
            for figure, value in values.items():
                measured.setdefault(label, {}).setdefault(figure, []).append(value)
    return {label: {figure: Series(values * (effort.n_flood_rounds // len(values)))
                    for figure, values in figures.items()}
            for label, figures in measured.items()}


def row(figures, name, measured, label, figure, **targets):
    figures.row(f"{name} {label}", f"flood_{name}_{figure}", "us", measured[""][figure],
                [("unread", measured["unread"][figure])] if "unread" in measured else [], **targets)


def neighbours_beside(directory, name, flood, effort, *flags):
    with beside(directory, name, flood, effort, *flags) as subject:
        values = tools.run("bench_neighbours", "--port", subject.port, "--measure-ms", effort.measure_ms, "--patience-ms",
                           effort.patience_ms)
    if values["missing"][0] and not flags:
        raise RuntimeError(f"{name}: {values['missing'][0]:.0f} messages of clients that do not use the store are missing")
    return values


@cores.left_to_servers()
def neighbours(figures, directory, effort):
    """50 clients that publish 1,000 messages a second to themselves, beside 1,000 that are idle."""
    measured = {}
    conditions = [("alone", None, []), *((f"{kind}{suffix}", Flood(kind, is_durable=False), flags)
                                         for kind in NEIGHBOUR_FLOODS
                                         for suffix, flags in (("", []), ("_unread", ["--topic", UNREAD_TOPIC])))]
    for n in range(effort.n_flood_rounds):
        for label, flood, flags in conditions:
            values = neighbours_beside(directory, f"neighbours_{n}_{label}", flood, effort, *flags)
            for figure in ("p50_us", "p99_us"):
                measured.setdefault((label, figure), []).append(values[figure][0])
    series = {key: Series(values) for key, values in measured.items()}

    figures.section("50 busy clients beside 1,000 idle ones; none of them uses the store", ("unread", "alone"))
    for kind in NEIGHBOUR_FLOODS:
        for figure in ("p50_us", "p99_us"):
            figures.row(f"beside {kind} {figure.removesuffix('_us')}", f"neighbours_{kind}_{figure}", "us",
                        series[kind, figure],
                        [(other, series[name, figure]) for other, name in (("unread", f"{kind}_unread"), ("alone", "alone"))])


@cores.left_to_servers()
def fairness(figures, directory, effort):
    figures.section("A client beside a flood below the capacity of broker and store", ("unread",))
    for kind, per_second in RATES.items():
        measured = measure(directory, kind, Flood(kind), effort, effort.n_flood_rounds, "--per-second",
                           str(per_second))
        row(figures, f"{kind}_{per_second}", measured, "p99", "p99_us", target=("<=", 3))

    figures.section("A client beside a flood at full speed; packets of "
                    f"{effort.max_packet_bytes:,} bytes, data directory", ("unread",))
    for flood in FLOODS:
        if effort.n_flood_rounds == 1 and flood.name != flood.kind:
            continue  # --quick: each kind once
        measured = measure(directory, f"full_{flood.name}", flood, effort,
                           0 if flood.is_event else effort.n_unread_rounds)
        row(figures, flood.name, measured, "p50", "p50_us")
        figures.row(f"{flood.name} p50 less 2 commits", f"flood_{flood.name}_beyond_commits_us", "us",
                    measured[""]["beyond_commits_us"],
                    own_target=("<=", LARGEST_P50_US if "largest" in flood.kind else P50_US))
        row(figures, flood.name, measured, "p99", "p99_us")
        row(figures, flood.name, measured, "worst", "max_us", own_target=("<=", WORST_US))
        for figure, unit in (("without_reply", "1"), ("store_mb", "MB"), ("broker_mb", "MB")):
            figures.line(f"flood_{flood.name}_{figure}", max(measured[""][figure].values), unit)
