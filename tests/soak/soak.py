# SPDX-License-Identifier: Apache-2.0
"""Clients that connect and disconnect, for minutes or hours; started by tests/soak.sh.

usage: soak.py [MINUTES | --quick] [--durable]
"""

import argparse
import dataclasses
import statistics
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent.parent / "bench")]

from churn import DISCONNECTS_PER_S, N_CONNECTED, N_IDS, REQUESTS_PER_S, Churn  # noqa: E402
from subjects import Subject, resident_bytes  # noqa: E402

# Memory grows for the first two minutes, because replies are remembered for that long. One more is a margin.
WARM_UP_MINUTES = 3
MINUTES_MIN = 2 * WARM_UP_MINUTES

MINUTE_S = 60
QUICK_MINUTE_S = 2
QUICK_MINUTES = 10

# The median of the last minutes is compared, so that one disturbed minute does not count.
N_LAST = 3

KIB = 1024


@dataclasses.dataclass
class Minute:
    broker_life: int  # number of restarts of the broker before this minute
    store_bytes: int
    broker_bytes: int
    store_descriptors: int
    broker_descriptors: int  # without those of the clients
    p50_ms: float
    p99_ms: float


# Name; function from the value in the first minute after the warm-up to the highest allowed value at the end; whether
# the comparison starts again with each start of the broker.
JUDGED = [
    ("store_bytes", lambda first: first * 1.05 + 512 * KIB, False),
    ("broker_bytes", lambda first: first * 1.05 + 512 * KIB, True),
    ("store_descriptors", lambda first: first, False),
    ("broker_descriptors", lambda first: first + 5, True),  # of clients that are disconnecting
    ("p50_ms", lambda first: 2 * first + 1, False),
    ("p99_ms", lambda first: 3 * first + 10, False),
]


def n_descriptors(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def percentile(values, part):
    return sorted(values)[int(len(values) * part)] * 1000


def measure(subject, churn, life):
    latencies, churn.latencies = churn.latencies, []
    broker_pid = subject.broker.child.pid
    return Minute(life, subject.resident_bytes(), resident_bytes(broker_pid), n_descriptors(subject.pid),
                  n_descriptors(broker_pid) - len(churn.clients), percentile(latencies, 0.5),
                  percentile(latencies, 0.99))


def restart_broker(subject):
    """Restart the broker, and wait until the store has subscribed again."""
    seen = len(subject.responder.log())
    subject.broker.stop()
    subject.broker.start_again()
    subject.responder.wait_for_log("ready: serving", after=seen)


def run(subject, churn, n_minutes, minute_s):
    minutes, life = [], 0

    print(" minute  store MiB   fds  broker MiB   fds   p50 ms   p99 ms  requests  disconnected  notified", flush=True)
    for n in range(n_minutes):
        n_steps, n_disconnected, n_notifications = churn.n_steps, sum(churn.n_disconnected.values()), churn.n_notifications
        if n == n_minutes // 2:
            restart_broker(subject)
            life += 1
        churn.run_for(minute_s)
        minute = measure(subject, churn, life)
        minutes.append(minute)
        print(f"{n + 1:7}{minute.store_bytes / KIB ** 2:11.2f}{minute.store_descriptors:6}"
              f"{minute.broker_bytes / KIB ** 2:12.2f}{minute.broker_descriptors:6}{minute.p50_ms:9.2f}"
              f"{minute.p99_ms:9.2f}{churn.n_steps - n_steps:10}{sum(churn.n_disconnected.values()) - n_disconnected:14}"
              f"{churn.n_notifications - n_notifications:10}", flush=True)
    return minutes


def judge(minutes, name, limit_of):
    """Return whether the median of the last minutes is within the limit."""
    values = [getattr(minute, name) for minute in minutes[WARM_UP_MINUTES:]]
    if len(values) < 2:
        return True
    first, last = values[0], statistics.median(values[1:][-N_LAST:])
    limit = limit_of(first)
    is_flat = last <= limit
    print(f"{'ok' if is_flat else 'GREW':5} {name:20} {first:12.2f} after the warm-up, {last:12.2f} in the end, "
          f"limit {limit:12.2f}")
    return is_flat


def stayed_flat(minutes):
    is_flat = True
    for name, limit_of, is_anew in JUDGED:
        lives = sorted({minute.broker_life for minute in minutes}) if is_anew else [None]
        for life in lives:
            is_flat &= judge([minute for minute in minutes if life in (None, minute.broker_life)], name, limit_of)
    return is_flat


def has_no_errors(subject, churn):
    is_well = all(churn.n_disconnected.values())
    print("left: " + ", ".join(f"{way.__name__.removeprefix('by_')} {n}" for way, n in churn.n_disconnected.items()))
    for what, n in (("repeated notifications", churn.n_repeated), ("requests that were refused", churn.n_wrong),
                    ("errors in the store's log", subject.responder.log().count(" level=error "))):
        print(f"{'ok' if n == 0 else 'WRONG':5} {n} {what}")
        is_well &= n == 0
    return is_well


def main():
    parser = argparse.ArgumentParser(prog="soak.sh")
    parser.add_argument("minutes", nargs="?", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="minutes of two seconds: checks that the test works; growth "
                                                             "is not checked")
    parser.add_argument("--durable", action="store_true", help="with a data directory")
    arguments = parser.parse_args()
    n_minutes, minute_s = (QUICK_MINUTES, QUICK_MINUTE_S) if arguments.quick else (arguments.minutes, MINUTE_S)
    if n_minutes < MINUTES_MIN:
        parser.error(f"{MINUTES_MIN} minutes at least: the first {WARM_UP_MINUTES} are not compared")

    print(f"{N_IDS} client ids, {N_CONNECTED} connected, {REQUESTS_PER_S} requests and {DISCONNECTS_PER_S} disconnects a "
          f"second; the broker is restarted after {n_minutes // 2} minutes", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        subject = Subject("soak", directory, flags=["--data-dir", f"{directory}/data"] if arguments.durable else [])
        churn = Churn(subject.port, seed=1)
        try:
            minutes = run(subject, churn, n_minutes, minute_s)
            is_flat = arguments.quick or stayed_flat(minutes)
            is_well = has_no_errors(subject, churn)
        finally:
            churn.close()
            subject.stop()
    print("soak passed" if is_flat and is_well else "soak FAILED")
    return 0 if is_flat and is_well else 1


if __name__ == "__main__":
    sys.exit(main())
