# SPDX-License-Identifier: Apache-2.0
"""export, import, check, backup and restore."""

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from support import stored
from support.ctl import environment
from support.hlc import Hlc, wall_ms
from support.limited_store import limited
from support.process import CTL, PATIENCE, wait_until
from support.stepped_clock import SteppedClock

FENCE = "001696374425000:00000:Client1"


MINUTE = 60 * 1000
HOUR = 60 * MINUTE


def ctl(*arguments, site=None, stdin=None, more=None):
    """Run statestorectl. more: environment variables."""
    variables = {**environment({"PORT": site.broker.port} if site else {}), **(more or {})}
    return subprocess.run([CTL, *map(str, arguments)], env=variables, input=stdin, capture_output=True, timeout=PATIENCE)


def lines(result):
    assert result.returncode == 0, result.stderr
    return sorted((json.loads(line) for line in result.stdout.splitlines()), key=lambda line: str(line))


def jsonl(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def reading(ahead_ms):
    return Hlc(wall_ms() + ahead_ms, 0, "StateStore").padded()


@pytest.fixture
def directory(site, tmp_path):
    """The data directory of a stopped store with text, bytes, a deadline, a token and an empty value."""
    path = tmp_path / "data"
    store = site.start_store("--data-dir", str(path))
    client = site.connect()
    client.request("SET", "text", "välue\n")
    client.request("SET", b"by\xfftes", b"\0\xff")
    client.request("SET", "empty", "")
    client.request("SET", "locked", "me", "PX", 3600000, ft=FENCE)
    client.request("SET", "nul", b"a\0b")
    assert store.stop() == 0
    return path


def test_an_export_of_a_directory_is_complete(directory):
    exported = {line.get("key", "bytes"): line for line in lines(ctl("export", "--data-dir", directory))}

    assert exported["text"]["value"] == "välue\n"
    assert exported["empty"]["value"] == ""
    assert exported["nul"]["value"] == "a\0b"
    assert exported["bytes"]["key_base64"] == "Ynn/dGVz"
    assert exported["bytes"]["value_base64"] == "AP8="
    assert exported["locked"]["token"] == FENCE
    assert exported["locked"]["deadline"] > 0
    assert exported["text"]["deadline"] is exported["text"]["token"] is None


def test_an_imported_directory_exports_the_same_lines(directory, tmp_path):
    exported = ctl("export", "--data-dir", directory)
    file = tmp_path / "export.jsonl"
    file.write_bytes(exported.stdout)

    result = ctl("import", file, "--data-dir", tmp_path / "other")

    assert result.stdout == b"5 keys imported\n", result.stderr
    before, after = lines(exported), lines(ctl("export", "--data-dir", tmp_path / "other"))
    for old, new in zip(before, after):
        # Opening a directory moves a deadline by less than 4 ms, and only to a later time.
        deadline, moved = old.pop("deadline"), new.pop("deadline")
        assert deadline == moved or 0 <= moved - deadline < 8
    assert after == before
    assert ctl("check", tmp_path / "other").returncode == 0


def test_an_import_replaces_existing_keys(directory):
    line = b'{"key":"text","value":"new"}\n'

    assert ctl("import", "-", "--data-dir", directory, stdin=line).returncode == 0

    exported = {line.get("key"): line for line in lines(ctl("export", "--data-dir", directory))}
    assert exported["text"]["value"] == "new"
    assert len(exported) == 5


def test_an_import_keeps_what_the_directory_stores_beside_keys(make_site, tmp_path):
    """Above all which requests were executed: without it the store executes them again when the plugin sends them again."""
    directory = tmp_path / "data"
    site = make_site()
    store = site.start_store("--data-dir", directory)
    site.connect().request("SET", "key", "value")

    def unchanging():
        changing = {"clock_wall_ms", "clock_counter", "reading_ms", "shift_ms", "commits"}
        return ({name: value for name, value in stored.header(directory).items() if name not in changing},
                stored.select(directory, "SELECT content FROM executions"), stored.select(directory, "SELECT content FROM replies"))

    store.stop()
    before = unchanging()
    _, executions, replies = before
    assert len(executions) == len(replies) == 1

    assert ctl("import", "-", "--data-dir", directory, stdin=jsonl({"key": "k", "value": "v"})).returncode == 0

    assert unchanging() == before


def test_an_import_rounds_the_clock_up_like_the_store(tmp_path):
    """Otherwise the store could let a key expire up to a millisecond early."""
    clock = SteppedClock(tmp_path)
    now_ms = wall_ms()
    clock.freeze_at(now_ms * 1_000_000 + 1)

    ctl("import", "-", "--data-dir", tmp_path / "data", stdin=jsonl({"key": "k", "value": "v"}), more=clock.environment())

    _, version_ms = stored.entries(tmp_path / "data")[b"k"]
    reading_ms = stored.header(tmp_path / "data")["reading_ms"]
    assert version_ms == now_ms + 1
    assert reading_ms == now_ms, "the rounded time less a millisecond"


def test_a_deadline_beyond_the_range_of_the_clock_is_omitted(tmp_path):
    line = b'{"key":"far","value":"v","deadline":9223372036854775806}\n'

    assert ctl("import", "-", "--data-dir", tmp_path / "data", stdin=line).stdout == b"1 key imported\n"
    assert [line["key"] for line in lines(ctl("export", "--data-dir", tmp_path / "data"))] == ["far"]
    assert lines(ctl("export", "--data-dir", tmp_path / "data"))[0]["deadline"] is None


@pytest.mark.parametrize(
    "member, fault",
    [
        ("version", "its version is more than a minute ahead of this machine's clock"),
        ("token", "its token is more than a minute ahead of this machine's clock, so no client could write the key"),
    ],
)
@pytest.mark.parametrize("when", [lambda: reading(HOUR), lambda: f"{2**63 - 1}:0:StateStore"], ids=["soon", "last"])
def test_an_import_far_ahead_of_the_clock_is_refused(tmp_path, member, fault, when):
    first, second = {"key": "first", "value": "1"}, {"key": "second", "value": "2", member: when()}
    directory = tmp_path / "data"

    result = ctl("import", "-", "--data-dir", directory, stdin=jsonl(first, second))

    assert result.returncode == 2
    assert f'"second": {fault}' in result.stderr.decode()
    assert result.stderr.endswith(b'statestorectl: stdin:2: the import ends at "second"; 1 key was imported\n')
    assert [line["key"] for line in lines(ctl("export", "--data-dir", directory))] == ["first"]
    assert Hlc.parse(lines(ctl("export", "--data-dir", directory))[0]["version"]).wall_ms <= wall_ms()

    del second[member]  # the remedy that the message names
    assert ctl("import", "-", "--data-dir", directory, stdin=jsonl(second)).stdout == b"1 key imported\n"


def test_an_import_through_the_broker_ignores_versions_and_refuses_a_token_far_ahead(site):
    site.start_store()
    ahead = {"key": "ahead", "value": "v", "version": reading(HOUR)}
    fenced = {"key": "fenced", "value": "v", "token": reading(HOUR)}

    result = ctl("import", "-", site=site, stdin=b"\n" + jsonl(ahead, fenced))

    assert (result.returncode, result.stdout) == (4, b"")
    refused, ends = result.stderr.decode().splitlines()
    assert refused.startswith('statestorectl: SET "fenced": -ERR ')
    assert ends == 'statestorectl: stdin:3: the import ends at "fenced"; 1 key was imported'
    (line,) = lines(ctl("export", site=site))
    assert line["key"] == "ahead"
    assert Hlc.parse(line["version"]).wall_ms < wall_ms() + MINUTE


def test_an_import_accepts_versions_that_the_directory_has_issued(tmp_path):
    """The clock was ahead when they were issued, and was corrected since."""
    ahead = SteppedClock(tmp_path)
    ahead.step_to(HOUR)
    directory = tmp_path / "data"
    ctl("import", "-", "--data-dir", directory, stdin=jsonl({"key": "k", "value": "v"}), more=ahead.environment())
    exported = ctl("export", "--data-dir", directory)
    (line,) = lines(exported)
    assert Hlc.parse(line["version"]).wall_ms > wall_ms() + MINUTE

    assert ctl("import", "-", "--data-dir", directory, stdin=exported.stdout).returncode == 0
    fenced = {"key": "fenced", "value": "v", "token": line["version"]}
    assert ctl("import", "-", "--data-dir", directory, stdin=jsonl(fenced)).returncode == 0


def test_an_import_accepts_a_version_half_a_minute_ahead(tmp_path):
    line = {"key": "k", "value": "v", "version": reading(MINUTE // 2), "token": reading(MINUTE // 2)}

    assert ctl("import", "-", "--data-dir", tmp_path / "data", stdin=jsonl(line)).stdout == b"1 key imported\n"
    (exported,) = lines(ctl("export", "--data-dir", tmp_path / "data"))
    assert (exported["version"], exported["token"]) == (line["version"], line["token"])


def test_an_imported_directory_is_served(site, directory, tmp_path):
    ctl("import", "-", "--data-dir", tmp_path / "other", stdin=ctl("export", "--data-dir", directory).stdout)
    site.store = None
    site.start_store("--data-dir", str(tmp_path / "other"))
    client = site.connect()

    assert client.request("GET", b"by\xfftes").payload == b"$2\r\n\0\xff\r\n"
    assert client.request("SET", "locked", "you").payload.startswith(b"-ERR a fencing token is required")


def test_export_and_import_through_the_broker(site):
    site.start_store()
    client = site.connect()
    client.request("SET", "a/1", b"\0\xff")
    client.request("SET", "a/2", "two")
    client.request("SET", "b", "three")

    exported = ctl("export", "a/*", site=site)
    assert [line["key"] for line in lines(exported)] == ["a/1", "a/2"]
    client.request("DEL", "a/1")
    client.request("SET", "a/2", "other")

    result = ctl("import", "-", site=site, stdin=exported.stdout)

    assert result.stdout == b"2 keys imported\n", result.stderr
    assert client.request("GET", "a/1").payload == b"$2\r\n\0\xff\r\n"
    assert client.request("GET", "a/2").payload == b"$3\r\ntwo\r\n"


def test_many_keys_pass_through_the_broker_in_their_order(site):
    """Several requests wait for their replies at once. The replies of different lengths must not change places."""
    site.start_store()
    keys = {f"key/{number:03}": "x" * (number * 7919 % 30000) for number in range(500)}
    written = jsonl(*({"key": key, "value": value} for key, value in keys.items()), {"key": "key/000", "value": "last"})

    assert ctl("import", "-", site=site, stdin=written).stdout == b"501 keys imported\n"

    keys["key/000"] = "last"
    exported = lines(ctl("export", site=site))
    assert {line["key"]: line["value"] for line in exported} == keys
    listed = [json.loads(line) for line in ctl("scan", "--long", "--json", site=site).stdout.splitlines()]
    assert {line["key"]: line["size"] for line in listed} == {key: len(value) for key, value in keys.items()}


def test_an_import_counts_what_is_imported_after_a_refused_key(site):
    """The requests behind the refused one have already been sent. Another one that is refused is not printed."""
    site.start_store("--max-keys", "1000")
    site.connect().request("SET", "fenced", "v", ft="1:0:holder")
    written = jsonl(*({"key": str(number), "value": "v"} for number in range(100)), {"key": "fenced", "value": "v"},
                    {"key": "fenced", "value": "w"}, *({"key": str(number), "value": "v"} for number in range(100, 1000)))

    result = ctl("import", "-", site=site, stdin=written)

    assert result.returncode == 4
    refusal, ends = result.stderr.decode().splitlines()
    assert "required" in refusal
    n_imported = len(lines(ctl("export", site=site))) - 1
    assert ends == f'statestorectl: stdin:101: the import ends at "fenced"; {n_imported} keys were imported'


def test_a_lock_does_not_become_permanent_by_export_and_import(site):
    site.start_store()
    client = site.connect()
    ctl("set", "lock", "me", "--px", "3s", site=site)
    ctl("set", "long", "me", "--px", "1h", "--fence", FENCE, site=site)
    ctl("set", "text", "value", site=site)
    exported = ctl("export", site=site)
    lock, long, text = sorted(lines(exported), key=lambda line: line["key"])
    assert (lock["token"], long["token"]) == (None, FENCE)
    assert text["deadline"] is text["token"] is None

    wait_until(lambda: wall_ms() > lock["deadline"], "the lock's lifetime is over")
    for key in "lock", "text":
        client.request("DEL", key)
    client.request("DEL", "long", ft=FENCE)
    result = ctl("import", "-", site=site, stdin=exported.stdout)

    assert result.stdout == b"2 keys imported, 1 left out: their deadline has passed\n"
    assert result.stderr == b""
    assert client.request("GET", "lock").payload == b"$-1\r\n"
    reply = client.request("GET", "long", user=[("details", "1")])
    assert 0 < int(reply.prop("expires_in_ms")) < HOUR
    assert client.request("SET", "long", "you").payload.startswith(b"-ERR a fencing token is required")
    assert client.request("GET", "text", user=[("details", "1")]).prop("expires_in_ms") is None


@pytest.mark.parametrize("text, note", [
    (jsonl({"key": "k", "value": "v"}, {"key": "l", "value": "v", "deadline": None}, {"key": "m", "value": "v", "token": FENCE}),
     'stdin: 1 key without "deadline" and "token": such keys never expire, and any client may write them'),
    (b'[{"a": "1", "b": "2"}]', 'stdin: 2 keys without "deadline" and "token"'),
], ids=["lines", "list"])
def test_an_import_warns_once_of_lines_without_deadline_and_token(site, tmp_path, text, note):
    site.start_store()

    for result in ctl("import", "-", site=site, stdin=text), ctl("import", "-", "--data-dir", tmp_path / "data", stdin=text):
        assert result.returncode == 0
        assert result.stderr.decode().startswith(f"statestorectl: {note}") and result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("offline", [False, True], ids=["broker", "directory"])
def test_an_export_has_the_keys_of_the_pattern(site, data, offline):
    site.start_store("--data-dir", data)
    keys = [f"{letter}{i}" for letter in ("a", "ä", "B") for i in range(20)]
    client = site.connect()
    client.request_all([("SET", key, "v") for key in keys])
    if offline:
        site.store.stop()

    result = ctl("export", "[aB]*", *(["--data-dir", data] if offline else []), site=site)

    exported = [json.loads(line)["key"] for line in result.stdout.splitlines()]
    assert sorted(exported) == sorted(key for key in keys if key[0] in "aB")


def test_an_import_accepts_the_lists_that_a_store_accepts_with_seed(site, tmp_path):
    site.start_store()
    text = b'[{"factoryId": "A"}, {"limits": {"max": 7}}, {"key": "k", "value": "v"}]'
    seeds = {"factoryId": b"A", "limits": b'{"max":7}', "k": b"v"}

    assert ctl("import", "-", site=site, stdin=text).stdout == b"3 keys imported\n"
    assert ctl("import", "-", "--data-dir", tmp_path / "data", stdin=text).stdout == b"3 keys imported\n"

    for name, value in seeds.items():
        assert ctl("get", name, site=site).stdout == value
    offline = {line["key"]: line["value"].encode() for line in lines(ctl("export", "--data-dir", tmp_path / "data"))}
    assert offline == seeds


def test_an_export_omits_expired_keys_and_keeps_other_deadlines(site):
    site.start_store()
    client = site.connect()
    text = b'{"key":"gone","value":"1","deadline":1}\n\n{"key":"stays","value":"2","deadline":9999999999999}\n'

    result = ctl("import", "-", site=site, stdin=text)

    assert result.stdout == b"1 key imported, 1 left out: their deadline has passed\n"
    assert client.request("GET", "gone").payload == b"$-1\r\n"
    assert client.request("GET", "stays").payload == b"$1\r\n2\r\n"


def test_a_token_is_imported_with_its_key(site):
    site.start_store()
    client = site.connect()

    ctl("import", "-", site=site, stdin=json.dumps({"key": "k", "value": "v", "token": FENCE}).encode())

    assert client.request("SET", "k", "w").payload.startswith(b"-ERR a fencing token is required")


@pytest.mark.parametrize(
    "line, fault",
    [
        ("not json", "the line is not JSON"),
        ("[]", "a JSON object was expected"),
        ('{"value":"v"}', 'a non-empty "key" or "key_base64" was expected'),
        ('{"key":"","value":"v"}', 'a non-empty "key" or "key_base64" was expected'),
        ('{"key":"k"}', '"value" or "value_base64" was expected'),
        ('{"key":"k","value":1}', '"value" or "value_base64" was expected'),
        ('{"key":"k","value_base64":"A"}', '"value" or "value_base64" was expected'),
        ('{"key":"k","value_base64":"A*=="}', '"value" or "value_base64" was expected'),
        ('{"key":"k","value":"v","version":"1"}', '"version" is not wallClock:counter:nodeId'),
        ('{"key":"k","value":"v","token":"1:2:"}', '"token" is not wallClock:counter:nodeId'),
        ('{"key":"k","value":"v","deadline":"soon"}', '"deadline" is not a number of milliseconds'),
        ('{"key":"k","key":"l","value":"v"}', "the line is not JSON"),
    ],
)
def test_an_invalid_line_ends_the_import_and_is_reported(tmp_path, line, fault):
    file = tmp_path / "lines"
    file.write_text('{"key":"first","value":"1"}\n' + line + "\n")

    result = ctl("import", file, "--data-dir", tmp_path / "data")

    assert result.returncode == 2
    assert f"{file}:2: {fault}; 1 key was imported" in result.stderr.decode()


def test_an_import_counts_the_keys_that_are_stored_when_the_disk_is_full(tmp_path):
    file = tmp_path / "lines"
    file.write_bytes(jsonl(*({"key": str(i), "value": "v" * 2000} for i in range(5000))))

    result = subprocess.run(limited([CTL, "import", file, "--data-dir", tmp_path / "data"], room=6000000), env=environment({}),
                            capture_output=True, text=True, timeout=PATIENCE)

    n_stored = len(lines(ctl("export", "--data-dir", tmp_path / "data")))
    assert 0 < n_stored < 5000
    assert result.returncode == 4
    commit, ends = result.stderr.splitlines()
    assert commit == "statestorectl: commit failed: No space left on device"
    assert ends.endswith(f"; {n_stored} keys were imported")


def test_the_directory_of_a_running_store_is_locked(site, tmp_path):
    site.start_store("--data-dir", str(tmp_path / "data"))

    for arguments in ["export", "--data-dir"], ["import", "/dev/null", "--data-dir"], ["check"]:
        result = ctl(*arguments, tmp_path / "data")
        assert result.returncode == 4
        assert b"is in use by" in result.stderr or b"a store is running there" in result.stderr


def test_a_running_store_is_backed_up_and_the_copy_can_be_served(site, tmp_path):
    store = site.start_store("--data-dir", str(tmp_path / "data"))
    client = site.connect()
    version = client.request("SET", "key", "before").ts

    assert ctl("backup", tmp_path / "data", tmp_path / "copy.db").returncode == 0
    client.request("SET", "key", "after")
    assert ctl("backup", tmp_path / "data", tmp_path / "copy.db").returncode == 4, "the file is not overwritten"
    store.stop()

    (tmp_path / "restored").mkdir()
    (tmp_path / "copy.db").rename(tmp_path / "restored" / "statestored.db")
    site.store = None
    site.start_store("--data-dir", str(tmp_path / "restored"))
    reply = client.request("GET", "key")
    assert (reply.payload, reply.ts) == (b"$6\r\nbefore\r\n", version)


@pytest.mark.parametrize("content, fault", [("", "it is empty"), ("text", "file is not a database")])
def test_a_restore_of_another_file_creates_no_directory(tmp_path, content, fault):
    file = tmp_path / "file"
    file.write_text(content)

    result = ctl("restore", file, tmp_path / "restored")

    assert (result.returncode, result.stdout) == (4, b"")
    assert result.stderr.decode() == f'statestorectl: cannot use "{file}": {fault}; use another backup\n'
    assert not (tmp_path / "restored").exists()


def test_a_backup_is_counted_checked_and_restored(site, data, tmp_path):
    site.start_store("--data-dir", data)
    client = site.connect()
    version = client.request("SET", "key", "before").ts
    copy, restored = tmp_path / "copy.db", tmp_path / "restored"
    client.request("SET", "later", "value")
    client.request("DEL", "later")

    assert ctl("backup", data, copy).stdout.decode().startswith(f"{copy}: 1 keys, ")
    content = copy.read_bytes()
    for arguments, name in ([["check", copy], copy], [["restore", copy, restored], restored]):
        result = ctl(*arguments)
        assert (result.returncode, result.stderr) == (0, b"")
        assert result.stdout.decode().startswith(f"{name}: 1 keys, 0 registrations, ")
    assert copy.read_bytes() == content
    client.request("SET", "key", "after")
    assert site.store.stop() == 0
    site.store = None
    site.start_store("--data-dir", restored)
    reply = client.request("GET", "key")
    assert (reply.payload, reply.ts) == (b"$6\r\nbefore\r\n", version)

    for target, fault in (restored, f'"{restored}": a store is running there; stop it first'), (
            data, f'"{data}" is not empty: it contains "'):
        result = ctl("restore", copy, target)
        assert (result.returncode, result.stdout) == (4, b"")
        assert fault in result.stderr.decode()


def as_nobody(argv):
    """Return a command line that runs argv as the user nobody, if root runs the tests."""
    if os.geteuid() != 0:
        return argv
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *argv]


@pytest.fixture
def read_only_directory():
    """Readable by all users, below a folder that is, too: tmp_path is not."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder / "data"
    (folder / "data").chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_directory_that_cannot_be_written_is_read(site, data, read_only_directory, tmp_path, end):
    """Such as a snapshot of a file system. The log of a killed store is read, too."""
    site.start_store("--data-dir", data)
    site.connect().request("SET", "key", "value")
    getattr(site.store, end)()
    shutil.copytree(data, read_only_directory)
    for file in read_only_directory.iterdir():
        if file.name.endswith("-shm"):
            file.unlink()
        else:
            file.chmod(0o444)
    read_only_directory.chmod(0o555)
    before = {path.name: path.read_bytes() for path in read_only_directory.iterdir()}
    folder = Path(tempfile.mkdtemp(dir=read_only_directory.parent))
    folder.chmod(0o777)

    def run(*arguments):
        return subprocess.run(as_nobody([CTL, *map(str, arguments)]), env=environment({}), capture_output=True, timeout=PATIENCE)

    for arguments in ["check", read_only_directory], ["backup", read_only_directory, folder / "copy.db"]:
        result = run(*arguments)
        assert (result.returncode, result.stderr) == (0, b"")
        assert b": 1 keys, " in result.stdout
    result = run("export", "--data-dir", read_only_directory)
    assert (result.returncode, result.stderr) == (0, b"")
    assert [record["key"] for record in map(json.loads, result.stdout.splitlines())] == ["key"]
    assert {path.name: path.read_bytes() for path in read_only_directory.iterdir()} == before

    result = run("import", "/dev/null", "--data-dir", read_only_directory)
    assert (result.returncode, result.stdout) == (4, b"")
    assert b"Permission denied; give the user account of this process access" in result.stderr


def test_an_export_of_a_missing_directory_fails_and_creates_nothing(tmp_path):
    (tmp_path / "empty").mkdir()

    for name, fault in ("empty", b"has no statestored.db"), ("mistyped", b"No such file"):
        result = ctl("export", "--data-dir", tmp_path / name)
        assert result.returncode == 4
        assert name.encode() in result.stderr and fault in result.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


@pytest.mark.parametrize("name", ["CONFIG", "PASSWORD_FILE", "TLS_CA_FILE"])
def test_broker_options_are_not_used_with_a_data_directory(directory, tmp_path, name):
    elsewhere = {f"STATESTORE_{name}": str(tmp_path / "not-to-be-read")}
    (tmp_path / "lines").write_bytes(jsonl({"key": "k", "value": "v", "deadline": None}))

    for arguments in (["check", directory], ["backup", directory, tmp_path / "copy.db"],
                      ["export", "--data-dir", directory], ["import", tmp_path / "lines", "--data-dir", tmp_path / "new"]):
        result = ctl(*arguments, more=elsewhere)
        assert (result.returncode, result.stderr) == (0, b"")


def test_each_fault_of_a_directory_is_one_message_for_people(directory, tmp_path):
    copy = tmp_path / "copy.db"
    assert ctl("backup", directory, copy).returncode == 0
    (tmp_path / "file").write_bytes(b"")

    for arguments, fault in (
        (["check", tmp_path], f'"{tmp_path}" has no statestored.db: give the data directory of a store'),
        (["check", "/dev/null"], '"/dev/null" is neither a data directory nor the file of a backup'),
        (["check", __file__], f'cannot use "{__file__}": file is not a database; use another backup'),
        (["check", tmp_path / "mistyped"], f'"{tmp_path}/mistyped": No such file or directory; check the path'),
        (["backup", directory, copy], f'"{copy}": File exists; choose another name'),
        (["backup", tmp_path, copy], f'"{tmp_path}" has no statestored.db: give the data directory of a store'),
        (["export", "--data-dir", tmp_path], f'"{tmp_path}" has no statestored.db: give the data directory of a store'),
        (["import", "/dev/null", "--data-dir", tmp_path / "file"],
         f'cannot open the data directory "{tmp_path}/file": Not a directory; check the path'),
    ):
        result = ctl(*arguments)
        assert (result.returncode, result.stderr.decode()) == (4, f"statestorectl: {fault}\n")


def test_a_fault_of_a_directory_shows_no_control_characters(tmp_path):
    """SQLite quotes the names of the schema in its messages."""
    directory = tmp_path / "data"
    assert ctl("import", "/dev/null", "--data-dir", directory).returncode == 0
    with sqlite3.connect(directory / "statestored.db") as database:
        database.execute("CREATE VIEW 'a\x1b[31m' AS SELECT 1")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_schema SET sql = 'x' WHERE type = 'view'")

    result = ctl("check", directory)

    assert result.returncode == 4
    assert b"\\x1B[31m" in result.stderr and b"\x1b" not in result.stderr, result.stderr


def test_damage_is_found(directory):
    assert ctl("check", directory).returncode == 0
    database = sqlite3.connect(directory / "statestored.db")
    database.execute("UPDATE entries SET content = x'00' WHERE number = (SELECT min(number) FROM entries)")
    database.commit()
    database.close()

    result = ctl("check", directory)

    assert result.returncode == 4
    assert b"statestored.db" in result.stderr
