# SPDX-License-Identifier: Apache-2.0
"""The worst floods of tests/bench, while the disks of etcd are slow: the leader must not change."""

import contextlib
import re
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import tools
from measured import BenchSubject, measured
from subjects import PLUGIN, TOOLS, ConfiguredBroker
from support.process import killed_with_parent, wait_until

# Kind, and number of clients.
FLOODS = [("set_largest", 16), ("set_small", 16), ("watched_largest", 1), ("get_largest", 16), ("scan_many_keys", 16)]

N_FLOOD_KEYS = 20_000
MAX_PACKET_BYTES = 1 << 20
LARGEST_BYTES = 390_000  # an entry has at most a quarter of what etcd accepts in a request, by default 1.5 MiB
PATIENCE_MS = 30_000
SYNC_US = 30_000  # each fdatasync
LONG_SYNC_US = 2_000_000  # one a minute
MINUTE = 60

# As conf/CLUSTER.md says for slow disks.
FLAGS = ["--lease", "10s"]
ETCD_FLAGS = ["--heartbeat-interval", "500", "--election-timeout", "5000"]


class SlowDisk(threading.Thread):
    """Delays each fdatasync of a process, and one a minute for longer, until stop()."""

    def __init__(self, pid, first_long_after):
        super().__init__()
        self.pid = pid
        self.n_long = 0
        self._seconds = first_long_after
        self._is_stopping = threading.Event()
        self.start()

    def run(self):
        while not self._is_stopping.is_set():
            with delayed(self.pid, SYNC_US):
                self._is_stopping.wait(self._seconds)
            if not self._is_stopping.is_set():
                with delayed(self.pid, LONG_SYNC_US) as printed:
                    wait_until(lambda: "fdatasync" in printed.read() or self._is_stopping.is_set(), "etcd syncs")
                self.n_long += 1
            self._seconds = MINUTE

    def stop(self):
        self._is_stopping.set()
        self.join()


@contextlib.contextmanager
def delayed(pid, delay_us):
    """Delay each fdatasync of a process. Yields a file with a line for each one that has begun."""
    with tempfile.NamedTemporaryFile("r") as printed:
        strace = subprocess.Popen(killed_with_parent(
            ["strace", "-f", "-qq", "-p", pid, "-o", printed.name, "-e", "trace=fdatasync", "-e",
             f"inject=fdatasync:delay_enter={delay_us}"]))
        try:
            yield printed
        finally:
            strace.send_signal(signal.SIGINT)  # it continues the process
            strace.wait()


def written_bytes(process):
    return int(re.search(r"(?m)^write_bytes: (\d+)", Path(f"/proc/{process.child.pid}/io").read_text()).group(1))


def victim_beside(leader, kind, n_clients, seconds):
    flood = subprocess.Popen([TOOLS / "bench_flood", "--port", str(leader.broker.port), "--kind", kind, "--clients", str(n_clients),
                              "--keys", str(N_FLOOD_KEYS), "--largest", str(LARGEST_BYTES)],
                             stdout=subprocess.PIPE, text=True)
    try:
        assert flood.stdout.readline() == "ready\n", f"{kind}: the flood has not started"
        return tools.load_with_patience(BenchSubject(leader), PATIENCE_MS, "--keys", 1, "--warm-up-ms", 100, "--measure-ms",
                                        int(1000 * seconds))
    finally:
        flood.kill()
        flood.communicate()


def flood_one(run, kind, n_clients, seconds):
    """A cluster of its own: requests that still wait would disturb the next flood."""
    what = f"flood {kind}, {n_clients} clients, slow disks"
    with measured(run, flags=FLAGS, etcd_flags=ETCD_FLAGS, n_counters=0,
                  make_broker=lambda directory: ConfiguredBroker(directory, PLUGIN, MAX_PACKET_BYTES)) as one:
        leader, etcds = one.leader, [machine.etcd for machine in one.cluster.machines]
        disks = [SlowDisk(etcd.child.pid, MINUTE * n / len(etcds)) for n, etcd in enumerate(etcds, 1)]
        try:
            before, metrics = sum(map(written_bytes, etcds)), leader.member.pages.metrics()
            values = victim_beside(leader, kind, n_clients, seconds)
            written = sum(map(written_bytes, etcds)) - before
        finally:
            for disk in disks:
                disk.stop()
        after = one.cluster.wait_for_leader().member.pages.metrics()
        n_commits = after["statestore_commit_seconds_count"] - metrics["statestore_commit_seconds_count"]
        run.table.row(what, f"{seconds:.0f} s: p50 {values['p50_us'] / 1000:.0f} ms, p99 {values['p99_us'] / 1000:.0f} ms, longest "
                            f"{values['max_us'] / 1000:.0f} ms; each etcd wrote {written / len(etcds) / 1e6:.0f} MB in "
                            f"{n_commits:.0f} commits; {sum(disk.n_long for disk in disks)} long syncs")
        run.table.faults(f"{what}: failovers", int(after["statestore_term"] - metrics["statestore_term"]))


def floods(run):
    for kind, n_clients in FLOODS:
        flood_one(run.below(kind), kind, n_clients, run.flood_seconds / len(FLOODS))
