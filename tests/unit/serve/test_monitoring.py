"""The rules and the dashboard ask for metrics that the server has; docs name them all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from tests.unit.serve.sites import served, write_project
from tests.unit.serve.slices import discover, process

from lakewright.manifest.journal import Run
from lakewright.serve.http.metrics import exposition

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


class Difficult:
    """Gauges whose labels, texts and numbers need care."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> list[Metric]:
        family = GaugeMetricFamily("lakewright_x", 'a "text"\\ of\ntwo lines', labels=["verdict", "entity"])
        for number, name in enumerate(('a"b', "back\\slash", "two\nlines", "ünï", "", "a,b={}")):
            family.add_metric(
                ["ready", name], (0.0, 1, 1e21, float("nan"), float("-inf"), 1764000000.123456)[number]
            )
        return [family, GaugeMetricFamily("lakewright_none", "no sample", labels=["x"]), _plain()]


def _plain() -> Metric:
    return GaugeMetricFamily("lakewright_plain", "without labels", value=2)


def test_the_text_of_metrics_is_that_of_the_client_library() -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Difficult())
    assert exposition(registry) == generate_latest(registry)
    counters = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=counters, namespace="x")
    names = [
        [line.split("{")[0].split()[0] for line in text.decode().splitlines()]
        for text in (exposition(counters), generate_latest(counters))
    ]
    assert names[0] == names[1]
