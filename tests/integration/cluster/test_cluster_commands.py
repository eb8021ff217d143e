# SPDX-License-Identifier: Apache-2.0
"""The commands of statestorectl that use etcd: cluster, step-down, and export and import with --etcd."""

import base64
import contextlib
import ctypes
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from support.cluster import etcdctl
from support.cluster_client import ClusterClient
from support.ctl import DONE, NO_REPLY, NOT_MET, STORE_ERROR, USAGE, environment
from support.process import CTL, PATIENCE, wait_until

FENCE = "001696374425000:00001:Other"


class EtcdCtl:
    """Runs statestorectl on a machine of a cluster. before: URLs of endpoints before those of the cluster."""

    def __init__(self, cluster, machine, prefix="/statestore/", before=()):
        urls = [machine.etcd.url, *(one.etcd.url for one in cluster.machines if one is not machine)]
        self.variables = {**environment({"ETCD_ENDPOINTS": ",".join([*before, *urls]), "ETCD_PREFIX": prefix}),
                          "RUNTIME_DIRECTORY": str(machine.member.directory)}

    def run(self, *arguments, stdin=b""):
        return subprocess.run([CTL, *map(str, arguments)], env=self.variables, input=stdin, capture_output=True, timeout=PATIENCE,
                              check=False)

    def objects(self, *arguments):
        return [json.loads(line) for line in self.run(*arguments).stdout.splitlines()]

    def exported(self):
        ended = self.run("export", "--etcd")
        assert ended.returncode == DONE, ended.stderr
        return sorted((json.loads(line) for line in ended.stdout.splitlines()), key=str)


def stop_members(cluster):
    for machine in cluster.members:
        machine.member.signal_and_wait(15)


def test_cluster_shows_the_leader_and_the_members_of_etcd(slow_cluster):
    leader = slow_cluster.wait_for_leader()
    ctl = EtcdCtl(slow_cluster, slow_cluster.other_than(leader))

    ended = ctl.run("cluster")
    shown, *etcds = ctl.objects("cluster", "--json")

    assert ended.returncode == DONE, ended.stderr
    assert ended.stdout.decode().startswith(f"leader         {leader.name}, term {shown['term']}\n")
    assert (shown["leader"], shown["lease_ms"]) == (leader.name, 20_000)
    assert {(one["etcd"], one["address"]) for one in etcds} == {(one.name, one.etcd.url) for one in slow_cluster.machines}
    assert sum(one["leads"] for one in etcds) == 1
    assert all(one["votes"] and one["version"] and one["bytes"] >= one["bytes_in_use"] > 0 for one in etcds)


@pytest.fixture(params=["silent", "closed", "no etcd"])
def useless(request, slow_cluster):
    """The URL of an endpoint that answers nothing, accepts no connection, or is an HTTP server."""
    if request.param == "no etcd":
        yield f"http://127.0.0.1:{slow_cluster.members[0].member.pages.port}"
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "silent":
            listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_useless_first_endpoint_delays_the_commands_only(slow_cluster, useless):
    ClusterClient(slow_cluster).ask("SET", "k", "v")
    leader = slow_cluster.wait_for_leader()
    ctl = EtcdCtl(slow_cluster, leader, before=[useless])

    ended = ctl.run("cluster", "--timeout", f"{PATIENCE}s")
    assert ended.returncode == DONE, ended.stderr
    reason, used = ended.stderr.decode().splitlines()
    assert reason.startswith(f"statestorectl: etcd {useless} failed: ")
    assert used == f"statestorectl: etcd {leader.etcd.url} is used"
    assert [one["key"] for one in ctl.exported() if "key" in one] == ["k"]


def test_each_endpoint_gets_a_share_of_the_timeout(slow_cluster):
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        ctl = EtcdCtl(slow_cluster, slow_cluster.wait_for_leader(),
                      before=[f"http://127.0.0.1:{one.getsockname()[1]}" for one in silent])
        wait_until(lambda: ctl.run("cluster", "--timeout", "4s").returncode == DONE, "the command reaches the first etcd that answers")


def test_cluster_shows_which_member_of_etcd_is_away(slow_cluster):
    leader = slow_cluster.wait_for_leader()
    [witness] = [one for one in slow_cluster.machines if one not in slow_cluster.members]
    ctl = EtcdCtl(slow_cluster, leader)
    witness.kill()

    wait_until(lambda: ctl.run("cluster").returncode == NOT_MET, "the other members of etcd have a leader")
    _, *etcds = ctl.objects("cluster", "--json")

    assert [one["etcd"] for one in etcds if one["errors"]] == [witness.name]


