"""What the API changes, and who is recorded for it: rules of `serve`, HTTP, and of the bus."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.serve.sites import Served, served, write_project
from tests.unit.serve.slices import claim, discover, fail, land, process

from lakewright.manifest.journal import Run
from lakewright.manifest.record import State


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Served]:
    """A project with a failed slice and one that waits behind it; actions are allowed."""
    write_project(tmp_path)
    with served(tmp_path, allows_actions=True) as found:
        items = discover(found.app, "orders", ["1", "2", "3"])
        land(found.app, "orders", ["1"])
        process(found.app, items[0])
        fail(found.app, items[1])
        yield found


def post(shop: Served, path: str, **body: Any) -> Any:
    return shop.client.post(f"/api/v1{path}", json=body)


def test_each_action_is_a_record_with_the_user_and_the_reason(shop: Served) -> None:
    steps = [
        ("resolve", "orders/2", {}, "ready"),
        ("skip", "orders/2", {}, "skipped"),
        ("unskip", "orders/2", {}, "ready"),
        ("requeue", "orders/1", {"late": True}, "ready"),
    ]
    for action, item, more, verdict in steps:
        answer = post(shop, f"/item/{action}", item=item, reason=f"to {action}", **more)
        assert answer.status_code == 200, answer.text
        assert answer.json()[0]["verdict"] == verdict
        record = shop.app.store.records(answer.json()[0]["item_id"])[-1]
        assert (record.author.agent.name, record.content["reason"]) == ("ann", f"to {action}")


def test_an_answer_has_the_warnings_of_the_action(shop: Served) -> None:
    """Issue 11: they stood in the server's log only."""
    assert post(shop, "/item/requeue", item="orders/1", reason="corrected").status_code == 200
    answer = post(shop, "/item/skip", item="orders/1", reason="wrong")
    told = "it was processed before; `lakewright plan` shows what is due"
    assert [row["warnings"] for row in answer.json()] == [[told]]
    assert post(shop, "/item/resolve", item="orders/2", reason="mended").json()[0]["warnings"] == []


