# SPDX-License-Identifier: Apache-2.0
"""Samples of the published clients, which a supervisor starts again when they end. They use the address of HAProxy. When a machine
is lost, they must go on. tests/published.sh builds them."""

import contextlib
import re
import threading
import time

from measured import measured, waits_text
from support.broker import free_port
from support.cluster import RESTART_SECONDS
from support.process import REPOSITORY, Process, wait_until

PROGRAMS = REPOSITORY / "build" / "published" / "programs"
NAMES = ("rust-sample", "go-sample")
KEEP_ALIVE_SECONDS = 10
N_COMPLETED = 3  # after a loss


class HaProxy(Process):
    """With the shipped configuration, except addresses."""

    def __init__(self, directory, cluster):
        super().__init__("haproxy", directory / "haproxy.log")
        self.port = free_port()
        path = directory / "haproxy.cfg"
        text = (REPOSITORY / "conf" / "cluster" / "haproxy.cfg").read_text()
        text = re.sub(r"(?m)^( *bind) :1883$", rf"\1 127.0.0.1:{self.port}", text)
        text = re.sub(r"(?m)^ *server [abc] .*\n", "", text)
        path.write_text(text + "".join(f"        server {one.name} 127.0.0.1:{one.broker.port} port {one.member.pages.port}\n"
                                       for one in cluster.members))
        self.spawn(["haproxy", "-db", "-f", path])


class Supervised(threading.Thread):
    """A sample that is started again when it ends, until stop(). With a clean start: the sample in Go ends without acknowledging
    its last messages, and hangs if the next process receives them, too."""

    def __init__(self, directory, name, port):
        super().__init__()
        self.process = Process(name, directory / f"{name}.log")
        self.environment = {"AIO_BROKER_HOSTNAME": "127.0.0.1", "AIO_BROKER_TCP_PORT": str(port), "AIO_MQTT_USE_TLS": "false",
                            "AIO_MQTT_CLIENT_ID": name, "AIO_MQTT_CLEAN_START": "true",
                            "AIO_MQTT_KEEP_ALIVE": str(KEEP_ALIVE_SECONDS)}
        self.completed = []  # when it has ended without an error
        self.n_failed = 0
        self._is_stopping = threading.Event()
        self.start()

    def run(self):
        while not self._is_stopping.is_set():
            self.process.spawn([PROGRAMS / self.process.name], self.environment)
            if self.process.child.wait() == 0:
                self.completed.append(time.monotonic())
            else:
                self.n_failed += 1
            self._is_stopping.wait(RESTART_SECONDS)

    def goes_on(self):
        """Wait until it has completed several times from now on. Return the seconds until the first time."""
        n, began = len(self.completed), time.monotonic()
        wait_until(lambda: len(self.completed) >= n + N_COMPLETED, f"{self.process.name} goes on")
        return self.completed[n] - began

    def stop(self):
        self._is_stopping.set()
        with contextlib.suppress(ProcessLookupError):
            self.process.child.kill()
        self.join()


def lose_machine(one, sample):
    one.is_restored()
    leader = one.cluster.wait_for_leader()
    leader.kill()
    seconds = sample.goes_on()
    leader.start()
    return seconds


def measure(run, name):
    with measured(run, n_counters=0) as one:
        proxy = HaProxy(run.directory, one.cluster)
        sample = Supervised(run.directory, name, proxy.port)
        try:
            sample.goes_on()
            seconds = [lose_machine(one, sample) for _ in range(run.n_rounds)]
            run.table.row(f"a machine is killed, {name} under a supervisor: until it has done its work once",
                          f"{waits_text(seconds)}; it ended with an error {sample.n_failed} times")
        finally:
            sample.stop()
            proxy.kill()


def samples(run):
    for name in NAMES:
        if (PROGRAMS / name).exists():
            measure(run.below(name), name)
        else:
            run.table.row(f"{name} under a supervisor", "not measured: tests/published.sh builds it")