def test_cluster_without_most_members_of_etcd_shows_who_answers(slow_cluster):
    leader = slow_cluster.wait_for_leader()
    others = [one for one in slow_cluster.machines if one is not leader]
    for machine in others:
        machine.kill()
    leader.etcd.wait_for_log("lost leader")

    ended = EtcdCtl(slow_cluster, leader).run("cluster", "--timeout", "5s", "--json")

    assert ended.returncode == NO_REPLY
    assert {one["address"]: bool(one["errors"]) for one in map(json.loads, ended.stdout.splitlines())} == {
        one.etcd.url: True for one in slow_cluster.machines}


def adds_member(url):
    with contextlib.suppress(subprocess.CalledProcessError):
        return etcdctl(url, "member", "add", "new", "--peer-urls", "http://127.0.0.1:1")
    return False


def test_cluster_shows_a_member_of_etcd_that_was_not_started(slow_cluster):
    leader = slow_cluster.wait_for_leader()
    wait_until(lambda: adds_member(leader.etcd.url), "the members of etcd have been connected for long enough")
    _, *etcds = EtcdCtl(slow_cluster, leader).objects("cluster", "--json")
    assert [one["errors"] for one in etcds if not one["etcd"]] == [["has not been started yet"]]


def test_cluster_shows_that_the_leader_has_stepped_down(make_cluster):
    cluster = make_cluster(n_members=1, n_witnesses=0, flags=["--lease", "20s"])
    leader = cluster.wait_for_leader()
    ctl = EtcdCtl(cluster, leader)

    ended = ctl.run("step-down", "--timeout", "5s")

    assert ended.returncode == NOT_MET, ended.stderr
    assert ended.stderr == b"statestorectl: the leader has stepped down, but no other member leads\n"
    shown = ctl.run("cluster")
    assert shown.returncode == NOT_MET
    assert shown.stdout.startswith(f"leader         none: {leader.name} has stepped down, term 1\n".encode())


def test_a_leader_that_has_stepped_down_is_not_silent(cluster):
    ctl = EtcdCtl(cluster, cluster.members[0], "/another/")
    ctl.variables["STATESTORE_ETCD_LEASE"] = "1s"
    assert ctl.run("import", "--etcd", "-").returncode == DONE

    shown = wait_until(lambda: re.search(r"last commit +[1-9].*", ctl.run("cluster").stdout.decode()), "the lease is over")
    assert "silent" not in shown[0]


def test_step_down_lets_the_other_member_lead(slow_cluster):
    leader = slow_cluster.wait_for_leader()
    other = slow_cluster.other_than(leader)

    ended = EtcdCtl(slow_cluster, leader).run("step-down")

    assert ended.returncode == DONE, ended.stderr
    assert ended.stdout.decode().startswith(f"leader         {other.name}, term 2\n")
    assert slow_cluster.wait_for_leader() is other


def test_step_down_of_a_standby_says_who_leads(slow_cluster):
    leader = slow_cluster.wait_for_leader()
    other = slow_cluster.other_than(leader)
    wait_until(lambda: other.member.waits_for("leads"), "the standby waits")

    ended = EtcdCtl(slow_cluster, other).run("step-down")

    assert ended.returncode == NOT_MET
    assert ended.stderr == f'statestorectl: this member does not lead: "{leader.name}" leads\n'.encode()
    assert slow_cluster.leader() is leader


def test_step_down_without_a_member_on_this_machine(slow_cluster, tmp_path):
    ctl = EtcdCtl(slow_cluster, slow_cluster.wait_for_leader())
    ctl.variables["RUNTIME_DIRECTORY"] = str(tmp_path / "none")
    ended = ctl.run("step-down")
    assert ended.returncode == STORE_ERROR
    assert b"no process has locked it" in ended.stderr


def test_step_down_is_not_done_if_the_same_member_leads_again(make_cluster):
    cluster = make_cluster(n_members=1, n_witnesses=0, flags=["--lease", "1s"])
    ctl = EtcdCtl(cluster, cluster.wait_for_leader())
    ended = ctl.run("step-down", "--timeout", "8s")
    assert ended.returncode == NOT_MET, ended.stdout
    assert ended.stderr == b"statestorectl: the leader has stepped down, but no other member leads\n"
    wait_until(lambda: ctl.objects("cluster", "--json")[0].get("term", 0) > 1, "the same member leads again")


