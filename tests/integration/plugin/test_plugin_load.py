# SPDX-License-Identifier: Apache-2.0
"""The plugin finds all functions that it calls in each build of mosquitto."""

import re
import subprocess
from pathlib import Path

from support.plugin import PLUGIN, sanitizer_libraries

HEADERS = Path("/usr/include/mosquitto_broker.h"), Path("/usr/include/mosquitto_plugin.h")

LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **arguments) { return dlopen(arguments[1], RTLD_NOW) ? 0 : (puts(dlerror()), 1); }
"""


def test_the_plugin_loads_in_a_broker_that_exports_only_the_functions_for_plugins(tmp_path):
    """Like mosquitto 2.0.21 of Debian 13. That of Debian 12 exports all its functions."""
    exported = {name for header in HEADERS for name in re.findall(r"\b(mosquitto_\w+)\(", header.read_text())}
    assert "mosquitto_callback_register" in exported and "mosquitto_property_read_string" not in exported
    broker = tmp_path / "broker"
    subprocess.run(["cc", "-rdynamic", "-fno-builtin", "-x", "c", "-o", broker, "-"], check=True, text=True,
                   input=LOADER + "".join(f"void {name}(void) {{ }}\n" for name in sorted(exported)))

    preload = "LD_PRELOAD=" + ":".join(sanitizer_libraries())
    subprocess.run(["env", preload, broker, PLUGIN], check=True)
