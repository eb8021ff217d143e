# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, and Ethernets between them. They require root, and end with this process."""

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path

from support.process import PATIENCE, killed_with_parent

CLONE_NEWNET = 0x40000000

# Brings up the loopback interface of a new network, prints a line, and keeps the network until its stdin is closed.
KEEPER = """\
import fcntl, socket, struct, sys
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
print("up", flush=True)
sys.stdin.read()
"""


def move_thread(file):
    """Move the calling thread to a network."""
    if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Network:
    """A network namespace."""

    def __init__(self):
        self._keeper = subprocess.Popen(killed_with_parent(["unshare", "--net", sys.executable, "-c", KEEPER]),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._keeper.stdout.readline() == b"up\n"
        self.process_id = self._keeper.pid
        self.file = Path(f"/proc/{self.process_id}/ns/net")

    def enter(self):
        """Return the words before a command line that execute it in this network."""
        return ["nsenter", f"--net={self.file}", "--"]

    @contextlib.contextmanager
    def entered(self):
        """In the block, the calling thread makes sockets, processes and threads in this network. They stay there."""
        with open("/proc/thread-self/ns/net") as outer, open(self.file) as inner:
            move_thread(inner)
            try:
                yield
            finally:
                move_thread(outer)

    def ip(self, *arguments):
        return subprocess.run([*self.enter(), "ip", *arguments], capture_output=True, text=True, check=True,
                              timeout=PATIENCE).stdout

    def close(self):
        self._keeper.communicate(timeout=PATIENCE)


class Link:
    """Connects a network with a bridge in another one. While the link is cut, packets are lost without an error."""

    def __init__(self, hub, bridge, network, interface, address):
        self._hub, self._bridge = hub, bridge
        self._port = f"{bridge}-{address.rpartition('.')[2]}"
        hub.ip("link", "add", self._port, "type", "veth", "peer", "name", interface, "netns", str(network.process_id))
        hub.ip("link", "set", self._port, "up")
        network.ip("address", "add", f"{address}/24", "dev", interface)
        network.ip("link", "set", interface, "up")
        self.mend()

    def cut(self):
        self._hub.ip("link", "set", self._port, "nomaster")

    def mend(self):
        self._hub.ip("link", "set", self._port, "master", self._bridge)


class Host(Network):
    """A machine at two Ethernets: address is for all programs, peer_address for what an etcd sends to its peers."""

    def __init__(self, hub, number):
        super().__init__()
        self.address, self.peer_address = f"192.0.2.{number}", f"198.51.100.{number}"
        self.link = Link(hub, "machines", self, "eth0", self.address)
        self.peer_link = Link(hub, "peers", self, "eth1", self.peer_address)

    def port(self, usual):
        """Return the port for a server that usually has this one."""
        return usual


class Lan:
    """Hosts, by name, whose Ethernets are bridges in a network of their own. Clients of all hosts may be in that network."""

    def __init__(self, names):
        with contextlib.ExitStack() as opened:
            self.hub = opened.enter_context(contextlib.closing(Network()))
            for bridge in "machines", "peers":
                self.hub.ip("link", "add", bridge, "type", "bridge")
                self.hub.ip("link", "set", bridge, "up")
            self.hub.ip("address", "add", "192.0.2.1/24", "dev", "machines")
            self.hosts = {name: opened.enter_context(contextlib.closing(Host(self.hub, number)))
                          for number, name in enumerate(names, 11)}
            self._opened = opened.pop_all()

    def close(self):
        self._opened.close()