@pytest.fixture
def received_signals():
    received = []
    former = signal.signal(signal.SIGUSR2, lambda number, _: received.append(number))
    yield received
    signal.signal(signal.SIGUSR2, former)


def test_step_down_signals_no_other_program(slow_cluster, tmp_path, received_signals):
    ctl = EtcdCtl(slow_cluster, slow_cluster.wait_for_leader())
    leader_file = Path(ctl.variables["RUNTIME_DIRECTORY"]) / "member"
    ctl.variables["RUNTIME_DIRECTORY"] = str(tmp_path)

    with open(tmp_path / "member", "wb") as file:  # locked by this process
        fcntl.lockf(file, fcntl.LOCK_EX)
        file.write(leader_file.read_bytes())
        file.flush()
        ended = ctl.run("step-down")

    assert ended.returncode == STORE_ERROR
    assert f"the process {os.getpid()}, which has locked".encode() in ended.stderr
    assert not received_signals


def test_step_down_does_not_wait_for_a_fifo(slow_cluster, tmp_path):
    ctl = EtcdCtl(slow_cluster, slow_cluster.wait_for_leader())
    ctl.variables["RUNTIME_DIRECTORY"] = str(tmp_path)
    os.mkfifo(tmp_path / "member")
    assert ctl.run("step-down").returncode == STORE_ERROR


def test_an_export_of_etcd_has_all_keys_while_a_member_serves(slow_cluster):
    client = ClusterClient(slow_cluster)
    client.ask("SET", "text", "välue\n")
    client.ask("SET", b"by\xfftes", b"\0\xff")
    client.ask("SET", "locked", "me", "PX", 3_600_000)
    leader = slow_cluster.wait_for_leader()

    exported = {line.get("key", "bytes"): line for line in EtcdCtl(slow_cluster, leader).exported()}

    assert exported["text"]["value"] == "välue\n"
    assert exported["bytes"]["value_base64"] == "AP8="
    assert exported["locked"]["deadline"] > 0
    assert slow_cluster.leader() is leader
    assert client.ask("SET", "later", "value") == b"+OK\r\n"


def as_reader_of_the_header(ctl, url, tmp_path):
    """Let etcd require a user, and the commands be one."""
    password = tmp_path / "password"
    password.write_text("secret")
    for command in (["role", "add", "reader"], ["role", "grant-permission", "reader", "read", "/statestore/header"],
                    ["user", "add", "reader:secret"], ["user", "grant-role", "reader", "reader"],
                    ["user", "add", "root:root"], ["user", "grant-role", "root", "root"], ["auth", "enable"]):
        etcdctl(url, *command)
    ctl.variables.update(STATESTORE_ETCD_USER="reader", STATESTORE_ETCD_PASSWORD_FILE=str(password))
    return ctl


