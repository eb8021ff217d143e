# SPDX-License-Identifier: Apache-2.0
"""A store with an HTTP server, and users of its console."""

import os

import pytest

from support.broker import free_port
from support.console import Users
from support.pages import Pages

# The AddressSanitizer keeps freed memory in a quarantine, which counts as resident memory.
NO_QUARANTINE = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}


@pytest.fixture
def pages(site, tmp_path):
    """The HTTP server of a store."""
    pages = Pages(free_port())
    site.start_store("--http-listen", f"127.0.0.1:{pages.port}", "--data-dir", str(tmp_path / "data"),
                     environment=NO_QUARANTINE)
    return pages


@pytest.fixture
def users(tmp_path):
    return Users(tmp_path)
