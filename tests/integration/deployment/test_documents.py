# SPDX-License-Identifier: Apache-2.0
"""Every command in the documents works, and prints the output that the document shows.

The test executes the blocks of a document in order in one shell, like a reader. Versions must correspond one to one.
Ports, times and durations may differ. support/documents.py lists the annotations.
"""

import contextlib
import json
import os
import re
import subprocess

import pytest

from support.broker import free_port
from support.documents import Versions, anchor, blocks_of, documents, headings_of
from support.double import Double
from support.process import BUILD, REPOSITORY, STATESTORED, Process, wait_until
from support.terminal import Terminal, wait_for_file

# test_ctl_*, test_dev and test_production execute the same code of ours.
pytestmark = pytest.mark.not_sanitized("the documents are the same")

COMMANDS = ("sh", "console")
OTHERS = ("text", "ini", "python", "js", "go", "rust", "yaml", "exchange", "packet")
PRODUCTION = "conf/PRODUCTION.md"
OPERATIONS = "conf/OPERATIONS.md"  # continues PRODUCTION

# Documents for a machine with an installed broker and store.
MACHINE = [PRODUCTION, OPERATIONS]

# Documents whose first block starts the store for the blocks that follow.
STARTS_A_STORE = ["README.md"]


def commands_of(block):
    """Return (command, lines of output) for each command. The lines are None in an sh block, which shows no output."""
    if block.language == "sh":
        lines = re.sub(r"\\\n", "", block.text).splitlines()
        return [(line, None) for line in lines if line.strip()]
    commands = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


# Output

def without_changing_parts(text, numbers_vary):
    text = re.sub(r"time=\S+Z", "time=T", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"\bstatestorectl-[0-9a-f]{16}\b", "statestorectl-ID", text)
    if numbers_vary:
        text = re.sub(r"\d[\d,.]*( (us|ms|s|min|h|d)\b)?", "N", text)
        text = re.sub(r" +", " ", text)
    return text.rstrip()


def is_same_output(expected, actual, versions, numbers_vary):
    """Compares line by line. The line "..." in a document matches any number of lines."""
    expected = [without_changing_parts(line, numbers_vary) for line in expected]
    actual = [without_changing_parts(line, numbers_vary) for line in actual]
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(is_same_output(expected[1:], actual[at:], versions, numbers_vary)
                   for at in range(len(actual) + 1))
    return bool(actual) and versions.is_same(expected[0], actual[0]) and is_same_output(
        expected[1:], actual[1:], versions, numbers_vary)


# Executing a document