def test_cluster_sends_no_password_to_an_address_that_etcd_names(make_cluster, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = f"http://127.0.0.1:{listener.getsockname()[1]}"
        cluster = make_cluster(n_members=1, n_witnesses=0, etcd_flags=["--advertise-client-urls", named])
        leader = cluster.wait_for_leader()
        ctl = as_reader_of_the_header(EtcdCtl(cluster, leader), leader.etcd.url, tmp_path)

        def addresses():
            _, *etcds = ctl.objects("cluster", "--json", "--timeout", "2s")
            return [one["address"] for one in etcds]

        wait_until(lambda: addresses() == [named], "etcd names the address in time")
        with listener.accept()[0] as connection:
            received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert received.startswith(b"PRI * HTTP/2.0")
    assert b"secret" not in received


def test_an_export_of_etcd_without_a_permission_for_the_keys(make_cluster, tmp_path):
    cluster = make_cluster(n_members=1, n_witnesses=0)
    leader = cluster.wait_for_leader()
    ctl = as_reader_of_the_header(EtcdCtl(cluster, leader), leader.etcd.url, tmp_path)

    ended = ctl.run("export", "--etcd")

    assert (ended.returncode, ended.stdout) == (NO_REPLY, b"")
    assert b"permission denied" in ended.stderr


def test_an_import_into_etcd_exports_the_same_lines(slow_cluster):
    machine = slow_cluster.members[0]
    lines = [{"key": f"key-{n}", "value": "v" * n, "version": f"0016963744250{n:02}:00000:StateStore", "deadline": None,
              "token": FENCE if n % 2 else None} for n in range(99)]
    other_store = EtcdCtl(slow_cluster, machine, "/another/")

    ended = other_store.run("import", "-", "--etcd", stdin="".join(json.dumps(line) + "\n" for line in lines).encode())

    assert ended.stdout == b"99 keys imported\n", ended.stderr
    assert other_store.exported() == sorted(lines, key=str)
    assert EtcdCtl(slow_cluster, machine).exported() == []


def test_an_import_into_etcd_is_refused_while_a_member_leads(cluster):
    leader = cluster.wait_for_leader()
    ended = EtcdCtl(cluster, leader).run("import", "-", "--etcd", stdin=b'{"key": "k", "value": "v"}\n')
    assert ended.returncode == NOT_MET
    assert b"leads: use the address of the cluster, or stop all its members" in ended.stderr
    assert ClusterClient(cluster).ask("GET", "k") == b"$-1\r\n"


def test_members_continue_after_an_import(cluster):
    client = ClusterClient(cluster)
    assert client.ask("SET", "before", "value") == b"+OK\r\n"
    stop_members(cluster)
    ctl = EtcdCtl(cluster, cluster.members[0])

    ended = ctl.run("import", "-", "--etcd", stdin=b'{"key": "imported", "value": "v", "deadline": null, "token": null}\n')

    assert (ended.returncode, ended.stdout, ended.stderr) == (DONE, b"1 key imported\n", b"")
    cluster.members[1].member.start()
    assert cluster.wait_for_leader() is cluster.members[1]
    assert client.value_of("imported") == b"v"
    assert client.value_of("before") == b"value"


def test_an_import_into_etcd_refuses_what_no_commit_can_have(cluster):
    ctl = EtcdCtl(cluster, cluster.members[0], "/another/")
    too_large = json.dumps({"key": "k", "value": "v" * (384 << 10), "deadline": None, "token": None})
    ended = ctl.run("import", "-", "--etcd", stdin=too_large.encode())
    assert ended.returncode == USAGE
    assert b"larger than a quarter of max-request-bytes" in ended.stderr


HEADER = "/statestore/header"


def header_in(etcd):
    [stored] = json.loads(etcd.ctl("get", HEADER, "--write-out", "json"))["kvs"]
    return base64.b64decode(stored["value"])


def put_header(etcd, value):
    subprocess.run(["etcdctl", "--endpoints", etcd.url, "put", HEADER], env={**os.environ, "ETCDCTL_API": "3"}, input=value,
                   capture_output=True, check=True)


def of_version(header, version):
    """Return the header with another version of its form: see server/storage/etcd/header.h and keys.h."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_64bits.restype = xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
    content = struct.pack(">I", version) + header[4:-8]
    seed = ctypes.c_uint64(xxhash.XXH3_64bits(HEADER.encode(), ctypes.c_size_t(len(HEADER))))
    return content + struct.pack(">Q", xxhash.XXH3_64bits_withSeed(content, ctypes.c_size_t(len(content)), seed))


def test_what_another_version_wrote_is_left_alone(make_cluster):
    cluster = make_cluster(n_members=1, n_witnesses=0, flags=["--lease", "1s"])
    leader = cluster.wait_for_leader()
    ctl = EtcdCtl(cluster, leader)
    assert ClusterClient(cluster).ask("SET", "k", "value") == b"+OK\r\n"
    stop_members(cluster)
    own = header_in(leader.etcd)
    newer = of_version(own, 1000)
    put_header(leader.etcd, newer)

    leader.member.start()

    cause = r"a newer statestored wrote it \(form 1000; this version supports \d+\): run that version"
    leader.member.wait_for_log(cause)
    for command in (["cluster"], ["export", "--etcd"], ["import", "--etcd", "-"]):
        ended = ctl.run(*command)
        assert ended.returncode == STORE_ERROR
        assert re.search(cause, ended.stderr.decode()), ended.stderr
    assert leader.member.waits_for("standby: ")
    assert header_in(leader.etcd) == newer

    put_header(leader.etcd, own)
    assert ClusterClient(cluster).value_of("k") == b"value"


@pytest.mark.parametrize("command", [["cluster"], ["step-down"], ["export", "--etcd"], ["import", "--etcd", os.devnull]])
def test_without_etcd_in_the_configuration(command):
    ended = subprocess.run([CTL, *command], env=environment({}), capture_output=True, timeout=PATIENCE, check=False)
    assert ended.returncode == USAGE
    assert b"a configuration with the endpoints of etcd was expected" in ended.stderr
