# SPDX-License-Identifier: Apache-2.0
"""docker/: the images are built from the packages, and run as in compose.yaml."""

import signal
from pathlib import Path

import pytest

from support.containers import Container, ContainerNetwork, service
from support.ctl import TIMEOUT
from support.images import Builder
from support.process import wait_until

pytestmark = [
    # one pytest process builds the images for all processes
    pytest.mark.xdist_group("image"),
    pytest.mark.not_sanitized("an image is built without sanitizers, whatever is tested beside it"),
]


@pytest.fixture(scope="module")
def builder(tmp_path_factory, packages):
    builder = Builder(tmp_path_factory.mktemp("images"), packages["statestored"].parent)
    try:
        yield builder
    finally:
        builder.close()


@pytest.fixture(scope="module")
def store_image(builder):
    return builder.build("statestored")


@pytest.fixture(scope="module")
def broker_image(builder):
    return builder.build("mosquitto")


@pytest.fixture(scope="module")
def double_image(builder):
    return builder.build("double")


@pytest.fixture
def make(tmp_path):
    """Creates a container of the service with this name in compose.yaml; keyword arguments replace its settings."""
    network = ContainerNetwork(tmp_path, ["mosquitto", "statestored"])
    made = []

    def make(name, image, **said):
        made.append(Container(tmp_path, name, image, network, **(said or service(name))))
        return made[-1]

    try:
        yield make
    finally:
        for container in made:
            if container.running():
                container.kill()
        network.close()


@pytest.fixture
def broker(make, broker_image):
    return make("mosquitto", broker_image).start()


@pytest.fixture
def store(make, store_image):
    return make("statestored", store_image)


def is_healthy(container):
    assert container.image.healthcheck[0] == "CMD"
    return container.run(*container.image.healthcheck[1:]).returncode == 0


def ctl(container, *words, host="mosquitto"):
    return container.run("/usr/bin/statestorectl", "--host", host, "--timeout", TIMEOUT, *words)


@pytest.mark.parametrize("image", ["store_image", "broker_image", "double_image"])
def test_an_image_has_an_unprivileged_user_and_no_build_tools(image, request):
    image = request.getfixturevalue(image)

    assert image.user == "10001:10001"
    for tool in ("gcc", "cc", "ld", "make", "ninja", "meson", "python3"):
        for folder in ("usr/bin", "usr/local/bin"):
            assert not (image.root / folder / tool).exists(), tool
    assert list((image.root / "usr/share/doc").glob("*statestore*/copyright"))
    assert (image.root / "usr/share/common-licenses/Apache-2.0").read_text().strip().startswith("Apache License")
    assert image.labels["org.opencontainers.image.title"]
    assert not list((image.root / "var/lib/apt/lists").iterdir())


def test_the_services_of_compose_yaml_serve(broker, store):
    store.start()
    wait_until(lambda: is_healthy(store), "the store is healthy")

    assert "the broker has the plugin" in store.log()
    assert ctl(store, "set", "key", "value").returncode == 0
    assert ctl(store, "get", "key").stdout == "value"


def test_the_store_is_not_healthy_while_it_waits_for_its_broker(make, broker_image, store):
    store.start()
    store.wait_for_log("no connection to the broker at mosquitto:1883")
    assert not is_healthy(store)
    assert store.running()

    make("mosquitto", broker_image).start()
    wait_until(lambda: is_healthy(store), "the store is healthy")


def test_a_store_with_several_brokers_in_a_file_is_healthy(broker, store):
    del store.environment["STATESTORE_BROKER_HOST"]
    store.environment["STATESTORE_CONFIG"] = "/var/lib/statestored/statestored.conf"
    (store.volumes["/var/lib/statestored"] / "statestored.conf").write_text("[broker]\nhost = 127.0.0.1:1, mosquitto\n")
    store.start()

    wait_until(lambda: is_healthy(store), "the store is healthy")


@pytest.mark.parametrize("name", ["statestored", "mosquitto"])
def test_the_image_runs_as_any_user_of_group_0(make, broker_image, store_image, name):
    """OpenShift runs containers as an arbitrary user of group 0."""
    def image_of(service, image):
        return image._replace(user="1000660000:0") if service == name else image

    make("mosquitto", image_of("mosquitto", broker_image)).start()
    store = make("statestored", image_of("statestored", store_image)).start()
    wait_until(lambda: is_healthy(store), "the store is healthy")

    assert ctl(store, "set", "key", "value").returncode == 0
    assert ctl(store, "get", "key").stdout == "value"


def test_stored_data_survives_the_container(broker, store):
    store.start()
    wait_until(lambda: is_healthy(store), "the store is healthy")
    assert ctl(store, "set", "key", "value").returncode == 0

    store.kill()
    store.start()

    wait_until(lambda: is_healthy(store), "the store is healthy again")
    assert ctl(store, "get", "key").stdout == "value"


def test_only_the_volume_is_writable(broker, store):
    store.start()
    wait_until(lambda: is_healthy(store), "the store is healthy")

    assert store.run("/bin/touch", "/var/lib/statestored/file").returncode == 0
    for place in ("/file", "/tmp/file", "/usr/sbin/file"):
        result = store.run("/bin/touch", place)
        assert result.returncode != 0 and "Read-only file system" in result.stderr


@pytest.mark.parametrize("name", ["statestored", "mosquitto"])
def test_a_container_stops_on_sigterm(broker, store, name):
    store.start()
    wait_until(lambda: is_healthy(store), "the store is healthy")

    assert {"statestored": store, "mosquitto": broker}[name].stop(signal.SIGTERM) == 0


def test_an_option_can_be_set_by_an_environment_variable(broker, store):
    store.environment["STATESTORE_STORE_NODE_ID"] = "Elsewhere"
    store.start()
    wait_until(lambda: is_healthy(store), "the store is healthy")

    assert ctl(store, "ping").stdout.startswith("pong from Elsewhere ")


def test_the_test_double_runs_on_a_read_only_root(make, double_image):
    double = make("double", double_image, environment={}, is_read_only=True, volumes=[])
    double.start()
    wait_until(lambda: is_healthy(double), "the double is healthy")

    assert ctl(double, "set", "key", "value", host="127.0.0.1").returncode == 0
    assert ctl(double, "test", "reset", host="127.0.0.1").returncode == 0
    assert ctl(double, "get", "key", host="127.0.0.1").returncode == 1
    # connections from outside the container do not use its loopback address
    assert " 00000000:075B " in Path(f"/proc/{double.pid()}/net/tcp").read_text()
    assert double.stop(signal.SIGTERM) == 0
