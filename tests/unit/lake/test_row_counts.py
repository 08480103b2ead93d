"""The rows of a table over its versions, from its log: without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable, write_deltalake

from lakewright.lake import row_counts
from lakewright.lake.delta_log import LocalLog, read_log
from lakewright.lake.lake import Lake
from lakewright.lake.row_counts import LogVersion, count_rows_back, read_row_counts
from lakewright.spec.models.places import Address


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "part": [each % 2 for each in ids]})


def of(path: Path, monkeypatch: Any, limit: int = 60) -> list[tuple[int, int]]:
    monkeypatch.setattr(row_counts, "open_log", lambda *_: read_log(LocalLog(path)))
    lake: Lake = None  # type: ignore[assignment]
    return [(each.version, each.rows) for each in read_row_counts(lake, Address(location=str(path)), limit)]


def test_the_rows_of_each_version_are_those_that_a_reader_of_it_sees(
    tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "a table"
    write_deltalake(path, rows(1, 2, 3), partition_by=["part"])
    write_deltalake(path, rows(4, 5), mode="append")
    DeltaTable(path).delete("id = 1")
    DeltaTable(path).optimize.compact()
    write_deltalake(path, rows(9), mode="overwrite")
    seen = [(each, DeltaTable(path, version=each).to_pyarrow_table().num_rows) for each in range(5)]
    assert of(path, monkeypatch) == seen == [(0, 3), (1, 5), (2, 4), (3, 4), (4, 1)]
    assert of(path, monkeypatch, limit=2) == seen[-2:]


def test_the_series_ends_where_a_removed_file_is_gone(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "t"
    write_deltalake(path, rows(1, 2, 3))
    write_deltalake(path, rows(1, 2), mode="overwrite")
    write_deltalake(path, rows(4), mode="append")
    first = path / "_delta_log" / f"{0:020d}.json"
    told = [json.loads(line) for line in first.read_text().splitlines()]
    for each in told:
        if "add" in each:
            each["add"]["stats"] = None
            (path / each["add"]["path"]).unlink()
    first.write_text("\n".join(map(json.dumps, told)))
    assert of(path, monkeypatch) == [(1, 2), (2, 3)]


def test_rows_that_deletion_vectors_mark_are_not_counted() -> None:
    whole = {"path": "a", "stats": '{"numRecords": 10}'}
    marked = {**whole, "deletionVector": {"cardinality": 3}}
    versions = [
        LogVersion(2, adds=[{"path": "b", "stats": '{"numRecords": 4}'}], removes=[marked]),
        LogVersion(1, adds=[marked], removes=[{"path": "a"}]),
        LogVersion(0, adds=[whole]),
    ]
    found = count_rows_back({"b": 4}, versions, marked=None)
    assert [(each.version, each.rows) for each in found] == [(2, 4), (1, 7), (0, 10)]
    # Nothing is guessed of a file whose marks are older than what was read.
    assert not list(count_rows_back({"a": 10}, versions[:1], marked=None))


def test_marks_that_are_older_than_what_is_read_are_in_the_checksum() -> None:
    newest = LogVersion(5, adds=[{"path": "b", "stats": '{"numRecords": 4}'}])
    found = count_rows_back({"a": 10, "b": 4}, [newest], marked=3)
    assert [(each.version, each.rows) for each in found] == [(5, 11)]
