"""Late slices: what their error names first keeps newer rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.commands import InProcess
from tests.silver import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
connections: {shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: json}}}
entities:
  parted:
    id: 1
    connection: shop
    processtype: full
    columns: [{name: id, fieldroles: [partition]}]
targets:
  parted: {kind: entity, entity: parted, processingTime: "${slice.date}"}
jobs: {daily: {targets: [parted]}}
"""


@pytest.mark.nightly
def test_the_error_of_a_late_slice_names_the_commands_that_put_it_in_its_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It named `requeue --late`, by which the older values became the current ones.

    A late slice of Merge is placed in `due/test_apply.py`.
    """
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(MODEL)
    shop = InProcess(tmp_path, spark)

    def put(day: str, *rows: tuple[int, str]) -> None:
        folder = tmp_path / "lake/bronze/parted"
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps({"id": key, "v": value}) + "\n" for key, value in rows)
        (folder / f"{day}.json").write_text(text)

    put("2024-05-01", (1, "first"))
    put("2024-05-03", (1, "newest"), (2, "newest"))
    assert shop.json("job", "daily", "build")["status"] == "SUCCESS"
    put("2024-05-02", (2, "late"), (3, "late"))
    assert shop.run("job", "daily", "build").code == 1

    assert shop.run("decide", "parted/2024-05-02.json", "place").code == 0
    done = shop.run("apply")
    assert done.code == 0, done.all
    rows = rows_of(tmp_path / "lake/silver/parted")
    assert {row["id"]: row["v"] for row in rows} == {1: "newest", 2: "newest", 3: "late"}
    assert shop.json("status")["steps"] == []
