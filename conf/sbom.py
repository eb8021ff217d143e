# SPDX-License-Identifier: Apache-2.0
"""Prints the packages of an image as SPDX 2.3 in JSON, from the data of dpkg.

usage: sbom.py NAME SECONDS STATUS

SECONDS is the time of the release, since 1970. STATUS is /var/lib/dpkg/status of the image.
"""

import hashlib
import json
import sys
from datetime import datetime, timezone
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import quote


def package(fields, distribution="debian-12"):
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    return {
        "SPDXID": f"SPDXRef-{name.replace('+', '-')}-{architecture}",
        "name": name,
        "versionInfo": version,
        "supplier": f"Organization: {fields['Maintainer'].split(' <')[0]}",
        "downloadLocation": fields.get("Homepage", "NOASSERTION"),
        "filesAnalyzed": False,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={architecture}"
                                              f"&distro={distribution}"}],
    }


def document(name, seconds, status):
    entries = [HeaderParser().parsestr(text) for text in status.strip().split("\n\n")]
    packages = [package(fields) for fields in entries if fields["Status"] == "install ok installed"]
    described = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": each["SPDXID"]}
                 for each in packages]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"https://statestored.example/spdx/{name}-{hashlib.sha256(status.encode()).hexdigest()[:16]}",
        "creationInfo": {"created": datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: statestored-sbom"]},
        "packages": packages,
        "relationships": described,
    }


if __name__ == "__main__":
    name, seconds, status = sys.argv[1:]
    print(json.dumps(document(name, int(seconds), Path(status).read_text()), indent=1))
