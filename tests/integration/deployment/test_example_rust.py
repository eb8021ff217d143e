# SPDX-License-Identifier: Apache-2.0
"""The example with the published Rust client does what it prints."""

import os
import subprocess

from support.examples import PATIENCE, RUST_OUTPUT
from support.process import killed_with_parent


def test_the_published_rust_client_sets_gets_lists_locks_and_watches(rust_example, double):
    environment = {**os.environ, "AIO_BROKER_HOSTNAME": "127.0.0.1", "AIO_BROKER_TCP_PORT": str(double.port),
                   "AIO_MQTT_USE_TLS": "false", "AIO_MQTT_CLIENT_ID": "pump-1"}
    with subprocess.Popen(killed_with_parent([rust_example]), env=environment, text=True, stdout=subprocess.PIPE) as running:
        shown = []
        for line in running.stdout:
            shown.append(line)
            if line == "watching\n":
                double.connect("writer").request("SET", "door", "open", "PX", 500)
        assert running.wait(PATIENCE) == 0
    assert "".join(shown) == RUST_OUTPUT
