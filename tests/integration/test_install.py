# SPDX-License-Identifier: Apache-2.0
"""`meson install`: what goes where, and that the service it installs is one."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from support.process import BUILD, STATESTORED


def run(*argv, **environment):
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


def install(root):
    result = run("meson", "install", "-C", BUILD, "--no-rebuild", "--only-changed", DESTDIR=root)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    install(root)
    return root


@pytest.fixture(scope="module")
def directories():
    """Where this build was told to put things."""
    options = {option["name"]: option["value"]
               for option in json.loads(run("meson", "introspect", BUILD, "--buildoptions").stdout)}
    return {name: Path(options["prefix"]) / options[name]
            for name in ("prefix", "bindir", "sbindir", "libdir", "datadir", "mandir")}


@pytest.fixture(scope="module")
def unit(root, directories):
    return root / (directories["prefix"] / "lib/systemd/system/statestored.service").relative_to("/")


def listing(directories):
    examples = directories["datadir"] / "doc/statestored/examples"
    return {
        directories["sbindir"] / "statestored",
        directories["bindir"] / "statestorectl",
        directories["libdir"] / "statestored/mosquitto_statestore.so",
        directories["prefix"] / "lib/systemd/system/statestored.service",
        Path("/etc/statestored/statestored.conf"),
        *(directories["mandir"] / name for name in ("man8/statestored.8", "man5/statestored.conf.5",
                                                    "man1/statestorectl.1")),
        directories["datadir"] / "bash-completion/completions/statestorectl",
        directories["datadir"] / "zsh/site-functions/_statestorectl",
        *(examples / name for name in ("statestored.conf", "policy.conf", "production.conf", "mosquitto.conf")),
    }


def test_everything_is_where_debian_expects_it_and_nothing_else_is(root, directories):
    installed = {Path("/") / path.relative_to(root) for path in root.rglob("*") if path.is_file()}

    assert installed == listing(directories)


def test_what_is_installed_runs(root, directories):
    for directory, name in (("sbindir", "statestored"), ("bindir", "statestorectl")):
        program = root / (directories[directory] / name).relative_to("/")
        assert run(program, "--version").stdout.startswith(f"{name} ")


def test_the_brokers_example_names_the_plugin_where_it_is(root, directories):
    text = (root / (directories["datadir"] / "doc/statestored/examples/mosquitto.conf").relative_to("/")).read_text()

    plugin, = re.findall(r"^plugin (.*)$", text, re.MULTILINE)
    assert (root / Path(plugin).relative_to("/")).exists()


def test_the_services_file_can_be_used(root):
    result = run(STATESTORED, "--check-config", "--config", root / "etc/statestored/statestored.conf")

    assert result.returncode == 0, result.stderr


def test_a_configuration_that_is_there_stays(tmp_path):
    file = tmp_path / "etc/statestored/statestored.conf"
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")

    install(tmp_path)
    install(tmp_path)

    assert file.read_text() == "mine\n"


# The service


def test_the_unit_has_nothing_that_systemd_does_not_know(unit, directories, tmp_path):
    here = tmp_path / unit.name
    here.write_text(unit.read_text().replace(str(directories["sbindir"] / "statestored"), str(STATESTORED)))

    result = run("systemd-analyze", "--man=no", "verify", here)

    assert (result.returncode, result.stderr) == (0, "")


def test_the_unit_is_shut_in(unit):
    result = run("systemd-analyze", "security", "--offline=true", "--threshold=15", unit)

    exposure = re.search(r"Overall exposure level for .*: ([0-9.]+)", result.stdout)
    assert result.returncode == 0 and float(exposure[1]) <= 1.5, result.stdout
    assert result.stderr == ""
