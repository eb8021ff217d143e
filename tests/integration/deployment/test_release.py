# SPDX-License-Identifier: Apache-2.0
"""conf/release.sh refuses what is no release, and conf/sbom.py lists the packages of an image."""

import json
import subprocess

import pytest

from support.process import REPOSITORY

STATUS = """\
Package: libstdc++6
Status: install ok installed
Maintainer: Debian GCC Maintainers <debian-gcc@lists.debian.org>
Architecture: amd64
Version: 12.2.0-14+deb12u1
Homepage: http://gcc.gnu.org/
Description: library
 of several lines

Package: removed
Status: deinstall ok config-files
Maintainer: Somebody <s@example.org>
Architecture: all
Version: 1
"""


@pytest.fixture
def tree(tmp_path):
    """A repository with the files that release.sh checks, whose only commit is a release of version 7.8.9."""
    folder = tmp_path / "tree"
    for file in "conf/release.sh", "conf/debian_root.sh", "conf/debian/changelog", "meson.build", "server/packages.sh":
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text((REPOSITORY / file).read_text())
    write(folder / "meson.build", "version: '7.8.9',\n")
    write(folder / "conf/debian/changelog", "statestored (7.8.9) bookworm; urgency=medium\n")
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def write(file, text):
    file.write_text(text)


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@example.org", *words], check=True)


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "release")


@pytest.mark.parametrize("file, text, version, message", [
    ("new", "file", "7.8.9", "not committed"),
    (None, None, "7.8.8", "meson.build has another version"),
    ("conf/debian/changelog", "statestored (7.8.8) bookworm; urgency=medium\n", "7.8.9", "changelog begins with another version"),
    ("conf/debian/changelog", "statestored (7.8.9) UNRELEASED; urgency=medium\n", "7.8.9", "UNRELEASED"),
])
def test_a_release_is_refused(tree, file, text, version, message):
    if file:
        write(tree / file, text)
        if file != "new":
            commit(tree)

    ended = subprocess.run(["sh", "conf/release.sh", version], cwd=tree, capture_output=True, text=True, check=False)

    assert ended.returncode == 1 and message in ended.stderr, ended.stderr
    assert not (tree / "build").exists()


def test_the_list_of_software_has_the_installed_packages(tmp_path):
    write(tmp_path / "status", STATUS)
    printed = subprocess.run(["/usr/bin/python3", REPOSITORY / "conf/sbom.py", "image", "1700000000", tmp_path / "status"],
                             capture_output=True, text=True, check=True).stdout
    document = json.loads(printed)

    [package] = document["packages"]
    assert document["spdxVersion"] == "SPDX-2.3" and document["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
    assert (package["name"], package["versionInfo"]) == ("libstdc++6", "12.2.0-14+deb12u1")
    assert package["externalRefs"][0]["referenceLocator"] == (
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64&distro=debian-12")
    assert [each["relatedSpdxElement"] for each in document["relationships"]] == [package["SPDXID"]]
