"""Who can read our tables: what docs/readers.md says of each reader is tried here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable, QueryBuilder
from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs" / "readers.md"

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "B"}, {"id": 4, "name": "d"}]


def write_project(folder: Path, settings: Mapping[str, str]) -> None:
    model: dict[str, Any] = {
        "connections": {
            "shop": {"settings": {"bronze_path": "${destination}", "silver_path": "${destination}"}}
        },
        "entities": {
            "regions": {
                "id": 1,
                "connection": "shop",
                "processtype": "merge",
                "columns": [
                    {"name": "id", "datatype": "integer", "fieldroles": ["businesskey"]},
                    {"name": "name", "datatype": "string"},
                ],
                "settings": {"format": "csv", **settings},
            }
        },
        "targets": {"regions": {"kind": "entity", "entity": "regions"}},
        "jobs": {"daily": {"targets": ["regions"]}},
    }
    (folder / "model.yml").write_text(json.dumps(model))
    (folder / "project.yml").write_text(
        json.dumps({"name": "shop", "modules": ["model.yml"], "lake": {"root_folder": "lake"}})
    )


def by_polars(location: str) -> Any:
    import polars

    return polars.read_delta(location).select("id", "name").to_dicts()


def by_duckdb(location: str) -> Any:
    """DuckDB reads Arrow tables of the deltalake package; its own extension comes from the network."""
    import duckdb

    table = DeltaTable(location).to_pyarrow_table()
    found = duckdb.from_arrow(table).select("id", "name")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def by_query_builder(location: str) -> Any:
    builder = QueryBuilder().register("t", DeltaTable(location))
    return pa.table(builder.execute("SELECT id, name FROM t").read_all()).to_pylist()


def readers(spark: SparkSession) -> dict[str, Callable[[str], Any]]:
    """Return a function that reads a table's rows, by the reader's name in the documentation."""
    plain = spark.newSession()
    return {
        "Spark with Delta Lake": lambda at: [
            row.asDict() for row in plain.read.format("delta").load(at).select("id", "name").collect()
        ],
        "deltalake, `QueryBuilder`": by_query_builder,
        "deltalake, `to_pyarrow_table`": lambda at: (
            DeltaTable(at).to_pyarrow_table(columns=["id", "name"]).to_pylist()
        ),
        "pandas, by deltalake's `to_pandas`": lambda at: (
            DeltaTable(at).to_pandas(columns=["id", "name"]).to_dict("records")
        ),
        "Polars, `read_delta`": by_polars,
        "DuckDB, by an Arrow table of deltalake": by_duckdb,
    }


def outcome(read: Callable[[str], Any], location: str) -> str:
    """Return `yes` if a reader gives exactly the rows, and `no` if it refuses to."""
    try:
        rows = read(location)
    except Exception:  # each has errors of its own
        return "no"
    assert sorted(rows, key=lambda row: row["id"]) == ROWS
    return "yes"


def documented() -> dict[str, list[str]]:
    """Return what the documentation says of each reader: by default, and with `readers: any`."""
    rows = re.findall(r"^\| (.+?) \| (yes|no) \| (yes|no) \|", DOCS.read_text(), re.M)
    return {name: [default, lenient] for name, default, lenient in rows}


def test_every_reader_reads_what_the_documentation_says(tmp_path: Path, spark: SparkSession) -> None:
    write_project(tmp_path, {})
    shop = InProcess(tmp_path, spark)
    bronze = tmp_path / "lake/bronze/regions"
    bronze.mkdir(parents=True)
    (bronze / "d1.csv").write_text("id,name\n1,a\n2,B\n3,c\n4,d\n")
    assert shop.run("process", "regions").code == 0
    table = str(tmp_path / "lake/silver/regions")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    assert any(DeltaTable(table).get_add_actions(flatten=True).column("num_records").to_pylist())
    by_default = {name: outcome(read, table) for name, read in readers(spark).items()}

    write_project(tmp_path, {"readers": "any"})
    planned = shop.run("plan", "daily", "build").out
    assert "set table property delta.enableDeletionVectors to false" in planned, planned
    assert "drop the table feature deletionVectors" in planned
    done = shop.run("job", "daily", "build")
    assert done.code == 0, done.all
    assert "deletionVectors" not in (DeltaTable(table).protocol().reader_features or [])
    by_any = {name: outcome(read, table) for name, read in readers(spark).items()}
    assert {name: [by_default[name], by_any[name]] for name in by_any} == documented()
    assert "drop the table feature" not in shop.run("plan", "daily", "build").out

    (bronze / "d2.csv").write_text("id,name\n2,b\n")
    again = shop.run("process", "regions")
    assert "1 updated" in again.out, again.all
    assert "deletionVectors" not in (DeltaTable(table).protocol().reader_features or [])
    assert len(DeltaTable(table).to_pyarrow_table()) == 3
