# SPDX-License-Identifier: Apache-2.0
"""Tests that need what a machine may be unable to download, or has not installed."""

import os
import shutil

import pytest


def unavailable(reason):
    """Skip the running test with this reason. Where the environment variable CI is set, fail it."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def require_program(name):
    if not shutil.which(name):
        unavailable(f"{name} is not installed")
