# SPDX-License-Identifier: Apache-2.0
"""One broker with its stores and clients, stopped together."""

import uuid
from pathlib import Path

from support.broker import Broker
from support.client import Client
from support.plugin import PluginBroker
from support.store import Store


class SiteBroker(PluginBroker):
    """A broker with additional listeners. `listeners`: their configuration lines, in which {port} is the broker's port.

    On a busy machine a request may wait for the store longer than the 10 s after which the plugin refuses it. So here it waits
    without a limit, unless a line sets one.
    """

    def __init__(self, directory, *lines, listeners=(), **more):
        super().__init__(directory, *lines, **more)
        self.plugin_options.append("plugin_opt_statestored_wait 0")
        self.listeners = listeners

    def configure(self):
        self.first_lines = [line.format(port=self.port) for line in self.listeners]
        return super().configure()


class Site:
    def __init__(self, directory, broker=None):
        self.directory = Path(directory)
        self.broker = (broker or Broker(self.directory)).start()
        self.store = None
        self.clients = []

    def start_store(self, *flags, environment=None):
        """Start the site's store. A broker has one store."""
        store = self.launch_store(*flags, environment=environment)
        store.wait_until_ready()
        return store

    def launch_store(self, *flags, environment=None):
        """Start a store without waiting for it."""
        assert self.store is None
        self.store = Store(self.directory, self.broker.port, flags, environment)
        return self.store.launch()

    def connect(self, client_id=None, kind=Client, **more):
        client = kind(self.broker.port, client_id or f"client-{uuid.uuid4().hex[:12]}", **more)
        self.clients.append(client)
        return client

    def disconnect_all(self):
        while self.clients:
            self.clients.pop().close()

    def close(self):
        """Stop everything. A store that has ended before, or does not stop cleanly, fails the test."""
        try:
            self.disconnect_all()
            if self.store and self.store.child:
                assert self.store.running(), f"statestored died: {self.store.child.returncode}\n{self.store.log()}"
                assert self.store.stop() == 0, self.store.log()
        finally:
            if self.broker.child:
                assert self.broker.running(), f"mosquitto died: {self.broker.child.returncode}\n{self.broker.log()}"
                assert self.broker.stop() == 0, self.broker.log()


def kill_store(site):
    """Kill the store, and start it again."""
    site.store.kill()
    site.store.start()


def kill_broker(site):
    """Kill the broker, and start it again on the same port."""
    site.broker.kill()
    site.broker.start_again()
