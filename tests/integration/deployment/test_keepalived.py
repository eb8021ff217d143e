# SPDX-License-Identifier: Apache-2.0
"""conf/cluster/keepalived.conf: the member whose /readyz succeeds has the address. Two network namespaces and a link."""

import contextlib
import shutil
import subprocess
import sys

import pytest

from support.containers import Network
from support.downloads import require_program
from support.process import PATIENCE, REPOSITORY, Process, wait_until

CONFIGURATION = REPOSITORY / "conf/cluster/keepalived.conf"
ADDRESS = "192.0.2.10/24"


class Machine:
    def __init__(self, directory, number):
        directory.mkdir()
        self.directory = directory
        self.address = f"192.0.2.{number}/24"
        self.pages = directory / "pages"
        self.pages.mkdir()
        self.network = Network(directory, [])
        self.server = Process("the store's pages", directory / "pages.log")
        self.keepalived = Process("keepalived", directory / "keepalived.log")

    def ip(self, *arguments):
        return subprocess.run([*self.network.enter(), "ip", *arguments], capture_output=True, text=True, check=True,
                              timeout=PATIENCE).stdout

    def start(self):
        self.ip("address", "add", self.address, "dev", "eth0")
        self.ip("link", "set", "eth0", "up")
        self.server.spawn([*self.network.enter(), sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory",
                           self.pages, "9464"])
        shutil.copy(CONFIGURATION, self.directory)
        self.keepalived.spawn([*self.network.enter(), "keepalived", "--dont-fork", "--log-console", "--vrrp", "--use-file",
                               self.directory / CONFIGURATION.name, "--pid", self.directory / "pid",
                               "--vrrp_pid", self.directory / "vrrp_pid"])

    def lead(self):
        (self.pages / "readyz").write_text("ready\n")

    def stand_by(self):
        (self.pages / "readyz").unlink()

    def has_address(self):
        return ADDRESS in self.ip("address", "show", "dev", "eth0")

    def close(self):
        for process in self.keepalived, self.server:
            if process.running():
                process.stop()
        self.network.close()


@pytest.fixture
def machines(tmp_path):
    require_program("keepalived")
    with contextlib.ExitStack() as stack:
        a, b = (Machine(tmp_path / name, number) for name, number in (("a", 11), ("b", 12)))
        for machine in a, b:
            stack.callback(machine.close)
        subprocess.run(["ip", "link", "add", "eth0", "netns", str(a.network.process_id), "type", "veth", "peer", "name",
                        "eth0", "netns", str(b.network.process_id)], check=True, timeout=PATIENCE)
        for machine in a, b:
            machine.start()
        yield a, b


def test_the_address_follows_the_leader(machines):
    a, b = machines

    a.lead()
    wait_until(a.has_address, "a has the address")
    assert not b.has_address()

    a.stand_by()
    b.lead()
    wait_until(b.has_address, "b has the address")
    wait_until(lambda: not a.has_address(), "a does not have it any more")


def test_the_next_leader_has_the_address_if_the_former_one_is_silent(machines):
    a, b = machines
    a.lead()
    wait_until(a.has_address, "a has the address")

    a.keepalived.kill()
    b.lead()

    wait_until(b.has_address, "b has the address")
