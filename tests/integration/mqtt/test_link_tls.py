# SPDX-License-Identifier: Apache-2.0
"""The store's connection to the broker under TLS: trust in both directions, and the log without it."""

import re
import socket
import ssl

import pytest

from support.certificates import Authority
from support.process import PATIENCE, preload, wait_until
from support.stepped_clock import SteppedClock

HOST = "127.0.0.2"  # listener with TLS; clients connect to 127.0.0.1


class Certificates:
    def __init__(self, directory):
        self.good, self.bad = Authority(directory, "good"), Authority(directory, "bad")
        self.server = self.good.issue("server")
        self.expired = self.good.issue("expired", days=-1)
        self.elsewhere = self.good.issue("elsewhere", "IP:127.0.0.3,DNS:elsewhere")
        self.client = self.good.issue("statestored")
        self.stranger = self.bad.issue("stranger")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def trust(certificates):
    return "--host", HOST, "--tls-ca-file", certificates.good.certificate


def present(certificate):
    return "--tls-certificate", certificate.certificate, "--tls-key", certificate.key


@pytest.fixture
def tls_site(make_site, certificates):
    def make(server=certificates.server, *lines, options=()):
        return make_site(*options, listeners=[
            f"listener {{port}} {HOST}", f"cafile {certificates.good.certificate}", f"certfile {server.certificate}",
            f"keyfile {server.key}", *lines])

    return make


def test_requests_are_served_over_tls_with_mutual_trust(tls_site, trust):
    site = tls_site()
    store = site.start_store(*trust)
    client = site.connect()

    with store.paused():  # so that many requests arrive at once
        large = client.send("SET", "large", b"x" * 2_000_000)
        waiting = [client.send("SET", f"key-{n}", n) for n in range(1000)]

    assert {reply.result(PATIENCE).payload for reply in (large, *waiting)} == {b"+OK\r\n"}
    assert len(client.request("GET", "large").payload) > 2_000_000
    store.wait_for_log(rf"ready: serving {HOST}:{site.broker.port} ")


def test_the_broker_identifies_the_store_by_its_certificate(tls_site, certificates, trust):
    """The name in the certificate is the user name of the store, and the plugin accepts only this user as the store."""
    site = tls_site(certificates.server, "require_certificate true", "use_identity_as_username true",
                    options=["plugin_opt_statestored_username statestored"])

    store = site.start_store(*trust, *present(certificates.client))

    store.wait_for_log("the broker has the plugin")


def test_a_store_with_a_certificate_warns_of_a_broker_without_the_plugin(make_site, certificates, trust):
    site = make_site(plugin=False, listeners=[
        f"listener {{port}} {HOST}", f"cafile {certificates.good.certificate}", f"certfile {certificates.server.certificate}",
        f"keyfile {certificates.server.key}", "require_certificate true"])

    store = site.start_store(*trust, *present(certificates.client))

    store.wait_for_log('level=warning msg="the broker authenticates clients, but without the plugin')


def test_the_authorities_of_the_system_are_trusted_by_default(tls_site, certificates):
    site = tls_site()

    site.start_store("--host", HOST, "--tls", "on", environment={"SSL_CERT_FILE": certificates.good.certificate})

    assert site.connect().request("GET", "key").payload == b"$-1\r\n"


def test_a_certificate_is_presented_to_a_broker_that_the_systems_authorities_certify(tls_site, certificates):
    site = tls_site(certificates.server, "require_certificate true")

    site.start_store("--host", HOST, "--tls", "on", *present(certificates.client),
                     environment={"SSL_CERT_FILE": certificates.good.certificate})

    assert site.connect().request("GET", "key").payload == b"$-1\r\n"


def test_ipv4_and_ipv6_addresses_of_a_name_are_tried(tls_site, certificates):
    """localhost is ::1 first, and the broker listens on IPv4 only."""
    site = tls_site()

    store = site.start_store("--host", "localhost", "--tls-ca-file", certificates.good.certificate,
                             environment={**preload("address_shim"), "STATESTORE_ADDRESSES": f"::1,{HOST}"})

    assert re.search("no connection to the broker at localhost:.*refused", store.log())
    assert site.connect().request("GET", "key").payload == b"$-1\r\n"


# Errors are logged once, and the connection is tried again


def wait_for_attempts(site, n_attempts=3):
    wait_until(lambda: site.broker.log().count("New connection") + site.broker.log().count("Client connection from")
               >= n_attempts, "the store tries again")


def assert_said_once(site, *patterns):
    wait_for_attempts(site)
    lines = site.store.events()
    assert len(lines) == 1, lines
    for pattern in (f"no connection to the broker at {HOST}:{site.broker.port}", "retrying", *patterns):
        assert re.search(pattern, lines[0])


@pytest.mark.parametrize("wrong, said", [("expired", ": certificate has expired;"),
                                         ("elsewhere", ": it is not a certificate for this host name;")])
