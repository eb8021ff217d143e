# SPDX-License-Identifier: Apache-2.0
"""Copies the examples, downloads their packages, and runs them."""

import os
import re
import shlex
import subprocess

from support.downloads import ATTEMPTS
from support.process import REPOSITORY, killed_with_parent

EXAMPLES = REPOSITORY / "tests" / "examples"
PATIENCE = 900  # compiling the Go example on a slow machine takes minutes
REASON_MAX = 300

# Between "watching" and the end, another client sets the key `door`, which then expires.
RUST_OUTPUT = """\
get hello
list greeting
lock pump-1
refused a fencing token is required for this request
watching
watch SET open
watch DELETE
"""

DOWNLOADS = {
    "node": ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
    "go": ["go", "list", "-deps", "-test", "."],
}

# Environments of machines that run tests.
VARIABLES = re.compile("CI|FORCE_COLOR|NO_COLOR|TERM|GITHUB_ACTIONS|STATESTORE_URL|PYTEST_.*")


def run(argv, directory, **variables):
    environment = {name: value for name, value in os.environ.items() if not VARIABLES.fullmatch(name)}
    return subprocess.run(killed_with_parent(argv), cwd=directory, env={**environment, **variables},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)


def download(argv, directory):
    """Download packages; return None, or the reason of a failure."""
    for _ in range(ATTEMPTS):
        try:
            ended = run(argv, directory, GOTOOLCHAIN="local")
        except subprocess.TimeoutExpired:
            return f"{shlex.join(argv)}: no end within {PATIENCE} s"
        if ended.returncode == 0:
            return None
    return f"{shlex.join(argv)}: {' '.join(ended.stderr.split())[:REASON_MAX]}"
