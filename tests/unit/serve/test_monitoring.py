"""The rules and the dashboard ask for metrics that the server has; docs name them all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.unit.serve.sites import served, write_project
from tests.unit.serve.slices import discover, process

from lakewright.manifest.journal import Run

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "examples" / "monitoring"
NAME = re.compile(r"\blakewright_\w+")


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the metrics of a server whose project has everything."""
    folder = tmp_path_factory.mktemp("shop")
    write_project(folder)
    with served(folder) as shop:
        items = discover(shop.app, "orders", ["1", "2"])
        process(shop.app, items[0])
        now = shop.app.store.now()
        run = shop.app.journal.start_run(Run("r", "shop", "daily", "BUILD", {}, now, shop.app.holder))
        shop.app.journal.finish_run(run, "SUCCESS", finished=now)
        text = shop.client.get("/metrics").text
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


def test_rules_ask_for_metrics_of_the_server(present: set[str]) -> None:
    rules = yaml.safe_load((MONITORING / "lakewright-rules.yml").read_text())["groups"][0]["rules"]
    assert len(rules) == 7
    for rule in rules:
        assert set(NAME.findall(rule["expr"])) <= present, rule["alert"]
        assert rule["annotations"]["do"]


def test_the_dashboard_asks_for_metrics_of_the_server(present: set[str]) -> None:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    asked = {
        name for panel in dashboard["panels"] for t in panel["targets"] for name in NAME.findall(t["expr"])
    }
    assert asked <= present
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_docs_name_every_metric(present: set[str]) -> None:
    named = set(NAME.findall((ROOT / "docs" / "monitoring.md").read_text()))
    own = {name for name in present if not name.startswith("lakewright_server_")}
    assert own <= named
    assert named - {"lakewright_server_"} <= own
