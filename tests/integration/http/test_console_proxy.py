# SPDX-License-Identifier: Apache-2.0
"""The console behind a proxy that does TLS: HAProxy, as the console's README configures it."""

import re
import socket
import ssl

import pytest

from support.broker import free_port
from support.browser import Page, running_browser
from support.certificates import Authority
from support.console import Console
from support.downloads import require_program
from support.process import REPOSITORY, Process, wait_until

HOST = "127.0.0.2"  # of the proxy, as support.console expects it of TLS
NAME = "store.example"


def accepts(port):
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == 0


@pytest.fixture
def proxied(site, users, tmp_path):
    """The console of a store, as the proxy shows it."""
    require_program("haproxy")
    direct = Console(site.start_store("--http-listen", "0", "--console-users", users.file))
    authority = Authority(tmp_path, "authority")
    certificate, key = authority.issue("proxy", f"IP:{HOST},DNS:{NAME}")
    pem, configuration, port = tmp_path / "console.pem", tmp_path / "haproxy.cfg", free_port()
    pem.write_bytes(certificate.read_bytes() + key.read_bytes())
    [text] = re.findall(r"^defaults\n.*?(?=^```)", (REPOSITORY / "server/http/console/README.md").read_text(), re.M | re.S)
    for documented, actual in ((":443", f"{HOST}:{port}"), ("/etc/haproxy/console.pem", str(pem)),
                               ("127.0.0.1:9464", f"127.0.0.1:{direct.port}")):
        assert text.count(documented) == 1
        text = text.replace(documented, actual)
    configuration.write_text(text)

    haproxy = Process("haproxy", tmp_path / "haproxy.log")
    haproxy.spawn(["haproxy", "-db", "-f", configuration])
    try:
        wait_until(lambda: accepts(port) or not haproxy.running(), "the proxy listens")
        assert haproxy.running(), haproxy.log()
        console = Console(site.store, ssl.create_default_context(cafile=authority.certificate))
        console.port = port
        yield console
    finally:
        haproxy.kill()


def test_a_proxy_passes_host_and_origin(proxied, users):
    host = {"Host": f"{NAME}:{proxied.port}"}
    own = f"https://{NAME}:{proxied.port}"

    assert proxied.session(users.alice)["user"] == "alice"
    assert proxied.request(users.alice, "SET", "key", "value", Origin=own, **host)[0] == b"+OK\r\n"
    for foreign in "https://evil.example", f"https://{NAME}", f"https://{HOST}:{proxied.port}", "null":
        assert proxied.post("/api/request", users.alice, "GET", "key", Origin=foreign, **host)[0] == 403
    assert proxied.post("/api/request", None, "GET", "key", Origin=own, **host)[0] == 401


def test_a_proxy_passes_events_at_once(site, proxied, users):
    client = site.connect()
    with proxied.events(users.bob, "after=0") as events:
        for key in "one", "two", "three":
            client.request("SET", key, "value")
            assert next(events)[1]["key"] == key


@pytest.mark.not_sanitized("the tests above ask for the same")
def test_the_page_works_behind_a_proxy(site, proxied, users):
    with running_browser("ignore-certificate-errors", f"host-resolver-rules=MAP {NAME} {HOST}") as driver:
        page = Page(driver, f"https://{NAME}:{proxied.port}").open("live")
        page.type("input[type=password]", users.bob + "\n")
        page.shows("Waiting for events")
        assert page.request("SET", "from/page", "value") == "OK"
        page.shows("from/page", "tbody")
        site.connect("device").request("SET", "from/device", "value")
        page.shows("from/device", "tbody")
        assert page.errors() == []
