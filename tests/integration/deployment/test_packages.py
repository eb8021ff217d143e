# SPDX-License-Identifier: Apache-2.0
"""conf/package.sh: the packages are installed, upgraded, removed and purged on a machine with nothing but Debian.

`sh tests/packages.sh` does the same on Debian 13, and with packages of an older commit.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.debian import NAMES, Machine, succeed, with_version
from support.documents import blocks_of
from support.examples import RUST_OUTPUT
from support.process import REPOSITORY, wait_until

pytestmark = [
    # one pytest process builds the packages and the images for all processes
    pytest.mark.xdist_group("image"),
    pytest.mark.not_sanitized("a package is built without sanitizers, whatever is tested beside it"),
]

SNIPPET = "/etc/mosquitto/conf.d/statestored.conf"


def old_conffiles(root):
    """Change defaults that the new version then changes back."""
    for name in "etc/statestored/policy.conf", "etc/statestored/statestored.conf":
        if (root / name).exists():
            with open(root / name, "a") as file:
                file.write("# of the old version\n")


@pytest.fixture(scope="module")
def old_packages(packages, tmp_path_factory):
    """Packages of an older commit, if `sh tests/packages.sh upgrade` has built them."""
    folder = os.environ.get("STATESTORE_OLD_PACKAGES")
    if folder:
        return list(Path(folder).glob("*.deb"))
    return list(with_version("0.0.1", packages, tmp_path_factory.mktemp("old"), old_conffiles).values())


@pytest.fixture
def machine(tmp_path, packages, old_packages):
    """A machine that has the packages in /root/build/packages, and packages of an older version in /root/old."""
    machine = Machine(tmp_path)
    try:
        machine.copy(old_packages, "root/old")
        machine.copy(packages.values(), "root/build/packages")
        machine.boot()
        yield machine
    finally:
        machine.close()


def commands_of(document):
    """Return the commands of each block whose annotation names this file."""
    blocks = [block for block in blocks_of(document) if block.argument("by") == "test_packages.py"]
    return [[line.removeprefix("sudo ") for line in block.text.splitlines()] for block in blocks]


def settings(machine, path):
    return [line for line in machine.path(path).read_text().splitlines() if line and not line.startswith("#")]


def test_lintian_finds_nothing(packages):
    lintian = subprocess.run(["lintian", "--fail-on", "error,warning", *packages.values()], capture_output=True, text=True, check=False)

    assert lintian.returncode == 0 and not re.search("^[EW]: ", lintian.stdout, re.MULTILINE), lintian.stdout + lintian.stderr


def test_the_packages_have_the_version_of_the_changelog(packages):
    version = re.match(r"statestored \((.+)\) ", (REPOSITORY / "conf/debian/changelog").read_text())[1]

    assert packages.keys() == set(NAMES)
    assert versions_of(packages.values()) == {version}


def test_the_archive_replaces_no_link_at_the_root_of_a_system(packages):
    [archive] = packages["statestored"].parent.glob("*.tar.gz")

    top = {name.split("/")[1] for name in succeed("tar", "-tf", archive).splitlines()}
    assert top == {"", "etc", "usr"}


def versions_of(files):
    return {succeed("dpkg-deb", "--field", file, "Version").strip() for file in files}


def main_process(machine, unit):
    return machine.run("systemctl", "show", "--property=MainPID", unit)


def test_the_packages_are_installed_upgraded_removed_and_purged(machine, packages):
    """One machine, because it takes longest to make. The commands of the README are executed with the old packages, and its
    first one again with the new packages."""
    [[build, install, *commands]] = commands_of("README.md")
    in_production, with_certificates, _ = commands_of("conf/PRODUCTION.md")
    assert build == "sh conf/package.sh" and len(commands) <= 8 and in_production == [install, commands[0]]
    machine.run("sh", "-c", install.replace("build/packages", "old"))
    assert machine.ask("systemctl", "is-enabled", "statestored").stdout == "disabled\n"
    for command in commands:
        shown = machine.run("sh", "-c", command)
    assert shown == "hello"
    assert machine.ask("statestorectl", "ping").returncode != 0  # without a user

    policy, password = machine.path("/etc/statestored/policy.conf"), machine.path("/etc/statestored/password")
    policy.write_text(policy.read_text() + "# of the administrator\n")
    secret, store, broker = password.read_text(), main_process(machine, "statestored"), main_process(machine, "mosquitto")
    machine.run("sh", "-c", install.replace("install", "install -o Dpkg::Options::=--force-confold"))

    assert set(machine.run("dpkg-query", "-W", "-f", "${Version}\n", *NAMES).split()) == versions_of(packages.values())
    assert "# of the administrator\n" in policy.read_text() and password.read_text() == secret
    assert "# of the old version\n" not in machine.path("/etc/statestored/statestored.conf").read_text()
    assert main_process(machine, "statestored") != store and main_process(machine, "mosquitto") != broker
    assert machine.run("sh", "-c", commands[-1]) == "hello"

    snippet = machine.path("/etc/mosquitto/statestored.conf").read_text()
    machine.run("sh", "-c", with_certificates[0])
    assert settings(machine, "/etc/mosquitto/statestored.conf") == settings(
        machine, "/usr/share/doc/mosquitto-statestore/examples/mosquitto-production.conf")
    machine.path("/etc/mosquitto/statestored.conf").write_text(snippet)

    check_users(machine)
    check_refusals(machine)
    machine.run("apt", "remove", *NAMES)

    assert machine.run("systemctl", "is-active", "mosquitto") == "active\n"
    assert machine.ask("systemctl", "is-active", "statestored").stdout == "inactive\n"
    assert policy.exists() and password.exists() and machine.path("/var/lib/private/statestored").exists()

    machine.run("apt", "purge", *NAMES)

    left = machine.run("find", "/etc", "/usr", "/var/lib", "-name", "*state*", "-ipath", "*statestore*")
    assert left.split() == []
    assert machine.run("systemctl", "is-active", "mosquitto") == "active\n"

    # the broker still has the user of the store, whose password is deleted
    for command in install, *commands:
        shown = machine.run("sh", "-c", command)
    assert shown == "hello" and password.read_text() != secret
    machine.path("/etc/mosquitto/conf.d/own.conf").write_text("no option of mosquitto\n")
    machine.run("apt", "remove", "mosquitto-statestore")
    assert not machine.path(SNIPPET).is_symlink()


def check_users(machine):
    """A later run, in another folder, makes the missing users, and repairs a file of users of which a part is missing."""
    users, secret = machine.path("/etc/mosquitto/passwd"), machine.path("/etc/statestored/password").read_text()
    lines = [line for line in users.read_text().splitlines() if not line.startswith("statestored:")]
    users.write_text("\n".join(lines))
    machine.run("sh", "-c", "mkdir other && cd other && SUDO_UID=1234 SUDO_GID=1234 statestored-enable-broker alice al.ce")

    assert [line.split(":$")[0] for line in users.read_text().splitlines()] == ["operator", "alice", "statestored", "al.ce"]
    assert machine.path("/etc/statestored/password").read_text() == secret
    assert machine.run("sh", "-c", "cd other && stat --format '%n %u %g %a' *") == "al.ce.txt 1234 1234 600\n"
    assert machine.run("statestorectl", "--user", "al.ce", "--password-file", "other/al.ce.txt", "get", "settings/greeting") == "hello"
    assert machine.ask("statestored-enable-broker", "bob", "-x").returncode == 2


def check_refusals(machine):
    """The program leaves a file of the administrator as it is, and mosquitto running."""
    snippet, own = machine.path(SNIPPET), machine.path("/etc/mosquitto/conf.d/own.conf")
    own.write_text("listener 1883 127.0.0.1\n")
    refused = machine.ask("statestored-enable-broker")
    assert refused.returncode == 1 and "journalctl -u mosquitto" in refused.stderr
    assert machine.run("systemctl", "is-active", "mosquitto") == "active\n" and not snippet.is_symlink()
    own.unlink()

    snippet.write_text("# of the administrator\n")
    for command in ["statestored-enable-broker"], ["statestored-enable-broker", "--off"]:
        refused = machine.ask(*command)
        assert refused.returncode == 1 and SNIPPET in refused.stderr
    machine.run("/var/lib/dpkg/info/mosquitto-statestore.prerm", "remove")
    assert snippet.read_text() == "# of the administrator\n"
    snippet.unlink()
    machine.run("statestored-enable-broker")


def test_a_published_client_uses_the_installed_store(machine, rust_example):
    """The durations of the tests, which pytest prints, show how long a user waits after the first command: without a network,
    and without the download of packages."""
    [[_, install, enable, *_]] = commands_of("README.md")
    *_, settings = commands_of("conf/PRODUCTION.md")
    shutil.copy(rust_example, machine.path("/root"))
    client = f"./{rust_example.name}"
    assert len([install, enable, *settings, client]) < 10

    for command in install, enable, "\n".join([*settings, f"{client} >shown 2>&1 </dev/null &"]):
        machine.run("sh", "-c", command)

    def shown():
        return machine.path("/root/shown").read_text()

    wait_until(lambda: shown().endswith("watching\n"), "the client watches")
    machine.run("statestorectl", "--user", "operator", "--password-file", "operator.txt", "set", "door", "open", "--px", "500ms")
    wait_until(lambda: shown() == RUST_OUTPUT, "the client has ended")
