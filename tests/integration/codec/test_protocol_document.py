# SPDX-License-Identifier: Apache-2.0
"""PROTOCOL.md: every example is sent to a store and every byte compared; references in the code name a section."""

import re
import subprocess

import pytest

from support.client import INVOKE, notify_topic
from support.connection import PUBACK, Connection
from support.control import Control
from support.documents import HLC, Versions, blocks_of, headings_of
from support.double import Double
from support.hlc import wall_ms
from support.process import BUILD, REPOSITORY

DOCUMENT = "common/protocol/PROTOCOL.md"
CLIENT, RESPONSE_TOPIC, CORRELATION = "client1", "clients/client1/replies", b"0123456789abcdef"
ALWAYS = {"__stat": "200", "__protVer": "1.0", "__srcId": "StateStore"}

PACKET_SIZE = "maximum packet size"

EXCHANGES = [block for block in blocks_of(DOCUMENT) if block.language == "exchange"]


@pytest.fixture(scope="module")
def double_of(tmp_path_factory):
    """Start one test double per dialect."""
    started = {}

    def double_of(dialect):
        if dialect not in started:
            double = Double(tmp_path_factory.mktemp(dialect), "--control", "--dialect", dialect)
            started[dialect] = double
            double.start()
        return started[dialect]

    try:
        yield double_of
    finally:
        for double in started.values():
            double.close()


@pytest.fixture
def connect():
    connections = []

    def connect(port):
        connection = Connection(port, CLIENT)
        connections.append(connection)
        connection.subscribe(RESPONSE_TOPIC)
        return connection

    yield connect
    for connection in connections:
        connection.disconnect()


def steps_of(block):
    """Return (word, payload, properties) for each message."""
    steps = []
    for line in block.text.splitlines():
        if line.startswith(" "):
            name, _, value = line.strip().partition(" ")
            steps[-1][2][name] = value
        else:
            word, _, payload = line.partition(" ")
            steps.append((word, payload.lstrip(), {}))
    return steps


