# SPDX-License-Identifier: Apache-2.0
"""A mosquitto on a port that the kernel has chosen. The first one in PATH is tested."""

import collections
import functools
import re
import signal
import socket
import subprocess
from pathlib import Path

from support.process import Process, wait_until

RESERVED_MAX = 100
reservations = collections.deque(maxlen=RESERVED_MAX)  # bound and not listening

# Time after which stop() sends the signal again.
SIGNAL_REPEAT_SECONDS = 10

LEVEL_SEPARATORS_MAX = 200  # of a topic that mosquitto accepts

# Without max_packet_size mosquitto 2.1 accepts packets of at most 2 MB.
CONFIGURATION = """\
user root
listener {port} 127.0.0.1
set_tcp_nodelay true
max_packet_size 268435455
persistence false
allow_anonymous {anonymous}
"""

# Without these limits mosquitto queues 1000 messages for a client that is offline or slow, and drops the rest.
LIMITS = """\
max_inflight_messages 0
max_queued_messages 1000000
"""


def free_port():
    """Reserve a TCP port for a server that sets SO_REUSEADDR, and return it. A bound socket keeps the kernel from choosing
    the port for another socket, even while the server is stopped. The reservation ends after RESERVED_MAX further ones."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("", 0))
    reservations.append(reservation)
    return reservation.getsockname()[1]


def passwords(directory, **users):
    """Write a password file for mosquitto."""
    path = directory / "passwords"
    path.write_text("")
    for name, password in users.items():
        subprocess.run(["mosquitto_passwd", "-b", path, name, password], check=True)
    return path


@functools.cache
def version():
    """Return the version of mosquitto, such as (2, 0, 11)."""
    printed = subprocess.run(["mosquitto", "-h"], capture_output=True, text=True).stdout  # its exit status depends on the version
    return tuple(map(int, re.match(r"mosquitto version (\d+)\.(\d+)\.(\d+)", printed).groups()))


def refuses_response_topic(topic):
    """Return whether the broker itself disconnects the sender of a message with this response topic."""
    return topic is not None and version() >= (2, 0, 20) and (
        topic == "" or "+" in topic or "#" in topic or topic.count("/") > LEVEL_SEPARATORS_MAX)


def refuses_will(topic):
    """Return whether the broker refuses the CONNECT of a client with a will on this topic."""
    return version() >= (2, 0, 16) and topic.startswith("$CONTROL/")


class Broker(Process):
    """A mosquitto that uses the same port after each start. It runs as root: a change of user would remove the parent-death
    signal."""

    def __init__(self, directory, anonymous=True, limits=LIMITS):
        self.directory = Path(directory)
        super().__init__("mosquitto", self.directory / "mosquitto.log")
        self.anonymous = anonymous
        self.limits = limits
        self.port = free_port()

    def start(self):
        assert self.starts(), f"mosquitto has not started\n{self.log()}"
        return self

    def stop(self, number=signal.SIGTERM):
        """Stop mosquitto. It may miss the first signal: it ignores signals between its log line "running" and its loop."""
        self.child.send_signal(number)
        try:
            self.child.wait(SIGNAL_REPEAT_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        return super().stop(number)

    def start_again(self):
        """Start mosquitto after a stop."""
        self.start()

    def wait_until_disconnected(self, client_id, after=0):
        """Wait until the log, after its first `after` characters, contains the end of a connection of the client."""
        self.wait_for_log(f"client {re.escape(client_id)} .*(closed|disconnect)", after)

    def starts(self):
        """Try to start mosquitto. Return whether it runs."""
        configuration = self.directory / "mosquitto.conf"
        configuration.write_text(CONFIGURATION.format(port=self.port, anonymous=str(self.anonymous).lower()) +
                                 self.limits)
        seen = len(self.log())
        self.spawn(["mosquitto", "-c", configuration])
        return self.wait_until_running(seen)

    def wait_until_running(self, after):
        """Wait until the log, after its first `after` characters, says that mosquitto accepts connections, or mosquitto has ended.
        Return whether it runs."""
        is_up = re.compile(r"mosquitto version \S+ running")
        wait_until(lambda: not self.running() or is_up.search(self.log(), after), "mosquitto starts")
        return self.running()
