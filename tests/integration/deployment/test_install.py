# SPDX-License-Identifier: Apache-2.0
"""`meson install`: the installed files, and the service."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from support.double import running_double
from support.process import BUILD, PATIENCE, REPOSITORY, STATESTORED


def run(*argv, **environment):
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=PATIENCE,
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
    """The directories that this build installs to."""
    options = {option["name"]: option["value"]
               for option in json.loads(run("meson", "introspect", BUILD, "--buildoptions").stdout)}
    return {name: Path(options["prefix"]) / options[name]
            for name in ("prefix", "bindir", "sbindir", "datadir", "mandir")}


@pytest.fixture(scope="module")
def unit(root, directories):
    return root / (directories["prefix"] / "lib/systemd/system/statestored.service").relative_to("/")


def listing(directories):
    documents = directories["datadir"] / "doc/statestored"
    return {
        directories["sbindir"] / "statestored",
        directories["bindir"] / "statestorectl",
        directories["prefix"] / "lib/statestored/mosquitto_statestore.so",
        directories["prefix"] / "lib/systemd/system/statestored.service",
        Path("/etc/statestored/statestored.conf"),
        Path("/etc/statestored/policy.conf"),
        *(directories["mandir"] / name for name in ("man8/statestored.8", "man5/statestored.conf.5",
                                                    "man5/statestored-policy.5", "man1/statestorectl.1")),
        directories["datadir"] / "bash-completion/completions/statestorectl",
        directories["datadir"] / "zsh/site-functions/_statestorectl",
        documents / "LICENSE",
        *(documents / "examples" / name for name in ("statestored.conf", "policy.conf", "production.conf", "mosquitto.conf",
                                            "mosquitto-production.conf", "mosquitto-acl.conf", "haproxy.cfg", "keepalived.conf")),
    }


def test_the_installed_files_are_exactly_those_that_debian_expects(root, directories):
    installed = {Path("/") / path.relative_to(root) for path in root.rglob("*") if path.is_file()}

    assert installed == listing(directories)


def test_installed_programs_run(root, directories):
    for directory, name in (("sbindir", "statestored"), ("bindir", "statestorectl")):
        program = root / (directories[directory] / name).relative_to("/")
        assert run(program, "--version").stdout.startswith(f"{name} ")


def test_the_installed_configuration_names_the_plugin_file(root, directories):
    ours = REPOSITORY / "conf/mosquitto.conf"
    installed = root / (directories["datadir"] / "doc/statestored/examples/mosquitto.conf").relative_to("/")

    for file, prefix in (ours, Path("/usr/local")), (installed, directories["prefix"]):
        plugin, = re.findall("(?m)^plugin (.+)", file.read_text())
        assert directories["prefix"] / Path(plugin).relative_to(prefix) in listing(directories)


def settings(name):
    return {line for line in (REPOSITORY / "conf" / name).read_text().splitlines() if line and not line.startswith("#")}


def test_the_production_configuration_of_the_broker_has_the_settings_of_the_example():
    example, production = settings("mosquitto.conf"), settings("mosquitto-production.conf")

    assert example - production == {"allow_anonymous true", "log_dest stderr", "persistence false",
                                    "plugin_opt_undecided allow"}


@pytest.fixture
def double(root, directories, tmp_path):
    """Runs the installed statestored through a symbolic link in a folder of PATH."""
    link = tmp_path / "statestored"
    link.symlink_to(root / (directories["sbindir"] / "statestored").relative_to("/"))
    with running_double(tmp_path, program=link) as double:
        yield double


def test_the_installed_program_finds_its_plugin_with_dev(root, double):
    plugins = {Path(line.split()[-1]) for line in Path(f"/proc/{double.broker_pid}/maps").read_text().splitlines()
               if line.endswith("mosquitto_statestore.so")}

    assert plugins and all(plugin.is_relative_to(root) for plugin in plugins)
    assert "the broker has the plugin" in double.log()
    assert double.connect("client").request("SET", "key", "value").payload == b"+OK\r\n"


def test_the_example_configuration_of_the_broker_names_the_plugin_file(root, directories):
    text = (root / (directories["datadir"] / "doc/statestored/examples/mosquitto.conf").relative_to("/")).read_text()

    plugin, = re.findall(r"^plugin (.*)$", text, re.MULTILINE)
    assert (root / Path(plugin).relative_to("/")).exists()


def test_the_configuration_files_of_the_service_are_valid(root):
    etc = root / "etc/statestored"
    result = run(STATESTORED, "--check-config", "--config", etc / "statestored.conf", "--policy", etc / "policy.conf")

    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", ["statestored.conf", "policy.conf"])
def test_an_existing_configuration_is_not_overwritten(tmp_path, name):
    file = tmp_path / "etc/statestored" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")

    install(tmp_path)
    install(tmp_path)

    assert file.read_text() == "mine\n"


# The service


def test_systemd_knows_every_setting_of_the_unit(unit, directories, tmp_path):
    here = tmp_path / unit.name
    here.write_text(unit.read_text().replace(str(directories["sbindir"] / "statestored"), str(STATESTORED)))

    result = run("systemd-analyze", "--man=no", "verify", here)

    assert (result.returncode, result.stderr) == (0, "")


def test_restarts_are_not_limited(unit):
    """By default systemd gives up after five starts in ten seconds: a store that ends at once exceeds that in a second."""
    lines = unit.read_text().splitlines()

    assert "RestartSec=200ms" in lines
    assert "StartLimitIntervalSec=0" in lines


def test_the_reload_command_of_the_unit_reloads_the_store(unit, site):
    """The command exists on every Debian system without another package."""
    store = site.start_store()
    line = re.search("(?m)^ExecReload=(.*)$", unit.read_text())[1]
    command = shlex.split(line.replace("${MAINPID}", str(store.child.pid)))

    assert command[0] == "/bin/sh"
    assert run(*command).returncode == 0
    store.wait_for_log("SIGHUP: configuration reloaded")


def test_the_unit_is_sandboxed(unit):
    result = run("systemd-analyze", "security", "--offline=true", "--threshold=15", unit)

    exposure = re.search(r"Overall exposure level for .*: ([0-9.]+)", result.stdout)
    assert result.returncode == 0 and float(exposure[1]) <= 1.5, result.stdout
    assert result.stderr == ""


def test_the_changelog_begins_with_the_version_of_the_build():
    first, *_, last = (REPOSITORY / "conf/debian/changelog").read_text().splitlines()
    version = re.search(r"^ +version: '(.+)',$", (REPOSITORY / "meson.build").read_text(), re.MULTILINE)[1]

    assert re.fullmatch(rf"statestored \({re.escape(version)}\) \S+; urgency=\w+", first)
    assert re.fullmatch(r" -- .+ <.+@.+>  \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", last)
