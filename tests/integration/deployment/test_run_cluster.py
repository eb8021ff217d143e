# SPDX-License-Identifier: Apache-2.0
"""`sh server/run.sh --cluster`: three machines and HAProxy, in a network of their own, because their ports are fixed."""

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from support.downloads import require_program
from support.network import Network
from support.process import CTL, PATIENCE, REPOSITORY, Process, wait_until
from support.terminal import make_tree

# All programs that the script starts, such as curl, would run with the libraries of the sanitizers.
pytestmark = pytest.mark.not_sanitized("tests/integration/cluster runs members with sanitizers")

MACHINES = {"a": "127.0.0.11", "b": "127.0.0.12", "c": "127.0.0.13"}


class Cluster:
    def __init__(self, tree, network):
        self.tree = tree
        self.network = network
        self.process = Process("run.sh", tree / "log")
        self.process.spawn([*network.enter(), "env", f"TMPDIR={tree}", "sh", tree / "server/run.sh", "--cluster"])
        self.process.wait_for_log("Ctrl-C stops all")

    def execute(self, *command):
        return subprocess.run([*self.network.enter(), *command], capture_output=True, text=True,
                              errors="replace", timeout=PATIENCE, check=False)

    def ctl(self, *arguments):
        return self.execute(CTL, "--timeout", f"{PATIENCE}s", *arguments)

    def set(self, key, value):
        """Set the key. It may be tried again: a connection ends if the leader has just stepped down."""
        wait_until(lambda: self.ctl("set", key, value).returncode == 0, f"{key} is set")

    def wait_for_value(self, key, value):
        """Read the key until it has this value. HAProxy may pass a connection to a broker that is just being killed."""
        wait_until(lambda: self.ctl("get", key).stdout == value, f"{key} is read through the address")

    def process_id(self, machine, program):
        """Return the id of the process that run.sh has started last, or None."""
        [file] = self.tree.glob(f"tmp.*/{machine}/{program}.pid")
        return int(file.read_text() or 0) or None

    def broker(self, machine):
        return self.process_id(machine, "mosquitto")

    def logs(self):
        return "\n".join(f"{log}:\n{log.read_text()}" for pattern in ("haproxy", "statestored", "mosquitto")
                         for log in sorted(self.tree.rglob(f"tmp.*/**/{pattern}.log")))

    def page(self, machine):
        return self.execute("curl", "-s", f"http://{MACHINES[machine]}:9464/readyz").stdout

    def leader(self):
        """Return the machine that leads, or None."""
        return next((machine for machine in MACHINES if self.page(machine).startswith("ready")), None)

    def execute_printed(self, pattern, machine="a"):
        """Execute the command that run.sh prints for machine a, after the exports that it prints. Return its stdout."""
        exports = re.findall(r"(?m)^  (export STATESTORE.*)$", self.process.log())
        command, = re.findall(f"(?m)^  ({pattern}.*)$", self.process.log())
        ended = self.execute("env", f"PATH={CTL.parent}:{os.environ['PATH']}", f"STATESTORE_TIMEOUT={PATIENCE}s", "sh", "-c",
                             "\n".join([*exports, command.replace("/a/", f"/{machine}/")]))
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def process_ids(self):
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and self._is_ours(path)]

    def _is_ours(self, process):
        try:
            return (process / "ns/net").readlink() == self.network.file.readlink()
        except OSError:
            return False


@contextlib.contextmanager
def running_cluster(directory):
    network = Network()
    try:
        cluster = Cluster(make_tree(directory / "tree"), network)
        try:
            yield cluster
        finally:
            if cluster.process.running():
                cluster.process.stop()
    finally:
        network.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def test_a_key_survives_the_loss_of_a_machine_and_a_step_down(cluster):
    cluster.set("survives", "value")

    lost = cluster.leader()
    assert f"leader         {lost}, term" in cluster.execute_printed("statestorectl cluster")
    cluster.execute_printed("kill -9", lost)
    cluster.wait_for_value("survives", "value")
    assert cluster.leader() not in (lost, None)

    stepped_down = cluster.leader()
    cluster.execute_printed("RUNTIME_DIRECTORY", stepped_down)
    wait_until(lambda: cluster.leader() not in (stepped_down, None), "another machine leads")
    cluster.wait_for_value("survives", "value")

    wait_until(lambda: cluster.page(lost).startswith("standby: "), "the lost machine has started again")


def test_a_restart_of_the_leader_keeps_the_sessions_at_the_broker(cluster):
    cluster.set("key", "value")
    leader = cluster.leader()
    broker, store = cluster.broker(leader), cluster.process_id(leader, "statestored")

    os.kill(store, signal.SIGKILL)
    wait_until(lambda: cluster.process_id(leader, "statestored") not in (store, None), "the store was started again")
    wait_until(lambda: cluster.leader() == leader, "the same machine leads")

    assert cluster.broker(leader) == broker


def test_a_reader_of_etcd_has_all_values(cluster):
    cluster.set("read by another", "its value")

    shown = cluster.execute("etcdctl", "--endpoints", "http://127.0.0.11:2379", "get", "--prefix", "/statestore/").stdout

    assert "its value" in shown


def test_the_alerts_name_metrics_of_the_leader(cluster):
    require_program("promtool")
    alerts = REPOSITORY / "conf/cluster/alerts.yml"
    leader = wait_until(cluster.leader, "a member leads")
    shown = cluster.execute("curl", "-s", f"http://{MACHINES[leader]}:9464/metrics").stdout

    assert set(re.findall(r"statestore_\w+", alerts.read_text())) <= set(re.findall(r"(?m)^statestore_\w+", shown))
    assert subprocess.run(["promtool", "check", "rules", alerts], timeout=PATIENCE, check=False).returncode == 0


def test_its_end_leaves_no_process_and_no_file(tmp_path):
    with running_cluster(tmp_path) as cluster:
        assert cluster.process.stop() == 0

        wait_until(lambda: len(cluster.process_ids()) == 1, "only the process that keeps the network is left")
        assert not list((tmp_path / "tree").glob("tmp.*"))
