# SPDX-License-Identifier: Apache-2.0
"""What another local user and a reader of the disk can see: lines of common/protocol/THREATS.md."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.process import CTL

ANOTHER_USER = 65534
KEY, VALUE, PASSWORD = "settings/secret-key", "a-secret-value", "the-password-of-the-store"
STORE_USER = "plugin_opt_statestored_username statestored"

# Prints the paths that it can read. It reads a directory by listing it.
TRY_EACH = """
import json, os, sys
opened = []
for path in sys.argv[1:]:
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            os.close(os.open(path, os.O_RDONLY))
        opened.append(path)
    except PermissionError:
        pass
print(json.dumps(opened))
"""


def opened_by_another_user(*paths):
    """Those of the paths that another user can read, as names."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    command = ["setpriv", f"--reuid={ANOTHER_USER}", f"--regid={ANOTHER_USER}", "--clear-groups", "/usr/bin/python3", "-c",
               TRY_EACH, *map(str, paths)]
    return {Path(path).name for path in json.loads(subprocess.run(command, capture_output=True, check=True, cwd="/").stdout)}


@pytest.fixture
def open_directory():
    """Readable by all users, as are those above it. tmp_path is not."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    directory.chmod(0o755)
    (directory / "readable").write_text("")
    assert opened_by_another_user(directory, directory / "readable") == {directory.name, "readable"}
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def no_mask():
    """Set umask 0, so that only the modes that the programs pass to open() and mkdir() protect files."""
    former = os.umask(0)
    yield
    os.umask(former)


def fill(site):
    """Reads and writes a key, so that every kind of file exists."""
    client = site.connect()
    assert client.request("SET", KEY, VALUE).payload == b"+OK\r\n"
    client.watch(KEY)


@pytest.mark.parametrize("is_new", [True, False], ids=["made by the store", "open to all"])
def test_another_local_user_reads_no_file_of_the_data_directory(site, open_directory, no_mask, is_new):
    data = open_directory / "data"
    if not is_new:
        data.mkdir(mode=0o755)
    site.start_store("--data-dir", data)
    fill(site)

    names = {path.name for path in data.iterdir()}
    assert {"statestored.db", "statestored.db-wal"} <= names
    assert opened_by_another_user(data, *data.iterdir()) == (set() if is_new else {"data"})
    assert site.store.stop() == 0
    site.store.start()
    assert opened_by_another_user(data, *data.iterdir()) == (set() if is_new else {"data"})


def test_another_local_user_reads_no_backup(site, open_directory, no_mask):
    data, backup = open_directory / "data", open_directory / "backup.db"
    site.start_store("--data-dir", data)
    fill(site)
    subprocess.run([CTL, "backup", data, backup], check=True, capture_output=True)

    assert VALUE.encode() in backup.read_bytes()
    assert opened_by_another_user(backup) == set()


def test_another_local_user_learns_no_password_from_the_process(make_site, open_directory, no_mask):
    password = open_directory / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    site = make_site(STORE_USER)
    site.start_store("--user", "statestored", "--password-file", password)

    process = Path(f"/proc/{site.store.child.pid}")
    assert opened_by_another_user(password, process / "environ", process / "mem", process / "cmdline") == {"cmdline"}
    for shown in (process / "cmdline").read_bytes(), site.store.ready_file.read_bytes(), site.store.log().encode():
        assert PASSWORD.encode() not in shown


def test_the_disk_has_the_values_and_no_password(make_site, open_directory):
    data, password = open_directory / "data", open_directory / "password"
    password.write_text(PASSWORD)
    site = make_site(STORE_USER)
    site.start_store("--data-dir", data, "--user", "statestored", "--password-file", password)
    fill(site)
    assert site.store.stop() == 0

    content = b"".join(path.read_bytes() for path in data.iterdir())
    assert VALUE.encode() in content and KEY.encode() in content
    assert PASSWORD.encode() not in content
    site.store.start()
