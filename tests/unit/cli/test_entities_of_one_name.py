"""Entities that share a name: commands, records and the page call them by their ids."""

from __future__ import annotations

from pathlib import Path

from tests.commands import InProcess
from tests.unit.serve.sites import browser, served, write_project
from tests.unit.serve.slices import fail

from lakewright.manifest.store import Query
from lakewright.slices.application import application_of
from lakewright.slices.other_runs import run_taking

MODEL = """
connections: {web: {}, till: {}}
entities:
  - {id: 1, name: orders, connection: web, processtype: full, destination: web_orders}
  - {id: 2, name: orders, connection: till, processtype: full, destination: till_orders}
targets:
  web: {kind: entity, entity: 1, slices: "${day}*"}
  till: {kind: entity, entity: 2, slices: "${day}*"}
jobs:
  of_web: {parameters: [{name: day, type: date}], targets: web}
  of_till: {parameters: [{name: day, type: date}], targets: till}
"""


def test_slices_of_entities_that_share_a_name_are_told_apart_by_id(tmp_path: Path) -> None:
    """Issue 13: each command that is printed works as it is printed, and each page opens."""
    write_project(tmp_path, MODEL)
    for connection in ("web", "till"):
        bronze = tmp_path / "lake" / "bronze" / connection / "orders"
        bronze.mkdir(parents=True)
        (bronze / "2024-05-01.csv").write_text("id\n1\n")
    shop = InProcess(tmp_path)
    assert shop.run("manifest", "discover").code == 0
    with served(tmp_path) as site:
        project = site.app.project
        for name in ("1", "2"):
            application = application_of("shop", project.entity(name))
            (item,) = site.app.store.select(Query(application=application))
            failed = fail(site.app, item)
            assert failed.new is not None
            assert failed.new.note["entity"] == name
            run = run_taking(project, project.entity(name).called, "2024-05-01.csv")
            assert run is not None
            assert run.job == {"1": "of_web", "2": "of_till"}[name]
        asked = [step["subject"] for step in site.get("/plan")["steps"] if step["choices"]]
        assert {(each["name"], each["part"]) for each in asked} == {(n, "2024-05-01.csv") for n in "12"}
        pages = browser(site)
        for name in ("1", "2"):
            assert pages.get(f"/entities/{name}").status_code == 200
    asked = [each["choices"][0]["argv"] for each in shop.json("status")["steps"]]
    assert asked == [["decide", f"{name}/2024-05-01.csv", "retry"] for name in "12"]
    assert shop.run("manifest", "resolve", "1/2024-05-01.csv").code == 0
    refused = shop.run("manifest", "resolve", "orders/2024-05-01.csv")
    assert (refused.code, "several entities are named 'orders'" in refused.err) == (2, True)
    assert "Use an id: 1/2024-05-01.csv, 2/2024-05-01.csv." in refused.err
    for command in (("process", "orders"), ("doctor", "orders"), ("manifest", "ls", "--entity", "orders")):
        assert "Use an id: 1, 2." in shop.run(*command).err
