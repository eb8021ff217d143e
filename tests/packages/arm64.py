# SPDX-License-Identifier: Apache-2.0
"""The store and the client of the arm64 packages, under user emulation, at a broker with the plugin of the amd64 package.

usage: arm64.py FOLDER: a folder with the packages of both architectures
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.containers import Container, Network  # noqa: E402
from support.debian import Machine  # noqa: E402
from support.images import Image  # noqa: E402
from support.process import wait_until  # noqa: E402

EMULATOR = "/usr/bin/qemu-aarch64-static"


def owner(machine, path):
    status = machine.path(path).stat()
    return f"{status.st_uid}:{status.st_gid}"


def ctl(store, *words):
    return store.run(EMULATOR, "/usr/bin/statestorectl", "--timeout", "60s", *words)


def check(machine, scratch):
    network = Network(scratch, [])

    def container(name, user, *command):
        image = Image(root=machine.root, user=user, environment={"PATH": "/usr/sbin:/usr/bin"}, command=command, volumes=[],
                      healthcheck=[], labels={})
        return Container(scratch, name, image, network, {}, False, [])

    machine.path("/etc/hosts").touch()  # the container mounts its own over it
    data = machine.path("/var/lib/data")
    data.mkdir()
    os.chown(data, 1000, 1000)
    broker = container("mosquitto", owner(machine, "/var/lib/mosquitto"), "/usr/sbin/mosquitto", "-c",
                       "/usr/share/doc/mosquitto-statestore/examples/mosquitto.conf")
    store = container("statestored", "1000:1000", EMULATOR, "/usr/sbin/statestored", "--data-dir", "/var/lib/data",
                      "--require-plugin", "on")
    try:
        broker.start()
        store.start()
        wait_until(lambda: ctl(store, "ping").returncode == 0, "the store serves")
        assert ctl(store, "set", "key", "value").returncode == 0
        store.kill()
        store.start()
        wait_until(lambda: ctl(store, "ping").returncode == 0, "the store serves again")
        assert ctl(store, "get", "key").stdout == "value"
        assert "the broker has the plugin" in store.log()
        assert store.stop() == 0
    finally:
        for each in store, broker:
            if each.running():
                each.kill()
        network.close()


def main(folder):
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(scratch)
        try:
            machine.prepare("dpkg", "--add-architecture", "arm64")
            machine.prepare("apt-get", "update")
            machine.copy([file for pattern in ("mosquitto-statestore_*_amd64.deb", "statestore*_arm64.deb")
                          for file in Path(folder).glob(pattern)], "packages")
            machine.prepare("sh", "-c", "apt-get install --no-install-recommends qemu-user-static /packages/*.deb")
            check(machine, scratch)
        finally:
            machine.close()
    print("arm64: the store served, and served again after a kill")


main(sys.argv[1])
