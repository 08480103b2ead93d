"""What an operator types at night, as `status` says, until it is calm: gold has each row once."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.run.shops import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: json}}
entities:
  sales: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  sales: {kind: entity, entity: sales}
  log: {kind: delta, location: gold/log, schema: {fields: [{name: what, type: string}]}}
mappings:
  day: {kind: sql, sql: "SELECT concat('$day', '/', id) AS what FROM sales WHERE day = '$day'"}
  sales: {kind: relation, relation: sales}
  week: {kind: sql, sql: "SELECT 'week $wk' AS what"}
targets:
  sales: {kind: entity, entity: sales, slices: "${day}*"}
  log: {kind: relation, mapping: day, relation: log, mode: APPEND}
  wlog: {kind: relation, mapping: week, relation: log, mode: APPEND}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [sales, log]}
  weekly: {parameters: [{name: wk, type: date}], targets: [wlog]}
"""


class Night:
    """A lake whose one gold table is appended to by two jobs."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.shop = folder, spark, make_shop(folder, MODEL, spark)

    def put(self, name: str, *ids: int) -> None:
        rows = [{"id": each, "day": name[:10]} for each in ids]
        bronze = self.folder / "lake/bronze/sales"
        bronze.mkdir(parents=True, exist_ok=True)
        (bronze / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self, command: str) -> str:
        done = self.shop.run(*command.split())
        assert done.code == 0, (command, done.all)
        return str(done.all)

    def calm_down(self) -> str:
        """Type what `status` names from top to bottom until it is calm; return all that it said."""
        said = ""
        for _ in range(4):
            told = self.shop.run("status").all
            if told.startswith("Nothing is running"):
                return said
            said += told
            for command in re.findall(r"do: .*", told):
                for typed in re.findall(r"`lakewright (job [^`]*)`", command):
                    self.shop.run(*typed.split())
        raise AssertionError(said)

    def log(self) -> list[str]:
        found = self.spark.sql(f"SELECT what FROM delta.`{self.folder / 'gold/log'}`").collect()
        return sorted(str(row["what"]) for row in found)


def test_what_is_typed_after_a_late_slice_an_older_copy_and_an_older_manifest_gives_each_row_once(
    tmp_path: Path, spark: SparkSession
) -> None:
    night = Night(tmp_path, spark)
    night.put("2024-05-01", 1)
    night.put("2024-05-02", 2)
    night.run("job daily build day=2024-05-01,2024-05-02")
    night.run("job weekly build wk=2024-05-01")
    whole = ["2024-05-01/1", "2024-05-02/2", "week 2024-05-01"]
    assert night.log() == whole
    gold = tmp_path / "gold/log"
    shutil.copytree(gold, tmp_path / "older")

    # A slice that came after the build: its rows, and not those of before once more.
    night.put("2024-05-02_b", 3)
    night.run("process sales")
    assert "`lakewright job daily truncate -t log" in night.calm_down()
    whole = sorted([*whole, "2024-05-02/3"])
    assert night.log() == whole

    # An older copy of the table, from before it was emptied: it holds rows of both jobs.
    shutil.rmtree(gold)
    shutil.copytree(tmp_path / "older", gold)
    night.calm_down()
    assert night.log() == whole

    # An older manifest, from before an undo and another day, of whose build the history knows nothing.
    manifest = next(path.parent for path in tmp_path.rglob("manifest.db"))
    shutil.copytree(manifest, tmp_path / "manifest")
    night.run("undo sales 2024-05-01.json --yes")
    night.run("undo sales 2024-05-02.json --yes")
    night.put("2024-05-03", 4)
    night.run("job daily build day=2024-05-03")
    shutil.rmtree(manifest)
    shutil.copytree(tmp_path / "manifest", manifest)
    assert "no longer in bronze" not in night.shop.run("status").all
    night.calm_down()
    assert night.log() == ["2024-05-02/3", "2024-05-03/4", "week 2024-05-01"]
