"""One slice in this process, which imports only what its contestant needs: all that it takes is measured.

Usage: python -m benchmarks.one_slice CONTESTANT PLACE FILE STRATEGY TIME
"""

from __future__ import annotations

import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from benchmarks.strategies.slices import KEY


def append_changed(place: str, file: str) -> None:
    """Append the rows of a slice that the table does not hold with the same values."""
    import duckdb

    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute("SET preserve_insertion_order = false")
        db.read_parquet(file).create_view("slice")
        columns = ", ".join(f'"{name}"' for name in db.table("slice").columns)
        hashed = f"select *, (hash({columns}) >> 1)::bigint as h from slice"
        try:
            db.register("held", DeltaTable(place).to_pyarrow_dataset())
        except TableNotFoundError:
            write_deltalake(place, db.sql(hashed).to_arrow_reader())
            return
        changed = db.sql(f"select * from ({hashed}) anti join held using ({KEY}, h)")
        write_deltalake(place, changed.to_arrow_reader(), mode="append")


def merge_slice(place: str, file: str) -> None:
    """Merge a slice by delta-rs alone, which compares all columns."""
    parquet: Any = import_module("pyarrow.parquet")  # has no type annotations
    rows = parquet.read_table(file)
    try:
        table = DeltaTable(place)
    except TableNotFoundError:
        write_deltalake(place, rows)
        return
    is_changed = " or ".join(f'(s."{name}" is distinct from t."{name}")' for name in rows.column_names)
    merge = table.merge(rows, f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t")
    merge.when_matched_update_all(is_changed).when_not_matched_insert_all().execute()


def _apply(name: str, place: str, file: str, strategy: str, at: str) -> None:
    """Apply a slice as a contestant does that is no command."""
    if name == "duckdb":
        from benchmarks.strategies.duck import apply_with_duckdb

        apply_with_duckdb(place, file, strategy, datetime.fromisoformat(at))
        return
    if name == "delta-rs":
        merge_slice(place, file)
        return
    from benchmarks.strategies.worker import Worker

    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    worker = Worker(name, folder)
    worker.apply(strategy, file, strategy, at)
    worker.stop()


if __name__ == "__main__":
    _apply(*sys.argv[1:])
