"""Commands over a project in whose files a fault touches some definitions: rules of `serve`, §2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import InProcess

ORDERS = """
connections: {web: {}}
entities:
  orders: {id: 1, connection: web, processtype: full}
triggers:
  arrivals: {entities: [orders, stock], on: arrival}
  nightly: {job: daily, phase: build, cron: "@daily"}
targets: {stock_target: {kind: entity, entity: stock}}
jobs: {daily: {targets: stock_target}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> InProcess:
    """A project with a module that is no YAML."""
    (tmp_path / "project.yml").write_text(
        "name: shop\nmodules: [orders.yml, stock.yml]\nlake: {root_folder: lake}\n"
    )
    (tmp_path / "orders.yml").write_text(ORDERS)
    (tmp_path / "stock.yml").write_text("entities:\n  stock: {id: 2, connection: web, processtype: full\n")
    return InProcess(tmp_path)


def test_status_and_triggers_tell_the_faults_and_what_waits_for_them(shop: InProcess) -> None:
    for command, code in (("status", 4), ("triggers", 0)):
        done = shop.run(command)
        assert done.code == code, done.all
        assert "not YAML" in done.out
        assert "where: stock.yml:3" in done.out
        waiting = done.out.partition("Triggers that wait until they are mended 2")[2]
        assert "arrivals (stock): " in waiting
        assert "nightly: " in waiting
        assert done.err == ""
    assert "process orders" in shop.run("triggers").out
    found = shop.json("status")
    assert found["faults"][0]["location"] == "stock.yml:3"
    assert [(each["trigger"], each["entity"]) for each in found["withheld"]] == [
        ("arrivals", "stock"),
        ("nightly", None),
    ]
    assert "fault: stock.yml:3" in shop.run("triggers", "-o", "json").err


def test_a_trigger_is_not_run_while_it_waits_for_a_fault(shop: InProcess) -> None:
    done = shop.run("triggers", "run", "nightly")
    assert (done.code, "trigger 'nightly' can't be used: " in done.err) == (2, True), done.all
    assert shop.run("triggers", "run", "arrivals").code == 0


def test_process_refuses_a_project_with_faults_unless_it_is_told_to_go_on(shop: InProcess) -> None:
    refused = shop.run("process", "orders")
    assert (refused.code, "not YAML" in refused.err) == (2, True), refused.all
    done = shop.run("process", "orders", "--despite-faults")
    assert done.code == 0, done.all
    assert "fault: stock.yml:3: not YAML" in done.err
    touched = shop.run("process", "stock", "--despite-faults")
    assert (touched.code, "entity 'stock' can't be used: " in touched.err) == (2, True), touched.all
    job = shop.run("job", "daily", "build", "--despite-faults")
    assert (job.code, "job 'daily' can't be used: " in job.err) == (2, True), job.all


def test_a_fault_that_may_concern_everything_is_refused_all_the_same(shop: InProcess) -> None:
    (shop.folder / "stock.yml").write_text("lake: {root_folder: other\n")
    for command in (["status"], ["triggers"], ["process", "orders", "--despite-faults"]):
        done = shop.run(*command)
        assert (done.code, "not YAML" in done.err) == (2, True), done.all


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "hourly", "build"),
        ("rebuild", "orders", "--check"),
        ("undo", "orders", "1", "--yes"),
        ("maintain", "orders", "--dry-run"),
        ("doctor", "orders"),
        ("manifest", "ls"),
        ("manifest", "discover", "--entity", "orders"),
        ("manifest", "resolve", "orders/1"),
        ("watermark", "reset", "orders", "day"),
    ],
)
def test_commands_about_what_no_fault_touches_go_on_if_they_are_told_to(
    shop: InProcess, command: tuple[str, ...]
) -> None:
    orders = shop.folder / "orders.yml"
    orders.write_text(
        orders.read_text()
        .replace("targets: {stock_target", "targets: {orders: {kind: entity, entity: orders}, stock_target")
        .replace("jobs: {daily", "jobs: {hourly: {targets: orders}, daily")
    )
    refused = shop.run(*command)
    assert (refused.code, "not YAML" in refused.err) == (2, True), refused.all
    assert (
        refused.err.splitlines()[-1] == "With --despite-faults, what no fault touches can be used meanwhile."
    )
    done = shop.run(*command, "--despite-faults")
    assert "fault: stock.yml:3: not YAML" in done.err, done.all
    assert "error: not YAML" not in done.err
    assert done.code == 0 or command[0] in ("rebuild", "undo", "manifest", "watermark"), done.all


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("ls", "entities"), "orders"),
        (("show", "entity", "orders"), "entity orders"),
        (("history",), "nothing has run yet"),
        (("history", "prune", "--dry-run", "--older-than", "1d"), "0 runs would be removed"),
        (("watermark", "ls"), "no slice has brought a watermark yet"),
        (("watermark", "history", "orders"), "nobody has set or reset a watermark yet"),
    ],
)
def test_a_command_that_only_reads_goes_on_and_tells_the_faults(
    shop: InProcess, command: tuple[str, ...], shown: str
) -> None:
    done = shop.run(*command)
    assert (done.code, shown in done.out) == (0, True), done.all
    assert "fault: stock.yml:3: not YAML" in done.err