def bytes_of(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


class Exchange:
    """Executes one example as the client `client1`."""

    def __init__(self, connection, block):
        self.connection = connection
        self.block = block
        self.versions = Versions()
        walls = [int(found.split(":")[0]) for found in HLC.findall(block.text)]
        self.ahead = wall_ms() - int(block.argument("now is") or min(walls, default=0))
        self.sent = None

    def at_this_time(self, text):
        """Shift a client's timestamp from the time of the document to the present."""
        def moved(found):
            wall, counter, node = found[0].split(":")
            return f"{int(wall) + self.ahead:0{len(wall)}}:{counter}:{node}"

        return HLC.sub(lambda found: self.versions.actual.setdefault(found[0], moved(found)), text)

    def request(self, payload, properties):
        # each request has its own Correlation Data, like those of real clients
        self.correlation = CORRELATION[:-1] + bytes([self.block.text.count("request") + self.connection._packet_id])
        user = [("__srcId", CLIENT)] + [(name, self.at_this_time(value)) for name, value in properties.items()]
        self.sent = self.connection.encode_publish(INVOKE, bytes_of(payload), user=user, ResponseTopic=RESPONSE_TOPIC,
                                                   CorrelationData=self.correlation)
        self.connection.send(self.sent)

    def repeat(self, payload, properties):
        assert payload == "" and not properties
        self.connection.send(self.sent)

    def reply(self, payload, properties):
        message = self.connection.message(RESPONSE_TOPIC)
        assert message.correlation == self.correlation
        self.check(message, payload, {**ALWAYS, **properties})

    def notify(self, payload, properties):
        key, = {bytes_of(words.split(r"\r\n")[4]) for word, words, _ in steps_of(self.block)
                if word == "request" and "KEYNOTIFY" in words}
        message = self.connection.message(notify_topic(CLIENT, key))
        self.check(message, payload, {**{name: ALWAYS[name] for name in ("__protVer", "__srcId")}, **properties})

    def check(self, message, payload, properties):
        assert message.payload == bytes_of(payload), self.block
        assert (message.format_indicator, message.content_type) == (0, "application/octet-stream")
        user = dict(message.user)
        assert len(user) == len(message.user) and user.keys() == properties.keys(), self.block
        for name, value in properties.items():
            if name == "expires_in_ms":
                assert 0 < int(user[name]) <= int(value)
                continue
            assert self.versions.is_same(value, user[name]), f"{self.block}: {name} is {user[name]}"


def play(connection, block):
    exchange = Exchange(connection, block)
    for word, payload, properties in steps_of(block):
        getattr(exchange, word)(payload, properties)
    assert exchange.connection.messages() == [], "the document lacks a message"


@pytest.mark.parametrize("block", [block for block in EXCHANGES if not block.argument(PACKET_SIZE)], ids=str)
def test_the_store_behaves_like_the_example(double_of, connect, block):
    double = double_of("document" if block.argument("document dialect") is not None else "sdk")
    play(connect(double.port), block)

    double.connect("steering", Control).do("reset")
    double.close_clients()


@pytest.mark.parametrize("block", [block for block in EXCHANGES if block.argument(PACKET_SIZE)], ids=str)
def test_the_store_behaves_like_the_example_with_a_packet_size(make_site, connect, block):
    site = make_site(f"max_packet_size {block.argument(PACKET_SIZE)}")
    site.start_store()
    play(connect(site.broker.port), block)


def test_each_command_has_an_example():
    rows = [line.split("\t") for line in (BUILD / "server" / "man" / "options.tsv").read_text().splitlines()]
    sent = {bytes_of(payload).split(b"\r\n")[2].decode()
            for block in EXCHANGES for word, payload, _ in steps_of(block) if word == "request"}
    assert {row[1] for row in rows if row[0] == "verb"} <= sent


def packet_of(block):
    return bytes(int(byte, 16) for line in block.text.splitlines() for byte in line[6:53].split())


def test_the_packets_are_equal_to_those_on_the_wire(double_of, connect):
    request, reply = (packet_of(block) for block in blocks_of(DOCUMENT) if block.language == "packet")
    connection = connect(double_of("sdk").port)
    connection.send(request)

    received = b""
    while not received.endswith(reply[-5:]):
        received += connection._socket.recv(4096)
        assert received
    assert received[0] == PUBACK << 4
    assert received[2 + received[1]:] == reply


# References in comments

REFERENCE = re.compile(r'PROTOCOL\.md:? ((?:(?:, | and |, and )?"[^"]+")+)')


def references():
    """Return (file, title) for each section that a file names."""
    files = subprocess.run(["git", "grep", "-l", "PROTOCOL\\.md", "--", ":!*.md"], cwd=REPOSITORY, capture_output=True,
                           text=True, check=False).stdout.split()
    for file in files:
        text = re.sub(r"\n[ \t]*(\*|//|#)?[ \t]*", " ", (REPOSITORY / file).read_text())
        for found in REFERENCE.finditer(text):
            for title in re.findall(r'"([^"]+)"', found[1]):
                yield file, title


def test_every_reference_names_a_section():
    titles = set(headings_of(DOCUMENT))
    assert len(titles) > 10
    assert {(file, title) for file, title in references() if title not in titles} == set()


def test_no_reference_is_by_number():
    found = subprocess.run(["git", "grep", "-niE", "protocol sections? [0-9]"], cwd=REPOSITORY, capture_output=True,
                           text=True, check=False)
    assert found.stdout == ""


def test_every_message_between_store_and_plugin_is_in_the_header():
    text = (REPOSITORY / DOCUMENT).read_text().partition("\n## Store and plugin\n")[2].partition("\n## ")[0]
    frames = {("frame", "plugin"): "FRAME_TO_STORE", ("frame", "store"): "FRAME_TO_PLUGIN"}
    rows = re.findall(r"(?m)^\| (\w+) \| (plugin|store|none) \|", text)
    header = (REPOSITORY / "common/protocol/companion.h").read_text()
    topics = re.findall(r"(?m)^#define COMPANION_(\w+) +COMPANION_(?:CONTROL|SYS) ", header)
    assert {frames.get(row, row[0]) for row in rows} == set(topics)
    assert len(rows) == len(topics)
