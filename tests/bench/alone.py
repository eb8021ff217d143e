# SPDX-License-Identifier: Apache-2.0
"""The engine without a broker, and the memory of keys in statestored and in Redis.

Targets are for what a client or an operator sees: the longest stall, and memory. The engine's rates and allocations
have none: the broker passes on about 20,000 requests a second, and the engine does over 20 times as many, so no client
sees them.
"""

import subprocess
import time

import tools
from figures import Series
from subjects import Redis, Subject

# Replies are remembered for 60 s. In the remaining 5 s the store forgets them.
REMEMBERED_S = 65

POLICIES = [("100", "GET, 100 rules"), ("1000", "GET, 1,000 rules"),
            ("100_wildcards", "GET, 100 rules, star first"), ("1000_wildcards", "GET, 1,000 rules, star first")]

RATES = [("get_uniform", "GET, uniform"), ("get_zipf", "GET, zipf"), ("set_uniform", "SET, uniform"),
         ("set_zipf", "SET, zipf")]


def part(name, n_keys, n_rounds):
    printed = tools.run("bench_engine", "--part", name, "--keys", n_keys, "--rounds", n_rounds)
    return {name: Series(values) for name, values in printed.items()}


def part_in_fresh_processes(name, n_keys, n_rounds):
    """The first round of each process: later rounds would reuse memory of earlier ones."""
    rounds = [tools.run("bench_engine", "--part", name, "--keys", n_keys, "--rounds", 1) for _ in range(n_rounds)]
    return {name: Series(printed[name][0] for printed in rounds) for name in rounds[0]}


def engine(figures, directory, effort):
    figures.section(f"The engine alone, one core, {effort.n_keys:,} keys; yardstick: as many dependent reads of random "
                    "places in memory", ("reads",))
    rates = part("rates", effort.n_keys, effort.n_rounds)
    for name, label in RATES:
        figures.row(label, f"engine_{name}", "1/s", rates[f"{name}_per_s"], [("reads", rates["reads_per_s"])])

    figures.section("Allocations, and how long one step makes other requests wait")
    for name, label in RATES:
        figures.row(f"allocations a {label}", f"engine_{name}_allocations", "1", rates[f"{name}_allocations"])

    growth = part_in_fresh_processes("growth", 5 * effort.n_keys, effort.n_rounds)
    figures.row(f"longest step, 0 to {5 * effort.n_keys:,}", "growth_step_max", "ms", growth["growth_step_max_ms"],
                target=("<=", 2))
    figures.line("growth_step_cpu_max", growth["growth_step_cpu_max_ms"].median, "ms")
    figures.line("growth", growth["growth_s"].median, "s")

    expiry = part("expiry", effort.n_keys, effort.n_rounds)
    figures.row(f"{effort.n_keys:,} expire in 1 s: stall", "expiry_tick_max", "ms", expiry["expiry_tick_max_ms"],
                target=("<=", 5))
    figures.line("expiry_tick_cpu_max", expiry["expiry_tick_cpu_max_ms"].median, "ms")
    figures.row("greatest delay of a key", "expiry_latest", "ms", expiry["expiry_latest_ms"], target=("<=", 1000))
    figures.row("all in 1 ms: stall", "expiry_burst_tick_max", "ms", expiry["expiry_burst_tick_max_ms"],
                target=("<=", 5))
    figures.line("expiry_burst_tick_cpu_max", expiry["expiry_burst_tick_cpu_max_ms"].median, "ms")
    figures.row("greatest delay of a key", "expiry_burst_latest", "ms", expiry["expiry_burst_latest_ms"],
                target=("<=", 1000))

    policies = part("policy", max(1000, effort.n_keys // 10), effort.n_rounds)
    figures.section("The same under a policy", ("no_policy",))
    for name, label in POLICIES:
        figures.row(label, f"engine_get_policy_{name}", "1/s", policies[f"get_policy_{name}_per_s"],
                    (("no_policy", policies["get_no_policy_per_s"]),))


def fill_redis(redis, n_keys):
    """The same keys and values as bench_load's."""
    pipe = subprocess.Popen(["redis-cli", "-p", str(redis.port), "--pipe"], stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL)
    value = b"v" * 100
    for first in range(0, n_keys, 10_000):
        pipe.stdin.write(b"".join(b"*3\r\n$3\r\nSET\r\n$20\r\nbench-00%012d\r\n$100\r\n%s\r\n" % (key, value)
                                  for key in range(first, min(first + 10_000, n_keys))))
    pipe.stdin.close()
    if pipe.wait():
        raise RuntimeError("redis-cli has failed")
    count = subprocess.run(["redis-cli", "-p", str(redis.port), "DBSIZE"], stdout=subprocess.PIPE, text=True,
                           check=True)
    assert int(count.stdout) == n_keys, count.stdout


def memory(figures, directory, effort):
    subject, redis = Subject("statestored_full", directory), Redis(directory)
    try:
        tools.fill(subject, effort.n_resident)
        begin = time.monotonic()
        fill_redis(redis, effort.n_resident)
        figures.section(f"Memory, {effort.n_resident:,} keys of 20 bytes with values of 100", ("redis",))
        loaded, redis_loaded = (Series([process.resident_bytes() / 2**20]) for process in (subject, redis))
        figures.row("resident, replies remembered", "memory_resident_loaded", "MiB", loaded,
                    [("redis", redis_loaded)], ("<=", 1.30))
        alone = part("memory", effort.n_resident, 1)
        if effort.waits_for_replies:
            time.sleep(max(0, begin + REMEMBERED_S - time.monotonic()))
        forgotten = Series([subject.resident_bytes() / 2**20])
        figures.row("resident, replies forgotten", "memory_resident", "MiB", forgotten,
                    [("redis", redis_loaded)], ("<=", 1.10))
    finally:
        redis.stop()
        subject.stop()
    figures.row("engine alone, a key", "memory_engine_key", "bytes", alone["resident_bytes_per_key"])
