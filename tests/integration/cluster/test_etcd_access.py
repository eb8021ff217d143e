# SPDX-License-Identifier: Apache-2.0
"""An etcd that requires a certificate, or a user with a password."""

import re
import subprocess

import pytest

from support.certificates import Authority
from support.cluster import etcdctl
from support.cluster_client import ClusterClient
from support.ctl import NO_REPLY, USAGE, environment
from support.process import CTL, PATIENCE, STATESTORED, wait_until

PREFIX = "/statestore/"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


@pytest.fixture
def cluster_with_tls(make_cluster, authority):
    server = authority.issue("server", addresses="IP:127.0.0.1")
    return lambda *flags: make_cluster(
        n_members=1, n_witnesses=0, scheme="https", flags=["--etcd-ca-file", str(authority.certificate), *flags],
        etcd_flags=["--cert-file", server.certificate, "--key-file", server.key, "--client-cert-auth", "--trusted-ca-file",
                    authority.certificate])


def test_a_member_has_a_certificate(cluster_with_tls, authority):
    client = authority.issue("client")
    cluster = cluster_with_tls("--etcd-certificate", str(client.certificate), "--etcd-key", str(client.key))
    assert ClusterClient(cluster).ask("SET", "k", "value") == b"+OK\r\n"


def test_a_member_without_a_certificate_waits(cluster_with_tls):
    """libcurl has several reasons for this by turns."""
    [machine] = cluster_with_tls().members
    refused = "client didn't provide a certificate"
    wait_until(lambda: machine.etcd.log().count(refused) > 50, "etcd has refused the member many times")
    wait_until(lambda: machine.member.waits_for("etcd has not been read recently"), "the member waits")

    reasons = [re.sub("[0-9]", "", reason) for reason in re.findall("etcd .* failed: .*", machine.member.log())]
    assert reasons and len(reasons) == len(set(reasons))


def test_the_authority_of_etcd_replaces_those_of_the_system(make_cluster, authority, tmp_path):
    """Otherwise an authority of a company, which reads TLS in its network, would get the password and all keys."""
    system = Authority(tmp_path, "system")
    server = system.issue("server", addresses="IP:127.0.0.1")
    cluster = make_cluster(n_members=0, scheme="https", etcd_flags=["--cert-file", server.certificate, "--key-file", server.key])
    words = system.trusted_by_system()

    def status(*flags, **variables):
        variables = environment({"ETCD_ENDPOINTS": cluster.machines[0].etcd.url, **variables})
        return subprocess.run([*words, CTL, "cluster", *flags], env=variables, capture_output=True, timeout=PATIENCE, check=False)

    assert status().stdout.startswith(b"leader         none: no member has led yet with the prefix /statestore/\n")
    ended = status("--timeout", "5s", ETCD_CA_FILE=str(authority.certificate))
    assert ended.returncode == NO_REPLY
    assert b" failed: SSL certificate problem" in ended.stderr


def test_a_missing_file_of_tls_is_named(tmp_path):
    missing = str(tmp_path / "none")
    words = ["--etcd", "https://127.0.0.1:1", "--etcd-ca-file", missing]
    for ended in (subprocess.run([STATESTORED, *words], capture_output=True, timeout=PATIENCE, check=False),
                  subprocess.run([CTL, "cluster"], capture_output=True, timeout=PATIENCE, check=False,
                                 env=environment({"ETCD_ENDPOINTS": words[1], "ETCD_CA_FILE": missing}))):
        assert ended.returncode in (1, USAGE)
        assert ended.stderr.count(f"cannot read {missing}".encode()) == 1


@pytest.fixture
def as_user(tmp_path):
    """The options of a member that is a user of etcd."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    return ["--etcd-user", "store", "--etcd-password-file", str(password)]


def test_a_standby_logs_each_reason_why_etcd_cannot_be_read(make_cluster, as_user):
    [machine] = make_cluster(n_members=1, n_witnesses=0, flags=as_user).members
    machine.member.wait_for_log(r"etcd http\S+ failed: .*authentication is not enabled")
    machine.etcd.kill()
    machine.member.wait_for_log(r"etcd http\S+ failed: .*connect")


def test_a_standby_logs_the_reason_at_each_endpoint(make_cluster):
    cluster = make_cluster(n_members=1, n_witnesses=2)
    member = cluster.wait_for_leader().member
    for machine in cluster.machines:
        machine.etcd.kill()
    after = len(member.log())
    member.end_process()
    for machine in cluster.machines:
        member.wait_for_log(f"etcd {machine.etcd.url} failed: .*connect", after=after)


def enable_users(cluster, permission):
    for command in (["role", "add", "store"], ["role", "grant-permission", "store", "--prefix=true", permission, PREFIX],
                    ["user", "add", "store:secret"], ["user", "grant-role", "store", "store"],
                    ["user", "add", "root:root"], ["user", "grant-role", "root", "root"], ["auth", "enable"]):
        etcdctl(cluster.machines[0].etcd.url, *command)


def test_a_member_says_that_it_cannot_write(make_cluster, as_user):
    cluster = make_cluster(n_members=1, n_witnesses=0, flags=as_user)
    [machine] = cluster.members
    enable_users(cluster, "read")

    wait_until(lambda: machine.member.waits_for("no member has led yet, but this member cannot lead"), "the member says that it cannot write")
    machine.member.wait_for_log("cannot commit at etcd .*: .*permission denied")


def test_members_are_a_user_of_etcd(make_cluster, as_user):
    cluster = make_cluster(flags=as_user)
    wait_until(lambda: all(machine.member.waits_for("etcd has not been read recently") for machine in cluster.members),
               "the members wait for the user")
    enable_users(cluster, "readwrite")

    client = ClusterClient(cluster)
    assert client.ask("SET", "k", "value") == b"+OK\r\n"
    cluster.wait_for_leader().kill()
    assert client.value_of("k") == b"value"
