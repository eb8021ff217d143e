# SPDX-License-Identifier: Apache-2.0
"""A mosquitto with conf/mosquitto-production.conf and conf/mosquitto-acl.conf."""

import re
import shutil
from pathlib import Path

from support.broker import free_port, passwords
from support.plugin import PLUGIN, PluginBroker
from support.process import REPOSITORY

CONF = REPOSITORY / "conf"
PLAIN, PASSWORD_AND_CERTIFICATE, CERTIFICATE = "1883", "8883", "8884"  # the listeners of the file

PLUGINS_2_1 = "mosquitto_password_file.so", "mosquitto_acl_file.so"


def uncomment(text, *lines):
    """Put these lines, regular expressions which are comments in the text, into effect."""
    for line in lines:
        text, count = re.subn(rf"^#({line})$", r"\1", text, flags=re.MULTILINE)
        assert count, f"the file has no line #{line}"
    return text


def with_certificate_listener(text):
    return uncomment(text, f"listener {CERTIFICATE}", "(?:cafile|certfile|keyfile|require_certificate) .*",
                     "use_identity_as_username true")


def with_plugins_of_2_1(text):
    """Replace the options that mosquitto 2.1 deprecates."""
    text = uncomment(text, r"plugin .*/mosquitto_\w+_file\.so", r"plugin_opt_\w+_file .*")
    return re.sub("^(password|acl)_file .*\n", "", text, flags=re.MULTILINE)


class ProductionBroker(PluginBroker):
    """The files with other ports and paths, and with `edit` applied to the text of the first one. The certificate of the server
    is `server`, issued by `authority`. users: passwords by user name."""

    def __init__(self, directory, authority, server, users, edit=lambda text: text):
        super().__init__(directory)
        self.ports = {PLAIN: self.port, PASSWORD_AND_CERTIFICATE: free_port(), CERTIFICATE: free_port()}
        self.files = {"/etc/mosquitto/certs/ca.crt": authority.certificate,
                      "/etc/mosquitto/certs/server.crt": server.certificate, "/etc/mosquitto/certs/server.key": server.key,
                      "/etc/mosquitto/passwd": passwords(self.directory, **users),
                      "/etc/mosquitto/statestored-acl.conf": CONF / "mosquitto-acl.conf",
                      "/usr/local/lib/statestored/mosquitto_statestore.so": PLUGIN}
        lib = Path(shutil.which("mosquitto")).resolve().parent.parent / "lib"
        self.files.update({f"/usr/lib/{name}": lib / name for name in PLUGINS_2_1})
        self.edit = edit

    def configure(self):
        lines = self.edit((CONF / "mosquitto-production.conf").read_text()).splitlines()
        for n, line in enumerate(lines):
            words = line.split(" ")
            if words[0] == "listener":
                words[1:] = str(self.ports[words[1]]), "127.0.0.1"
            lines[n] = " ".join(str(self.files.get(word, word)) for word in words)
        path = self.directory / "mosquitto.conf"
        path.write_text("\n".join(["user root", "log_dest stderr", *lines, ""]))
        return path
