# SPDX-License-Identifier: Apache-2.0
"""statestored --dev: ports, the private broker, and cleanup."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.broker import free_port
from support.ctl import environment
from support.double import WITHOUT_LEAK_CHECK, Double, is_gone, sanitizer_environment
from support.process import CTL, PATIENCE, REPOSITORY, STATESTORED, wait_until


@pytest.fixture
def double_of(until_end, tmp_path):
    """Makes test doubles in a directory of the test, and stops them after the test."""
    return lambda *flags, **more: until_end(Double(tmp_path, *flags, **more))


@pytest.fixture
def double(double_of):
    return double_of().start()


def is_free(port):
    """Return whether no process listens at a port of free_port(), which is reserved for this test."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_dev_prints_the_url_that_it_serves(double_of, tmp_path):
    ready = tmp_path / "ready"
    double = double_of("--ready-file", ready).start()

    assert ready.read_text() == double.url + "\n"
    client = double.connect("client-1")
    assert client.request("SET", "key", "value").payload == b"+OK\r\n"
    assert client.request("GET", "key").payload == b"$5\r\nvalue\r\n"


def test_the_broker_has_the_plugin(double):
    assert "the broker has the plugin" in double.log()


def test_no_request_of_a_burst_is_lost(double):
    client = double.connect("client-1")

    replies = client.request_all(("SET", f"key-{n}", "value") for n in range(3000))

    assert all(reply.payload == b"+OK\r\n" for reply in replies)


def test_dev_has_the_packet_size_of_production(double):
    limit = re.search(r"(?m)^max_packet_size (\d+)$", (REPOSITORY / "conf/mosquitto.conf").read_text())[1]

    doctor = subprocess.run([CTL, "--port", str(double.port), "doctor"], capture_output=True, text=True, timeout=PATIENCE)
    assert f"the broker takes packets of {limit} bytes at most" in doctor.stdout


def test_dev_uses_the_given_port(double_of):
    port = free_port()

    assert double_of(port=port).start().port == port


def test_dev_listens_at_the_given_address(double_of):
    port = free_port()
    double = double_of("--dev-listen", "127.0.0.2", port=port)
    assert double.first_line() == f"mqtt://127.0.0.2:{port}\n", double.log()

    with socket.create_connection(("127.0.0.2", port)):
        pass
    assert is_free(port)


def test_a_port_in_use_is_reported(double, double_of):
    second = double_of(port=double.port, environment=WITHOUT_LEAK_CHECK)

    assert second.first_line() == ""
    assert second.child.wait(PATIENCE) == 1
    assert f"port {double.port} is in use" in second.log()
    assert "--port 0" in second.log()


def end_by_stdin(double):
    double.child.stdin.close()
    return 0


def end_by(number, exit_code):
    def end(double):
        double.child.send_signal(number)
        return exit_code

    return end


WAYS = {"stdin": end_by_stdin, "SIGTERM": end_by(signal.SIGTERM, 0), "SIGINT": end_by(signal.SIGINT, 0),
        "SIGKILL": end_by(signal.SIGKILL, -9), "SIGABRT": end_by(signal.SIGABRT, -6)}


@pytest.mark.parametrize("way", WAYS)
def test_the_broker_ends_with_the_store_and_no_file_is_left(double_of, tmp_path, way):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    double = double_of(port=free_port(), environment={"TMPDIR": str(temporary)}).start()
    double.connect("client-1").request("SET", "key", "value")
    double.close_clients()

    expected = WAYS[way](double)

    exit_code = double.wait()
    assert exit_code == expected, double.log()
    assert is_free(double.port)
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["double.log", "temporary"]


def mosquitto_path():
    return shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")


def test_dev_does_not_connect_to_another_broker_at_its_port(double_of, site, tmp_path):
    """mosquitto 2.1 logs this line before it opens the port. Another store may be connected to the other broker."""
    program = tmp_path / "mosquitto"
    program.write_text(f'#!/bin/sh\necho "Info: running mosquitto as user: root." >&2\nexec {mosquitto_path()} "$@"\n')
    program.chmod(0o755)
    double = double_of(port=site.broker.port, environment={**WITHOUT_LEAK_CHECK, "PATH": str(tmp_path)})

    assert double.child.wait(PATIENCE) == 1
    assert f"port {site.broker.port} is in use" in double.log()
    site.connect()
    assert " as statestored " not in site.broker.log()


