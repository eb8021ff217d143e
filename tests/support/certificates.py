# SPDX-License-Identifier: Apache-2.0
"""Certificates made with the openssl tool."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Certificate(NamedTuple):
    certificate: Path
    key: Path


class Authority:
    """A certificate authority. Its certificate is in the file `certificate`."""

    def __init__(self, directory, name):
        self.directory = Path(directory) / name
        self.directory.mkdir()
        self.certificate, self._key = self.directory / "ca.crt", self.directory / "ca.key"
        openssl("req", "-x509", *NEW_KEY, "-keyout", self._key, "-out", self.certificate, "-subj", f"/CN={name}",
                "-days", 2)

    def issue(self, name, addresses="IP:127.0.0.2,DNS:localhost", days=1):
        """Issue a certificate for a server at these addresses, or for a client of this name. Negative days: expired."""
        key, request, certificate, extensions = (self.directory / f"{name}.{suffix}"
                                                 for suffix in ("key", "csr", "crt", "ext"))
        extensions.write_text(f"subjectAltName={addresses}\nbasicConstraints=critical,CA:false\n")
        openssl("req", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
                "-days", days, "-extfile", extensions, "-out", certificate)
        return Certificate(certificate, key)

    def trusted_by_system(self):
        """Return the words before a command line that execute it where the system trusts this authority alone. Requires root."""
        trusted = self.directory / "trusted"
        trusted.mkdir()
        shutil.copy(self.certificate, trusted / "ca-certificates.crt")
        openssl("rehash", trusted)
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/ssl/certs && exec "$@"', trusted]
