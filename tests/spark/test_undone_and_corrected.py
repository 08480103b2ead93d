"""A slice that was undone and then corrected: the commands that `status` names put it in its place."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.silver import rows_of
from tests.spark.run.shops import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: json}}
entities:
  merged: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
  kept: {id: 2, connection: shop, processtype: historic, columns: [{name: id, fieldroles: [businesskey]}]}
targets:
  merged: {kind: entity, entity: merged}
  kept: {kind: entity, entity: kept, processingTime: "${slice.date}"}
jobs:
  daily: {targets: [TARGETS]}
"""
DAYS = ("2024-05-01", "2024-05-02", "2024-05-03")


@pytest.mark.nightly  # unit/due/test_status.py notices it, due/test_apply.py takes a correction in its place
@pytest.mark.parametrize("names", [("merged", "kept")])
def test_an_undone_slice_that_was_corrected_is_put_in_its_place_by_what_status_names(
    tmp_path: Path, spark: SparkSession, names: tuple[str, ...]
) -> None:
    """`undo` named a `requeue`, and `status` a rebuild: both were refused."""
    shop = make_shop(tmp_path, MODEL.replace("TARGETS", ", ".join(names)), spark)

    def put(name: str, day: str, *rows: tuple[int, int]) -> None:
        folder = tmp_path / "lake/bronze" / name
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps({"id": id_, "n": n}) + "\n" for id_, n in rows)
        (folder / f"{day}.json").write_text(text)

    def typed(*commands: str) -> None:
        for command in commands:
            again = ["--yes"] if command.startswith("lakewright rebuild") else []
            done = shop.run(*shlex.split(command)[1:], *again)
            assert done.code == 0, (command, done.all)

    for name in names:
        put(name, DAYS[0], (1, 10), (2, 20))
        put(name, DAYS[1], (1, 99), (3, 99))
        put(name, DAYS[2], (2, 22))
    typed("lakewright job daily build")
    for name in names:
        done = shop.run("undo", name, f"{DAYS[1]}.json", "--yes")
        assert "once its file is corrected, `lakewright status` and the plan" in done.all
        put(name, DAYS[1], (1, 11), (3, 33))
    assert "is skipped, and its files have changed since" in shop.run("plan", "daily", "build").all

    found = shop.json("status")["findings"]
    assert [(each["code"], each["subject"]["name"]) for each in found] == [
        ("skipped_changed", name) for name in names
    ]
    for name in names:
        typed(f"lakewright decide {name}/{DAYS[1]}.json take")
    typed("lakewright apply")
    told = shop.json("status")
    assert (told["steps"], told["findings"]) == ([], [])
    for name in names:
        rows = rows_of(tmp_path / "lake/silver" / name)
        current = sorted((row["id"], row["n"]) for row in rows if row.get("dlf_IsCurrent", True))
        assert current == [(1, 11), (2, 22), (3, 33)], name
    versions = rows_of(tmp_path / "lake/silver/kept")
    assert sorted((row["id"], row["n"], str(row["dlf_ValidFrom"])[:10]) for row in versions) == [
        *((1, 10, DAYS[0]), (1, 11, DAYS[1])),
        *((2, 20, DAYS[0]), (2, 22, DAYS[2])),
        (3, 33, DAYS[1]),
    ]
