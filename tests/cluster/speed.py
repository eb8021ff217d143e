# SPDX-License-Identifier: Apache-2.0
"""What a SET takes in a cluster, relative to a store in memory and a transaction of etcd: by turns, so that a slow second of the
machine slows all down."""

import base64
import json
import os
import statistics
from pathlib import Path

import tools
from measured import BenchSubject, measured
from subjects import PLUGIN, ConfiguredBroker, Subject
from support.cluster import etcdctl

TARGET = 1.15
TURNS = ["--turns", 10, "--warm-up-ms", 50, "--measure-ms", 200]
ETCD_MS = 2000


def median(values):
    return statistics.median(values)


def cpu_us(process):
    """CPU time until now."""
    fields = Path(f"/proc/{process.child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000 / os.sysconf("SC_CLK_TCK")


def sizes_of_last_set(url):
    """Return the bytes of each key and its value that the commit of the last SET has written."""
    keys = json.loads(etcdctl(url, "get", "--prefix", "/statestore/", "--write-out", "json"))["kvs"]
    newest = max(key["mod_revision"] for key in keys if base64.b64decode(key["key"]).startswith(b"/statestore/entry/"))
    return [sum(len(base64.b64decode(key[part])) for part in ("key", "value")) for key in keys if key["mod_revision"] == newest]


def transaction_us(url, sizes, *arguments):
    puts = [word for size in sizes for word in ("--put", size)]
    return tools.run("bench_etcd", "--etcd", url, *puts, "--measure-ms", ETCD_MS, *arguments)["p50_us"][0]


def one_client(run, memory, cluster, url):
    memory_us, cluster_us, etcd_us, alternate_us = [], [], [], []
    for _ in range(run.n_rounds):
        for subject, values in tools.load_by_turns([memory, cluster], 1, 1, "--keys", 1, "--get-percent", 0, *TURNS):
            (memory_us if subject is memory else cluster_us).append(values["p50_us"])
        sizes = sizes_of_last_set(url)
        etcd_us.append(transaction_us(url, sizes))
        alternate_us.append(transaction_us(url, sizes, "--port", memory.port))
    to_sum = median(set_us / (in_memory_us + txn_us) for set_us, in_memory_us, txn_us in zip(cluster_us, memory_us, etcd_us))
    to_both = median(set_us / both_us for set_us, both_us in zip(cluster_us, alternate_us))
    run.table.row(f"p50 of a SET / (in memory + a transaction of {'+'.join(map(str, sizes))} bytes), target {TARGET}",
                  f"{to_sum:.2f}: {median(cluster_us):.0f} us / ({median(memory_us):.0f} us + {median(etcd_us):.0f} us)")
    run.table.row("the same / a SET in memory and such a transaction, which alternate",
                  f"{to_both:.2f}: {median(cluster_us):.0f} us / {median(alternate_us):.0f} us")


def many_clients(run, memory, cluster, etcds):
    throughputs = {memory: [], cluster: []}
    store_us, all_etcd_us = {memory: [], cluster: []}, []
    for _ in range(run.n_rounds):
        before = sum(map(cpu_us, etcds))
        for subject, values in tools.load_by_turns([memory, cluster], 16, 16, *TURNS):
            throughputs[subject].append(values["throughput"])
            store_us[subject].append(values["responder_cpu_us"])
        all_etcd_us.append((sum(map(cpu_us, etcds)) - before) / values["requests"])
    ratio = median(ours / theirs for ours, theirs in zip(throughputs[cluster], throughputs[memory]))
    run.table.row("16x16, half SETs: throughput / in memory",
                  f"{ratio:.2f}: {median(throughputs[cluster]):.0f}/s / {median(throughputs[memory]):.0f}/s; CPU of a request: "
                  f"store {median(store_us[cluster]):.1f} us, in memory {median(store_us[memory]):.1f} us, "
                  f"all etcd {median(all_etcd_us):.1f} us")


def speed(run):
    with measured(run, n_counters=0, make_broker=lambda directory: ConfiguredBroker(directory, PLUGIN, None)) as one:
        memory = Subject("memory", run.directory)
        try:
            cluster = BenchSubject(one.leader)
            one_client(run, memory, cluster, one.leader.etcd.url)
            many_clients(run, memory, cluster, [machine.etcd for machine in one.cluster.machines])
        finally:
            memory.stop()
