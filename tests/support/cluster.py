# SPDX-License-Identifier: Apache-2.0
"""Machines that share a state in etcd, on the loopback interface or each in a network of its own.

A machine is an etcd, a mosquitto with the plugin that starts again after a failure, and a member: a statestored that starts again
when it ends, as systemd does.
A witness has only an etcd. Killing a machine kills all its processes.
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from support.broker import free_port
from support.network import Lan
from support.pages import Pages
from support.process import STATESTORED, Process, wait_until
from support.proxy import Proxy
from support.site import SiteBroker
from support.stepped_clock import SteppedClock
from support.wire_client import WireClient

RESTART_SECONDS = 0.2  # as in statestored.service

# A suspended process accepts connections and does not answer.
PAGE_SECONDS = 1


class Loopback:
    """The host of all machines: see network.Host for one that is connected with others."""

    address = peer_address = "127.0.0.1"
    entered = contextlib.nullcontext

    @staticmethod
    def port(_):
        return free_port()


class Etcd(Process):
    """One etcd of several. `flags`: further ones of each. scheme: http or https, of the URL for clients."""

    def __init__(self, directory, name, host, flags=(), scheme="http"):
        directory = Path(directory)
        super().__init__(name, directory / "etcd.log")
        self.directory = directory / "etcd"
        self.scheme = scheme
        self.host = host
        self.port = host.port(2379)
        self.url = self.url_at(self.port)
        self.peer_url = f"http://{host.peer_address}:{host.port(2380)}"
        self.health = Pages(host.port(2381), PAGE_SECONDS, host.entered)  # without TLS
        self.flags = flags
        self.cluster = None  # the name and peer URL of each

    def url_at(self, port):
        return f"{self.scheme}://{self.host.address}:{port}"

    def start(self):
        self.spawn(["etcd", "--name", self.name, "--data-dir", self.directory, "--listen-client-urls", self.url,
                    "--advertise-client-urls", self.url, "--listen-peer-urls", self.peer_url,
                    "--initial-advertise-peer-urls", self.peer_url, "--initial-cluster", self.cluster,
                    "--listen-metrics-urls", f"http://127.0.0.1:{self.health.port}", *self.flags])
        return self

    def ctl(self, *arguments):
        """Run etcdctl on its host, and return what it prints."""
        with self.host.entered():
            return etcdctl(self.url, *arguments)

    def answers(self):
        """Return whether this etcd is healthy: most of all are reachable."""
        assert self.running(), f"etcd has ended\n{self.log()}"
        with contextlib.suppress(OSError):
            return self.health.get("/health")[0] == 200
        return False


def make_room(etcds):
    """Remove the former values of all keys, and allow writes again."""
    url = etcds[0].url
    revision = json.loads(etcdctl(url, "get", "no key", "--write-out", "json"))["header"]["revision"]
    with contextlib.suppress(subprocess.CalledProcessError):  # the store may just have let etcd compact the same revision
        etcdctl(url, "compact", revision)
    for etcd in etcds:  # each compacts by itself, later: before that, it frees nothing
        etcd.wait_for_log(rf"finished scheduled compaction.*\b{revision}\b")
        etcdctl(etcd.url, "defrag")
    etcdctl(url, "alarm", "disarm")


def etcdctl(url, *arguments):
    """Run etcdctl, and return what it prints."""
    return subprocess.run(["etcdctl", "--endpoints", url, *map(str, arguments)], env={**os.environ, "ETCDCTL_API": "3"},
                          check=True, capture_output=True, text=True).stdout


class Member(Process):
    """A statestored of a cluster, in the words of systemd: Restart=always, and RUNTIME_DIRECTORY."""

    def __init__(self, directory, name, pages, broker_port, flags, environment):
        self.directory = Path(directory)
        self.directory.mkdir()
        super().__init__(name, self.directory / "statestored.log")
        self.pages = pages
        self.command = [STATESTORED, "--host", "127.0.0.1", "--port", broker_port, "--member", name, "--require-plugin", "on",
                        "--http-listen", f"127.0.0.1:{self.pages.port}", *flags]
        self.environment = {"RUNTIME_DIRECTORY": str(self.directory), **environment}
        self.exit_codes = []  # of the processes that have ended
        self._supervisor = None
        self._is_stopping = threading.Event()

    def start(self):
        """Start it, and start it again whenever it ends."""
        self._is_stopping.clear()
        # Lives as long as its processes: killed_with_parent(). They start in the network in which this thread does.
        self._supervisor = threading.Thread(target=self._supervise)
        self._supervisor.start()
        wait_until(lambda: self.child, f"{self.name} starts")
        return self

    def _supervise(self):
        while not self._is_stopping.is_set():
            self.spawn(self.command, self.environment)
            self.exit_codes.append(self.child.wait())
            self._is_stopping.wait(RESTART_SECONDS)

    def signal_and_wait(self, number):
        """End it by this signal for good. Return the exit code."""
        self._is_stopping.set()
        wait_until(lambda: not self._supervisor.is_alive() or self._send(number), f"{self.name} ends")
        self._supervisor.join()
        self.child = None
        return self.exit_codes[-1]

    def _send(self, number):
        """Send the signal to the present process, if there is one. Return whether it ends."""
        with contextlib.suppress(ProcessLookupError):
            self.send_signal(number)
        self._supervisor.join(PAGE_SECONDS)
        return not self._supervisor.is_alive()

    def end_process(self, number=signal.SIGKILL):
        """End the present process by this signal, and wait until it has ended. Another one follows."""
        n_ended = len(self.exit_codes)
        self.send_signal(number)
        wait_until(lambda: len(self.exit_codes) > n_ended, f"{self.name} ends on signal {number}")

    def readiness(self):
        """Return the status and text of /readyz, or None without an answer."""
        with contextlib.suppress(OSError):
            status, text = self.pages.get("/readyz")
            return status, text.strip()
        return None

    def is_ready(self):
        return (self.readiness() or (0, ""))[0] == 200

    def waits_for(self, text):
        """Return whether it says on /readyz that it does not serve, for a reason that contains the text."""
        status, reason = self.readiness() or (0, "")
        return status == 503 and text in reason


class RestartedBroker(SiteBroker):
    """Starts again after a failure, as with Restart=on-failure in mosquitto.service."""

    def start(self):
        super().start()
        threading.Thread(target=self._restart, args=(self.child,), daemon=True).start()
        return self

    def _restart(self, child):
        """Runs as long as the processes that it starts: killed_with_parent()."""
        while child.wait() == 1 and self.child is child:
            time.sleep(RESTART_SECONDS)
            if self.child is child:
                self.starts()
                child = self.child


class Machine:
    """host: where it is connected to others."""

    def __init__(self, directory, name, host, *etcd):
        self.name = name
        self.directory = Path(directory) / name
        self.directory.mkdir()
        self.host = host
        self.etcd = Etcd(self.directory, name, host, *etcd)
        self.broker = self.member = None
        self.clock = None  # the system clocks of the member, if the test can step them
        self.proxies = []  # between the member and each etcd, if there are any
        self.broker_proxy = None  # between the member and the broker

    def processes(self):
        return [process for process in (self.etcd, self.broker, self.member) if process]

    def kill(self):
        """Kill all processes of the machine at once."""
        running = [process for process in self.processes() if process.child]
        if self.member in running:
            self.member._is_stopping.set()
        for process in running:
            process.send_signal(signal.SIGKILL)
        for process in running:
            process.kill()

    def start(self):
        """Start all processes that do not run."""
        with self.host.entered():
            for process in self.processes():
                if not process.child:
                    process.start()

    def connect(self, client_id=None, **more):
        """Return a client on this machine that is connected to its broker."""
        with self.host.entered():
            return WireClient(self.broker.port, client_id, **more)


class Cluster:
    """Machines "a", "b", ...; the last ones are witnesses. flags: of each member, in which {name} is that of its machine.
    has_proxies: members reach etcd and their brokers through proxies, which can interrupt and lose replies: machine.proxies and
    machine.broker_proxy. has_clocks: the test can step the clocks of each member: machine.clock. has_lan: each machine is a host
    of a LAN, machine.host, and not in the network of the test. make_broker: makes a broker in a directory."""

    def __init__(self, directory, n_members=2, n_witnesses=1, flags=(), etcd_flags=(), scheme="http", has_proxies=False,
                 has_clocks=False, has_lan=False, make_broker=RestartedBroker):
        names = [chr(ord("a") + n) for n in range(n_members + n_witnesses)]
        self.lan = Lan(names) if has_lan else None
        hosts = self.lan.hosts.values() if has_lan else itertools.repeat(Loopback)
        self.machines = [Machine(directory, name, host, etcd_flags, scheme) for name, host in zip(names, hosts)]
        self.members = self.machines[:n_members]
        self.clients = []
        try:
            self._start_etcd()
            for machine in self.members:
                machine.broker = make_broker(machine.directory)
                if has_clocks:
                    machine.clock = SteppedClock(machine.directory)
                self._add_member(machine, has_proxies, flags)
                machine.start()
        except BaseException:
            self.close()
            raise

    def _start_etcd(self):
        for machine in self.machines:
            machine.etcd.cluster = ",".join(f"{one.name}={one.etcd.peer_url}" for one in self.machines)
            machine.start()
        self.wait_for_etcd()

    def wait_for_etcd(self):
        wait_until(lambda: all(machine.etcd.answers() for machine in self.machines), "etcd answers")

    def _add_member(self, machine, has_proxies, flags):
        etcds = [one.etcd for one in sorted(self.machines, key=lambda one: one is not machine)]
        urls, broker_port = [etcd.url for etcd in etcds], machine.broker.port
        if has_proxies:
            machine.proxies = [Proxy(etcd.port) for etcd in etcds]
            machine.broker_proxy = Proxy(broker_port)
            urls = [etcd.url_at(proxy.port) for etcd, proxy in zip(etcds, machine.proxies)]
            broker_port = machine.broker_proxy.port
        pages = Pages(machine.host.port(9464), PAGE_SECONDS, machine.host.entered)
        machine.member = Member(machine.directory / "member", machine.name, pages, broker_port,
                                ["--etcd", ",".join(urls), *(flag.format(name=machine.name) for flag in flags)],
                                machine.clock.environment() if machine.clock else {})

    def leader(self, candidates=None):
        """Return the machine whose member serves, or None."""
        candidates = candidates or self.members
        return next((machine for machine in candidates if machine.member.child and machine.member.is_ready()), None)

    def wait_for_leader(self, wanted=None):
        """Wait until the member of a machine serves: of any one, or of this one. Return the machine."""
        return wait_until(lambda: self.leader([wanted] if wanted else None), f"{wanted.name if wanted else 'a member'} leads")

    def other_than(self, machine):
        """Return the other machine, of two with members."""
        [other] = [one for one in self.members if one is not machine]
        return other

    def close(self):
        for client in self.clients:
            client.close()
        for machine in self.machines:
            machine.kill()
            with contextlib.suppress(FileNotFoundError):  # it was not started
                shutil.rmtree(machine.etcd.directory)  # more than 64 MiB; the logs stay
            for proxy in filter(None, [*machine.proxies, machine.broker_proxy]):
                proxy.close()
        if self.lan:
            self.lan.close()
