# SPDX-License-Identifier: Apache-2.0
"""A store at a broker that is not mosquitto: mochi-mqtt. conf/BROKERS.md says how to run more tests at it."""

import json
import os
import shutil

import pytest

from support.ctl import Ctl
from support.ctl_run import Run
from support.downloads import require_program, unavailable
from support.examples import download
from support.process import REPOSITORY, wait_until
from support.site import Site, kill_broker

pytestmark = pytest.mark.xdist_group("mochi")  # one pytest process downloads and compiles


@pytest.fixture(scope="module")
def mochi(tmp_path_factory):
    """A folder with a program that is called as mosquitto, and is mochi-mqtt."""
    require_program("go")
    folder = tmp_path_factory.mktemp("mochi")
    shutil.copytree(REPOSITORY / "tests" / "support" / "mochi", folder, dirs_exist_ok=True)
    failure = download(["go", "build", "-o", "mosquitto", "."], folder)
    if failure:
        unavailable(failure)
    return folder


@pytest.fixture
def site(mochi, until_end, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{mochi}:{os.environ['PATH']}")
    site = until_end(Site(tmp_path))
    site.start_store()
    return site


@pytest.fixture
def ctl(site):
    return Ctl(site.broker.port)


@pytest.fixture
def watch(ctl):
    """Starts `statestorectl watch`, and waits until it watches."""
    runs = []

    def watch(*arguments):
        runs.append(Run(ctl, "watch", *arguments))
        runs[-1].wait_for_note("watching")
        return runs[-1]

    yield watch
    for run in runs:
        run.kill()


def test_values_notifications_and_locks_work(ctl, watch):
    door = watch("door")

    ctl.ok("set", "door", "open", "--px", "1s")
    assert ctl.ok("get", "door").startswith(b"open")
    assert [door.words()[0] for _ in range(2)] == ["SET", "DELETE"]  # the key expires

    assert b"free" in ctl.ok("lock", "gate", "--", "echo", "free")
    assert ctl.ok("scan") == b""


def test_clients_go_on_after_a_restart_of_the_broker(site, ctl, watch):
    ctl.ok("set", "door", "open")
    door = watch("door")

    kill_broker(site)
    door.wait_for_note("registered again")

    assert ctl.ok("get", "door").startswith(b"open")
    ctl.ok("set", "door", "shut")
    assert door.words()[-1] == "shut"


def test_doctor_names_what_the_broker_lacks(ctl):
    """Repeated: on a busy machine a message may take longer than the doctor waits."""

    def find():
        lines = map(json.loads, ctl.run("doctor", "--json").stdout.splitlines())
        found = {line["check"]: (line["severity"], line["measured"]) for line in lines}
        return found if "reason code 0x01" in found["disconnects"][1] else None

    found = wait_until(find, "the doctor finds the wrong PUBACK")

    assert found["broker"][0] == "ok" and found["plugin"][0] == "warn" and found["disconnects"][0] == "fail"
