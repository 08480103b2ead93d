"""The JSON API reads what the command line prints: rules of `serve`, HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Route
from tests.unit.serve.sites import MODEL, Served, served, write_project
from tests.unit.serve.slices import claim, discover, fail, process

from lakewright.errors import StoreUnavailable
from lakewright.serve.http.application import ENDPOINTS, make_application
from lakewright.serve.page.routes import Pages
from lakewright.usecases.due.status import project_status


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Served]:
    """A project with slices in every verdict but invalid."""
    write_project(tmp_path)
    with served(tmp_path) as found:
        items = discover(found.app, "orders", ["2022-01-01", "2022-01-02", "2022-01-03", "2022-01-04"])
        process(found.app, items[0])
        process(found.app, items[1], {"deleted": 7, "inserted": 0, "inferredDeletes": 10})
        fail(found.app, items[2])
        claim(found.app, discover(found.app, "people", ["a"])[0])
        yield found


def test_documents_are_those_of_the_command_line(shop: Served) -> None:
    assert shop.get("/status") == {"schema": "lakewright/plan/2", **project_status(shop.app).as_json()}
    failed = shop.get("/items", params={"state": ["failed", "locked"]})
    assert [(row["entity"], row["slice"], row["verdict"]) for row in failed] == [
        ("orders", "2022-01-03", "failed"),
        ("people", "a", "locked"),
    ]
    item = shop.get("/item", params={"id": "orders/2022-01-03"})
    assert [record["state"] for record in item["records"]] == ["NEW", "PROCESSING", "FAILED"]
    assert item["schema"] == "lakewright/manifest-show/1"
    assert shop.get("/counts")["lakewright/shop/orders:orders"] == {"failed": 1, "processed": 2, "ready": 1}
    assert [job["name"] for job in shop.get("/definitions/jobs")] == ["daily", "dated"]
    assert shop.get("/definitions/entities/orders")["definition"]["name"] == "orders"
    assert {each["name"] for each in shop.get("/graphs/daily")["targets"]} == {
        "orders_target",
        "people_target",
    }
    for path in ("/runs", "/watermarks", "/watermarks/changes"):
        assert shop.get(path) == []


def test_standings_say_how_each_entity_stands(shop: Served) -> None:
    orders, people = shop.get("/standings")
    assert (orders["state"], people["state"]) == ("failed", "locked")
    assert orders["slices"] == {"failed": 1, "processed": 2, "ready": 1}
    assert orders["last_slice"]["item_id"].endswith("2022-01-02")
    assert orders["last_slice"]["delete_ratio"] == 17 / 20
    assert orders["fresh_until"] <= orders["waiting_since"]
    assert people["fresh_until"] is None


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/items?state=odd", 400, "usage"),
        ("/items?limit=0", 400, "usage"),
        ("/items?limit=x", 400, "usage"),
        ("/items?limit=%D9%A3", 400, "usage"),
        ("/items?colour=red", 400, "usage"),
        ("/item", 400, "usage"),
        ("/item?id=orders/none", 404, "unknown"),
        ("/runs/none", 404, "unknown"),
        ("/runs?since=never", 400, "usage"),
        ("/definitions/jobs/none", 404, "unknown"),
        ("/definitions/secrets", 404, "unknown"),
        ("/graphs/none", 404, "unknown"),
        ("/none", 404, "unknown"),
    ],
)
def test_a_wrong_request_gets_a_code_a_message_and_a_remedy(
    shop: Served, path: str, status: int, code: str
) -> None:
    answer = shop.client.get(f"/api/v1{path}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json().keys() == {"code", "message", "remedy", "location"}


def test_a_broken_project_is_said_with_every_fault_and_its_line(shop: Served, tmp_path: Path) -> None:
    model = MODEL.replace("merge", "merged").replace("full", "fool")
    (tmp_path / "model.yml").write_text(model)
    found = shop.get("/status")
    assert [fault["location"] for fault in found["faults"]] == ["model.yml:7", "model.yml:11"]
    (tmp_path / "model.yml").write_text(model + "lke: {}\n")
    answer = shop.client.get("/api/v1/status")
    assert answer.status_code == 422
    assert answer.json()["location"] == "model.yml:7"
    assert len(answer.json()["errors"]) == 3
    (tmp_path / "model.yml").write_text(MODEL)
    assert shop.client.get("/api/v1/status").status_code == 200


def test_the_openapi_document_has_every_route_and_no_other(shop: Served) -> None:
    document = shop.get("/openapi.json")
    described = {(path, method.upper()) for path, of_path in document["paths"].items() for method in of_path}
    assert described == {(f"/api/v1{each.path}", each.method) for each in ENDPOINTS}
    inner = make_application(shop.site, Pages).routes  # type: ignore[attr-defined]
    routed = {route.path for route in inner.routes if isinstance(route, Route)}
    assert {path for path in routed if path.startswith("/api/v1")} - {"/api/v1/openapi.json"} == {
        path for path, _ in described
    }
    names = [of_path[method]["operationId"] for of_path in document["paths"].values() for method in of_path]
    assert len(set(names)) == len(names)


def test_a_method_that_a_path_does_not_take_is_refused(shop: Served) -> None:
    answer = shop.client.delete("/api/v1/status")
    assert (answer.status_code, answer.json()["code"]) == (405, "wrong_method")


def test_health_needs_no_token_and_readiness_no_project(shop: Served, tmp_path: Path) -> None:
    nobody = {"authorization": ""}
    assert shop.client.get("/healthz", headers=nobody).json() == {"status": "ok"}
    assert shop.client.get("/readyz", headers=nobody).json() == {"status": "ready"}
    (tmp_path / "project.yml").write_text("name: [secret-name]\n")
    answer = shop.client.get("/readyz", headers=nobody)
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})
    assert shop.client.get("/healthz", headers=nobody).status_code == 200


def sample(text: str, name: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.rpartition(" ")[2])


def test_metrics_tell_backlog_freshness_failures_and_the_last_slice(shop: Served) -> None:
    text = shop.client.get("/metrics").text
    assert sample(text, 'lakewright_slices{entity="orders",verdict="failed"}') == 1
    assert sample(text, 'lakewright_slices{entity="orders",verdict="ready"}') == 1
    assert sample(text, 'lakewright_last_slice_rows{effect="deleted",entity="orders"}') == 17
    assert sample(text, 'lakewright_last_slice_inferred_deletes{entity="orders"}') == 10
    # A deleted record counts once among rows; how many were inferred is a metric of its own.
    assert 'effect="inferred_deletes"' not in text
    assert 'effect="closed"' not in text
    assert sample(text, 'lakewright_last_slice_delete_ratio{entity="orders"}') == 17 / 20
    assert sample(text, 'lakewright_last_slice_seconds{entity="orders"}') == 1.5
    assert sample(text, "lakewright_leases") == 1
    assert sample(text, "lakewright_stale_leases") == 0
    assert sample(text, 'lakewright_up{part="manifest"}') == 1
    fresh = sample(text, 'lakewright_fresh_until_timestamp_seconds{entity="orders"}')
    ready = sample(text, 'lakewright_oldest_ready_timestamp_seconds{entity="orders"}')
    assert abs(shop.app.store.now().timestamp() - fresh) < 60
    assert fresh <= ready


def test_metrics_say_that_the_project_is_broken(shop: Served, tmp_path: Path) -> None:
    (tmp_path / "model.yml").write_text("entities: 3\n")
    text = shop.client.get("/metrics").text
    assert sample(text, 'lakewright_up{part="project"}') == 0
    assert 'lakewright_slices{entity="orders"' not in text
    (tmp_path / "model.yml").write_text("lke: 3\n")
    text = shop.client.get("/metrics").text
    assert sample(text, 'lakewright_up{part="project"}') == 0
    assert "lakewright_slices" not in text


def test_a_manifest_that_does_not_answer_is_no_unknown_name(
    shop: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program took an item for one that the manifest does not know."""

    def gone(*_: object) -> None:
        raise StoreUnavailable("the manifest does not answer")

    for path in ("/item?id=orders/1", "/runs/run-1"):
        with monkeypatch.context() as patch:
            for method in ("read", "select", "document", "documents", "records"):
                patch.setattr(type(shop.app.store), method, gone)
            answer = shop.client.get(f"/api/v1{path}")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), answer.text
        assert answer.headers["retry-after"] == "5"
