"""A table of the catalog whose folder is gone is made anew, although the catalog has an entry for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.run.shops import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTITY = """
connections: {web: {settings: {bronze_path: "${entity}", bronze_format: csv, silver_table: "gone.orders"}}}
entities:
  orders: {id: 1, connection: web, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
targets:
  orders: {kind: entity, entity: orders}
jobs:
  daily: {targets: [orders]}
"""


@pytest.mark.nightly  # damage; test_rebuild.py rebuilds from nothing
def test_a_silver_table_of_the_catalog_whose_folder_is_gone_is_made_again_as_named(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The rebuild that was named failed, and so did a build after TRUNCATE."""
    shop = make_shop(tmp_path, ENTITY, spark)
    bronze = tmp_path / "lake/bronze/orders"
    bronze.mkdir(parents=True)
    (bronze / "1.csv").write_text("id\n1\n")

    def lose() -> None:
        (row,) = spark.sql("DESCRIBE DETAIL gone.orders").select("location").collect()
        shutil.rmtree(str(row[0]).removeprefix("file:"))

    def count() -> int:
        return spark.newSession().table("gone.orders").count()

    try:
        done = shop.run("job", "daily", "build")
        assert done.code == 0, done.all
        lose()
        told = shop.run("plan", "daily", "build").all
        assert "`lakewright rebuild orders --yes` makes it again from its slices" in told
        rebuilt = shop.run("rebuild", "orders", "--yes")
        assert rebuilt.code == 0, rebuilt.all
        assert count() == 1

        lose()
        assert shop.run("job", "daily", "truncate", "--yes").code == 0
        built = shop.run("job", "daily", "build")
        assert built.code == 0, built.all
        assert count() == 1
    finally:
        spark.sql("DROP TABLE IF EXISTS gone.orders")
        spark.sql("DROP DATABASE IF EXISTS gone CASCADE")
