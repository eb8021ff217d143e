# SPDX-License-Identifier: Apache-2.0
"""Time from SET to the last notification, compared with the broker's fan-out of one message to as many subscribers.

One watcher is also compared with a reply of the null responder: like the notification, it passes through the broker twice.
"""

import time

import cores
import tools
from figures import Series
from subjects import TOOLS, Subject
from support.client import Client

# Number of watchers, rounds of one measurement, and the target with the plugin: the ratio to the broker's own fan-out.
WATCHERS = [(1, 200, 2.0), (100, 40, 1.25), (1000, 8, 1.25)]

# TTLs of the keys whose expiry is measured one after the other.
TTLS_MS = range(40, 157, 13)


def measure(subject, n_watchers, n_repeated, *flags):
    return tools.run("bench_notify", "--port", subject.port, "--watchers", n_watchers, "--rounds", n_repeated,
                     *flags)["last_notified_us"][0]


def reply_time(null, effort):
    return tools.load(null, 1, 1, "--get-percent", 0, "--measure-ms", effort.measure_ms // 4)["p50_us"]


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
                (Subject("watched_plain", directory, plugin=None), "without", [])]
    null = Subject("replying", directory, TOOLS / "null_responder", plugin=None)
    figures.section("From a SET to the last notification", ("fan_out", "null"))
    try:
        for n_watchers, n_repeated, ratio in WATCHERS[:effort.n_watcher_sizes]:
            for subject, label, flags in subjects:
                notified, fanned_out, replied = [], [], []
                for _ in range(effort.n_rounds):
                    notified.append(measure(subject, n_watchers, n_repeated, *flags))
                    fanned_out.append(measure(subject, n_watchers, n_repeated, "--fan-out"))
                    if n_watchers == 1:
                        replied.append(reply_time(null, effort))
                yardsticks = [("fan_out", Series(fanned_out))]
                if replied:
                    yardsticks.append(("null", Series(replied)))
                figures.row(f"{n_watchers} watchers, {label}", f"notify_{n_watchers}_{label.replace(' ', '_')}", "us",
                            Series(notified), yardsticks,
                            target=("<=", ratio) if "--direct" in flags else None)
        figures.section("From a deadline to its notification, at an idle store")
        for subject, label, _ in subjects:
            figures.row(f"an expiry, {label}", f"expiry_late_{label.replace(' ', '_')}", "ms",
                        Series(expiry_lateness(subject)), target=("<=", 50))
    finally:
        for subject in (null, *(subject for subject, _, _ in subjects)):
            subject.stop()
