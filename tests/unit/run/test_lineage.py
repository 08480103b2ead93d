"""OpenLineage events of runs whose targets write into a dictionary, at a collector on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.collectors import Collector, collecting
from tests.unit.run.bench import Bench

from lakewright.app import App
from lakewright.errors import Fault, LeaseHeld
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.lineage.events import Dataset, DatasetName, Subject, run_event, run_uuid
from lakewright.run.lineage.listener import URL, is_configured

TARGETS = {"a": {"writes": "/a/$day"}, "b": {"reads": "/a/$day", "writes": "/b/$day"}}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE_NAMESPACE", "OPENLINEAGE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    with collecting() as made:
        yield made


def bench_of(folder: Path, collector: Collector) -> Bench:
    bench = Bench(folder, TARGETS)
    bench.write(TARGETS, config=[f"{URL}={collector.url}"])
    return bench


def test_a_run_is_told_with_its_targets_as_runs_inside_of_it(tmp_path: Path, collector: Collector) -> None:
    bench = bench_of(tmp_path, collector)
    bench.world.broken.add("b")
    bench.run(Phase.BUILD)
    assert collector.told() == [
        ("START", "fake.daily"),
        ("START", "fake.daily.a.build"),
        ("COMPLETE", "fake.daily.a.build"),
        ("START", "fake.daily.b.build"),
        ("FAIL", "fake.daily.b.build"),
        ("FAIL", "fake.daily"),
    ]
    whole, begun, done, _, failed, _ = collector.events
    parent = begun["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (whole["run"]["runId"], "fake.daily")
    assert begun["run"]["runId"] == done["run"]["runId"] != failed["run"]["runId"]
    assert [(each["namespace"], each["name"]) for each in done["outputs"]] == [("file", "/a/2022-01-01")]
    assert "errorMessage" not in done["run"]["facets"]
    assert failed["run"]["facets"]["errorMessage"]["message"]


def test_what_is_clean_is_not_told(tmp_path: Path, collector: Collector) -> None:
    bench = bench_of(tmp_path, collector)
    bench.world.versions |= {"/a/2022-01-01": 1, "/b/2022-01-01": 1}
    bench.run(Phase.BUILD)
    assert collector.told() == [("START", "fake.daily"), ("COMPLETE", "fake.daily")]


@pytest.mark.parametrize("status", [500, 401])
def test_a_collector_that_refuses_events_fails_no_run_and_is_given_up(
    tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    collector.status = status
    bench = bench_of(tmp_path, collector)
    assert bench.run(Phase.BUILD).is_success
    assert caplog.records[-1].message.startswith("OpenLineage is disabled for the rest of the run")


def test_a_collector_that_is_not_there_fails_no_run(
    tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.url = "http://127.0.0.1:9"
    assert bench_of(tmp_path, collector).run(Phase.BUILD).is_success
    assert caplog.records[-1].message.startswith("OpenLineage is disabled for the rest of the run")


def test_an_event_has_schema_column_lineage_statistics_and_assertions() -> None:
    from openlineage.client.serde import Serde

    bronze, silver = DatasetName("file", "/bronze/orders"), DatasetName("s3://lake", "silver/orders")
    event = run_event(
        Subject("shop", "shop.daily.orders.build", run_uuid("r", 0, "BUILD", "orders"), "TARGET"),
        "COMPLETE",
        datetime(2026, 5, 1, tzinfo=UTC),
        inputs=[Dataset(bronze, (("no", "int"),))],
        outputs=[Dataset(silver, (("id", "int"),), {"id": ((bronze, "no"),)})],
        metrics={"slices": [{"inserted": 2, "updated": 1, "deleted": 0}, {"inserted": 4}]},
        assertions=[("unique id", True), ("rows > 0", False)],
        error=Fault("it broke"),
    )
    document = json.loads(Serde.to_json(event))
    (read,), (written,) = document["inputs"], document["outputs"]
    assert read["facets"]["schema"]["fields"] == [{"name": "no", "type": "int", "fields": []}]
    checked = read["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(each["assertion"], each["success"]) for each in checked] == [
        ("unique id", True),
        ("rows > 0", False),
    ]
    (source,) = written["facets"]["columnLineage"]["fields"]["id"]["inputFields"]
    assert (source["namespace"], source["name"], source["field"]) == ("file", "/bronze/orders", "no")
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert document["run"]["facets"]["errorMessage"]["message"] == "it broke"
    assert document["schemaURL"].startswith("https://openlineage.io/spec/2-")


def test_it_is_on_if_the_project_or_the_clients_variables_say_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert not is_configured({}, {})
    assert is_configured({URL: "http://collector"}, {})
    assert is_configured({}, {"OPENLINEAGE_URL": "http://collector"})
    assert is_configured({}, {"OPENLINEAGE__TRANSPORT__TYPE": "console"})
    assert not is_configured({URL: "http://collector"}, {"OPENLINEAGE_DISABLED": "true"})
    monkeypatch.setattr("lakewright.run.lineage.listener.find_spec", lambda _: None)
    assert not is_configured({URL: "http://collector"}, {})
    assert "lakewright[openlineage]" in caplog.text


SHOP = """
name: shop
modules: [m.yml]
lake: {root_folder: lake}
"""
ORDERS = """
connections: {web: {settings: {bronze_path: orders, silver_path: orders}}}
entities:
  orders:
    id: 1
    connection: web
    processtype: merge
    columns:
      - {name: id, newname: number, fieldroles: [businesskey]}
      - {name: day, expression: "current_date()"}
