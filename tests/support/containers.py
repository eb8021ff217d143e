# SPDX-License-Identifier: Apache-2.0
"""Minimal containers: Linux namespaces, the image's root and user, and a separate network.

A service gets what docker/compose.yaml states. A key of that file that this module does not know is an error.
"""

import os
import re
import subprocess
from pathlib import Path

import yaml

from support.network import Network
from support.process import PATIENCE, REPOSITORY, Process, wait_until

COMPOSE = REPOSITORY / "docker" / "compose.yaml"

# Runs as process 1 of the container: mounts the volumes, some read-only, and executes the container's program.
ENTER = """\
set -eu
root=$1 hosts=$2 root_mode=$3 volumes=$4
shift 4
mount --bind "$root" "$root"
for volume in $volumes; do
        mount --bind "${volume%%:*}" "$root/${volume#*:}"
done
mount --bind "$hosts" "$root/etc/hosts"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o "remount,bind,$root_mode" "$root"
exec env -i "$@"
"""


class ContainerNetwork(Network):
    """A network in which every host name resolves to 127.0.0.1."""

    def __init__(self, directory, names):
        super().__init__()
        self.hosts = Path(directory) / "hosts"
        self.hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *names)))


def service(name):
    """Return the service's definition in compose.yaml as arguments of Container."""
    definition = dict(yaml.safe_load(COMPOSE.read_text())["services"][name])
    assert definition.pop("build") == {"context": "../build/packages", "dockerfile": "../../docker/Dockerfile", "target": name}
    assert definition.pop("cap_drop") == ["ALL"] and definition.pop("security_opt") == ["no-new-privileges:true"]
    assert definition.pop("restart") == "unless-stopped"
    assert re.fullmatch(r"\d+g", definition.pop("mem_limit"))
    definition.pop("ports", None)
    return {"environment": definition.pop("environment", {}), "is_read_only": definition.pop("read_only", False),
            "volumes": [volume.split(":")[1] for volume in definition.pop("volumes", [])], **definition}


class Container(Process):
    """A container. Its volumes survive its stops and starts."""

    def __init__(self, directory, name, image, network, environment, is_read_only, volumes):
        super().__init__(name, Path(directory) / f"{name}.log")
        assert sorted(volumes) == sorted(image.volumes)
        self.image = image
        self.network = network
        self.environment = {**image.environment, **environment}
        self.mode = "ro" if is_read_only else "rw"
        self.volumes = {}
        for path in volumes:
            data = Path(directory) / f"{name}{path.replace('/', '-')}"
            data.mkdir()
            # a new volume begins as a copy of the image's folder
            of_image = (image.root / path.lstrip("/")).stat()
            os.chown(data, of_image.st_uid, of_image.st_gid)
            data.chmod(of_image.st_mode & 0o7777)
            self.volumes[path] = data

    def _as_user(self, argv):
        """Return the arguments of `env` that run a command as the image's user in the image's root."""
        user, group = self.image.user.split(":")
        return [*(f"{name}={value}" for name, value in self.environment.items()), "chroot", self.image.root, "setpriv",
                "--reuid", user, "--regid", group, "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                "--inh-caps=-all", "--", *argv]

    def start(self):
        volumes = " ".join(f"{data}:{path.lstrip('/')}" for path, data in self.volumes.items())
        self.spawn([*self.network.enter(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER,
                    "sh", self.image.root, self.network.hosts, self.mode, volumes,
                    *self._as_user(self.image.command)])
        return self

    def pid(self):
        """Return the process id of its process 1, outside the container."""
        assert self.running(), f"{self.name} has ended\n{self.log()}"
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def send_signal(self, number):
        os.kill(self.pid(), number)

    def _entered(self):
        """Return pid() when ENTER has ended. Before that, a command in the container could update an access time, and the
        root could not be mounted read-only meanwhile: EBUSY."""
        pid = self.pid()
        return pid if pid and os.readlink(f"/proc/{pid}/root") != "/" else None

    def run(self, *argv):
        """Run a command in the container, as `docker exec` does."""
        pid = wait_until(self._entered, f"{self.name} runs its program")
        return subprocess.run(
            ["nsenter", "--target", str(pid), "--mount", "--net", "--pid", "env", "-i", *map(str, self._as_user(argv))],
            capture_output=True, text=True, timeout=PATIENCE)
