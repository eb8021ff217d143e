# SPDX-License-Identifier: Apache-2.0
"""Images built from docker/Dockerfile and the Debian packages. Their base is a fresh installation of Debian in place of Debian's own image."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from support.downloads import ATTEMPTS, unavailable
from support.process import REPOSITORY

BASE = "docker.io/library/debian:bookworm-slim"

# Options of package.sh and debootstrap, and of buildah, for another architecture than this machine's.
FOREIGN = os.environ.get("STATESTORE_ARCHITECTURE")
ARCHITECTURE = ["--arch", FOREIGN] if FOREIGN else []
PLATFORM = ["--platform", f"linux/{FOREIGN}"] if FOREIGN else []

# As in Debian's image: dpkg does not sync each installed file.
UNSAFE_IO = "etc/dpkg/dpkg.cfg.d/unsafe-io"

# What apt and debootstrap print if the mirror cannot be reached.
FAILED_DOWNLOAD = re.compile(r"^[EW]: (?:Failed to fetch|Unable to fetch|Failed getting release file|Couldn't download).*",
                             re.MULTILINE)


class Image(NamedTuple):
    root: Path
    user: str
    environment: dict
    command: list
    volumes: list
    healthcheck: list
    labels: dict


def mirror():
    """Return the mirror from which this machine's Debian was installed."""
    policy = subprocess.run(["apt-cache", "policy"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^ *\d+ (\S+) bookworm/main \S+ Packages", policy, re.MULTILINE)
    return found[1] if found else unavailable("apt has no mirror of Debian 12 here")


class Builder:
    """Builds images from the packages in a folder. close() removes them."""

    def __init__(self, directory, packages):
        self._directory = Path(directory)
        self._packages = packages
        # in memory, because installing packages syncs often, and the files are temporary
        self._run("mount", "-t", "tmpfs", "-o", "size=6g", "tmpfs", self._directory)
        self._storage = ["--root", self._directory / "storage", "--runroot", self._directory / "run"]
        self._driver = "overlay"
        root = self._directory / "debian"
        try:
            self._download("debootstrap", *ARCHITECTURE, "--variant=minbase", "bookworm", root, mirror())
        except BaseException:
            self._unmount()
            raise
        (root / UNSAFE_IO).write_text("force-unsafe-io\n")
        try:
            self._make_base(root)
        except subprocess.CalledProcessError:
            self._driver = "vfs"  # slower, but needs no overlay file system
            self._make_base(root)
        shutil.rmtree(root)

    def _run(self, *argv):
        result = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if result.returncode != 0:
            print(result.stdout[-10000:], result.stderr[-10000:])
        result.check_returncode()
        return result.stdout.strip()

    def _download(self, *argv):
        """Run a command that downloads packages."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._run(*argv)
            except subprocess.CalledProcessError as error:
                failed = FAILED_DOWNLOAD.search(error.stdout + error.stderr)
                if not failed:
                    raise
                if attempt == ATTEMPTS:
                    unavailable(f"{argv[0]}: {failed[0]}")

    def _unmount(self):
        self._run("umount", "--lazy", self._directory)

    def _command(self, *argv):
        return ["buildah", *self._storage, "--storage-driver", self._driver, *argv]

    def _buildah(self, *argv):
        return self._run(*self._command(*argv))

    def _make_base(self, root):
        container = self._buildah("from", *PLATFORM, "scratch")
        self._buildah("add", "--quiet", container, root, "/")
        self._buildah("commit", "--quiet", "--rm", container, BASE)

    def build(self, target):
        self._download(*self._command(
            "bud", *PLATFORM, "--isolation", "chroot", "--format", "docker", "--layers", "--pull-never", "--file",
            REPOSITORY / "docker" / "Dockerfile", "--target", target, "--tag", target, self._packages))
        container = self._buildah("from", *PLATFORM, "--pull-never", target)
        config = json.loads(self._buildah("inspect", "--type", "image", target))["Docker"]["config"]
        return Image(
            root=Path(self._buildah("mount", container)),
            user=config["User"],
            environment=dict(line.split("=", 1) for line in config["Env"] or []),
            command=[*(config["Entrypoint"] or []), *(config["Cmd"] or [])],
            volumes=list(config["Volumes"] or {}),
            healthcheck=config.get("Healthcheck", {}).get("Test"),
            labels=config["Labels"] or {},
        )

    def close(self):
        self._buildah("umount", "--all")
        self._buildah("rm", "--all")
        self._unmount()