def test_an_invalid_broker_certificate_is_refused(tls_site, certificates, trust, wrong, said):
    site = tls_site(getattr(certificates, wrong))

    site.launch_store(*trust)

    assert_said_once(site, f"certificate verify failed{said}")


def test_a_broker_certificate_of_the_future_is_refused(tls_site, trust, tmp_path):
    """The clock of the store is two days behind."""
    clock = SteppedClock(tmp_path)
    clock.step_to(-2 * 24 * 3600 * 1000)
    site = tls_site()

    site.launch_store(*trust, environment=clock.environment())

    assert_said_once(site, "certificate verify failed: certificate is not yet valid;")


def test_a_broker_with_an_untrusted_authority_is_refused(tls_site, certificates):
    site = tls_site()

    site.launch_store("--host", HOST, "--tls-ca-file", certificates.bad.certificate)

    assert_said_once(site, "certificate verify failed")


def test_a_broker_whose_authority_the_system_does_not_trust_is_refused(tls_site, certificates):
    site = tls_site()

    site.launch_store("--host", HOST, "--tls", "on", environment={"SSL_CERT_FILE": certificates.bad.certificate})

    assert_said_once(site, "certificate verify failed")


@pytest.mark.parametrize("ours", [None, "stranger"])
def test_a_broker_that_rejects_the_client_certificate_is_reported(tls_site, certificates, trust, ours):
    site = tls_site(certificates.server, "require_certificate true")

    site.launch_store(*trust, *(present(getattr(certificates, ours)) if ours else ()))

    assert_said_once(site, "certificate")


def test_a_broker_without_tls_is_reported(make_site, certificates):
    site = make_site(listeners=[f"listener {{port}} {HOST}"])

    site.launch_store("--host", HOST, "--tls-ca-file", certificates.good.certificate)

    assert_said_once(site, "SSL|TLS")  # the broker closes: OpenSSL reports an unexpected end, or the connection is reset


def test_a_broker_that_requires_tls_is_reported(tls_site):
    site = tls_site()

    site.launch_store("--host", HOST)

    assert_said_once(site)


def test_a_broker_is_served_after_its_certificate_was_corrected(tls_site, certificates, trust):
    site = tls_site(certificates.expired)
    store = site.launch_store(*trust)
    wait_for_attempts(site)

    site.broker.stop()
    site.broker.listeners = [line.replace("expired", "server") for line in site.broker.listeners]
    site.broker.start_again()

    store.wait_until_ready()
    assert site.connect().request("GET", "key").payload == b"$-1\r\n"


def test_a_corrected_authority_file_is_read_again(tls_site, certificates, tmp_path):
    ca_file = tmp_path / "ca.crt"
    ca_file.write_bytes(certificates.bad.certificate.read_bytes())
    site = tls_site()
    store = site.launch_store("--host", HOST, "--tls-ca-file", ca_file)
    wait_for_attempts(site)

    ca_file.write_bytes(certificates.good.certificate.read_bytes())

    store.wait_until_ready()


@pytest.mark.parametrize("flags", [["--tls-ca-file", "{none}"],
                                   ["--tls", "on", "--tls-certificate", "{none}", "--tls-key", "{key}"],
                                   ["--tls", "on", "--tls-certificate", "{certificate}", "--tls-key", "{none}"]],
                         ids=lambda flags: flags[-2])
def test_a_missing_file_ends_the_start(site, certificates, tmp_path, flags):
    names = {"none": tmp_path / "none", "key": certificates.client.key,
             "certificate": certificates.client.certificate}

    store = site.launch_store(*(flag.format(**names) for flag in flags))

    assert store.wait() == 1
    assert re.search("cannot start: cannot read .*none: No such file or directory", store.log())
    assert len(store.events()) == 1


def test_a_file_without_end_ends_the_start(site):
    store = site.launch_store("--tls-ca-file", "/dev/zero")

    assert store.wait() == 1
    assert "cannot start: cannot read /dev/zero: not a regular file" in store.log()
    assert len(store.events()) == 1


# The TLS handshake of the store


class TlsListener:
    """A TLS server that records the handshake and sends no MQTT packet."""

    def __init__(self, certificate):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.certificate, certificate.key)
        self._context.sni_callback = lambda _socket, name, _context: setattr(self, "name", name)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        self.name = None

    def accept(self):
        peer, _ = self._listener.accept()
        peer.settimeout(PATIENCE)
        with self._context.wrap_socket(peer, server_side=True) as wrapped:
            assert wrapped.recv(1) == b"\x10", "CONNECT"

    def close(self):
        self._listener.close()


def test_the_handshake_has_the_server_name(site, certificates):
    listener = TlsListener(certificates.server)
    try:
        store = site.launch_store("--host", "localhost", "--port", listener.port, "--tls-ca-file",
                                  certificates.good.certificate)
        listener.accept()
        assert listener.name == "localhost"
        assert store.stop() == 0
    finally:
        listener.close()