def test_a_broker_of_another_group_ends_with_the_killed_store(double_of, tmp_path):
    """The program is set-group-ID: the kernel clears the parent-death signal of such a program."""
    program = tmp_path / "mosquitto"
    shutil.copy(mosquitto_path(), program)
    if os.geteuid() == 0:
        os.chown(program, -1, 65534)
    program.chmod(0o2755)
    double = double_of(environment={"PATH": str(tmp_path)}).start()

    double.child.kill()

    assert double.wait() == -signal.SIGKILL


def test_the_store_ends_with_its_broker(double):
    os.kill(double.broker_pid, signal.SIGKILL)

    assert double.wait() == 1
    assert "mosquitto ended" in double.log()


# Starts a store as a child process, prints its process id, and waits for the end of stdin.
PARENT = """
import subprocess, sys
double = subprocess.Popen([*sys.argv[1:], "--dev", "--port", "0", "--exit-with-parent"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
double.stdout.readline()
print(double.pid, flush=True)
sys.stdin.read()
"""


def parent_of_double(script):
    preload = [f"{name}={value}" for name, value in sanitizer_environment().items()]
    return [sys.executable, "-c", script, "env", *preload, STATESTORED]


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_store_ends_with_its_parent():
    parent = subprocess.Popen(parent_of_double(PARENT), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        pid = int(parent.stdout.readline())
        [broker] = children_of(pid)
        assert not is_gone(pid) and not is_gone(broker)
    finally:
        parent.kill()
        parent.wait()

    wait_until(lambda: is_gone(pid), "the store has ended")
    wait_until(lambda: is_gone(broker), "the broker has ended")


# Starts the store in a thread. After the thread has ended, prints the URL and waits for the end of stdin.
PARENT_WITH_THREAD = """
import os, subprocess, sys, threading
def start():
    global double, thread
    double = subprocess.Popen([*sys.argv[1:], "--dev", "--port", "0", "--exit-with-parent"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    thread = threading.get_native_id()
starter = threading.Thread(target=start)
starter.start()
starter.join()
while os.path.exists(f"/proc/self/task/{thread}"):
    pass
print(double.stdout.readline().decode(), end="", flush=True)
sys.stdin.read()
double.terminate()
sys.exit(double.wait())
"""


def test_the_store_survives_the_end_of_the_thread_that_started_it():
    parent = subprocess.Popen(parent_of_double(PARENT_WITH_THREAD), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    try:
        port = parent.stdout.readline().strip().rpartition(b":")[2]
        for _ in range(2):
            reply = subprocess.run([STATESTORED.with_name("statestorectl"), "--port", port, "set", "key", "value"],
                                    env=environment({}), capture_output=True, text=True, check=False)
            assert reply.stdout.startswith("OK"), reply
        parent.stdin.close()
        assert parent.wait(PATIENCE) == 0
    finally:
        parent.kill()
        parent.wait()


def test_without_exit_with_parent_the_end_of_stdin_is_ignored(double_of):
    double = double_of("--exit-with-parent=off").start()
    double.child.stdin.close()

    assert double.connect("client-1").request("SET", "key", "value").payload == b"+OK\r\n"
    double.child.send_signal(signal.SIGTERM)
    assert double.wait() == 0


def test_the_store_starts_with_stdin_closed(double_of):
    double = double_of(wrapper=["sh", "-c", 'exec "$@" <&-', "sh"]).start()

    assert double.connect("client-1").request("SET", "key", "value").payload == b"+OK\r\n"


def test_without_mosquitto_the_error_says_how_to_install_it(double_of, tmp_path):
    double = double_of(environment={"PATH": str(tmp_path)})

    assert double.first_line() == ""
    assert double.child.wait(PATIENCE) == 1
    assert "apt-get install mosquitto" in double.log()


def test_mosquitto_is_found_in_usr_sbin_if_path_has_only_usr_bin(double_of):
    double_of(environment={"PATH": "/usr/bin"}).start()


def test_fifty_stores_start_and_stop_at_once(tmp_path):
    directories = [tmp_path / str(n) for n in range(50)]
    for directory in directories:
        directory.mkdir()
    doubles = [Double(directory) for directory in directories]
    try:
        for double in doubles:
            double.start()
        assert len({double.port for double in doubles}) == len(doubles)
        for n, double in enumerate(doubles):
            client = double.connect("client-1")
            assert client.request("SET", "key", f"value-{n}").payload == b"+OK\r\n"
        for n, double in enumerate(doubles):
            assert double.clients[0].request("GET", "key").payload.endswith(f"value-{n}\r\n".encode())

        for double in doubles:
            double.close_clients()
            double.child.stdin.close()
        for double in doubles:
            assert double.wait() == 0, double.log()
    finally:
        for double in doubles:
            double.close()
