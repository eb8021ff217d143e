# SPDX-License-Identifier: Apache-2.0
"""conf/cluster/keepalived.conf: the member whose /readyz succeeds has the address."""

import sys

import pytest

from support.downloads import require_program
from support.keepalived import PAGES_PORT, Keepalived
from support.network import Lan
from support.process import Process, wait_until


class Machine:
    def __init__(self, directory, host):
        directory.mkdir()
        self.pages = directory / "pages"
        self.pages.mkdir()
        self.server = Process("the store's pages", directory / "pages.log")
        self.keepalived = Keepalived(directory, host)
        self.has_address = self.keepalived.has_address
        with host.entered():
            self.server.spawn([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", self.pages, PAGES_PORT])
        self.keepalived.start()

    def lead(self):
        (self.pages / "readyz").write_text("ready\n")

    def stand_by(self):
        (self.pages / "readyz").unlink()

    def close(self):
        for process in self.keepalived, self.server:
            if process.running():
                process.stop()


@pytest.fixture
def machines(tmp_path, until_end):
    require_program("keepalived")
    lan = until_end(Lan("ab"))
    return [until_end(Machine(tmp_path / name, host)) for name, host in lan.hosts.items()]


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
