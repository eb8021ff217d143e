# SPDX-License-Identifier: Apache-2.0
"""From SET to the last notification, against the broker's own fan-out of one message to as many subscribers."""

import time

import cores
import tools
from figures import Series
from subjects import Subject
from support.client import Client

# Number of watchers, and rounds of one measurement.
WATCHERS = [(1, 200), (100, 40), (1000, 8)]

# Of the keys whose expiry is measured, one after the other.
TTLS_MS = range(40, 157, 13)


def measure(subject, n_watchers, n_repeated, *flags):
    return tools.run("bench_notify", "--port", subject.port, "--watchers", n_watchers, "--rounds", n_repeated,
                     *flags)["last_told_us"][0]


def expiry_lateness(subject):
    """From each deadline to its notification, at an idle store, in ms."""
    client = Client(subject.port, f"watches-{subject.name}")
    try:
        client.watch("expires")
        for ttl_ms in TTLS_MS:
            begin = time.monotonic()
            client.request("SET", "expires", "value", "PX", ttl_ms)
            client.notification()
            yield (client.notification().time - begin) * 1000 - ttl_ms
    finally:
        client.close()


@cores.left_to_servers()
def notifications(figures, directory, effort):
    subjects = [(Subject("watched_direct", directory), "with plugin", ["--direct"]),
                (Subject("watched_plain", directory, plugin=False), "without", [])]
    figures.section("From a SET to the last one told", ("fan_out",))
    try:
        for n_watchers, n_repeated in WATCHERS[:effort.n_watcher_sizes]:
            for subject, label, flags in subjects:
                told, fanned = [], []
                for _ in range(effort.n_rounds):
                    told.append(measure(subject, n_watchers, n_repeated, *flags))
                    fanned.append(measure(subject, n_watchers, n_repeated, "--fan-out"))
                figures.row(f"{n_watchers} watchers, {label}", f"notify_{n_watchers}_{label.replace(' ', '_')}", "us",
                            Series(told), [("fan_out", Series(fanned))])
        figures.section("From a deadline to its notification, at an idle store")
        for subject, label, _ in subjects:
            figures.row(f"an expiry, {label}", f"expiry_late_{label.replace(' ', '_')}", "ms",
                        Series(expiry_lateness(subject)), target=("<=", 50))
    finally:
        for subject, _, _ in subjects:
            subject.stop()
