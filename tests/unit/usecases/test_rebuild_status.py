"""`status` names the tables that only a rebuild makes as they are declared: issue 15, part 2. No Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from tests.commands import InProcess
from tests.unit.slices.test_recover_from_log import pa

from lakewright.strategies.table_properties import (
    EXPRESSIONS_PROPERTY,
    HASH_VERSION_PROPERTY,
    HISTORY_PROPERTY,
    KEY_PROPERTY,
    STRATEGY_PROPERTY,
)
from lakewright.transform.hash import HASH_VERSION

MODEL = """
connections: {{c: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}}}
entities:
  prices:
    id: 1
    connection: c
    processtype: historic
    columns:
    - {{name: id, fieldroles: [businesskey]}}
    - {{name: day{partition}}}
    - {{name: total, expression: "1"}}
targets: {{prices: {{kind: entity, entity: prices}}}}
jobs: {{daily: {{targets: [prices]}}}}
"""
SOUND = {
    STRATEGY_PROPERTY: "historic",
    HASH_VERSION_PROPERTY: HASH_VERSION,
    KEY_PROPERTY: json.dumps({"id": "bigint"}),
}


def project(folder: Path, *, partition: str = "", **properties: str) -> InProcess:
    """Return a project with the table of an entity that has these properties."""
    (folder / "model").mkdir(parents=True)
    (folder / "project.yml").write_text(
        "name: shop\nmodules: [model]\nlake: {root_folder: '${project.basedir}/lake'}\n"
    )
    (folder / "model" / "m.yml").write_text(MODEL.format(partition=partition))
    rows = pa.table({"id": [1], "day": ["a"], "total": [1]})
    write_deltalake(folder / "lake" / "silver" / "prices", rows)
    _set(folder / "lake" / "silver" / "prices" / "_delta_log" / f"{0:020}.json", {**SOUND, **properties})
    (folder / "lake" / "bronze" / "prices").mkdir(parents=True)
    (folder / "lake" / "bronze" / "prices" / "s1.parquet").write_bytes(b"PAR1")
    return InProcess(folder)


def _set(log: Path, properties: dict[str, str]) -> None:
    """Give a table properties that the library does not know, as Spark would."""
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = properties
    log.write_text("\n".join(map(json.dumps, actions)))


CASES: dict[str, tuple[dict[str, Any], str, bool]] = {
    "the business key": ({KEY_PROPERTY: '{"nr": "bigint"}'}, "the table's rows are keyed by nr", True),
    "the strategy": ({STRATEGY_PROPERTY: "merge"}, "the table holds rows of the strategy merge", True),
    "the hash": ({HASH_VERSION_PROPERTY: "0"}, "the table's hashes are of version 0", True),
    "the partitions": (
        {"partition": ", fieldroles: [partition]"},
        "the table is partitioned by no column, the entity by day",
        True,
    ),
    "an expression": (
        {EXPRESSIONS_PROPERTY: '{"total": "0"}'},
        "the expression of total has changed since the table was built",
        False,
    ),
    "the history": (
        {HISTORY_PROPERTY: '{"folder": "exports", "valid_from": "d"}'},
        "the table holds versions of a history_from that is no longer declared",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_status_gives_the_reason_of_the_plan_with_the_command(tmp_path: Path, name: str) -> None:
    changed, reason, refuses = CASES[name]
    shop = project(tmp_path, **changed)
    (due,) = json.loads(shop.run("status", "-o", "json").out)["rebuilds"]
    assert due["reason"].startswith(reason)
    expected = {"entity": "prices", "refuses_slices": refuses, "do": "lakewright rebuild prices"}
    assert {key: value for key, value in due.items() if key != "reason"} == expected
    page = " ".join(shop.run("status").out.split())
    assert f"Tables that need a rebuild 1 prices: {reason}" in page
    assert ("no slice is processed until then" in page) is refuses
    assert "Nothing is running" not in page
    assert reason in " ".join(shop.run("plan", "daily", "build").all.split())


def test_a_table_as_it_is_declared_is_no_news_and_neither_is_one_of_another_program(tmp_path: Path) -> None:
    shop = project(tmp_path)
    assert json.loads(shop.run("status", "-o", "json").out)["rebuilds"] == []
    assert "need a rebuild" not in shop.run("status").out
    _set(tmp_path / "lake" / "silver" / "prices" / "_delta_log" / f"{0:020}.json", {})
    assert json.loads(shop.run("status", "-o", "json").out)["rebuilds"] == []