def test_what_a_fault_touches_is_refused_by_a_command_that_only_reads(shop: InProcess) -> None:
    for command in (("show", "entity", "stock"), ("history", "row", "stock", "1")):
        refused = shop.run(*command)
        assert (refused.code, "entity 'stock' can't be used: " in refused.err) == (2, True), refused.all
    unknown = shop.run("history", "show", "r1")
    assert (unknown.code, "there is no run" in unknown.err) == (2, True), unknown.all


PARTLY = """
relations:
  raw: {kind: file, location: in, format: csv}
  clean: {kind: file, location: out, format: csv}
  apart: {kind: file, location: apart, format: csv}
mappings:
  raw: {kind: relation, relation: raw}
  cleaned: {kind: relation, relation: clean}
  broken: {kind: alias, input: raw, inputs: 3}
targets:
  orders: {kind: entity, entity: orders}
  clean: {kind: relation, relation: clean, mapping: broken}
  report: {kind: relation, relation: apart, mapping: cleaned}
  aside: {kind: relation, relation: raw}
jobs: {all: {targets: [orders, clean, report, aside]}}
triggers: {hourly: {job: all, phase: build, cron: "@hourly"}}
"""


@pytest.fixture
def partly(shop: InProcess) -> InProcess:
    """A job with a target that has a faulty mapping, one that reads what it writes, and two others."""
    (shop.folder / "stock.yml").write_text(PARTLY)
    orders = shop.folder / "orders.yml"
    orders.write_text(orders.read_text().partition("triggers:")[0])
    (shop.folder / "in").mkdir()
    return shop


def statuses(document: Any) -> dict[str, list[str]]:
    """Return the targets of a plan or a run with their statuses, phase by phase."""
    found: dict[str, list[str]] = {}
    for phase in document["instances"][0]["phases"]:
        for target in phase["targets"]:
            found.setdefault(target["name"], []).append(target["status"])
    return found


def test_of_a_job_only_the_targets_wait_that_a_fault_touches_and_those_behind_them(partly: InProcess) -> None:
    plan = partly.run("plan", "all", "build", "--despite-faults", "-o", "json")
    assert plan.code == 0, plan.all
    document = json.loads(plan.out)
    found = statuses(document)
    assert (set(found["clean"]), found["report"][-2:]) == ({"BLOCKED"}, ["WOULD_RUN", "BLOCKED"])
    assert "BLOCKED" not in found["orders"] + found["aside"]
    told = [
        target
        for phase in document["instances"][0]["phases"]
        for target in phase["targets"]
        if target["error"]
    ]
    assert [(each["name"], each["error"]["location"]) for each in told] == [("clean", "stock.yml:9")]
    shown = partly.run("plan", "all", "build", "--despite-faults").out
    assert "clean (relation): it waits for a fault in the project's files: mapping 'broken'" in shown
    assert "report (relation): clean waits for a fault" in shown
    assert shown.count("mapping 'broken'") == 1


def test_a_run_of_such_a_job_does_the_rest_and_ends_with_1(partly: InProcess) -> None:
    done = partly.run("job", "all", "build", "--despite-faults", "-t", "orders|clean|report", "-o", "json")
    assert done.code == 1, done.all
    found = statuses(json.loads(done.out))
    assert set(found["orders"]) == {"SKIPPED"}
    assert (set(found["clean"]), found["report"][-2:]) == ({"BLOCKED"}, ["SUCCESS", "BLOCKED"])
    assert done.err.count("BLOCKED clean in") == 1
    assert "mapping 'broken'" in done.err.partition("BLOCKED clean in")[2]


def test_if_nobody_knows_what_a_target_writes_all_wait_that_read_but_for_entities(partly: InProcess) -> None:
    stock = partly.folder / "stock.yml"
    stock.write_text(PARTLY.replace("targets: [orders, clean, ", "targets: [orders, tpyo, "))
    plan = partly.run("plan", "all", "build", "--despite-faults", "-o", "json")
    found = statuses(json.loads(plan.out))
    assert set(found["tpyo"]) == {"BLOCKED"}
    assert "BLOCKED" in found["report"]
    assert "BLOCKED" not in found["orders"]
    assert "it may need what tpyo writes, which waits for a fault" in plan.out


@pytest.mark.parametrize("kind", ["blackhole", "null", "document", "documentation", "empty", "verify"])
def test_nothing_waits_for_a_faulty_target_whose_kind_feeds_no_other(partly: InProcess, kind: str) -> None:
    stock = partly.folder / "stock.yml"
    odd = f"  odd: {{kind: '{kind}', tpyo: 1}}\njobs:"
    stock.write_text(PARTLY.replace("\njobs:", f"\n{odd}").replace("[orders, clean, ", "[orders, odd, "))
    plan = partly.run("plan", "all", "build", "--despite-faults", "-o", "json")
    found = statuses(json.loads(plan.out))
    assert set(found["odd"]) == {"BLOCKED"}
    assert "BLOCKED" not in found["report"] + found["aside"]


def test_status_names_the_targets_of_a_trigger_s_job_that_wait(partly: InProcess) -> None:
    waiting = partly.run("status").out.partition("Triggers that wait until they are mended")[2]
    assert "hourly (clean): " in waiting
    found = partly.json("status")["withheld"]
    assert [(each["trigger"], each["entity"], each["target"]) for each in found] == [
        ("hourly", None, "clean")
    ]