"""


def shop_of(folder: Path, collector: Collector) -> App:
    (folder / "project.yml").write_text(SHOP)
    (folder / "m.yml").write_text(f"{ORDERS}config: [{URL}={collector.url}]\n")
    return App.open(folder, environ={})


def test_a_command_without_a_job_is_told_with_its_slices_table_and_columns(
    tmp_path: Path, collector: Collector
) -> None:
    app = shop_of(tmp_path, collector)
    entity = app.project.entity("orders")
    with app.reported_command("process", entity) as end:
        end.metrics = {"slices": [{"inserted": 3, "updated": 1}]}
    with pytest.raises(LeaseHeld), app.reported_command("undo", entity):
        raise LeaseHeld("another run writes it")
    with pytest.raises(KeyboardInterrupt), app.reported_command("rebuild", entity):
        raise KeyboardInterrupt
    with app.reported_command("process", entity) as end:
        end.status, end.error = Status.FAILED, Fault("a key is null", code="slice")
    assert collector.told() == [
        *(("START", "shop.process.orders"), ("COMPLETE", "shop.process.orders")),
        *(("START", "shop.undo.orders"), ("FAIL", "shop.undo.orders")),
        *(("START", "shop.rebuild.orders"), ("ABORT", "shop.rebuild.orders")),
        *(("START", "shop.process.orders"), ("FAIL", "shop.process.orders")),
    ]
    done, failed = collector.events[1], collector.events[-1]
    (read,), (written,) = done["inputs"], done["outputs"]
    assert read["name"].endswith("/bronze/orders")
    assert [each["name"] for each in read["facets"]["schema"]["fields"]] == ["id"]
    assert written["name"].endswith("/silver/orders")
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 4
    (source,) = written["facets"]["columnLineage"]["fields"]["number"]["inputFields"]
    assert (source["name"], source["field"]) == (read["name"], "id")
    assert failed["run"]["facets"]["errorMessage"]["message"] == "a key is null"
    assert "errorMessage" not in collector.events[5]["run"]["facets"]


def test_a_command_tells_nothing_without_a_collector(tmp_path: Path, collector: Collector) -> None:
    app = shop_of(tmp_path, collector)
    app.environ = {"OPENLINEAGE_DISABLED": "true"}
    with app.reported_command("process", app.project.entity("orders")):
        pass
    assert not collector.events
