# SPDX-License-Identifier: Apache-2.0
"""A mosquitto on a port that the kernel chose."""

import signal
import socket
import subprocess
from pathlib import Path

from support.process import Process, wait_until

PORTS_TRIED = 20

# mosquitto has long ended by then, unless it has not heard that it should.
END_SECONDS = 10

CONFIGURATION = """\
user root
listener {port} 127.0.0.1
set_tcp_nodelay true
persistence false
allow_anonymous {anonymous}
"""

# Without these mosquitto keeps 1000 messages for a client that is away, or slower than they come.
LIMITS = """\
max_inflight_messages 0
max_queued_messages 1000000
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def passwords(directory, **users):
    """A file of users and their passwords."""
    path = directory / "passwords"
    path.write_text("")
    for name, password in users.items():
        subprocess.run(["mosquitto_passwd", "-b", path, name, password], check=True)
    return path


class Broker(Process):
    """Keeps its port over every stop, kill and start. `user root` keeps the bond to the runner's life."""

    def __init__(self, directory, anonymous=True, limits=LIMITS):
        self.directory = Path(directory)
        super().__init__("mosquitto", self.directory / "mosquitto.log")
        self.anonymous = anonymous
        self.limits = limits
        self.port = free_port()

    def start(self):
        for _ in range(PORTS_TRIED):
            if self._start_on_port():
                return self
            self.port = free_port()
        raise AssertionError(f"no port for mosquitto\n{self.log()}")

    def stop(self, number=signal.SIGTERM):
        """mosquitto forgets a signal that comes after it has said that it is running and before its loop: then again."""
        self.child.send_signal(number)
        try:
            self.child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        return super().stop(number)

    def start_again(self):
        """On the same port. An outgoing connection of another program can use the port for a moment."""
        wait_until(self._start_on_port, f"mosquitto is back on port {self.port}")

    def _start_on_port(self):
        configuration = self.directory / "mosquitto.conf"
        configuration.write_text(CONFIGURATION.format(port=self.port, anonymous=str(self.anonymous).lower()) +
                                 self.limits)
        seen = len(self.log())
        self.spawn(["mosquitto", "-c", configuration])
        wait_until(lambda: not self.running() or " running" in self.log()[seen:], "mosquitto starts")
        return self.running()
