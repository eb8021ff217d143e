# SPDX-License-Identifier: Apache-2.0
"""Skipping of tests whose packages cannot be downloaded, or are not installed."""

import os
import shutil

import pytest

ATTEMPTS = 3  # of a download: a network may fail briefly


def unavailable(reason):
    """Skip the running test with this reason. Where the environment variable CI is set, fail it."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def require_program(name):
    if not shutil.which(name):
        unavailable(f"{name} is not installed")
