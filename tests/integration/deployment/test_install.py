# SPDX-License-Identifier: Apache-2.0
"""`meson install`: what goes where, and that the service it installs is one."""

import json
import os
import re
import shlex
import subprocess
import urllib.request
from pathlib import Path

import pytest

from support.broker import PORTS_TRIED, free_port
from support.double import Double
from support.plugin import PLUGIN, PluginBroker
from support.process import BUILD, PATIENCE, REPOSITORY, STATESTORED, wait_until
from support.site import Site
from support.wire_client import WireClient


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
    """Where this build was told to put things."""
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
                                                    "man1/statestorectl.1")),
        directories["datadir"] / "bash-completion/completions/statestorectl",
        directories["datadir"] / "zsh/site-functions/_statestorectl",
        documents / "LICENSE",
        *(documents / "examples" / name for name in ("statestored.conf", "policy.conf", "production.conf", "mosquitto.conf")),
    }


def test_everything_is_where_debian_expects_it_and_nothing_else_is(root, directories):
    installed = {Path("/") / path.relative_to(root) for path in root.rglob("*") if path.is_file()}

    assert installed == listing(directories)


def test_what_is_installed_runs(root, directories):
    for directory, name in (("sbindir", "statestored"), ("bindir", "statestorectl")):
        program = root / (directories[directory] / name).relative_to("/")
        assert run(program, "--version").stdout.startswith(f"{name} ")


def test_mosquitto_is_told_where_the_plugin_is(root, directories):
    ours = REPOSITORY / "conf/mosquitto.conf"
    installed = root / (directories["datadir"] / "doc/statestored/examples/mosquitto.conf").relative_to("/")

    for file, prefix in (ours, Path("/usr/local")), (installed, directories["prefix"]):
        plugin, = re.findall("(?m)^plugin (.+)", file.read_text())
        assert directories["prefix"] / Path(plugin).relative_to(prefix) in listing(directories)


@pytest.fixture
def double(root, directories, tmp_path):
    """Of the installed copy, by a link in a folder that users have in their PATH."""
    link = tmp_path / "statestored"
    link.symlink_to(root / (directories["sbindir"] / "statestored").relative_to("/"))
    double = Double(tmp_path, program=link)
    try:
        yield double.start()
        assert double.stop() == 0, double.log()
    finally:
        double.close()


def test_what_is_installed_is_a_double_with_its_plugin(root, double):
    plugins = {Path(line.split()[-1]) for line in Path(f"/proc/{double.broker_pid}/maps").read_text().splitlines()
               if line.endswith("mosquitto_statestore.so")}

    assert plugins and all(plugin.is_relative_to(root) for plugin in plugins)
    assert "identity verified" in double.log()
    assert double.connect("client").request("SET", "key", "value").payload == b"+OK\r\n"


def test_the_brokers_example_names_the_plugin_where_it_is(root, directories):
    text = (root / (directories["datadir"] / "doc/statestored/examples/mosquitto.conf").relative_to("/")).read_text()

    plugin, = re.findall(r"^plugin (.*)$", text, re.MULTILINE)
    assert (root / Path(plugin).relative_to("/")).exists()


def test_the_services_files_can_be_used(root):
    etc = root / "etc/statestored"
    result = run(STATESTORED, "--check-config", "--config", etc / "statestored.conf", "--policy", etc / "policy.conf")

    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", ["statestored.conf", "policy.conf"])
def test_a_configuration_that_is_there_stays(tmp_path, name):
    file = tmp_path / "etc/statestored" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")

    install(tmp_path)
    install(tmp_path)

    assert file.read_text() == "mine\n"


# README's page


class PageBroker(PluginBroker):
    """Has the configuration that README's page makes."""

    def __init__(self, directory, text):
        super().__init__(directory)
        self.text = text

    def configure(self):
        path = self.directory / "mosquitto.conf"
        path.write_text("user root\n" + self.text.replace("listener 1883 ", f"listener {self.port} "))
        return path


def changed_by_the_page(file):
    """What README's page has sed make of it."""
    page = (REPOSITORY / "README.md").read_text().partition("\n## In production\n")[2].partition("\n## ")[0]
    commands = [shlex.split(line.partition(" | ")[0]) for line in page.replace("\\\n", "").splitlines()
                if re.match("(sudo )?sed ", line)]
    words, = [words for words in commands if Path(words[-1]).name == file.name]
    scripts = [word for word in words if word.startswith(("s|", "s/", "/^"))]
    result = run("sed", *(word for script in scripts for word in ("-e", script)), file)
    assert result.returncode == 0, result.stderr
    return result.stdout


