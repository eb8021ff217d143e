# SPDX-License-Identifier: Apache-2.0
"""`sh server/run.sh --cluster`: three machines and HAProxy, in a network of their own, because their ports are fixed."""

import re
import subprocess
from pathlib import Path

import pytest

from support.containers import Network
from support.process import CTL, PATIENCE, Process, wait_until
from support.terminal import plugin_environment, make_tree

MACHINES = {"a": "127.0.0.11", "b": "127.0.0.12", "c": "127.0.0.13"}


class Cluster:
    def __init__(self, tree, network):
        self.tree = tree
        self.network = network
        self.process = Process("run.sh", tree / "log")
        self.process.spawn([*network.enter(), "env", f"TMPDIR={tree}", "sh", tree / "server/run.sh", "--cluster"],
                           plugin_environment())
        self.process.wait_for_log("Ctrl-C stops all")

    def ctl(self, *arguments):
        """Without a time-out of its own, statestorectl waits for the next leader."""
        return subprocess.run([*self.network.enter(), CTL, "--timeout", f"{PATIENCE}s", *arguments], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)

    def logs(self):
        return "\n".join(f"{log}:\n{log.read_text()}" for pattern in ("haproxy", "statestored", "mosquitto")
                         for log in sorted(self.tree.rglob(f"tmp.*/**/{pattern}.log")))

    def page(self, machine):
        return subprocess.run([*self.network.enter(), "curl", "-s", f"http://{MACHINES[machine]}:9464/readyz"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False).stdout

    def leader(self):
        """Return the machine that leads, or None."""
        return next((machine for machine in MACHINES if self.page(machine).startswith("ready")), None)

    def execute_printed(self, pattern, machine):
        """Execute the command that run.sh prints for machine a."""
        command, = re.findall(f"(?m)^  ({pattern}.*)$", self.process.log())
        subprocess.run(["sh", "-c", command.replace("/a/", f"/{machine}/")], timeout=PATIENCE, check=True)

    def process_ids(self):
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and self._is_ours(path)]

    def _is_ours(self, process):
        try:
            return (process / "ns/net").readlink() == self.network.file.readlink()
        except OSError:
            return False


@pytest.fixture
def cluster(tmp_path):
    network = Network(tmp_path, [])
    try:
        cluster = Cluster(make_tree(tmp_path / "tree"), network)
        try:
            yield cluster
        finally:
            if cluster.process.running():
                cluster.process.stop()
    finally:
        network.close()


def test_a_key_survives_the_loss_of_a_machine_and_a_step_down(cluster):
    wait_until(lambda: cluster.ctl("set", "key", "value").returncode == 0, "the key is set")

    lost = cluster.leader()
    cluster.execute_printed("kill -9", lost)
    assert cluster.ctl("get", "key").stdout == "value", cluster.logs()
    assert cluster.leader() not in (lost, None)

    stepped_down = cluster.leader()
    cluster.execute_printed("kill -USR2", stepped_down)
    wait_until(lambda: cluster.leader() not in (stepped_down, None), "another machine leads")
    wait_until(lambda: cluster.ctl("get", "key").stdout == "value", "the key is read through the address")

    wait_until(lambda: cluster.page(lost).startswith("standby: "), "the lost machine has started again")


def test_its_end_leaves_no_process_and_no_file(cluster, tmp_path):
    assert cluster.process.stop() == 0

    wait_until(lambda: len(cluster.process_ids()) == 1, "only the process that keeps the network is left")
    assert not list((tmp_path / "tree").glob("tmp.*"))
