# SPDX-License-Identifier: Apache-2.0
"""keepalived with the shipped configuration: the host whose /readyz succeeds has a further address."""

import shutil

from support.process import REPOSITORY, Process

CONFIGURATION = REPOSITORY / "conf" / "cluster" / "keepalived.conf"
ADDRESS = "192.0.2.10"
PAGES_PORT = 9464


class Keepalived(Process):
    def __init__(self, directory, host):
        super().__init__("keepalived", directory / "keepalived.log")
        self.directory = directory
        self.host = host

    def start(self):
        shutil.copy(CONFIGURATION, self.directory)
        with self.host.entered():
            self.spawn(["keepalived", "--dont-fork", "--log-console", "--vrrp", "--use-file",
                        self.directory / CONFIGURATION.name, "--pid", self.directory / "pid",
                        "--vrrp_pid", self.directory / "vrrp_pid"])

    def has_address(self):
        return f"{ADDRESS}/24" in self.host.ip("address", "show", "dev", "eth0")
