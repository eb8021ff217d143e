# SPDX-License-Identifier: Apache-2.0
"""The command line of statestored."""

import subprocess

import pytest

from support.process import PATIENCE, STATESTORED, killed_with_parent

FLAGS = ["--host", "--port", "--client-id", "--node-id", "--dialect", "--max-keys", "--max-bytes", "--ready-file",
         "--log-level", "--version", "--help"]


def run(*arguments):
    return subprocess.run(killed_with_parent([STATESTORED, *arguments]), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_help_names_every_flag():
    ended = run("--help")

    assert ended.returncode == 0
    assert ended.stderr == ""
    for flag in FLAGS:
        assert flag in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 96


def test_version_is_one_line():
    ended = run("--version")

    assert ended.returncode == 0
    assert ended.stderr == ""
    assert ended.stdout.startswith("statestored ")
    assert ended.stdout.count("\n") == 1


@pytest.mark.parametrize("arguments, named", [
    (["--bogus"], "--bogus"),
    (["--prot", "1883"], "--prot"),
    (["-x"], "-x"),
    (["bogus"], "bogus"),
    (["--port", "0"], "--port"),
    (["--port", "65536"], "--port"),
    (["--port", "-1"], "--port"),
    (["--port", "mqtt"], "--port"),
    (["--port", ""], "--port"),
    (["--port"], "--port"),
    (["--host"], "--host"),
    (["--node-id", ""], "--node-id"),
    (["--node-id", "a:b"], "--node-id"),
    (["--dialect", "klingon"], "--dialect"),
    (["--max-keys", "many"], "--max-keys"),
    (["--max-keys", "-1"], "--max-keys"),
    (["--max-bytes", "64furlongs"], "--max-bytes"),
    (["--max-bytes", "-1"], "--max-bytes"),
    (["--max-bytes", "99999999999999999999GiB"], "--max-bytes"),
    (["--log-level", "loud"], "--log-level"),
])
def test_a_wrong_flag_is_reported_on_one_line_with_exit_status_2(arguments, named):
    ended = run(*arguments)

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert named in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_wrong_flag_after_a_valid_one_is_reported():
    ended = run("--port", "1883", "--log-level", "debug", "--bogus")

    assert ended.returncode == 2
    assert "--bogus" in ended.stderr


@pytest.mark.parametrize("size", ["1048576", "1024KiB", "1MiB", "1GiB"])
def test_sizes_have_units(site, size):
    site.start_store("--max-bytes", size)

    assert site.connect().request("SET", "key", "value").payload == b"+OK\r\n"


def test_log_level_debug_logs_more_than_error(site):
    store = site.start_store("--log-level", "debug")
    site.connect().request("SET", "key", "value")
    store.stop()
    verbose = len(store.log())
    store.log_path.unlink()

    store.flags = ("--log-level", "error")
    store.start()
    site.connect().request("SET", "key", "value")
    assert len(store.log()) < verbose


def test_client_id_is_used_at_the_broker(site):
    site.start_store("--client-id", "my-store")
    site.connect().request("GET", "key")

    site.broker.wait_for_log(r"as my-store \(")
