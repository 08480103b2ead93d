"""Slices that a server processes for nobody, so that its first request finds a warm JVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.spark.session import SharedSession
from lakewright.usecases.process_slices import process_slices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STRATEGIES = ("merge", "historic")

ROWS = 60_000
"""Rows of a slice: enough for Spark to compile its queries, and for a MERGE to mark rows of a table."""

SLICES = 3
"""Number of slices of each entity; in benchmarks/strategies the third one takes the time of all after it."""

PROJECT = "name: warm_up\nlake: {root_folder: lake}\nmodules: [entities.yml]\n"
ENTITY = """
  {name}:
    id: {name}
    destination: rows
    connection: warm_up
    processtype: {name}
    columns: [{{name: id, fieldroles: [businesskey]}}]
    settings:
      bronze_path: {name}
      silver_path: {name}
      last_seen: on_change
      table_properties: {{delta.checkpointInterval: "1"}}
"""
"""Each commit writes a checkpoint, which every tenth one of other tables does, so that it is warm too."""


def warm_up(spark: SparkSession, folder: Path, environ: Mapping[str, str]) -> None:
    """Process slices of a project of its own, of which nothing stays but what Spark's JVM has learned.

    Args:
        spark: The session whose JVM is to be warm; it is left as it is.
        folder: An empty folder for the project and its lake, which the caller removes.
        environ: The environment.
    """
    (folder / "project.yml").write_text(PROJECT)
    entities = "".join(ENTITY.format(name=name) for name in STRATEGIES)
    (folder / "entities.yml").write_text(f"connections: {{warm_up: {{}}}}\nentities:{entities}")
    names = [_write_slice(spark, folder, number) for number in range(SLICES)]
    app = App.open(folder, environ=environ, sessions=SharedSession(spark), say=lambda _: None)
    try:
        for number, name in enumerate(names):
            for strategy in STRATEGIES:
                process_slices(app, strategy, name, processing_time=f"2000-01-01T0{number}:00:00Z")
    finally:
        app.close()


def _write_slice(spark: SparkSession, folder: Path, number: int) -> str:
    """Write a slice, 1 % of which is new, into the bronze folder of each entity; return its name."""
    made = folder / "made" / str(number)
    rows = spark.range(ROWS).selectExpr(
        "id",
        f"if(id % 100 = 0, {number}, id) as count",
        "id / 7 as share",
        "concat('text ', id) as name",
        "timestamp_seconds(id) as at",
        "date_add(date'2000-01-01', cast(id % 1000 as int)) as day",
    )
    rows.coalesce(1).write.parquet(str(made))
    (part,) = made.glob("*.parquet")
    name = f"{number}.parquet"
    for strategy in STRATEGIES:
        place = folder / "lake" / "bronze" / strategy / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(part.read_bytes())
    return name
