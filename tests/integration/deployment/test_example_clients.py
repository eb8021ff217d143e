# SPDX-License-Identifier: Apache-2.0
"""The clients among the examples: small enough to copy, without Nagle's algorithm, and able to connect again.

A program reads values from stdin, sets the key "key" to each, and prints a line when it has the reply.
"""

import contextlib
import socket
import subprocess
import sys

import pytest

from support.examples import EXAMPLES
from support.process import PATIENCE, killed_with_parent
from support.proxy import Proxy
from support.sockets import sockets_of

pytestmark = pytest.mark.not_sanitized("the store does the same for other clients")

LINES_MAX = 299

PYTHON = """
import sys
from statestore import StateStore
with StateStore(sys.argv[1], timeout=60) as store:
    for line in sys.stdin:
        store.set("key", line.strip())
        print(line.strip(), flush=True)
"""

NODE = """
import { createInterface } from 'node:readline'
import { StateStore } from './statestore.js'
const store = await StateStore.connect(process.argv[1], { timeout: 60 })
for await (const line of createInterface({ input: process.stdin })) {
  await store.set('key', line)
  console.log(line)
}
await store.close()
"""

PROGRAMS = {
    "python": ("statestore.py", [sys.executable, "-c", PYTHON]),
    "node": ("statestore.js", ["node", "--input-type=module", "-e", NODE]),
}


# One pytest process tests a language, so its packages are downloaded once.
@pytest.fixture(params=[pytest.param(client, marks=pytest.mark.xdist_group(f"example-{client}")) for client in PROGRAMS])
def client(request):
    return request.param


class Program:
    """A running program that uses a client."""

    def __init__(self, client, directory, url):
        self.child = subprocess.Popen(killed_with_parent([*PROGRAMS[client][1], url]), cwd=directory, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, value):
        self.child.stdin.write(f"{value}\n")
        self.child.stdin.flush()

    def set(self, value):
        self.send(value)
        assert self.child.stdout.readline() == f"{value}\n"

    def close(self):
        self.child.stdin.close()
        try:
            assert self.child.wait(PATIENCE) == 0
        finally:
            self.child.kill()
            self.child.stdout.close()


@pytest.fixture
def proxy(double):
    proxy = Proxy(double.port)
    yield proxy
    proxy.close()


@pytest.fixture
def program(copy_of, client, proxy):
    program = Program(client, copy_of(client), f"mqtt://127.0.0.1:{proxy.port}")
    yield program
    program.close()


def connections(pid, port):
    """Return the sockets of the process that are connected to this port."""
    for each in sockets_of(pid):
        with contextlib.suppress(OSError):  # not connected
            if each.family == socket.AF_INET and each.getpeername() == ("127.0.0.1", port):
                yield each


def test_a_client_is_small_enough_to_copy(client):
    assert len((EXAMPLES / client / PROGRAMS[client][0]).read_text().splitlines()) <= LINES_MAX


def test_a_client_turns_off_nagles_algorithm(program, proxy):
    """The first connection, and the one after it was lost."""
    for value in "first", "second":
        program.set(value)
        connection, = connections(program.child.pid, proxy.port)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.close()
        proxy.reset()


def test_a_client_waits_for_a_broker_that_is_away(program, proxy, double):
    program.set("before")
    proxy.cut()
    program.send("during")
    proxy.mend()
    assert program.child.stdout.readline() == "during\n"
    assert double.connect("reader").request("GET", "key").payload == b"$6\r\nduring\r\n"
