# SPDX-License-Identifier: Apache-2.0
"""A client of the HTTP server of a store."""

import contextlib
import urllib.error
import urllib.request

from support.process import PATIENCE


class Pages:
    def __init__(self, port, patience=PATIENCE, entered=contextlib.nullcontext):
        """entered: makes the context in which the connection is made, such as that of another network."""
        self.port = port
        self.patience = patience
        self.entered = entered

    def get(self, path, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        try:
            with self.entered(), urllib.request.urlopen(request, timeout=self.patience) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

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
