# SPDX-License-Identifier: Apache-2.0
"""statestorectl with TLS, with the same options and trust as the store."""

import os
import socket
import subprocess

import pytest

from support.certificates import Authority
from support.ctl import TIMEOUT
from support.process import CTL, PATIENCE

HOST = "127.0.0.2"  # the TLS listener; the store connects to 127.0.0.1


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"), "good")


@pytest.fixture(scope="module")
def server(good):
    return good.issue("server")


@pytest.fixture
def site(make_site, good, server, request):
    lines = getattr(request, "param", ())
    site = make_site(listeners=[f"listener {{port}} {HOST}", f"cafile {good.certificate}",
                                f"certfile {server.certificate}", f"keyfile {server.key}", *lines])
    site.start_store()
    return site


def ctl(site, *words, **environment):
    return subprocess.run([CTL, "--host", HOST, "--port", str(site.broker.port), "--timeout", TIMEOUT,
                           *map(str, words)],
                          env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE)


def test_a_command_works_over_trusted_tls(site, good):
    trust = "--tls-ca-file", good.certificate

    assert ctl(site, *trust, "ping").returncode == 0
    large = "x" * 100_000
    assert ctl(site, *trust, "set", "key", large).returncode == 0
    assert ctl(site, *trust, "get", "key").stdout == large


def test_the_systems_authorities_are_trusted_by_default(site, good):
    assert ctl(site, "--tls", "on", "ping", SSL_CERT_FILE=str(good.certificate)).returncode == 0
    assert ctl(site, "ping", SSL_CERT_FILE=str(good.certificate), STATESTORE_TLS="on").returncode == 0


def test_no_request_is_sent_to_an_untrusted_broker(site, tmp_path):
    result = ctl(site, "--tls-ca-file", Authority(tmp_path, "bad").certificate, "ping")

    assert result.returncode == 3
    assert "certificate verify failed: self-signed certificate in certificate chain; check the broker's certificate, its name and --tls-ca-file\n" in result.stderr


def test_without_tls_a_tls_listener_is_an_error(site):
    result = ctl(site, "ping")

    assert result.returncode == 3
    assert "before CONNACK; does the broker use TLS on this port? Then use --tls on or --tls-ca-file\n" in result.stderr


def test_with_tls_a_listener_without_tls_is_an_error(site, good):
    result = ctl(site, "--host", "127.0.0.1", "--tls-ca-file", good.certificate, "ping")

    assert result.returncode == 3
    assert "perhaps the broker does not use TLS on this port" in result.stderr


def test_tls_trusts_the_authorities_of_the_system(site, good):
    address = f"{HOST}:{site.broker.port}"
    result = subprocess.run([CTL, "--host", address, "--tls", "on", "ping"], capture_output=True, timeout=PATIENCE,
                            env={**os.environ, "SSL_CERT_FILE": str(good.certificate)})

    assert result.returncode == 0, result.stderr


def test_tls_implies_its_port():
    result = subprocess.run([CTL, "--host", "127.0.0.3", "--tls", "on", "ping"], capture_output=True, text=True, timeout=PATIENCE)

    assert "the broker at 127.0.0.3:8883: " in result.stderr


def test_a_refused_connection_is_an_error_before_the_timeout():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        result = subprocess.run([CTL, "--tls", "on", "--port", str(closed.getsockname()[1]), "--timeout", "1h", "ping"],
                                capture_output=True, text=True, timeout=PATIENCE)

    assert result.returncode == 3
    assert "refused" in result.stderr


@pytest.mark.parametrize("site", [("require_certificate true",)], indirect=True)
def test_the_broker_identifies_the_client_by_its_certificate(site, good, tmp_path):
    ours = good.issue("ctl")
    trust = "--tls-ca-file", good.certificate

    refused = ctl(site, *trust, "ping")
    assert refused.returncode == 3
    assert refused.stderr.endswith("; does the broker use TLS on this port, and require --tls-certificate?\n")
    stranger = Authority(tmp_path, "stranger").issue("ctl")
    refused = ctl(site, *trust, "--tls-certificate", stranger.certificate, "--tls-key", stranger.key, "ping")
    assert refused.returncode == 3
    assert refused.stderr.endswith("; does the broker use TLS on this port, and accept --tls-certificate?\n")
    assert ctl(site, *trust, "--tls-certificate", ours.certificate, "--tls-key", ours.key, "ping").returncode == 0
    system = {"STATESTORE_TLS": "on", "SSL_CERT_FILE": str(good.certificate)}
    presented = ctl(site, "--tls-certificate", ours.certificate, "--tls-key", ours.key, "ping", **system)
    assert presented.returncode == 0, presented.stderr


def test_files_that_are_no_certificate_and_its_key_are_named(site, good):
    ours, other = good.issue("ctl"), good.issue("other")
    trust = "--tls-ca-file", good.certificate

    for certificate, key in (ours.key, ours.certificate), (ours.certificate, other.key), (__file__, ours.key):
        refused = ctl(site, *trust, "--tls-certificate", certificate, "--tls-key", key, "ping")
        assert refused.returncode == 3
        assert "check that --tls-certificate and --tls-key are a certificate and its private key\n" in refused.stderr


@pytest.mark.parametrize("words, said", [
    (("--tls", "yes"), "on or off was expected"),
    (("--tls-certificate", "a.crt", "--tls-ca-file", "ca"), "must be given together"),
    (("--tls-key", "a.key", "--tls-ca-file", "ca"), "must be given together"),
    (("--tls-certificate", "a.crt", "--tls-key", "a.key"), "--tls on or --tls-ca-file"),
    (("--tls-ca-file", "/nowhere/ca.crt"), "cannot read /nowhere/ca.crt: No such file or directory"),
    (("--tls", "on", "--tls-certificate", "/nowhere/a.crt", "--tls-key", "/dev/null"), "cannot read /nowhere/a.crt: "),
    (("--tls", "on", "--tls-certificate", __file__, "--tls-key", "/nowhere/a.key"), "cannot read /nowhere/a.key: "),
    (("--tls-ca-file", "/dev/zero"), "cannot read /dev/zero: not a regular file"),
])
def test_unusable_tls_files_are_named(words, said):
    result = subprocess.run([CTL, *words, "ping"], capture_output=True, text=True, timeout=PATIENCE)

    assert result.returncode == 2
    assert said in result.stderr
