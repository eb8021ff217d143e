# SPDX-License-Identifier: Apache-2.0
"""Debian packages of this source tree, and a machine that installs them: a container that boots systemd."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from support.downloads import ATTEMPTS, require_program, unavailable
from support.images import FAILED_DOWNLOAD
from support.process import PATIENCE, REPOSITORY, Process, wait_until

NAMES = "statestored", "statestorectl", "mosquitto-statestore"
SUITE = os.environ.get("STATESTORE_SUITE", "bookworm")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def succeed(*argv, **more):
    result = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)
    assert result.returncode == 0, f"{argv}: exit status {result.returncode}\n{result.stdout[-10000:]}\n{result.stderr[-10000:]}"
    return result.stdout


def download(*argv):
    """Run a command that downloads packages."""
    for attempt in range(1, ATTEMPTS + 1):
        result = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return
        failed = FAILED_DOWNLOAD.search(result.stdout + result.stderr)
        assert failed, f"{argv}: exit status {result.returncode}\n{result.stdout[-10000:]}\n{result.stderr[-10000:]}"
    unavailable(f"after {attempt} attempts: {failed[0]}")


def build(directory, *options):
    """Build the packages, and an archive of their files, in the directory, and return the packages' files by name."""
    printed = succeed("sh", REPOSITORY / "conf/package.sh", "--tar", *options, env={**os.environ, "PACKAGES": str(directory)})
    files = [Path(line) for line in printed.splitlines() if line.endswith(".deb")]
    return {file.name.split("_")[0]: file for file in files}


def with_version(version, files, directory, edit):
    """Repack the packages as those of another version, whose files edit(root) has changed, and return their files by name."""
    others = {}
    for name, file in files.items():
        root = Path(directory) / name
        succeed("dpkg-deb", "--raw-extract", file, root)
        control = root / "DEBIAN/control"
        control.write_text(re.sub("(?m)^Version: .*", f"Version: {version}", control.read_text()))
        edit(root)
        others[name] = Path(directory) / f"{name}_{version}.deb"
        succeed("dpkg-deb", "--build", "--root-owner-group", "-Znone", root, others[name])
        shutil.rmtree(root)
    return others


class Machine(Process):
    """A new installation of Debian in a container that boots systemd. It has no network but its loopback interface."""

    def __init__(self, directory):
        super().__init__("systemd-nspawn", Path(directory) / "machine.log")
        if os.geteuid() != 0:
            unavailable("a container that boots systemd needs root")
        for program in "debootstrap", "systemd-nspawn":
            require_program(program)
        self.mounted = Path(directory) / "machine"
        self.mounted.mkdir()
        # in memory, because installing packages syncs often, and the files are temporary
        succeed("mount", "-t", "tmpfs", "-o", "size=3g", "tmpfs", self.mounted)
        self.root = self.mounted / "root"
        try:
            download("sh", "-eu", "-c", 'cd "$1" && . server/packages.sh && . conf/debian_root.sh && make_debian_root "$2" "$3"',
                     "sh", REPOSITORY, SUITE, self.root)
            (self.root / "etc/apt/apt.conf.d/assume-yes").write_text('APT::Get::Assume-Yes "true";\n')
            (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
            (self.root / "usr/sbin/policy-rc.d").chmod(0o755)
            self.prepare("apt-get", "update")
            self.prepare("apt-get", "install", "--no-install-recommends", "systemd-sysv", "dbus")
            (self.root / "usr/sbin/policy-rc.d").unlink()
        except BaseException:
            self.close()
            raise

    def prepare(self, *argv):
        """Run a command that downloads packages, while the machine is not booted."""
        download("env", "-i", *(f"{name}={value}" for name, value in ENVIRONMENT.items()), "chroot", self.root, *argv)

    def copy(self, files, folder):
        """Copy packages to the folder, and download what they depend on."""
        here = self.root / folder
        here.mkdir(parents=True)
        for file in files:
            shutil.copy(file, here)
        self.prepare("apt-get", "install", "--download-only", *(f"/{folder}/{file.name}" for file in files))

    def boot(self):
        self.spawn(["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe",
                    "--boot", "-D", self.root])
        wait_until(lambda: not self.running() or self.ask("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"),
                   "the machine has booted")
        if not self.running():
            unavailable(f"systemd-nspawn cannot boot a container here: {self.log()[-500:]}")

    def _first_process(self):
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        return children[0] if children else "0"

    def send_signal(self, number):
        """Send it to the machine's first process, which would survive systemd-nspawn."""
        os.kill(int(self._first_process()) or self.child.pid, number)

    def ask(self, *argv):
        """Run a command in the machine, in /root, and return its result."""
        return subprocess.run(
            ["nsenter", "--target", self._first_process(), "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd", "env",
             "-i", *(f"{name}={value}" for name, value in ENVIRONMENT.items()), "sh", "-c", 'cd /root && exec "$@"', "sh", *map(str, argv)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def run(self, *argv):
        """Run a command in the machine, in /root, which must succeed, and return its output."""
        result = self.ask(*argv)
        assert result.returncode == 0, (f"{argv}: exit status {result.returncode}\n{result.stdout[-5000:]}\n{result.stderr}\n"
                                        + self.ask("journalctl", "--no-pager", "-n", "50").stdout)
        return result.stdout

    def path(self, path):
        return self.root / path.lstrip("/")

    def close(self):
        if self.running():
            self.kill()
        succeed("umount", "--lazy", self.mounted)
