# SPDX-License-Identifier: Apache-2.0
"""The store's client id: random, kept with the data, and secret. So no other user takes over the store's session."""

import re
import socket
import ssl
import struct
import urllib.request

import pytest

from support.broker import free_port, passwords
from support.certificates import Authority
from support.plugin import SYS
from support.process import PATIENCE, wait_until
from support.production import CERTIFICATE, PASSWORD_AND_CERTIFICATE, ProductionBroker, with_certificate_listener
from support.site import Site
from support.wire_client import WireClient

PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"
HOST = "127.0.0.1"
USERS = {"statestored": "of the store", "alice": "of alice", "operator": "of the operator"}
CLIENT_ID = r"statestored-[0-9a-f]{32}"


def client_ids(broker):
    """Return the client ids of the store in the order in which it used them."""
    return re.findall(rf" as ({CLIENT_ID}) \(", broker.log())


# Where the id comes from


def test_a_store_in_memory_has_another_client_id_after_each_start(make_site):
    site = make_site()
    store = site.start_store()
    for end in store.kill, store.stop:
        end()
        store.start()

    assert len(set(client_ids(site.broker))) == 3
    assert site.connect().request("GET", "key").payload == b"$-1\r\n"


def test_a_store_with_data_keeps_its_client_id_and_resumes_its_session(make_site, data):
    site = make_site(plugin=False)
    store = site.start_store("--data-dir", data)
    client = site.connect()
    for end in store.kill, store.stop:
        end()
        waiting = client.send("SET", "key", 1)
        client.wait_until_sent()
        store.start()
        assert waiting.result(PATIENCE).payload == b"+OK\r\n"

    assert len(client_ids(site.broker)) == 3
    assert len(set(client_ids(site.broker))) == 1


def test_a_copy_of_the_data_has_another_client_id(make_site, data):
    """Without its commit watermark the data may be a copy, which must not take the session of the original."""
    site = make_site()
    store = site.start_store("--data-dir", data)
    assert site.connect().request("SET", "key", 1).payload == b"+OK\r\n"
    store.stop()

    (data / "acknowledged").unlink()
    store.start()

    assert len(set(client_ids(site.broker))) == 2
    assert site.connect().request("GET", "key").payload == b"$1\r\n1\r\n"


def test_a_given_client_id_is_used(make_site):
    site = make_site()
    site.start_store("--client-id", "statestored at the gateway")

    site.broker.wait_for_log(r"as statestored at the gateway \(")
    assert client_ids(site.broker) == []


# Other users, with conf/mosquitto-production.conf


class Production(Site):
    """`names_users`: the listener with TLS is that where the certificates name the users."""

    def __init__(self, directory, names_users):
        self.authority = Authority(directory, "authority")
        broker = ProductionBroker(directory, self.authority, self.authority.issue("server", f"IP:{HOST}"), USERS,
                                  with_certificate_listener)
        self.tls_port = broker.ports[CERTIFICATE if names_users else PASSWORD_AND_CERTIFICATE]
        super().__init__(directory, broker)

    def credentials(self, user):
        path = self.directory / f"{user}.password"
        path.write_text(USERS[user])
        return "--user", user, "--password-file", path

    def over_tls(self, user):
        """Return the options of a store that connects with a certificate."""
        files = self.authority.issue(user)
        return ("--host", HOST, "--port", self.tls_port, "--tls-ca-file", self.authority.certificate,
                "--tls-certificate", files.certificate, "--tls-key", files.key)

    def take(self, user, client_id, tls):
        """Connect with this client id, ask for the session, and disconnect. Return the session present flag of CONNACK, and what
        follows CONNACK."""
        name, password = ([text.encode() for text in (user, USERS[user])])
        fields = client_id.encode(), name, password
        body = b"\x00\x04MQTT\x05\xc0\x00\x00\x05\x11\x00\x00\x00\x00" + b"".join(
            struct.pack("!H", len(field)) + field for field in fields)
        port = self.tls_port if tls else self.broker.port
        with socket.create_connection((HOST, port), PATIENCE) as connection:
            if tls:
                context = ssl.create_default_context(cafile=self.authority.certificate)
                context.load_cert_chain(*self.authority.issue(user))
                connection = context.wrap_socket(connection, server_hostname=HOST)
            connection.sendall(bytes([0x10, len(body)]) + body + PINGREQ)
            received = b""
            while not received.endswith(PINGRESP):
                more = connection.recv(65536)
                assert more, received
                received += more
            connection.close()
        assert received[0] == 0x20 and received[3] == 0, received
        return received[2] == 1, received[4:]


