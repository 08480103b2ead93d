"""Bad input: an error that says what, where and what to do, and nothing changed.

`processing-strategies.md`, "Error Handling"; `lifecycles-and-phases.md`, "Jobs & Lifecycles";
`processing-manifest.md`, "State" (Failed, Resolved).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.lake import SmallLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANNA, BEN = {"id": 1, "name": "Anna"}, {"id": 2, "name": "Ben"}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake.make(tmp_path / "lake")


def refused(lake: SmallLake, *arguments: str) -> dict[str, str]:
    """Return the single error with which a command is refused, exit code 2."""
    done = lake.run(*arguments, "-o", "json")
    assert done.code == 2, done.all
    errors = json.loads(done.out)["errors"]
    assert len(errors) == 1
    found: dict[str, str] = errors[0]
    assert found["message"]
    assert found["remedy"]
    return found


def edit(lake: SmallLake, old: str, new: str) -> None:
    model = lake.folder / "model" / "model.yml"
    text = model.read_text()
    assert old in text
    model.write_text(text.replace(old, new))


def test_an_unknown_key_is_named_with_file_and_line_and_the_near_one(lake: SmallLake) -> None:
    edit(lake, "processtype: merge", "processtipe: merge\n    processtype: merge")

    error = refused(lake, "validate")

    assert "processtipe" in error["message"]
    assert error["location"].startswith("model/model.yml:")
    assert "processtype" in error["remedy"]


def test_a_cycle_of_targets_is_shown(lake: SmallLake) -> None:
    edit(lake, "{kind: entity, entity: customers}", "{kind: entity, entity: customers, after: names}")

    error = refused(lake, "plan", "daily", "build")

    assert "customers" in error["message"]
    assert "names" in error["message"]
    assert "->" in error["message"]


def test_circles_and_missing_links_are_found_without_running_anything(lake: SmallLake) -> None:
    edit(lake, "{kind: entity, entity: customers}", "{kind: entity, entity: customers, after: prices}")
    edit(lake, "{kind: entity, entity: prices}", "{kind: entity, entity: prices, after: [customers, zork]}")
    edit(lake, "kind: relation, relation: current_customers}", "kind: alias, input: names}")

    done = lake.run("validate", "-o", "json")

    assert done.code == 2, done.all
    errors = json.loads(done.out)["errors"]
    messages = " ".join(error["message"] for error in errors)
    assert "targets depend on each other in a cycle" in messages
    assert "mappings depend on each other in a cycle" in messages
    assert "there is no target 'zork'" in messages
    assert all(error["location"].startswith("model/model.yml:") for error in errors)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "missing"),
        (["day:start=2022-01-02", "day:end=2022-01-01"], "after"),
        (["day=soon"], "soon"),
        (["dya=2022-01-01", "day=2022-01-01"], "dya"),
        (["day:start=2022-01-01"], "end"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(
    lake: SmallLake, arguments: list[str], part: str
) -> None:
    edit(lake, 'type: date, default: "2022-01-01"', "type: date")
    lake.slice("customers", "1", [ANNA])

    assert part in refused(lake, "job", "daily", "build", *arguments)["message"]
    assert lake.silver("customers") == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_bad_slice_stops_its_own_entity_until_an_operator_resolves_it(
    tmp_path: Path, session: SparkSession
) -> None:
    """Duplicate business keys and a truncated file, each against a lake that was right before."""
    lake = SmallLake.make(tmp_path / "lake", session)
    lake.slice("customers", "1", [ANNA])
    lake.slice("prices", "1", [ANNA])
    lake.slice("countries", "1", [ANNA])
    assert lake.run("job", "daily", "build").code == 0
    before = {entity: lake.silver(entity) for entity in ("customers", "prices")}

    twice = lake.slice("customers", "2", [BEN, {**BEN, "name": "Bob"}])
    torn = lake.slice("prices", "2", [BEN])
    torn.write_bytes(torn.read_bytes()[:-20])
    lake.slice("countries", "2", [ANNA, BEN])
    done = lake.run("job", "daily", "build", "-o", "json")

    assert done.code == 1, done.all
    ended = {t["name"]: t for p in json.loads(done.out)["instances"][0]["phases"] for t in p["targets"]}
    assert ended["customers"]["status"] == "FAILED"
    assert ended["customers"]["error"]["code"] == "duplicate_business_key"
    assert "2" in ended["customers"]["error"]["message"]
    assert ended["prices"]["status"] == "FAILED"
    assert "2.parquet" in ended["prices"]["error"]["message"]
    assert ended["countries"]["status"] == "SUCCESS"
    assert ended["names"]["status"] == "BLOCKED"
    assert {entity: lake.silver(entity) for entity in before} == before
    assert len(lake.silver("countries")) == 2

    held = lake.run("job", "daily", "build", "-o", "json")
    assert held.code == 4, held.all

    twice.unlink()
    lake.slice("customers", "2", [BEN])
    lake.slice("prices", "2", [BEN])
    for item in lake.json("manifest", "ls", "--state", "failed"):
        resolved = lake.run("manifest", "resolve", item["item_id"], "--reason", "delivered again")
        assert resolved.code == 0, resolved.all
    mended = lake.run("job", "daily", "build")

    assert mended.code == 0, mended.all
    assert sorted(row["name"] for row in lake.silver("customers")) == ["Anna", "Ben"]
    assert sorted(row["name"] for row in lake.silver("prices")) == ["Anna", "Ben"]
