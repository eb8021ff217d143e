# SPDX-License-Identifier: Apache-2.0
"""A store whose events ten consoles read, beside a store without a console."""

import contextlib
import selectors
import socket
import threading

import tools
from figures import Series
from subjects import Subject
from support.console import Console, make_token

N_CONSOLES = 10
LOAD = (16, 16)


def open_stream(console, token):
    stream = socket.create_connection((console.host, int(console.port)))
    stream.sendall(f"GET /api/events HTTP/1.1\r\nHost: {console.host}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return stream


@contextlib.contextmanager
def streams_read(console, token):
    """Ten streams of events that a thread reads for the duration of the block."""
    ended = threading.Event()

    def read_streams():
        with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
            for _ in range(N_CONSOLES):
                selector.register(stack.enter_context(open_stream(console, token)), selectors.EVENT_READ)
            while not ended.is_set():
                for key, _ in selector.select(timeout=0.1):
                    if not key.fileobj.recv(1 << 16):
                        raise RuntimeError("a stream of events has ended")

    thread = threading.Thread(target=read_streams)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def console(figures, directory, effort):
    line, token = make_token("bench", "--operator")
    users = f"{directory}/console.users"
    with open(users, "w", encoding="utf-8") as file:
        file.write(line)
    watched = Subject("watched", directory, flags=["--http-listen", "127.0.0.1:0", "--console-users", users])
    alone = Subject("alone", directory)
    measured = {watched: [], alone: []}
    try:
        with streams_read(Console(watched.responder), token):
            for subject, values in tools.load_by_turns([watched, alone], *LOAD, "--rounds", effort.n_load_rounds,
                                                       "--turns", effort.n_turns, "--warm-up-ms", effort.warm_up_ms,
                                                       "--measure-ms", effort.turn_ms):
                measured[subject].append(values)
    finally:
        watched.stop()
        alone.stop()

    figures.section(f"{N_CONSOLES} consoles read all events", ("none",))
    for name, unit, target in (("throughput", "1/s", None), ("p50_us", "us", None), ("p99_us", "us", ("<=", 1.1)),
                               ("responder_cpu_us", "us", None)):
        ours, others = (Series(values[name] for values in measured[subject]) for subject in (watched, alone))
        figures.row(f"16x16 {name.removesuffix('_us')}", f"console_{name}", unit, ours, [("none", others)], target)
