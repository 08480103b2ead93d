"""A script with DuckDB and deltalake that does the same as the strategies, without Spark and Lakewright.

DuckDB computes the hashes and finds what has changed, from the few columns of the table that it needs;
deltalake merges that into the table. Nothing is checked or counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import duckdb
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from benchmarks.strategies.slices import KEY

HISTORIC, EVERY_ROW = "historic", "merge_column"


def apply_with_duckdb(place: str, file: str, strategy: str, at: datetime) -> None:
    """Apply a slice."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute("SET preserve_insertion_order = false")
        rows = _prepared(db, file, strategy)
        values = {"file": file, "name": file.rpartition("/")[2], "at": at}
        try:
            table = DeltaTable(place)
        except TableNotFoundError:
            write_deltalake(place, db.sql(rows, params=values).to_arrow_reader())
            return
        if strategy == EVERY_ROW:
            _merge_every_row(table, db.sql(rows, params=values).to_arrow_reader())
            return
        held = "dlf_ValidTo is null" if strategy == HISTORIC else "true"
        db.register("target", table.to_pyarrow_dataset())
        db.execute(
            f"create temp table changed as with slice as ({rows}), "
            f"held as (select PK_rows as held_key, dlf_SourceHash as held_hash from target where {held}) "
            "select slice.*, held_key from slice left join held on PK_rows = held_key "
            "where held_hash is distinct from dlf_SourceHash",
            values,
        )
        _merge_changed(table, db, strategy)


def _prepared(db: duckdb.DuckDBPyConnection, file: str, strategy: str) -> str:
    """Return the query of a slice with its system columns."""
    described = db.sql("describe from read_parquet($file)", params={"file": file}).fetchall()
    source = [str(row[0]) for row in described]
    temporal = (
        "$at::timestamptz as dlf_ValidFrom, null::timestamptz as dlf_ValidTo, true as dlf_IsCurrent, "
        if strategy == HISTORIC
        else ""
    )
    return (
        f"select *, {_hash(source)} as dlf_SourceHash, {temporal}$name as dlf_source_filename, "
        f"{_hash([KEY])} as PK_rows, false as dlf_deleted, $at::timestamptz as dlf_lastSeen "
        "from read_parquet($file)"
    )


def _hash(columns: Sequence[str]) -> str:
    texts = ", ".join(f"coalesce(\"{name}\"::varchar, '')" for name in columns)
    return f"sha256(concat_ws('|', {texts}))"


def _merge_every_row(table: DeltaTable, rows: Any) -> None:
    merge = table.merge(rows, "t.PK_rows = s.PK_rows", source_alias="s", target_alias="t")
    merge = merge.when_matched_update_all(predicate="s.dlf_SourceHash <> t.dlf_SourceHash")
    merge.when_matched_update({"dlf_lastSeen": "s.dlf_lastSeen"}).when_not_matched_insert_all().execute()


def _merge_changed(table: DeltaTable, db: duckdb.DuckDBPyConnection, strategy: str) -> None:
    """Merge the changed rows in one commit; of Historic, each closes a version and begins another one."""
    if not db.table("changed").limit(1).fetchall():
        return
    if strategy == HISTORIC:
        matches = "unnest(case when held_key is null then [null] else [held_key, null] end)"
        rows = db.query(f"select * exclude (held_key), {matches} as match from changed")
        condition = "t.PK_rows = s.match and t.dlf_ValidTo is null"
    else:
        rows = db.query("select * exclude (held_key) from changed")
        condition = "t.PK_rows = s.PK_rows"
    values = {name: f"s.{name}" for name in rows.columns if name != "match"}
    update = {"dlf_ValidTo": "s.dlf_ValidFrom", "dlf_IsCurrent": "false"} if strategy == HISTORIC else values
    merge = table.merge(rows.to_arrow_table(), condition, source_alias="s", target_alias="t")
    merge.when_matched_update(update).when_not_matched_insert(values).execute()
