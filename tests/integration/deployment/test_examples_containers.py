# SPDX-License-Identifier: Apache-2.0
"""The examples that need Docker. The tests do not run Docker: they check the files against docker/ and each other."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from support.process import REPOSITORY, STATESTORED

EXAMPLES = REPOSITORY / "tests" / "examples"
DOUBLE_PORT = 1883


def stage(name):
    """The lines of the Dockerfile from the FROM line of this stage to the next one."""
    stages = re.split(r"^FROM ", (REPOSITORY / "docker" / "Dockerfile").read_text(), flags=re.MULTILINE)
    [found] = [text for text in stages if re.match(rf"\S+ AS {name}$", text, re.MULTILINE)]
    return found


def test_the_image_serves_at_the_port_of_the_examples():
    words = [word for line in re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", stage("double"), re.MULTILINE)
             for word in json.loads(line)]
    assert Path(words[0]).name == "statestored" and {"--dev", "--control"} <= set(words)
    assert "--port" not in words  # the default port
    assert re.findall(r"^EXPOSE (\d+)$", stage("double"), re.MULTILINE) == [str(DOUBLE_PORT)]
    checked = subprocess.run([STATESTORED, *words[1:], "--check-config"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_compose_example_uses_the_image_and_the_port_of_the_double():
    folder = EXAMPLES / "compose"
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    build = services["statestore"]["build"]
    context = (folder / build["context"]).resolve()
    assert context == REPOSITORY / "build/packages"
    assert (context / build["dockerfile"]).resolve() == REPOSITORY / "docker/Dockerfile" and stage(build["target"])
    assert services["statestore"]["ports"] == [f"127.0.0.1:{DOUBLE_PORT}:{DOUBLE_PORT}"]

    tests = services["tests"]
    assert tests["environment"]["STATESTORE_URL"] == f"mqtt://statestore:{DOUBLE_PORT}"
    assert tests["depends_on"] == {"statestore": {"condition": "service_healthy"}}
    [volume] = tests["volumes"]
    mounted, inside, _ = volume.split(":")
    assert inside == tests["working_dir"] and (folder / mounted / "requirements.txt").exists()


def test_the_github_actions_example_uses_the_port_of_the_double():
    [job] = yaml.safe_load((EXAMPLES / "github-actions" / "test.yml").read_text())["jobs"].values()
    assert job["services"]["statestore"]["ports"] == [f"{DOUBLE_PORT}:{DOUBLE_PORT}"]
    assert job["env"]["STATESTORE_URL"] == f"mqtt://127.0.0.1:{DOUBLE_PORT}"


@pytest.mark.parametrize("file, ports", [
    ("python/conftest.py", ["with_exposed_ports({})", "get_exposed_port({})"]),
    ("go/double.go", ['WithExposedPorts("{}/tcp")', '"{}/tcp", "mqtt"']),
    ("node/double.js", ["withExposedPorts({})", "getMappedPort({})"]),
])
def test_the_testcontainers_examples_use_the_image_and_the_port_of_the_double(file, ports):
    text = (EXAMPLES / "testcontainers" / file).read_text()
    services = yaml.safe_load((EXAMPLES / "compose" / "compose.yaml").read_text())["services"]
    assert services["statestore"]["image"] in re.findall(r"""['"](.*?)['"]""", text)
    assert all(port.format(DOUBLE_PORT) in text for port in ports)