class Reader:
    """Executes the blocks of a document."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.versions = Versions()
        self.pending = None  # a block in the background: block, expected output, output file, process id

    def read(self, block):
        reason = block.argument("skip")
        by = block.argument("by")
        if reason is not None or by is not None:
            assert reason or list(REPOSITORY.glob(by)) or list(REPOSITORY.glob(f"tests/**/{by}")), block
            assert subprocess.run(["bash", "-n"], input=block.text, text=True, check=False).returncode == 0
            return
        if block.argument("background") is not None:
            self.start(block)
            return
        waited = block.argument("wait for")
        if waited:
            wait_until((self.terminal.folder / waited).exists, waited)
        for command, expected in commands_of(block):
            self.execute(block, command, expected)
        self.finish()

    def execute(self, block, command, expected):
        typed = self.terminal.here(self.versions.substitute(command))
        shown, status = self.terminal.run(typed)
        if expected is None:
            assert status == 0, f"{block}: {typed}\nexit status {status}\n{shown}"
            return
        expected = self.terminal.here("\n".join(expected)).splitlines()
        numbers_vary = block.argument("numbers vary")

        def matches(shown):
            return is_same_output(expected, shown.splitlines(), self.versions, numbers_vary is not None)

        if numbers_vary == "repeat" and not matches(shown):
            wait_until(lambda: matches(self.terminal.run(typed)[0]), f"{block}: {typed}\n{shown}")
        else:
            assert matches(shown), f"{block}: {typed}\n{shown}"

    def start(self, block):
        """Returns after the first line of output, or after the text in the annotation."""
        [(command, expected)] = commands_of(block)
        output, pid = self.terminal.start(self.terminal.here(command), f"line-{block.line}")
        until = block.argument("background until")
        wait_for_file(output, lambda text: until in text if until else "\n" in text)
        if expected:
            expected = self.terminal.here("\n".join(expected)).splitlines()
            self.finish()
            self.pending = (block, expected, output, pid)

    def finish(self):
        """Waits for the output of the block in the background, and compares it."""
        if self.pending:
            block, expected, output, pid = self.pending
            self.pending = None
            wait_for_file(output, lambda text: text.count("\n") >= len(expected))
            shown = output.read_text().splitlines()
            assert is_same_output(expected, shown, self.versions, False), f"{block}:\n{output.read_text()}"
            if not shown[0].startswith("mqtt://"):  # a store stays for the blocks that follow
                self.terminal.stop(pid)


@contextlib.contextmanager
def terminal_of(document, tmp_path):
    with contextlib.ExitStack() as stack:
        ports = {number: free_port() for number in (1883, 8883, 11883, 12883, 9464)}
        variables = {}
        if document in STARTS_A_STORE:
            variables = {"PORT": str(ports[1883])}
        elif document not in MACHINE:
            folder = tmp_path / "double"
            folder.mkdir()
            double = Double(folder, "--control")
            stack.callback(double.close)
            ports[1883] = double.start().port
        terminal = Terminal(tmp_path / "folder", ports, {"STATESTORE_PORT": str(ports[1883]),
                                                         "STATESTORE_HTTP": f"http://127.0.0.1:{ports[9464]}", **variables})
        stack.callback(terminal.close)
        if document in MACHINE:
            stack.enter_context(machine(terminal, tmp_path))
        yield terminal


# Services, for documents that use systemctl

class Machine:
    """Starts and stops the installed broker and store, as systemctl would."""

    def __init__(self, terminal, root):
        self.root = root
        self.broker = Process("mosquitto", root / "mosquitto.log")
        self.store = Process("statestored", root / "statestored.log")
        self.terminal = terminal
        (root / "etc/mosquitto/conf.d").mkdir(parents=True)
        (root / "var/lib/statestored").mkdir(parents=True)

    def do(self, words):
        if words == ["restart", "mosquitto"]:
            self.start_broker()
        elif words in (["enable", "--now", "statestored"], ["start", "statestored"]):
            self.start_store()
        elif words == ["stop", "statestored"]:
            assert self.store.stop() == 0
        else:
            assert words == ["daemon-reload"], words

    def start_broker(self):
        configuration = self.root / "etc/mosquitto/mosquitto.conf"
        # like that of Debian, it sets log_dest
        configuration.write_text(f"user root\nlog_dest stderr\ninclude_dir {self.root}/etc/mosquitto/conf.d\n")
        self.broker.spawn(["mosquitto", "-c", configuration])
        self.broker.wait_for_log(r"mosquitto version \S+ running")

    def start_store(self):
        ready = self.root / "ready"
        ready.unlink(missing_ok=True)
        self.store.spawn([STATESTORED, "--config", self.root / "etc/statestored/statestored.conf", "--ready-file", ready])
        wait_until(lambda: ready.exists() or not self.store.running(), "statestored is ready")
        assert self.store.running() and "the broker has the plugin" in self.store.log(), self.store.log()

    def close(self):
        for process in self.store, self.broker:
            if process.running():
                process.stop()


def replace_in(file, places):
    text = file.read_text()
    for usual, here in places.items():
        assert usual in text, f"{file} has no {usual}"
        text = text.replace(usual, here)
    file.write_text(text)


@contextlib.contextmanager
def machine(terminal, tmp_path):
    """Installs below tmp_path and adapts ports and paths in the installed files."""
    root = tmp_path / "root"
    installed = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--only-changed"],
                               env={**os.environ, "DESTDIR": str(root)}, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    options = json.loads(subprocess.run(["meson", "introspect", BUILD, "--buildoptions"], capture_output=True, text=True,
                                        check=True).stdout)
    prefix, = (option["value"] for option in options if option["name"] == "prefix")
    machine = Machine(terminal, root)
    replace_in(root / "etc/statestored/statestored.conf", {
        "host = 127.0.0.1": f"host = 127.0.0.1\nport = {terminal.ports[1883]}",
        "/run/credentials/statestored.service/password": f"{root}/etc/statestored/password",
        "= /etc/": f"= {root}/etc/",
        "= /var/": f"= {root}/var/",
        "127.0.0.1:9464": f"127.0.0.1:{terminal.ports[9464]}",
    })
    replace_in(root / prefix.lstrip("/") / "share/doc/statestored/examples/mosquitto-production.conf", {
        "listener 1883 ": f"listener {terminal.ports[1883]} ",
        "listener 8883": f"listener {terminal.ports[8883]}",
        f"plugin {prefix}/": f"plugin {root}{prefix}/",
        " /etc/mosquitto/": f" {root}/etc/mosquitto/",
    })
    terminal.places = {"/etc/": f"{root}/etc/", "/var/lib/": f"{root}/var/lib/", "/usr/local/": f"{root}{prefix}/"}
    terminal.on_service = machine.do
    try:
        yield machine
    finally:
        machine.close()


@pytest.mark.parametrize("document", [document for document in documents()
                                      if any(block.language in COMMANDS for block in blocks_of(document))])
def test_every_command_prints_the_documented_output(document, tmp_path):
    read = MACHINE if document == OPERATIONS else [document]
    blocks = [block for name in read for block in blocks_of(name) if block.language in COMMANDS]
    with terminal_of(document, tmp_path) as terminal:
        reader = Reader(terminal)
        for block in blocks:
            reader.read(block)
        reader.finish()


# Blocks that are not commands

@pytest.mark.parametrize("document", documents())
def test_every_block_has_a_language(document):
    assert {block.language for block in blocks_of(document)} <= {*COMMANDS, *OTHERS}


@pytest.mark.parametrize("block", [block for document in documents() for block in blocks_of(document)
                                   if block.language == "ini"], ids=str)
def test_policies_in_documents_are_valid(block, tmp_path):
    (tmp_path / "policy.conf").write_text(block.text)
    result = subprocess.run([STATESTORED, "--policy", tmp_path / "policy.conf", "--check-config"], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("document", documents())
def test_every_link_has_a_target(document):
    text = re.sub(r"(?ms)^```.*?^```", "", (REPOSITORY / document).read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, part = target.partition("#")
        path = (REPOSITORY / document).parent / file if file else REPOSITORY / document
        assert path.exists(), target
        if part:
            assert part in {anchor(heading) for heading in headings_of(path.resolve().relative_to(REPOSITORY))}, target


def test_every_path_in_the_map_exists():
    text = re.sub(r"(?ms)^```.*?^```", "", (REPOSITORY / "server/README.md").read_text())
    paths = set(re.findall(r"`((?:common|server|tests|conf)/[a-z0-9_./-]+)`", text))
    assert len(paths) > 30
    assert {path for path in paths if not (REPOSITORY / path).exists()} == set()