def in_place_of(text, places):
    for usual, here in places.items():
        assert usual in text
        text = text.replace(usual, str(here))
    return text


def start_with_a_free_port(site, file, configuration):
    for _ in range(PORTS_TRIED):
        file.write_text(in_place_of(configuration, {"127.0.0.1:9464": f"127.0.0.1:{free_port()}"}))
        site.launch_store("--config", file)
        wait_until(lambda: site.store.is_ready() or not site.store.running(), "statestored is ready")
        if site.store.running():
            return
        assert "cannot listen" in site.store.log()
        site.store = None
    raise AssertionError("no port for HTTP")


@pytest.fixture
def page_site(root, directories, tmp_path):
    """Broker and store as the page makes them, at other places."""
    passwords = tmp_path / "passwd"
    passwords.touch()
    for user in "statestored", "operator", "alice":
        assert run("mosquitto_passwd", "-b", passwords, user, f"{user}'s").returncode == 0
    (tmp_path / "password").write_text("statestored's\n")
    examples = root / (directories["datadir"] / "doc/statestored/examples").relative_to("/")

    broker = in_place_of(changed_by_the_page(examples / "mosquitto.conf"), {"/etc/mosquitto/passwd": passwords})
    broker = re.sub("(?m)^plugin .*", f"plugin {PLUGIN}", broker)
    configuration = in_place_of(changed_by_the_page(root / "etc/statestored/statestored.conf"), {
        "/run/credentials/statestored.service/password": tmp_path / "password",
        "/var/lib/statestored": tmp_path / "data",
        "file = /etc/": f"file = {root}/etc/",
    })
    site = Site(tmp_path, PageBroker(tmp_path, broker))
    try:
        start_with_a_free_port(site, tmp_path / "statestored.conf", configuration)
        yield site
    finally:
        site.close()


def test_the_page_ends_with_a_durable_restricted_monitored_store(page_site):
    store = page_site.store
    operator, alice = (page_site.connect(kind=WireClient, username=user, password=f"{user}'s")
                       for user in ("operator", "alice"))

    assert "identity verified" in store.log()
    assert operator.ask("SET", "settings/greeting", "hello") == b"+OK\r\n"
    assert store.stop() == 0
    store.start()
    assert alice.ask("GET", "settings/greeting") == b"$5\r\nhello\r\n"
    assert alice.ask("SET", "settings/greeting", "mine") == b"-ERR not authorized\r\n"
    assert alice.ask("SET", "users/alice/a", "mine") == b"+OK\r\n"
    assert alice.ask("GET", "users/operator/a") == b"-ERR not authorized\r\n"
    address = re.search("(?m)^listen = (.*)$", Path(store.flags[1]).read_text())[1]
    with urllib.request.urlopen(f"http://{address}/readyz", timeout=PATIENCE) as page:
        assert page.read() == b"ready\n"


# The service


def test_the_unit_has_nothing_that_systemd_does_not_know(unit, directories, tmp_path):
    here = tmp_path / unit.name
    here.write_text(unit.read_text().replace(str(directories["sbindir"] / "statestored"), str(STATESTORED)))

    result = run("systemd-analyze", "--man=no", "verify", here)

    assert (result.returncode, result.stderr) == (0, "")


def test_the_unit_s_reload_is_heard(unit, site):
    """By what every Debian has: no package of its own is asked for."""
    store = site.start_store()
    line = re.search("(?m)^ExecReload=(.*)$", unit.read_text())[1]
    command = shlex.split(line.replace("${MAINPID}", str(store.child.pid)))

    assert command[0] == "/bin/sh"
    assert run(*command).returncode == 0
    store.wait_for_log("SIGHUP: the configuration was read again")


def test_the_unit_is_shut_in(unit):
    result = run("systemd-analyze", "security", "--offline=true", "--threshold=15", unit)

    exposure = re.search(r"Overall exposure level for .*: ([0-9.]+)", result.stdout)
    assert result.returncode == 0 and float(exposure[1]) <= 1.5, result.stdout
    assert result.stderr == ""
