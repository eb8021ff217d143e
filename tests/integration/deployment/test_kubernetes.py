# SPDX-License-Identifier: Apache-2.0
"""docker/kubernetes, a Kustomize base, agrees with the options, the image and the HTTP pages of the store, and with the schemas
of Kubernetes."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from support.broker import free_port, passwords
from support.certificates import Authority
from support.downloads import require_program, unavailable
from support.examples import download
from support.process import REPOSITORY
from support.wire_client import WireClient

pytestmark = pytest.mark.not_sanitized("no code of the store is new to these tests")

BASE = REPOSITORY / "docker" / "kubernetes"
MANIFESTS = [yaml.safe_load((BASE / name).read_text()) for name in yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]]
VALIDATOR = "kubernetes-validate==1.37.0"  # has the schemas of many versions of Kubernetes
VERSIONS = "1.28", "1.37"
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


def test_volumes_are_defined_and_files_come_from_the_secret_and_the_config_map(pod, container):
    claimed = {claim["metadata"]["name"] for claim in manifest("StatefulSet")["spec"]["volumeClaimTemplates"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    variables = environment(container)

    assert mounts.keys() == claimed | volumes.keys()
    assert volumes["secret"]["secret"]["secretName"] == volumes["policy"]["configMap"]["name"] == "statestored"
    assert not volumes["secret"]["secret"].get("optional") and not volumes["policy"]["configMap"].get("optional")
    assert variables["STATESTORE_BROKER_PASSWORD_FILE"] == f"{mounts['secret']}/password"
    assert variables["STATESTORE_BROKER_TLS_CA_FILE"] == f"{mounts['secret']}/ca.crt"
    assert variables["STATESTORE_POLICY_FILE"] == f"{mounts['policy']}/policy.conf"


HOST = "127.0.0.2"  # listener with TLS; clients connect to 127.0.0.1


@pytest.fixture
def secured(make_site, container, tmp_path):
    """Makes a broker with TLS and users, and launches a store with the variables of the manifest, in files of the test."""
    authority = Authority(tmp_path, "authority")
    server = authority.issue("server")
    files = {"/run/secrets/statestored/password": tmp_path / "password", "/etc/statestored/policy.conf": tmp_path / "policy.conf",
             "/run/secrets/statestored/ca.crt": authority.certificate}
    (tmp_path / "password").write_text("secret")
    shutil.copy(REPOSITORY / "conf" / "policy.conf", tmp_path)

    def make(plugin):
        site = make_site("allow_anonymous false", f"password_file {passwords(tmp_path, statestored='secret', gateway='its')}",
                         *(["plugin_opt_statestored_username statestored"] if plugin else []), plugin=plugin, listeners=[
                             f"listener {{port}} {HOST}", f"cafile {authority.certificate}",
                             f"certfile {server.certificate}", f"keyfile {server.key}"])
        variables = {name: str(files.get(value, value)) for name, value in environment(container).items()}
        variables["STATESTORE_HTTP_LISTEN"] = f"127.0.0.1:{free_port()}"
        site.launch_store("--host", HOST, environment=variables)
        return site

    return make


def test_the_store_of_the_manifest_serves_a_broker_with_tls_users_and_the_plugin(secured):
    site = secured(plugin=True)
    site.store.wait_for_log("the broker has the plugin")
    gateway = site.connect(kind=WireClient, username="gateway", password="its")

    assert gateway.ask("SET", "sensors/1", "value") == b"+OK\r\n"
    assert gateway.ask("SET", "settings/1", "value") == b"-ERR not authorized\r\n"


def test_the_store_of_the_manifest_does_not_serve_a_broker_without_the_plugin(secured):
    site = secured(plugin=False)

    site.store.wait_for_log("the broker has no plugin of this version")
    assert "ready: " not in site.store.log()


def test_the_network_policy_allows_only_metrics_the_broker_and_name_resolution(container):
    spec = manifest("NetworkPolicy")["spec"]
    broker_port = int(environment(container)["STATESTORE_BROKER_PORT"])

    assert spec["podSelector"]["matchLabels"] == manifest("StatefulSet")["spec"]["selector"]["matchLabels"]
    assert sorted(spec["policyTypes"]) == ["Egress", "Ingress"]
    assert [port["port"] for rule in spec["ingress"] for port in rule["ports"]] == [container["ports"][0]["name"]]
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {broker_port, 53}
    assert all(rule["from"] for rule in spec["ingress"]) and all(rule["to"] for rule in spec["egress"])


def test_the_memory_limit_is_twice_the_maximum_of_the_store(container):
    [max_gib] = re.findall(r"^max-bytes = (\d+)GiB$", (REPOSITORY / "conf" / "statestored.conf").read_text(), re.MULTILINE)

    assert container["resources"]["limits"]["memory"] == f"{2 * int(max_gib)}Gi"


def test_probes_request_existing_pages(container):
    pages = set(re.findall(r'"(/\w+)"', (REPOSITORY / "server" / "http" / "page_routes.c").read_text()))
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


# Rendered, as kubectl apply --kustomize does

OVERLAY = """\
resources: [kubernetes]
images: [{name: statestored, newName: registry.example/statestored, newTag: 0.1.0}]
configMapGenerator: [{name: statestored, files: [policy.conf]}]
secretGenerator: [{name: statestored, files: [password, ca.crt]}]
"""


def kubectl_minor():
    require_program("kubectl")
    printed = subprocess.run(["kubectl", "version", "--client", "--output", "json"], capture_output=True, text=True, check=True).stdout
    return int(json.loads(printed)["clientVersion"]["minor"].rstrip("+"))


def render(directory):
    rendered = subprocess.run(["kubectl", "kustomize", directory], capture_output=True, text=True, check=False)
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


@pytest.fixture
def overlay(tmp_path):
    """The overlay that kustomization.yaml describes."""
    shutil.copytree(BASE, tmp_path / "kubernetes")
    shutil.copy(REPOSITORY / "conf/policy.conf", tmp_path)
    (tmp_path / "password").write_text("secret")
    (tmp_path / "ca.crt").write_text("certificate")
    # kubectl 1.20, of Debian 12, reads folders only as bases
    folders = "resources" if kubectl_minor() > 20 else "bases"
    (tmp_path / "kustomization.yaml").write_text(OVERLAY.replace("resources", folders))
    return tmp_path


def test_the_base_describes_the_overlay():
    described = re.sub("(?m)^#   ?", "", (BASE / "kustomization.yaml").read_text())

    assert OVERLAY.replace("[kubernetes]", "[docker/kubernetes]") in described


def test_the_overlay_replaces_the_pod_when_a_file_changes(overlay):
    def pod():
        [found] = [one for one in yaml.safe_load_all(render(overlay)) if one["kind"] == "StatefulSet"]
        return found["spec"]["template"]["spec"]

    first = pod()
    (overlay / "policy.conf").write_text("[all]\naccess = read\nany = yes\npattern = *\n")
    second = pod()

    assert first["containers"][0]["image"] == "registry.example/statestored:0.1.0"
    assert first["volumes"][0] == second["volumes"][0] and first["volumes"][1] != second["volumes"][1]


# One pytest process downloads the schemas.
downloads_once = pytest.mark.xdist_group("kubernetes")


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    """Validates a manifest by the schemas of a version of Kubernetes; returns the errors."""
    packages = tmp_path_factory.mktemp("validator")
    reason = download(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--target", packages, VALIDATOR], packages)
    if reason:
        unavailable(reason)
    program = ("import sys, yaml; sys.path.insert(0, sys.argv[1]); import kubernetes_validate\n"
               "for manifest in yaml.safe_load_all(sys.stdin):\n"
               "    kubernetes_validate.validate(manifest, sys.argv[2], strict=True)\n")

    def errors(text, version):
        ended = subprocess.run(["/usr/bin/python3", "-c", program, packages, version], input=text, capture_output=True, text=True,
                               check=False)
        return ended.stderr.strip().splitlines()[-1:] if ended.returncode else []

    return errors


@downloads_once
@pytest.mark.parametrize("version", VERSIONS)
def test_the_rendered_manifests_have_the_form_that_kubernetes_requires(schemas, overlay, version):
    assert schemas(render(overlay), version) == []


@downloads_once
@pytest.mark.parametrize("right, wrong", [("replicas: 1", "replicas: one"), ("fsGroup:", "fsGroups:")])
def test_another_form_is_found(schemas, overlay, right, wrong):
    text = render(overlay)

    assert right in text and schemas(text.replace(right, wrong), VERSIONS[-1]) != []
