"""Two scripts in Spark that do the same as the strategies, without Lakewright.

Both use Lakewright's column names for their tables; their hashes are of texts joined by a bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from pyspark.sql import functions as f

from benchmarks.strategies.slices import KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Assignments = dict[str, "str | Column"]


HISTORIC = "historic"
TEMPORAL = ("dlf_ValidFrom", "dlf_ValidTo", "dlf_IsCurrent")
FEW = 100_000
"""Changed rows up to which they are sent to each task, and marked in the files of their former values."""

MANY = 0.3
"""Share of the table's rows from which files are rewritten instead of marking rows in them."""


def prepare(spark: SparkSession, file: str, strategy: str, at: datetime) -> DataFrame:
    """Return a slice with its system columns."""
    rows = spark.read.parquet(file)
    source = rows.columns
    moment = f.lit(at)
    rows = rows.withColumn("dlf_SourceHash", _hash(source))
    if strategy == HISTORIC:
        rows = rows.withColumns(
            {
                "dlf_ValidFrom": moment,
                "dlf_ValidTo": f.lit(None).cast("timestamp"),
                "dlf_IsCurrent": f.expr("true"),
            }
        )
    return rows.withColumns(
        {
            "dlf_source_filename": f.lit(file.rpartition("/")[2]),
            "PK_rows": _hash([KEY]),
            "dlf_deleted": f.expr("false"),
            "dlf_lastSeen": moment,
        }
    )


def _hash(columns: Sequence[str]) -> Any:
    return f.sha2(f.concat_ws("|", *(f.coalesce(f.col(c).cast("string"), f.lit("")) for c in columns)), 256)


def apply_naively(spark: SparkSession, place: str, file: str, strategy: str, at: datetime) -> None:
    """Apply a slice by following the rules literally."""
    rows = prepare(spark, file, strategy, at).cache()
    rows.count()
    if not DeltaTable.isDeltaTable(spark, place):
        rows.write.format("delta").mode("overwrite").save(place)
    elif strategy == HISTORIC:
        _version_naively(spark, place, rows)
    else:
        _merge_naively(spark, place, rows)
    rows.unpersist()


def _merge_naively(spark: SparkSession, place: str, rows: DataFrame) -> None:
    table = DeltaTable.forPath(spark, place).alias("t")
    merge = table.merge(rows.alias("s"), "t.PK_rows = s.PK_rows")
    seen: Assignments = {"dlf_lastSeen": "s.dlf_lastSeen"}
    merge = merge.whenMatchedUpdate("s.dlf_deleted", {"dlf_deleted": "s.dlf_deleted", **seen})
    merge = merge.whenMatchedUpdateAll("s.dlf_SourceHash <> t.dlf_SourceHash")
    merge.whenMatchedUpdate(set=seen).whenNotMatchedInsertAll().execute()


def _version_naively(spark: SparkSession, place: str, rows: DataFrame) -> None:
    """Close and insert versions in two commits, because one row cannot match a record and be inserted too."""
    table = DeltaTable.forPath(spark, place)
    current = table.toDF().where("dlf_IsCurrent").select("PK_rows", f.col("dlf_SourceHash").alias("held"))
    new = rows.join(current, "PK_rows", "left").where("held is null or held <> dlf_SourceHash").drop("held")
    new = new.select(rows.columns).cache()
    new.count()
    closing = table.alias("t").merge(rows.alias("s"), "t.PK_rows = s.PK_rows and t.dlf_IsCurrent")
    closing.whenMatchedUpdate(
        "s.dlf_SourceHash <> t.dlf_SourceHash",
        {"dlf_ValidTo": "s.dlf_ValidFrom", "dlf_IsCurrent": "false"},
    ).execute()
    new.write.format("delta").mode("append").save(place)
    new.unpersist()


def apply_by_hand(spark: SparkSession, place: str, file: str, strategy: str, at: datetime) -> None:
    """Apply a slice with all known optimisations: changed rows first, one MERGE, deletion vectors.

    Nothing is checked or counted except for what selects the kind of MERGE.
    """
    rows = prepare(spark, file, strategy, at)
    if not DeltaTable.isDeltaTable(spark, place):
        writer = rows.writeTo(f"delta.`{place}`").using("delta")
        writer.tableProperty("delta.enableDeletionVectors", "true").create()
        return
    spark.conf.set("spark.databricks.delta.merge.materializeSource", "none")
    # With it, Spark takes minutes to plan a filter by a hash of twenty columns.
    spark.conf.set("spark.sql.constraintPropagation.enabled", "false")
    table = DeltaTable.forPath(spark, place)
    if strategy == "merge_column":
        spark.conf.set("spark.databricks.delta.merge.deletionVectors.persistent", "false")
        seen: Assignments = {"dlf_lastSeen": "s.dlf_lastSeen"}
        merge = table.alias("t").merge(rows.alias("s"), "t.PK_rows = s.PK_rows")
        merge = merge.whenMatchedUpdateAll("s.dlf_SourceHash <> t.dlf_SourceHash")
        merge.whenMatchedUpdate(set=seen).whenNotMatchedInsertAll().execute()
        return
    held = table.toDF()
    if strategy == HISTORIC:
        held = held.where("dlf_ValidTo is null")
    total = held.select(f.col("PK_rows").alias("held_key"), f.col("dlf_SourceHash").alias("held_hash"))
    changed = rows.join(total, f.expr("PK_rows = held_key"), "left")
    changed = changed.where("held_key is null or held_hash <> dlf_SourceHash").drop("held_hash")
    changed = changed.localCheckpoint()
    count = changed.count()
    if not count:
        return
    is_few = count <= FEW
    is_marked = is_few or count < MANY * table.toDF().count()
    spark.conf.set("spark.databricks.delta.merge.deletionVectors.persistent", str(is_marked).lower())
    _write_by_hand(table, changed, strategy, is_few=is_few)


def _write_by_hand(table: DeltaTable, changed: DataFrame, strategy: str, *, is_few: bool) -> None:
    values: Assignments = {name: f"s.{name}" for name in changed.columns if name != "held_key"}
    if strategy == HISTORIC:
        actions = "explode(if(held_key is null, array(null), array(held_key, null))) as match"
        changed = changed.selectExpr("*", actions)
        condition = "t.PK_rows = s.match and t.dlf_ValidTo is null"
        update: Assignments = {"dlf_ValidTo": "s.dlf_ValidFrom", "dlf_IsCurrent": "false"}
    else:
        condition, update = "t.PK_rows = s.PK_rows", values
    source = f.broadcast(changed) if is_few else changed
    merge = table.alias("t").merge(source.alias("s"), condition)
    merge.whenMatchedUpdate(set=update).whenNotMatchedInsert(values=values).execute()
