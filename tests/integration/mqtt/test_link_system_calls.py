# SPDX-License-Identifier: Apache-2.0
"""The store receives many packets with one system call, although libmosquitto reads each packet in parts."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from support.fake_broker import CONNACK_ACCEPTED, PUBACK, SUBSCRIBE, publish_packet
from support.process import killed_with_parent

N_MESSAGES = 1000
N_SUBSCRIPTIONS = 3  # without plugin: banner, probe, requests

# Read-ahead receives 16 KiB, about 300 of these messages, with one call. Without it, libmosquitto makes four calls a message.
N_CALLS_MAX = N_MESSAGES // 10


YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


class Strace:
    """Counts the system calls with which a process receives."""

    def __init__(self, pid, path):
        self._path = path
        calls = "trace=read,readv,recvfrom,recvmsg,recvmmsg,ioctl"
        self._child = subprocess.Popen(killed_with_parent(["strace", "-f", "-e", calls, "-o", path, "-p", pid]),
                                       stderr=subprocess.PIPE, text=True)
        attached = self._child.stderr.readline()
        assert "attached" in attached, attached

    def stop(self):
        """Detach, and return the calls, one a line."""
        self._child.send_signal(signal.SIGINT)
        self._child.communicate()
        return re.findall(r"(?m)^(?:\d+ +)?\w+\(.*", self._path.read_text())


@pytest.mark.skipif(os.geteuid() != 0 and YAMA.exists() and YAMA.read_text().strip() != "0",
                    reason="kernel.yama.ptrace_scope allows only root to trace other processes")
def test_many_packets_are_received_with_few_system_calls(fake_broker, store_of, tmp_path):
    store = store_of(fake_broker.port)
    store.launch()
    fake_broker.accept()
    fake_broker.send(CONNACK_ACCEPTED)
    for _ in range(N_SUBSCRIPTIONS):
        fake_broker.confirm(fake_broker.receive_until(SUBSCRIBE)[0])
    fake_broker.publish_something()
    fake_broker.receive_until(PUBACK)

    strace = Strace(store.child.pid, tmp_path / "strace")
    fake_broker.send(b"".join(publish_packet(n) for n in range(1, N_MESSAGES + 1)))
    for _ in range(N_MESSAGES):
        fake_broker.receive_until(PUBACK)
    calls = strace.stop()

    assert 0 < len(calls) < N_CALLS_MAX, calls[:100]
