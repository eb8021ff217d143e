# SPDX-License-Identifier: Apache-2.0
"""The published clients with conf/mosquitto-production.conf and conf/mosquitto-acl.conf.

`sh tests/published.sh` does the same with the published programs.
"""

import socket
import ssl

import pytest

from support import production, published, resp
from support.broker import version
from support.certificates import Authority
from support.client import INVOKE, Client
from support.connection import NOT_AUTHORIZED, Connection
from support.process import PATIENCE
from support.recorder import Recorder, differences
from support.site import Site

USERS = {"statestored": "of the store", "alice": "of alice", "operator": "of the operator"}
POLICY = "[own keys]\naccess = readwrite\nany = yes\npattern = {user}/*\n"
EDITIONS = {"as shipped": production.with_certificate_listener,
            "with plugins of 2.1": lambda text: production.with_plugins_of_2_1(production.with_certificate_listener(text))}


class ProductionSite:
    def __init__(self, directory, edit):
        self.authority = Authority(directory, "authority")
        server = self.authority.issue("server", "DNS:localhost,IP:127.0.0.1")
        self.site = Site(directory, production.ProductionBroker(directory, self.authority, server, USERS, edit))
        self.broker = self.site.broker
        for name, text in ("password", USERS["statestored"]), ("policy", POLICY):
            (directory / name).write_text(text)
        self.certificates = {}
        self.site.start_store("--user", "statestored", "--password-file", directory / "password",
                              "--policy", directory / "policy", "--require-plugin", "on")

    def tls(self, name):
        """Return arguments of tls_set() with a certificate for this name."""
        if name not in self.certificates:
            self.certificates[name] = self.authority.issue(name)
        return {"ca_certs": self.authority.certificate, "certfile": self.certificates[name].certificate,
                "keyfile": self.certificates[name].key}

    def connect(self, listener, client_id, kind=Client, user="alice"):
        more = {}
        if listener != production.CERTIFICATE:
            more = {"username": user, "password": USERS[user]}
        if listener != production.PLAIN:
            more["tls"] = self.tls(user)
        client = kind(self.broker.ports[listener], client_id, **more)
        self.site.clients.append(client)
        return client


@pytest.fixture(params=EDITIONS, scope="module")
def site(request, tmp_path_factory):
    if "2.1" in request.param and version() < (2, 1):
        pytest.skip("the first mosquitto in PATH is older than 2.1")
    site = ProductionSite(tmp_path_factory.mktemp("production"), EDITIONS[request.param])
    try:
        yield site
    finally:
        site.site.close()


@pytest.fixture
def key(request):
    return "alice/" + request.node.name


LISTENERS = pytest.mark.parametrize("listener", [production.PLAIN, production.PASSWORD_AND_CERTIFICATE, production.CERTIFICATE])
KINDS = pytest.mark.parametrize("kind", [*published.ALL, Client])


@KINDS
@LISTENERS
def test_each_client_reads_writes_and_is_notified(site, key, kind, listener):
    client, other = site.connect(listener, f"a/{key}", kind), site.connect(listener, f"b/{key}", kind)

    version = client.request("SET", key, "value").ts
    client.watch(key)
    assert other.request("GET", key).payload == b"$5\r\nvalue\r\n"
    assert other.request("SET", key, "next", ft=version).payload == b"+OK\r\n"
    assert client.notification().payload.endswith(b"$4\r\nnext\r\n")
    assert client.request("DEL", key, ft=version).payload == b":1\r\n"


@KINDS
@LISTENERS
def test_a_client_that_waits_for_a_lock_is_told_of_its_release(site, key, kind, listener):
    holder, waiter = site.connect(listener, f"a/{key}", kind), site.connect(listener, f"b/{key}", kind)

    assert holder.request("SET", key, holder.id, "NEX", "PX", 600000).payload == b"+OK\r\n"
    waiter.watch(key)
    assert waiter.request("SET", key, waiter.id, "NEX", "PX", 600000).payload == b":-1\r\n"
    assert holder.request("VDEL", key, holder.id).payload == b":1\r\n"
    assert resp.read(waiter.notification().payload)[1:] == [b"DELETE"]
    assert waiter.request("SET", key, waiter.id, "NEX", "PX", 600000).payload == b"+OK\r\n"


@LISTENERS
def test_the_policy_knows_the_user_by_password_or_certificate(site, key, listener):
    client = site.connect(listener, key, user="operator")

    assert client.request("SET", "operator/key", "value").payload == b"+OK\r\n"
    assert client.request("SET", key, "value").payload == b"-ERR not authorized\r\n"


@pytest.mark.parametrize("listener", [production.PASSWORD_AND_CERTIFICATE, production.CERTIFICATE])
def test_a_listener_for_the_network_refuses_a_client_without_a_certificate(site, listener):
    context = ssl.create_default_context(cafile=site.authority.certificate)
    with socket.create_connection(("127.0.0.1", site.broker.ports[listener]), PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as sock:
            with pytest.raises(ssl.SSLError, match="certificate required"):
                sock.recv(1)  # the client's part of the handshake ends before the server verifies


def test_the_order_of_the_plugins_keeps_the_guards(site):
    """The acl-file plugin of mosquitto 2.1 accepts each SUBSCRIBE."""
    other = Connection(site.broker.port, "other", username="alice", password=USERS["alice"])
    for topic in "$share/group/clients/#", INVOKE, "$share/group/" + INVOKE:
        assert other.subscribe(topic) == NOT_AUTHORIZED
    assert other.publish("another/topic", b"") == NOT_AUTHORIZED
    other.cut()


# The doubles

@pytest.mark.parametrize("kind", published.ALL)
def test_the_doubles_send_what_the_table_says(site, key, kind):
    recorder = Recorder(site.broker.port)
    client = kind(recorder.port, "pump-1", "alice", USERS["alice"])
    version = client.request("SET", key, "value").ts
    client.watch(key)
    client.request("DEL", key, ft=version)
    client.close()
    recorder.close()

    assert differences(kind.PUBLISHED, recorder.recorded()) == []


@pytest.mark.parametrize("field, value", [
    ("response_topic", "clients/{id}/other"), ("notify_filter", "other/+"), ("no_local", True), ("retain_as_published", False),
    ("user", published.RUST.user[1:]), ("user", published.RUST.user[::-1]), ("content_type", "text/plain"),
    ("format_indicator", 1)])
def test_a_difference_from_the_table_is_found(site, key, field, value):
    recorder = Recorder(site.broker.port)
    client = published.RustClient(recorder.port, "pump-1", "alice", USERS["alice"])
    client.watch(key)
    client.close()
    recorder.close()

    assert differences(published.RUST._replace(**{field: value}), recorder.recorded()) != []


def test_nothing_recorded_is_a_difference():
    assert "no request was recorded" in differences(published.RUST, [])