def test_a_living_lock_is_released_by_force_only(shop: Served) -> None:
    claim(shop.app, discover(shop.app, "people", ["a"])[0])
    refused = post(shop, "/item/release", item="people/a", reason="it hangs")
    assert (refused.status_code, refused.json()["code"]) == (409, "item_locked")
    assert post(shop, "/item/release", item="people/a", reason="it hangs", force=True).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/item/resolve", {"item": "orders/2"}, 400, "usage"),
        ("/item/resolve", {"item": "orders/2", "reason": "  "}, 400, "usage"),
        ("/item/resolve", {"item": "orders/2", "reason": 3}, 400, "usage"),
        ("/item/resolve", {"item": "orders/2", "reason": "x", "author": "bob"}, 400, "usage"),
        ("/item/resolve", {"item": "orders/3", "reason": "x"}, 400, "usage"),
        ("/item/requeue", {"item": "orders/2", "reason": "x", "late": 1}, 400, "usage"),
        ("/item/destroy", {"item": "orders/2", "reason": "x"}, 404, "unknown"),
        ("/runs", {"job": "none", "reason": "x"}, 404, "unknown"),
        ("/runs", {"job": "--project=/etc", "reason": "x"}, 404, "unknown"),
        ("/runs", {"job": "daily", "phase": "destroy", "reason": "x"}, 400, "usage"),
        ("/runs", {"job": "daily", "parameters": ["--force"], "reason": "x"}, 400, "usage"),
        ("/runs", {"job": "dated", "reason": "x"}, 422, "usage"),
        ("/runs", {"job": "dated", "parameters": ["day=soon"], "reason": "x"}, 422, "usage"),
        ("/plans", {"job": "daily", "targets": ["sales"]}, 422, "usage"),
        ("/plans", {"job": "dated", "parameters": ["day=2022-01-01", "region=eu"]}, 422, "usage"),
        ("/process", {"entity": "none", "reason": "x"}, 404, "unknown"),
        ("/undo", {"entity": "none", "slice": "1", "reason": "x"}, 404, "unknown"),
        ("/undo", {"entity": "orders", "slice": "1", "reason": " "}, 400, "usage"),
        ("/undo", {"entity": "orders", "slice": "never", "reason": "x"}, 400, "usage"),
        ("/undo/preview", {"entity": "orders", "slice": "never"}, 400, "usage"),
        ("/decide", {"subject": "orders/2", "choice": "skip"}, 400, "usage"),
        ("/decide", {"subject": "none", "choice": "skip", "reason": "x"}, 409, "not_offered"),
        ("/decide", {"subject": "orders/9", "choice": "end", "reason": " "}, 400, "usage"),
        ("/apply", {}, 400, "usage"),
        ("/apply", {"names": ["none"], "reason": "x"}, 404, "unknown"),
        ("/apply", {"names": ["--allow=foreign"], "reason": "x"}, 404, "unknown"),
        ("/apply", {"allow": ["everything"], "reason": "x"}, 400, "usage"),
        ("/bus/renew", {"claim": {"item_id": "x"}}, 400, "usage"),
        ("/runs/none/cancel", {"reason": "x"}, 404, "unknown"),
        ("/commands/none/cancel", {}, 404, "unknown"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    shop: Served, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    before = [(item.item_id, item.sequence) for item in shop.app.store.select(_everything())]
    answer = shop.client.post(f"/api/v1{path}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert [(item.item_id, item.sequence) for item in shop.app.store.select(_everything())] == before
    assert not shop.requests.begun


def test_wrong_parameters_are_refused_with_what_the_command_says(shop: Served) -> None:
    """The request was answered with 202, and its run failed later, where nobody looked."""
    answer = post(shop, "/runs", job="dated", parameters=["region=eu"], reason="x")
    assert answer.status_code == 422
    first, second = answer.json()["errors"]
    assert "unknown parameter 'region'" in first["message"]
    assert second["message"].startswith("parameter day: ")
    assert second["remedy"]


def _everything() -> Any:
    from lakewright.manifest.store import Query

    return Query()


def test_a_run_is_begun_as_a_command_that_names_who_and_why(shop: Served) -> None:
    shop.requests.out = json.dumps({"status": "SUCCESS"}).encode()
    shop.requests.err = b"BUILD orders_target\n"
    begun = post(
        shop,
        "/runs",
        job="daily",
        phase="verify",
        parameters=["day=2022-01-01"],
        resume=True,
        reason="late data",
    )
    assert begun.status_code == 202
    (request,) = shop.requests.begun
    assert [*request.arguments] == [
        *("job", "--resume", "-o", "json", "--", "daily", "verify", "day=2022-01-01")
    ]
    assert request.trigger == "ann: late data"
    command_id = begun.json()["command_id"]
    found = wait_for_end(shop, command_id)
    assert (found["exit_code"], found["document"]) == (0, {"status": "SUCCESS"})
    assert found["log"] == "BUILD orders_target\n"
    assert [each["command_id"] for each in shop.get("/commands")] == [command_id]
    events = shop.client.get(f"/api/v1/commands/{command_id}/events").text
    assert events.startswith("event: change\ndata: {")
    assert events.endswith("event: end\ndata: {}\n\n")


def wait_for_end(shop: Served, command_id: str) -> dict[str, Any]:
    for _ in range(100):
        found: dict[str, Any] = shop.get(f"/commands/{command_id}")
        if found["exit_code"] is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("the command did not end")


def test_other_commands_are_begun_the_same_way(shop: Served) -> None:
    post(shop, "/plans", job="daily")
    post(shop, "/process", entity="orders", slice="3", reason="now")
    post(shop, "/discover", entities=["orders"], reason="new files")
    post(shop, "/undo/preview", entity="orders", slice="1")
    post(shop, "/undo", entity="orders", slice="1", requeue=True, reason="the file is broken")
    assert [list(request.arguments) for request in shop.requests.begun] == [
        ["plan", "-o", "json", "--", "daily", "build"],
        ["process", "-o", "json", "--", "orders", "3"],
        ["manifest", "discover", "--entity=orders", "-o", "json"],
        ["undo", "--dry-run", "-o", "json", "--", "orders", "1"],
        [
            *("undo", "--yes", "--requeue", "--author=ann", "--reason=the file is broken"),
            *("-o", "json", "--", "orders", "1"),
        ],
    ]


def test_what_is_due_is_applied_by_a_command(shop: Served) -> None:
    post(shop, "/apply", reason="now")
    post(shop, "/apply", names=["orders", "people_target"], allow=["replay"], reason="the new key")
    assert [list(request.arguments) for request in shop.requests.begun] == [
        ["apply", "--author=ann", "-o", "json", "--"],
        ["apply", "--allow=replay", "--author=ann", "-o", "json", "--", "orders", "people_target"],
    ]
    assert {request.trigger for request in shop.requests.begun} == {"ann: now", "ann: the new key"}


def late(shop: Served, name: str) -> dict[str, str]:
    """Put a file before the slices that the table holds; return the choice to apply it at the end."""
    land(shop.app, "orders", [name])
    (step,) = (each for each in shop.get("/plan")["steps"] if each["subject"]["part"] == name)
    assert step["reason"]["code"] == "late_slice"
    (choice,) = (each for each in step["choices"] if each["decision"] == "end")
    return {"subject": choice["argv"][1], "choice": choice["argv"][2], "basis": choice["basis"]}


def test_a_decision_is_recorded_with_the_user_and_the_reason(shop: Served) -> None:
    choice = late(shop, "0")
    made = post(shop, "/decide", **choice, reason="lost on the way")
    assert (made.status_code, made.json()) == (200, {"schema": "lakewright/decide/1", **choice})
    again = post(shop, "/decide", **choice, reason="lost on the way")
    assert (again.status_code, again.json()) == (made.status_code, made.json())
    (document,) = shop.app.store.documents("decision", prefix="shop/")
    assert (document.value["by"], document.value["reason"]) == ("ann", "lost on the way")


def test_a_decision_that_is_not_offered_any_more_is_refused_with_what_is_offered_now(shop: Served) -> None:
    choice = late(shop, "0")
    bronze = Path(shop.app.project.entity("orders").places(shop.app.project.lake).bronze)
    (bronze / "0").write_text("id\n1\n2\n")
    refused = [
        post(shop, "/decide", **choice, reason="x"),
        post(shop, "/decide", subject="orders/0", choice="keep", reason="x"),
        post(shop, "/decide", subject="orders/none", choice="end", reason="x"),
    ]
    assert {(each.status_code, each.json()["code"]) for each in refused} == {(409, "not_offered")}
    changed, unknown_choice, unknown_subject = (each.json() for each in refused)
    assert changed["choices"] == unknown_choice["choices"] == ["place", "end", "skip"]
    assert unknown_subject["choices"] == []
    assert "orders/0" in unknown_subject["subjects"]
    assert list(shop.app.store.documents("decision", prefix="shop/")) == []
    assert post(shop, "/decide", subject="orders/0", choice="end", reason="x").status_code == 200


def test_the_rows_of_a_preview_are_left_out_unless_the_server_shows_rows(shop: Served) -> None:
    rows = {"rows_equal": 3, "rows_only_before": 1, "sample_only_before": [{"name": "Ann"}]}
    shop.requests.out = json.dumps({"entity": "orders", "difference": rows}).encode()
    begun = post(shop, "/undo/preview", entity="orders", slice="1").json()
    found = wait_for_end(shop, begun["command_id"])["document"]["difference"]
    assert found == {"rows_equal": 3, "rows_only_before": 1, "sample_only_before": []}
    page = shop.client.get(f"/commands/{begun['command_id']}").text
    assert "Ann" not in page


def test_a_run_is_followed_to_its_end(shop: Served) -> None:
    run = shop.app.journal.start_run(
        Run("run-1", "shop", "daily", "BUILD", {}, shop.app.store.now(), shop.app.holder)
    )
    shop.app.journal.finish_run(run, "SUCCESS", finished=shop.app.store.now())
    events = shop.client.get("/api/v1/runs/run-1/events").text
    assert '"status": "SUCCESS"' in events
    assert events.endswith("event: end\ndata: {}\n\n")
    ended = post(shop, "/runs/run-1/cancel", reason="x")
    assert (ended.status_code, ended.json()["code"]) == (409, "ended")
    assert shop.client.get("/api/v1/runs/none/events").status_code == 404


def test_a_program_works_through_the_bus(shop: Served) -> None:
    added = post(shop, "/bus/add", items=["table a", "table b"], application="acme/landing", payload={"n": 1})
    assert added.json() == [{"item_id": "table a", "is_new": True}, {"item_id": "table b", "is_new": True}]
    ready = shop.get("/bus/ready", params={"application": "acme/loader", "match": "table*"})
    assert [item["item_id"] for item in ready] == ["table a", "table b"]
    claimed = post(shop, "/bus/acquire", item="table a", application="acme/loader", lease="5m").json()
    again = post(shop, "/bus/acquire", item="table a", application="acme/loader")
    assert (again.status_code, again.json()["code"]) == (409, "item_locked")
    renewed = post(shop, "/bus/renew", claim=claimed).json()
    assert renewed["expires"] >= claimed["expires"]
    ended = post(shop, "/bus/processed", claim=renewed, payload={"rows": 3})
    assert ended.json()["verdict"] == "processed"
    (state,) = shop.get("/bus/state", params={"application": "acme/loader"})
    assert (state["item_id"], state["payload"]) == ("table a", {"rows": 3})
    other = post(shop, "/bus/acquire", item="table b", application="acme/loader").json()
    assert post(shop, "/bus/failed", claim=other, message="disk full").json()["verdict"] == "failed"
    assert shop.app.store.records("table b")[-1].state is State.FAILED
    backlog = {row["item_id"]: row["verdict"] for row in shop.get("/backlog?application=acme/loader")}
    assert backlog["table b"] == "failed"


def test_watermarks_are_set_by_those_entities_that_declare_them(shop: Served) -> None:
    refused = post(shop, "/watermarks/set", entity="orders", column="id", value="3", type="long", reason="x")
    assert (refused.status_code, refused.json()["code"]) == (400, "usage")
    assert "declares none" in refused.json()["remedy"]


def test_only_so_many_commands_run_at_once(shop: Served) -> None:
    for command in range(12):
        begun = post(shop, "/process", entity="orders", reason=f"{command}")
        assert begun.status_code == 202
        wait_for_end(shop, begun.json()["command_id"])
    for each in shop.site.commands.all()[:8]:
        each.finished = None
    refused = post(shop, "/process", entity="orders", reason="one more")
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_commands")
    first = shop.site.commands.all()[0].command_id
    post(shop, f"/commands/{first}/cancel")
    assert shop.requests.begun[-1].signals == [2]


def test_a_server_that_only_reads_changes_nothing(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path) as shop:
        for path, of_path in shop.get("/openapi.json")["paths"].items():
            if "post" in of_path and path not in ("/api/v1/links", "/api/v1/plans", "/api/v1/undo/preview"):
                answer = shop.client.post(path.format(run_id="x", command_id="x"), json={})
                assert (answer.status_code, answer.json()["code"]) == (403, "read_only"), path


def test_actions_on_what_no_fault_touches_go_on_while_the_project_has_faults(shop: Served) -> None:
    """Rules of `serve`, §2: what waits for a person waits, the others go on."""
    folder = shop.app.project.basedir
    model = folder / "model.yml"
    model.write_text(model.read_text() + "\nmappings: {broken: {kind: nothing_known}}\n")
    assert [fault.touches for fault in shop.app.project.faults] == [(("mapping", "broken"),)]
    resolved = post(shop, "/item/resolve", item="orders/2", reason="mended")
    assert (resolved.status_code, resolved.json()[0]["verdict"]) == (200, "ready")
    post(shop, "/process", entity="orders", reason="now")
    post(shop, "/discover", entities=["orders"], reason="new files")
    post(shop, "/undo", entity="orders", slice="1", reason="the file is broken")
    post(shop, "/apply", reason="what is left")
    *others, apply = shop.requests.begun
    assert list(apply.arguments) == ["apply", "--author=ann", "--despite-faults", "-o", "json", "--"]
    assert [list(request.arguments) for request in others] == [
        ["process", "--despite-faults", "-o", "json", "--", "orders"],
        ["manifest", "discover", "--entity=orders", "--despite-faults", "-o", "json"],
        [
            *("undo", "--yes", "--author=ann", "--reason=the file is broken", "--despite-faults"),
            *("-o", "json", "--", "orders", "1"),
        ],
    ]


def test_actions_on_a_faulty_entity_are_refused_with_the_fault(shop: Served) -> None:
    model = shop.app.project.basedir / "model.yml"
    model.write_text(model.read_text().replace("orders:", "orders: &o").replace("id: 1", "idd: 1", 1))
    refused = post(shop, "/process", entity="orders", reason="now")
    assert (refused.status_code, "entity 'orders' can't be used: " in refused.text) == (404, True), (
        refused.text
    )
    assert not shop.requests.begun
