# SPDX-License-Identifier: Apache-2.0
"""docker/kubernetes.yaml agrees with the options, the image and the HTTP pages of the store."""

import re

import pytest
import yaml

from support.process import REPOSITORY

MANIFESTS = list(yaml.safe_load_all((REPOSITORY / "docker" / "kubernetes.yaml").read_text()))
DOCKERFILE = (REPOSITORY / "docker" / "Dockerfile").read_text()


def manifest(kind):
    [found] = [one for one in MANIFESTS if one["kind"] == kind]
    return found


@pytest.fixture
def pod():
    return manifest("StatefulSet")["spec"]["template"]["spec"]


@pytest.fixture
def container(pod):
    [container] = pod["containers"]
    return container


def environment(container):
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_every_variable_is_an_option(container):
    shipped = (REPOSITORY / "conf" / "statestored.conf").read_text()
    variables, section = set(), None
    for line in shipped.splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = header[1]
        elif option := re.match(r"#?([a-z-]+) = ", line):
            variables.add(f"STATESTORE_{section}_{option[1]}".upper().replace("-", "_"))

    assert environment(container).keys() <= variables


def test_the_pod_runs_as_the_user_of_the_image_and_writes_only_to_its_volume(pod, container):
    user, group = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE).groups()

    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (int(user), int(group))
    assert pod["securityContext"]["fsGroup"] == int(group)
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}
    [writable] = [mount for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert f"ENV STATESTORE_STORAGE_DATA_DIR={writable['mountPath']}\n" in DOCKERFILE


def test_volumes_are_defined_and_the_password_comes_from_the_secret(pod, container):
    claimed = {claim["metadata"]["name"] for claim in manifest("StatefulSet")["spec"]["volumeClaimTemplates"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}

    assert mounts.keys() == claimed | volumes.keys()
    assert volumes["password"]["secret"]["secretName"] == "statestored"
    assert environment(container)["STATESTORE_BROKER_PASSWORD_FILE"] == f"{mounts['password']}/password"


def test_probes_request_existing_pages(container):
    pages = set(re.findall(r'\{ "(/\w+)"', (REPOSITORY / "server" / "http" / "pages.c").read_text()))
    [port] = container["ports"]

    assert environment(container)["STATESTORE_HTTP_LISTEN"].endswith(f":{port['containerPort']}")
    for name, page in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz"), ("startupProbe", "/healthz")):
        assert container[name]["httpGet"] == {"path": page, "port": port["name"]}
        assert page in pages


def test_the_service_selects_the_pod():
    labels = manifest("StatefulSet")["spec"]["template"]["metadata"]["labels"]

    assert manifest("StatefulSet")["spec"]["selector"]["matchLabels"] == labels
    assert manifest("Service")["spec"]["selector"] == labels
    assert manifest("StatefulSet")["spec"]["serviceName"] == manifest("Service")["metadata"]["name"]
