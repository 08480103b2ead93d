"""Operators are told by a command of the job: `processing-manifest.md`, "State" (Processing, Failed)."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tests.acceptance.lake import SmallLake

from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Application, Author
from lakewright.stores.sqlite.database import SqliteStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOOK = """
    hooks:
      - kind: command
        command: [sh, -c, 'echo $alert $target $status >> heard']
        when: {category: alert}
"""
GONE = Holder("elsewhere", 7, "then", "run-0", "ada")


def lake_with_hook(lake: SmallLake) -> SmallLake:
    model = lake.folder / "model" / "model.yml"
    brake = "processtype: historic\n    settings: {delete_missing: true, delete_scope: full}"
    model.write_text(model.read_text().replace("processtype: historic", brake) + HOOK)
    return lake


def leave_locked(lake: SmallLake, entity: str) -> None:
    """Leave the lock of a run that has ended on an entity's newest slice."""
    (item,) = [new["item_id"] for new in lake.json("manifest", "discover")["new"] if entity in new["item_id"]]
    store = SqliteStore(lake.folder / ".lakewright" / "manifest.db")
    application = Application.named(f"lakewright/small/{entity}", entity)
    ledger = Ledger(store, Author.named("tests"), ids=lambda: str(uuid4()))
    ledger.acquire(item, application, GONE, duration=timedelta(), token_counter="tests")
    store.close()


def heard(lake: SmallLake) -> list[tuple[str, ...]]:
    """Return alert, target and status of each, and forget them."""
    file = lake.folder / "heard"
    words = file.read_text().split()
    file.unlink()
    return sorted(zip(words[::3], words[1::3], words[2::3], strict=True))


def test_a_failed_slice_a_braked_delete_and_a_stale_lock_are_told(
    tmp_path: Path, either: SparkSession
) -> None:
    lake = lake_with_hook(SmallLake.make(tmp_path / "lake", either))
    lake.slice("customers", "1", [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}])
    lake.slice("prices", "1", [{"id": number, "name": "a"} for number in range(30)])
    lake.slice("prices", "2", [{"id": 1, "name": "a"}])
    lake.slice("countries", "1", [{"id": 1, "name": "a"}])
    leave_locked(lake, "countries")
    assert [each["stale"] for each in lake.json("status")["locked"]] == [True]

    run = lake.run("job", "daily", "build", "-k", "-t", "customers|prices|countries", "-o", "json")

    assert run.code == 1, run.all
    assert heard(lake) == [
        ("delete_brake", "prices", "FAILED"),
        ("slice_failed", "customers", "FAILED"),
        ("stale_lock", "countries", "SUCCESS"),
    ]
    (countries,) = [
        target
        for phase in json.loads(run.out)["instances"][0]["phases"]
        for target in phase["targets"]
        if (phase["phase"], target["name"]) == ("BUILD", "countries")
    ]
    assert "locked by ada@elsewhere (process 7, run run-0)" in countries["reasons"][-1]

    # Where only an operator may take it over, the run is told to wait for one.
    project = lake.folder / "project.yml"
    project.write_text(project.read_text() + "manifest: {takeover: operator}\n")
    lake.slice("countries", "2", [{"id": 1, "name": "b"}])
    leave_locked(lake, "countries")

    refused = lake.run("job", "daily", "build", "-t", "countries")

    assert refused.code == 4, refused.all
    assert heard(lake) == [("stale_lock", "countries", "BLOCKED")]
