# SPDX-License-Identifier: Apache-2.0
"""The example with the published Rust client does what it prints.

Compiling its 157 crates takes minutes, so this test runs only if the variable STATESTORE_TEST_RUST is set. They are compiled
once for a build directory.
"""

import os
import subprocess

import pytest

from support.downloads import require_program, unavailable
from support.examples import EXAMPLES, PATIENCE, REASON_MAX, run
from support.process import BUILD, killed_with_parent

OUTPUT = """\
get hello
list greeting
lock pump-1
refused a fencing token is required for this request
watching
watch SET open
watch DELETE
"""


@pytest.fixture
def program():
    if not os.environ.get("STATESTORE_TEST_RUST"):
        pytest.skip("STATESTORE_TEST_RUST is not set: compiling the published Rust client takes minutes")
    require_program("cargo")
    target = BUILD / "example-rust"
    for arguments in ["fetch", "--locked"], ["build", "--locked", "--offline", "--target-dir", target]:
        ended = run(["cargo", *arguments], EXAMPLES / "rust")
        if ended.returncode != 0 and arguments[0] == "fetch":
            unavailable(f"cargo fetch: {' '.join(ended.stderr.split())[:REASON_MAX]}")
        assert ended.returncode == 0, ended.stderr
    return target / "debug" / "statestore-example"


def test_the_published_rust_client_sets_gets_lists_locks_and_watches(program, double):
    environment = {**os.environ, "AIO_BROKER_HOSTNAME": "127.0.0.1", "AIO_BROKER_TCP_PORT": str(double.port),
                   "AIO_MQTT_USE_TLS": "false", "AIO_MQTT_CLIENT_ID": "pump-1"}
    with subprocess.Popen(killed_with_parent([program]), env=environment, text=True, stdout=subprocess.PIPE) as running:
        shown = []
        for line in running.stdout:
            shown.append(line)
            if line == "watching\n":
                double.connect("writer").request("SET", "door", "open", "PX", 500)
        assert running.wait(PATIENCE) == 0
    assert "".join(shown) == OUTPUT
