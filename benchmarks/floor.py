"""Slices in a warm session, beside the least that their work costs without Spark, Lakewright or guarantees.

The floor reads the slice and the table's keys, finds the changed rows by a hash that the table keeps, and
appends them in one commit; it does not even mark their former versions. The merge is delta-rs's own, of the
whole slice, and leaves the table as Merge does.

LAKEWRIGHT_FLOOR_ROWS="300000 2000000" python -m benchmarks Floor
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from benchmarks.report import Row
from benchmarks.strategies.slices import KEY, write_slice
from benchmarks.strategies.suite import Contestant, apply_slice, write_project
from benchmarks.timing import load_during

parquet: Any = import_module("pyarrow.parquet")  # has no type annotations

__all__ = ["append_changed", "merge_slice", "run"]

SIZES = tuple(map(int, os.environ.get("LAKEWRIGHT_FLOOR_ROWS", "300000").split()))
CONTESTANTS = {
    "merge": ("warm", "floor", "delta-rs", "duckdb"),
    "historic": ("warm", "floor", "duckdb"),
}
WHAT = {"floor": "least", "delta-rs": "delta-rs", "duckdb": "duckdb"}
"""Names on the page: the changed rows appended, delta-rs's merge, a script with DuckDB and deltalake."""
CHANGED = 0.01
UNCOUNTED = {True: 3, False: 1}
"""Slices of all rows, and then of changes, that warm a session up; the first one fills the table."""

Taken = Mapping[str, list[Mapping[str, float]]]


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the costs of slices, from the fourth one of a session on."""
    return load_during(row for rows in SIZES for row in _measured(folder / str(rows), rows, rounds))


def _measured(folder: Path, rows: int, rounds: int) -> Iterator[Row]:
    write_project(folder / "warm", CONTESTANTS, ())
    with ExitStack() as stack:
        names = dict.fromkeys(name for names in CONTESTANTS.values() for name in names)
        everybody = {name: stack.enter_context(Contestant(name, folder / name)) for name in names}
        for strategy, own in CONTESTANTS.items():
            version = 0
            for is_whole, uncounted in UNCOUNTED.items():
                taken: dict[str, list[Mapping[str, float]]] = {name: [] for name in own}
                for turn in range(uncounted + rounds):
                    file = _slice(folder, rows, version, is_whole=is_whole)
                    for name in own:
                        spent = apply_slice(everybody[name], strategy, file, strategy, version)
                        taken[name].extend([spent] if turn >= uncounted else [])
                    version += 1
                kind = "all rows, 1 % changed" if is_whole else "the 1 % that changed"
                yield from _rows(f"{strategy.capitalize()}, {rows:,} rows, {kind}", taken)


def _slice(folder: Path, rows: int, version: int, *, is_whole: bool) -> Path:
    # Rows that the last slice of all rows changed have their first values again in the next one.
    share = CHANGED / 2 if is_whole else CHANGED
    return write_slice(
        folder / "slices" / f"{version}.parquet",
        rows,
        version=version,
        share=share if version else 0.0,
        is_whole=is_whole,
    )


def _rows(what: str, taken: Taken) -> Iterator[Row]:
    """Yield the costs of a warm slice, and those of each other contestant as a ratio to them."""
    spent, clock = _middle(taken["warm"])
    yield Row(f"{what}: *warm*", f"CPU {spent:.2f} s; elapsed {clock:.2f} s")
    for name, said in WHAT.items():
        if name in taken:
            other, other_clock = _middle(taken[name])
            yield Row(
                f"{what}: *warm* : *{said}*",
                f"CPU {spent:.2f} s : {other:.2f} s = {spent / other:.1f}; "
                f"elapsed {clock:.2f} s : {other_clock:.2f} s = {clock / other_clock:.1f}",
            )


def _middle(taken: list[Mapping[str, float]]) -> tuple[float, float]:
    return median(each["cpu_seconds"] for each in taken), median(each["seconds"] for each in taken)


def append_changed(place: str, file: str) -> None:
    """Append the rows of a slice that the table does not hold with the same values."""
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
    rows = parquet.read_table(file)
    try:
        table = DeltaTable(place)
    except TableNotFoundError:
        write_deltalake(place, rows)
        return
    is_changed = " or ".join(f'(s."{name}" is distinct from t."{name}")' for name in rows.column_names)
    merge = table.merge(rows, f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t")
    merge.when_matched_update_all(is_changed).when_not_matched_insert_all().execute()
