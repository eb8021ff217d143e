# SPDX-License-Identifier: Apache-2.0
"""A store with an HTTP server."""

import contextlib
import http.client
import os
import urllib.error
import urllib.request

import pytest

from support.broker import free_port
from support.process import PATIENCE


# The AddressSanitizer keeps freed memory in a quarantine, which counts as resident memory.
NO_QUARANTINE = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}


class Pages:
    def __init__(self, port):
        self.port = port

    def get(self, path, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def get_from(self, address, path):
        """As get(), from another address of the loopback interface."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE, source_address=(address, 0))
        with contextlib.closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def metrics(self):
        samples = {}
        for line in self.get("/metrics")[1].splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples

    def metrics_or_none(self):
        """The metrics, or None: a full backlog makes the kernel drop connections silently."""
        with contextlib.suppress(OSError):
            return self.metrics()


@pytest.fixture
def pages(site, tmp_path):
    """The HTTP server of a store."""
    pages = Pages(free_port())
    site.start_store("--http-listen", f"127.0.0.1:{pages.port}", "--data-dir", str(tmp_path / "data"),
                     environment=NO_QUARANTINE)
    return pages
