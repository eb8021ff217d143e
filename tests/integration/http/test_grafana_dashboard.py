# SPDX-License-Identifier: Apache-2.0
"""conf/grafana-dashboard.json can be imported by Grafana, and shows metrics that statestored has."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from support.downloads import require_program

ROOT = Path(__file__).resolve().parents[3]
NAME = re.compile(r"\b(?:statestore|process|aio_broker)_[a-z_]+")


@pytest.fixture(scope="module")
def dashboard():
    return json.loads((ROOT / "conf" / "grafana-dashboard.json").read_text())


def expressions(dashboard):
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_the_dashboard_has_the_fields_that_grafana_requires(dashboard):
    assert dashboard["title"] and dashboard["uid"]
    assert isinstance(dashboard["schemaVersion"], int)
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == {"datasource", "instance"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in dashboard["panels"]:
        assert panel["title"] and panel["type"] and set(panel["gridPos"]) == {"x", "y", "w", "h"}
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"


def test_the_dashboard_names_only_metrics_of_statestored(dashboard, pages):
    table = dict(re.findall(r"^# TYPE ([a-z_]+) (\w+)$", pages.get("/metrics")[1], re.MULTILINE))
    assert len(table) > 40
    for expression in expressions(dashboard):
        names = NAME.findall(expression)
        assert names, expression
        for name in names:
            family = re.sub("_bucket$", "", name)
            assert table.get(family) in (("histogram",) if name != family else ("counter", "gauge")), name
            assert (table[family] != "gauge") == ("rate(" in expression), expression


def test_prometheus_can_read_each_expression(dashboard, tmp_path):
    require_program("promtool")
    rules = tmp_path / "rules.yml"
    rules.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": [
        {"record": f"panel:{n}", "expr": expression.replace("$__rate_interval", "1m")}
        for n, expression in enumerate(expressions(dashboard))]}]}))

    result = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True)

    assert result.returncode == 0, result.stdout + result.stderr
