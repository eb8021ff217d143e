# SPDX-License-Identifier: Apache-2.0
"""How long the next leader loads the keys."""

import contextlib
import re
import signal
from pathlib import Path

from measured import VALUE, fill, status_of
from support.cluster import Cluster

MIB = 1 << 20


def resident_mib(process):
    kib = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.child.pid}/status").read_text()).group(1)
    return int(kib) * 1024 // MIB


def load(run):
    for n_keys in run.n_keys:
        with contextlib.closing(Cluster(run.below(str(n_keys)).directory)) as cluster:
            leader = cluster.wait_for_leader()
            fill(leader.broker.port, n_keys)
            other = cluster.other_than(leader)
            leader.member.end_process(signal.SIGUSR2)
            cluster.wait_for_leader(other)
            load_ms = other.member.wait_for_log(r"load_ms=(\d+)").group(1)
            run.table.row(f"{n_keys} keys of {len(VALUE)} bytes are loaded",
                          f"{load_ms} ms; etcd: {resident_mib(other.etcd)} MiB of memory, "
                          f"{status_of(other.etcd)['dbSize'] // MIB} MiB of file; store: {resident_mib(other.member)} MiB")
