# SPDX-License-Identifier: Apache-2.0
"""Runs programs with published clients against mosquitto and statestored, configured as conf/PRODUCTION.md says.

tests/published.sh starts it, in its own network, mount and process namespaces.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.certificates import Authority  # noqa: E402
from support.process import BUILD, REPOSITORY, Process, wait_until  # noqa: E402
from support.published import GO, RUST, Published  # noqa: E402
from support.recorder import Recorder, differences  # noqa: E402

EXAMPLES = Path("/usr/local/share/doc/statestored/examples")
USER = "alice"  # has no access beyond that of each client
PLAIN_PORT, TLS_PORT, CERTIFICATE_PORT = 1883, 8883, 8884
PASSWORD_FILE = "/etc/statestored/{}.txt"

BROKER_LOG = Path("/var/log/mosquitto/mosquitto.log")
RUNS_MAX = 3  # of one test

# All that a reader of PRODUCTION.md changes for these programs: see change().
BROKER_CHANGES = [(rf"^#(listener {CERTIFICATE_PORT}|use_identity_as_username true)$", r"\1"),
                  (r"^#((cafile|certfile|keyfile|require_certificate) .*)$", r"\1")]
POLICY = f"\n[published clients]\naccess = readwrite\nuser = {USER}\npattern = *\n"


def run(*command, **more):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, **more)


def overlay(scratch, directory):
    """Let changes of the directory, from now on, exist only in this mount namespace."""
    upper, work = (scratch / f"{kind}{directory.replace('/', '-')}" for kind in ("upper", "work"))
    upper.mkdir()
    work.mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={directory},upperdir={upper},workdir={work}", directory)


def change(file, changes):
    """Replace lines of a file."""
    text = file.read_text()
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count, f"{file} has no line {pattern}"
    file.write_text(text)


def make_machine(scratch):
    """Make a machine on which nothing is installed but packages."""
    run("mount", "-t", "tmpfs", "tmpfs", scratch)
    for directory in "/etc", "/usr/local", "/var":
        overlay(scratch, directory)
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("install", "-d", "-o", "mosquitto", "/run/mosquitto")
    for directory in "/etc/mosquitto/conf.d", "/etc/statestored", "/var/lib/statestored", "/var/lib/mosquitto":
        shutil.rmtree(directory, ignore_errors=True)
    run("install", "-d", "-o", "mosquitto", "/var/lib/mosquitto")
    run("install", "-d", "/etc/mosquitto/conf.d", "/etc/mosquitto/certs", "/var/lib/statestored",
        "/run/credentials/statestored.service")
    run("ip", "link", "set", "lo", "up")
    Path("/etc/hosts").write_text("127.0.0.1 localhost\n")  # in a container, the file of the image is empty


def install(scratch):
    run("meson", "install", "-C", BUILD, "--no-rebuild")
    passwords = Path("/etc/mosquitto/passwd")
    passwords.touch(0o600)
    for user in "statestored", USER:
        Path(PASSWORD_FILE.format(user)).write_text(f"password of {user}")
        run("mosquitto_passwd", "-b", passwords, user, f"password of {user}")
    shutil.chown(passwords, "mosquitto")
    shutil.copy(PASSWORD_FILE.format("statestored"), "/run/credentials/statestored.service/password")

    authority = Authority(scratch, "authority")
    server, client = authority.issue("localhost", "DNS:localhost,IP:127.0.0.1"), authority.issue(USER)
    shutil.copy(authority.certificate, "/etc/mosquitto/certs/ca.crt")
    shutil.copy(server.certificate, "/etc/mosquitto/certs/server.crt")
    shutil.copy(server.key, "/etc/mosquitto/certs/server.key")
    shutil.chown("/etc/mosquitto/certs/server.key", "mosquitto")

    run("install", "-m", "600", "-o", "mosquitto", EXAMPLES / "mosquitto-acl.conf", "/etc/mosquitto/statestored-acl.conf")
    broker = Path("/etc/mosquitto/conf.d/statestored.conf")
    shutil.copy(EXAMPLES / "mosquitto-production.conf", broker)
    change(broker, BROKER_CHANGES)
    with open("/etc/statestored/policy.conf", "a") as policy:
        policy.write(POLICY)
    for ours, theirs, n_changes in (("mosquitto-acl.conf", Path("/etc/mosquitto/statestored-acl.conf"), 0),
                                    ("mosquitto-production.conf", broker, 6)):
        pairs = list(zip((REPOSITORY / "conf" / ours).read_text().splitlines(), theirs.read_text().splitlines(), strict=True))
        assert sum(one != other for one, other in pairs) == n_changes, f"{ours} differs"
    return authority, client


def start(scratch):
    """Start broker and store. The end of the process namespace ends both."""
    broker, store = Process("mosquitto", scratch / "broker.log"), Process("statestored", scratch / "store.log")
    broker.spawn(["mosquitto", "-c", "/etc/mosquitto/mosquitto.conf"])
    store.spawn(["/usr/local/sbin/statestored", "--config", "/etc/statestored/statestored.conf",
                 "--ready-file", scratch / "ready"])
    wait_until(lambda: (scratch / "ready").exists() or not store.running(), "statestored is ready")
    assert store.running() and "the broker has the plugin" in store.log(), store.log() + broker.log() + BROKER_LOG.read_text()
    return broker, store


def in_mode(settings):
    """Return the environment for a published client that has these settings."""
    return {**os.environ, "ENABLE_NETWORK_TESTS": "1", "RUST_BACKTRACE": "0", "AIO_BROKER_HOSTNAME": "localhost",
            **{f"AIO_{name}": str(value) for name, value in settings.items()}}


class Suite(NamedTuple):
    """Test programs of one client. The patterns find names of tests in the output."""

    name: str
    commands: list
    passed: str
    failed: str
    only: tuple  # arguments that select one test, {} is its name
    published: Published


def rust(programs):
    return Suite("Rust", [[program] for program in (programs / "rust").read_text().split()], r"^test (\S+) \.\.\. ok$",
                 r"^test (\S+) \.\.\. FAILED$", ("--exact", "{}"), RUST)


def go(programs):
    """One test also sends commands of its own, to topics that the shipped rules do not grant."""
    return Suite("Go", [[programs / "go", "-test.v", "-test.skip", "^TestStateStoreFromExecutor$"]], r"^--- PASS: (\S+)",
                 r"^--- FAIL: (\S+)", ("-test.run", "^{}$"), GO)


def run_tests(suite, settings):
    """Run the test programs of a suite, and each failed test again. Return the names of passed and of failed tests. Some of the
    published tests measure time, so they fail by chance."""
    passed, failed = [], []
    for command in suite.commands:
        found, missed = run_test_program(suite, command, settings)
        for name in missed:
            alone = [*command, *(word.format(name) for word in suite.only)]
            if any(run_test_program(suite, alone, settings)[0] == [name] for _ in range(RUNS_MAX - 1)):
                print(f"{suite.name}: {name} has failed, and passed when it was repeated")
                found.append(name)
            else:
                failed.append(name)
        passed += found
    return passed, failed


def run_test_program(suite, command, settings):
    """Return the names of the tests that passed and failed, or the program if it failed otherwise."""
    # The log goes to stderr: in one pipe it would break the lines of the results.
    result = subprocess.run(command, env=in_mode(settings), capture_output=True, text=True, check=False, errors="replace")
    passed, failed = (re.findall(pattern, result.stdout, re.MULTILINE) for pattern in (suite.passed, suite.failed))
    if failed or result.returncode or not passed:
        print(result.stdout, result.stderr)
        failed = failed or [Path(command[0]).name]
    return passed, failed


class Report:
    def __init__(self):
        self.is_good = True

    def line(self, text, is_good):
        print(text if is_good else f"FAILED: {text}", flush=True)
        self.is_good &= is_good

    def tests(self, name, mode, passed, failed):
        self.line(f"{name}, {mode}: {len(passed)} tests passed{''.join(', failed: ' + each for each in failed)}",
                  bool(passed) and not failed)

    def comparison(self, name, published, recorder):
        """Compare what was recorded with the table of published clients."""
        found = differences(published, recorder.recorded())
        self.line("\n  ".join([f"{name}: requests and subscriptions are {'not ' if found else ''}those of the table", *found]),
                  not found)


def run_cli(cli, certificate, authority):
    """Set, get and delete a key. Return the commands that did what is expected, and the others."""
    outcomes = {True: [], False: []}
    for words, status, output in ((("set", "-k", "cli", "--value", "a value"), 0, ""), (("get", "-k", "cli"), 0, "a value"),
                                  (("delete", "-k", "cli"), 0, ""), (("delete", "-k", "cli"), 1, ""),
                                  (("get", "-k", "cli"), 1, "")):
        result = subprocess.run([cli, *words, "-n", "localhost", "-p", str(CERTIFICATE_PORT), "--cafile", authority.certificate,
                                 "--certfile", certificate.certificate, "--keyfile", certificate.key],
                                stdout=subprocess.PIPE, text=True, check=False)
        is_expected = (result.returncode, result.stdout.strip()) == (status, output)
        outcomes[is_expected].append(words[0])
        if not is_expected:
            print(result)
    return outcomes[True], outcomes[False]


def main(programs):
    scratch = Path(tempfile.mkdtemp())
    make_machine(scratch)
    authority, certificate = install(scratch)
    broker, store = start(scratch)

    with_password = {"MQTT_USERNAME": USER, "MQTT_PASSWORD_FILE": PASSWORD_FILE.format(USER)}
    with_certificate = {"MQTT_USE_TLS": "true", "TLS_CA_FILE": authority.certificate, "TLS_CERT_FILE": certificate.certificate,
                        "TLS_KEY_FILE": certificate.key}
    report = Report()
    suites = [rust(programs)] + ([go(programs)] if (programs / "go").exists() else [])
    for suite in suites:
        recorder = Recorder(PLAIN_PORT)
        for mode, port, settings in (("password", recorder.port, {"MQTT_USE_TLS": "false", **with_password}),
                                     ("password and certificate", TLS_PORT, {**with_password, **with_certificate}),
                                     ("certificate", CERTIFICATE_PORT, with_certificate)):
            report.tests(suite.name, mode, *run_tests(suite, {**settings, "BROKER_TCP_PORT": port}))
        report.comparison(suite.name, suite.published, recorder)
    if (programs / "cli").exists():
        report.tests("command line tool", "certificate", *run_cli(programs / "cli", certificate, authority))

    if not report.is_good:
        print(store.log())
    for process in store, broker:
        report.line(f"{process.name} has ended with {process.stop()}", True)
    return 0 if report.is_good else 1


sys.exit(main(Path(sys.argv[1])))
