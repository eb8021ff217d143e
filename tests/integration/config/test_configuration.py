# SPDX-License-Identifier: Apache-2.0
"""The sources of options, their precedence, and the messages for wrong options."""

import os
import re
import signal
import subprocess

import pytest

from support.process import PATIENCE, REPOSITORY, STATESTORED

CONF = REPOSITORY / "conf" / "statestored.conf"

# Flags that are not the name of the option, with or without its section.
OTHER_FLAGS = {
    ("policy", "file"): "policy",
    ("http", "console-users"): "console-users",
    ("etcd", "endpoints"): "etcd",
    ("etcd", "member"): "member",
    ("etcd", "lease"): "lease",
}


def check(*arguments, **environment):
    return subprocess.run(
        [STATESTORED, "--check-config", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def write(tmp_path, *lines):
    file = tmp_path / "statestored.conf"
    file.write_text("\n".join(lines) + "\n")
    return file


def help_defaults():
    """Defaults by flag, as printed by --help; None: no default. A switch is off by default."""
    defaults = {}
    text = subprocess.run([STATESTORED, "--help"], capture_output=True, text=True, check=True).stdout
    for line in re.sub(r"\n {9,}", " ", text).splitlines():
        option = re.match(r"  --([a-z-]+)( \S+)? +.*?(?:\(([^()]*)\))?$", line)
        if option and option[1] not in ("config", "check-config", "explain", "version"):
            is_switch = not option[2] or re.match(r"  --[a-z-]+  ", line)
            defaults[option[1]] = "off" if is_switch else option[3]
    return defaults


def test_the_shipped_file_has_every_option_at_its_default():
    options = {}
    section = None
    for line in CONF.read_text().splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = header[1]
        elif option := re.fullmatch(r"(#?)([a-z-]+) = (.*)", line):
            flag = f"{section}-{option[2]}" if section in ("log", "http", "etcd") else option[2]
            options[OTHER_FLAGS.get((section, option[2]), flag)] = None if option[1] else option[3]

    assert options == help_defaults()


def test_the_shipped_file_is_valid():
    assert check("--config", CONF).returncode == 0


FAULTS = [
    ("[broker]\nport = -1", ":2: a port from 0 to 65535 was expected, not \"-1\""),
    ("[broker]\nport = 65536", ":2: a port from 0 to 65535 was expected, not \"65536\""),
    ("[broker]\nport =", ":2: a port from 0 to 65535 was expected, not \"\""),
    ("[broker]\nhost = a,,b", ":2: a list of names, addresses or socket paths, each with or without :PORT, was expected"),
    ("[broker]\nkeepalive = 1s", ":2: a duration from 5s to 65535s was expected"),
    ("[broker]\ntls = yes", ":2: on or off was expected, not \"yes\""),
    ("[broker]\npresence-topic = a/b", ":2: a topic in which one level reads {client} was expected"),
    ("[broker]\nhosts = a", ":2: no such option: [broker] hosts"),
    ("[brocker]\nhost = a", ":1: no such section: [brocker]"),
    ("host = a", ':1: "host" is in no section; write a line such as [broker] above it'),
    ("[store]\nmax-keys = many", ":2: a number was expected, not \"many\""),
    ("[store]\nmax-keys = -1", ":2: a number was expected, not \"-1\""),
    ("[store]\nmax-bytes = 1GB", ":2: a size, such as 1048576, 64MiB or 1GiB was expected, not \"1GB\""),
    ("[store]\nnode-id = a:b", ":2: 1 to 256 bytes of UTF-8 without ':' was expected, not \"a:b\""),
    ("[store]\ndialect = SDK", ":2: sdk or document was expected, not \"SDK\""),
    ("[storage]\npersist = some", ":2: all, none or custom was expected, not \"some\""),
    ("[storage]\npersist-property = x", ":2: NAME=VALUE or off was expected, not \"x\""),
    ("[log]\nlevel = loud", ":2: error, warning, info or debug was expected, not \"loud\""),
    ("[store]\nmax-keys = 1\nmax-keys = 1", ":3: [store] max-keys is given twice, first in line 2"),
    ("[store]\nmax-keys = 1 ; one", ":2: a comment must be on a line of its own; in a pattern write [;] for a ';' after a blank"),
    ("[store]\nmax-keys", ":2: [section], name = value or a comment was expected"),
    ("[store]\nnode-id = " + "a" * 300, ":2: the line is too long: fewer than 200 bytes were expected"),
]


@pytest.mark.parametrize("text, fault", FAULTS)
def test_a_fault_is_reported_with_its_line(tmp_path, text, fault):
    file = write(tmp_path, text)

    result = check("--config", file)

    assert result.returncode == 2
    assert f"statestored: {file}{fault}" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_faults_of_all_sources_are_reported(tmp_path):
    file = write(tmp_path, "[store]", "max-keys = x", "max-bytes = y")

    result = check("--config", file, "--port", "z", STATESTORE_LOG_LEVEL="loud")

    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 4


def test_a_missing_file_is_a_fault(tmp_path):
    result = check("--config", tmp_path / "none")

    assert result.returncode == 2
    assert "none: No such file or directory" in result.stderr


@pytest.mark.parametrize(
    "flag, environment, line, node_id",
    [
        (None, None, None, "StateStore"),
        (None, None, "file", "file"),
        (None, "environment", "file", "environment"),
        ("flag", "environment", "file", "flag"),
        ("flag", None, "file", "flag"),
        (None, "environment", None, "environment"),
    ],
)
def test_precedence_is_command_line_environment_file(site, tmp_path, flag, environment, line, node_id):
    file = write(tmp_path, "[store]", f"node-id = {line}" if line else "")
    arguments = ["--config", str(file)] + (["--node-id", flag] if flag else [])
    store = site.start_store(*arguments, environment={"STATESTORE_STORE_NODE_ID": environment or ""})

    assert f'node id \\"{node_id}\\"' in store.log()


def test_a_reload_applies_live_options_and_reports_the_others(site, tmp_path):
    file = write(tmp_path, "[store]", "max-keys = 1")
    store = site.start_store("--config", str(file))
    client = site.connect()
    client.request("SET", "a", 1)
    assert client.request("SET", "b", 1).payload == b"-ERR the quota has been exceeded\r\n"

    write(tmp_path, "[store]", "max-keys = 2", "node-id = other")
    store.child.send_signal(signal.SIGHUP)
    store.wait_for_log(r"\[store\] node-id has changed from StateStore to \S+: this needs a restart")

    assert client.request("SET", "b", 1).payload == b"+OK\r\n"
    assert client.request("SET", "c", 1).payload == b"-ERR the quota has been exceeded\r\n"


def test_a_reload_with_a_fault_changes_nothing(site, tmp_path):
    file = write(tmp_path, "[store]", "max-keys = 1")
    store = site.start_store("--config", str(file))
    client = site.connect()
    client.request("SET", "a", 1)

    write(tmp_path, "[store]", "max-keys = 2", "max-bytes = x")
    store.child.send_signal(signal.SIGHUP)
    store.wait_for_log("the previous one stays in effect")
    assert f'level=error msg="SIGHUP: {file}:3: a size, ' in store.log()

    assert client.request("SET", "b", 1).payload == b"-ERR the quota has been exceeded\r\n"
