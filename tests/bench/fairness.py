# SPDX-License-Identifier: Apache-2.0
"""Latency of a victim, one client with one small request at a time, beside a flood.

The yardstick is the same flood to a topic without subscribers ("unread"): it costs the broker only.
"""

import dataclasses
import subprocess
import tempfile

import cores
import tools
from figures import Series
from subjects import TOOLS, Subject, resident_bytes

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

# As long as the store's topic, so that the broker reads as many bytes.
UNREAD_TOPIC = "otherstore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"

# What a packet has beside the largest value: properties, and the client id of a watcher.
PACKET_OVERHEAD = 1024


def victim_beside(directory, name, flood, effort, *flags):
    """Each flood has a broker and a store of its own: requests that still wait would disturb the next measurement."""
    with tempfile.TemporaryDirectory(dir=effort.disk) as data:
        subject = Subject(name, directory, flags=["--data-dir", f"{data}/store"] if flood.is_durable else [],
                          max_packet_bytes=effort.max_packet_bytes)
        try:
            flooding = subprocess.Popen([TOOLS / "bench_flood", "--port", str(subject.port), "--kind", flood.kind,
                                         "--clients", str(flood.n_clients), "--keys", str(effort.n_flood_keys),
                                         "--largest", str(effort.max_packet_bytes - PACKET_OVERHEAD), *flags],
                                        stdout=subprocess.PIPE, text=True)
            try:
                if flooding.stdout.readline() != "ready\n":
                    raise RuntimeError(f"{name}: the flood has not started")
                values = tools.load_with_patience(subject, effort.patience_ms, "--keys", 1, "--warm-up-ms", 100,
                                                  "--measure-ms", effort.measure_ms // 4)
                values["store_mb"] = subject.resident_bytes() / 1e6
                values["broker_mb"] = resident_bytes(subject.broker.child.pid) / 1e6
            finally:
                flooding.kill()
                flooding.communicate()
        finally:
            subject.stop()
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


def rows(figures, name, measured, shown, target=None):
    for label, figure in shown:
        figures.row(f"{name} {label}", f"flood_{name}_{figure}", "us", measured[""][figure],
                    [("unread", measured["unread"][figure])] if "unread" in measured else [], target)


@cores.left_to_servers()
def fairness(figures, directory, effort):
    figures.section("A client beside a flood below the capacity of broker and store", ("unread",))
    for kind, per_second in RATES.items():
        measured = measure(directory, kind, Flood(kind), effort, effort.n_flood_rounds, "--per-second",
                           str(per_second))
        rows(figures, f"{kind}_{per_second}", measured, [("p99", "p99_us")], ("<=", 3))

    figures.section("A client beside a flood at full speed; packets of "
                    f"{effort.max_packet_bytes:,} bytes, data directory", ("unread",))
    for flood in FLOODS:
        if effort.n_flood_rounds == 1 and flood.name != flood.kind:
            continue  # --quick: each kind once
        measured = measure(directory, f"full_{flood.name}", flood, effort,
                           0 if flood.is_event else effort.n_unread_rounds)
        rows(figures, flood.name, measured, [("p50", "p50_us"), ("worst", "max_us")])
        for figure, unit in (("without_reply", "1"), ("store_mb", "MB"), ("broker_mb", "MB")):
            figures.line(f"flood_{flood.name}_{figure}", max(measured[""][figure].values), unit)
