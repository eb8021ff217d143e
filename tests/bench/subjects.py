# SPDX-License-Identifier: Apache-2.0
"""Measured programs: responders of several kinds, each with a mosquitto of its own, and a redis-server."""

import re
import time
from pathlib import Path

import cores
from support.broker import Broker, free_port
from support.process import BUILD, REPOSITORY, STATESTORED, Process, wait_until
from support.store import Store

TOOLS = BUILD / "tests" / "bench"
PLUGIN = BUILD / "server" / "plugin" / "mosquitto_statestore.so"
INSIDE = TOOLS / "inside_responder.so"


class ConfiguredBroker(Broker):
    """A mosquitto with the recommended configuration, conf/mosquitto.conf, except max_packet_bytes. plugin: a path, or None."""

    def __init__(self, directory, plugin, max_packet_bytes):
        super().__init__(directory)
        self.plugin = plugin
        self.max_packet_bytes = max_packet_bytes

    def configuration(self):
        text = (REPOSITORY / "conf" / "mosquitto.conf").read_text()
        text = re.sub(r"(?m)^listener 1883 ", f"listener {self.port} ", text)
        if self.plugin:
            text = re.sub(r"(?m)^plugin .*", f"plugin {self.plugin}", text)
        else:
            text = re.sub(r"(?m)^plugin.*\n", "", text)
        if self.max_packet_bytes:
            text = re.sub(r"(?m)^max_packet_size .*", f"max_packet_size {self.max_packet_bytes}", text)
        return text + "user root\n"  # mosquitto would change to a user that may be unable to read the plugin

    def starts(self):
        path = self.directory / "mosquitto.conf"
        path.write_text(self.configuration())
        seen = len(self.log())
        self.spawn(["mosquitto", "-c", path])
        cores.give_to_server(self.child.pid)
        return self.wait_until_running(seen)


class Responder(Store):
    """A program with the command line of statestored."""

    def __init__(self, directory, port, program, flags):
        super().__init__(directory, port, flags)
        self.program = program

    def launch(self, keep_ready_file=False):
        self.ready_file.unlink(missing_ok=True)
        self.spawn([self.program, "--port", self.port, "--ready-file", self.ready_file, *self.flags])
        return self


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


class Inside:
    """A broker with a plugin that replies by itself."""

    def __init__(self, name, directory):
        self.name = name
        directory = Path(directory) / name
        directory.mkdir()
        self.broker = ConfiguredBroker(directory, INSIDE, None).start()
        self.port, self.pid = self.broker.port, self.broker.child.pid

    def stop(self):
        self.broker.kill()


class Subject:
    """One responder and its broker."""

    def __init__(self, name, directory, program=STATESTORED, flags=(), plugin=PLUGIN, max_packet_bytes=None):
        self.name = name
        directory = Path(directory) / name
        directory.mkdir()
        self.broker = ConfiguredBroker(directory, plugin, max_packet_bytes).start()
        self.responder = Responder(directory, self.broker.port, program, flags)
        begin = time.monotonic()
        self.responder.launch()
        wait_until(lambda: self.responder.is_ready() or not self.responder.running(), f"{name} is ready")
        if not self.responder.running():
            raise RuntimeError(f"{name} has ended\n{self.responder.log()}")
        self.start_seconds = time.monotonic() - begin

    @property
    def port(self):
        return self.broker.port

    @property
    def pid(self):
        return self.responder.child.pid

    def resident_bytes(self):
        return resident_bytes(self.pid)

    def stop(self):
        for process in (self.responder, self.broker):
            if process.running():
                process.kill()


class Redis(Process):
    """redis-server without persistence, otherwise with the defaults of Debian."""

    def __init__(self, directory):
        super().__init__("redis-server", Path(directory) / "redis.log")
        self.port = free_port()
        self.spawn(["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        cores.give_to_server(self.child.pid)
        self.wait_for_log("ready to accept connections")

    def resident_bytes(self):
        return resident_bytes(self.child.pid)

    def stop(self):
        if self.running():
            self.kill()