@pytest.fixture
def production(until_end, tmp_path):
    return lambda names_users=False: until_end(Production(tmp_path, names_users))


def assert_not_taken_over(site, tls):
    """Let alice try what she can guess, and see that the store goes on."""
    client = site.connect(username="operator", password=USERS["operator"])
    assert client.request("SET", "k", 1).payload == b"+OK\r\n"
    client_id, = client_ids(site.broker)
    near = client_id[:-1] + ("0" if client_id[-1] != "0" else "1")

    for guessed in "statestored", "statestored-", "statestored-" + "0" * 32, near, client_id.upper():
        had_session, _ = site.take("alice", guessed, tls)
        assert not had_session

    assert client.request("GET", "k").payload == b"$1\r\n1\r\n"
    assert client_ids(site.broker).count(client_id) == 1
    assert "no connection to the broker" not in site.store.log()


@pytest.mark.parametrize("tls", [False, True], ids=["without TLS", "with TLS"])
def test_no_other_user_takes_over_the_store(production, tls):
    site = production()
    site.start_store(*site.credentials("statestored"))

    assert_not_taken_over(site, tls)


def test_another_user_cannot_take_over_the_store_where_certificates_name_the_users(production):
    site = production(names_users=True)
    site.start_store(*site.over_tls("statestored"))

    assert_not_taken_over(site, tls=True)


def test_a_client_with_a_certificate_cannot_take_over_a_store_with_a_password(production):
    site = production(names_users=True)
    site.start_store(*site.credentials("statestored"))

    assert_not_taken_over(site, tls=True)


@pytest.mark.parametrize("names_users", [False, True], ids=["passwords", "certificates"])
def test_a_client_that_knows_the_client_id_interrupts_the_store_and_reads_no_request(production, names_users):
    """The control of the tests above: they would notice a takeover."""
    site = production(names_users)
    site.start_store(*site.credentials("statestored"))
    client = site.connect(username="operator", password=USERS["operator"])
    assert client.request("SET", "k", 1).payload == b"+OK\r\n"
    client_id, = client_ids(site.broker)

    with site.store.paused():
        waiting = client.send("SET", "k", "the secret value")
        client.wait_until_sent()
        had_session, received = site.take("alice", client_id, tls=names_users)

    assert had_session
    assert b"the secret value" not in received
    wait_until(lambda: client_ids(site.broker).count(client_id) >= 3, "the store connects again")
    assert waiting.result(PATIENCE).payload == b"+OK\r\n"


# Who can learn the id


def test_no_client_learns_the_client_id_of_the_store(make_site, tmp_path):
    """Neither from a topic nor from the published log, before HELLO or after the end of the connection, nor from a page. Nor is
    it in the log of the store."""
    pages = f"127.0.0.1:{free_port()}"
    site = make_site("allow_anonymous false", f"password_file {passwords(tmp_path, **USERS)}", "log_dest stderr",
                     "log_dest topic", "plugin_opt_statestored_username statestored")
    alice = site.connect("alice", WireClient, username="alice", password=USERS["alice"])
    for topic in "#", "$SYS/#":
        alice.subscribe(topic, 0)
    (tmp_path / "password").write_text(USERS["statestored"])
    store = site.start_store("--user", "statestored", "--password-file", tmp_path / "password", "--http-listen", pages,
                             "--data-dir", tmp_path / "data", "--log-level", "debug")
    alice.register("key")
    alice.ask("SET", "key", 1)
    client_id, = client_ids(site.broker)

    shown = [urllib.request.urlopen(f"http://{pages}/{page}").read() for page in ("metrics", "readyz", "healthz", "version")]
    store.kill()
    site.broker.wait_until_disconnected(client_id)
    store.start()
    alice.ask("SET", "key", 2)
    messages = alice.messages()
    shown += [str(message).encode() for message in messages]

    assert SYS + "plugin" in {message.topic for message in messages}
    assert client_ids(site.broker) == [client_id] * 2
    for text in *shown, store.log().encode():
        assert client_id.removeprefix("statestored-").encode() not in text
