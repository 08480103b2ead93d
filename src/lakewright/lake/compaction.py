"""Compaction of Delta tables: small files are merged, and rows marked as deleted are removed from files.

The table keeps its rows: Delta marks the commit as one that changes no data.

Source: Delta's documentation, "Optimizations" and "Remove unused data files".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import METADATA
from lakewright.lake.delta_log import TableLog, marked_rows, record_counts
from lakewright.lake.delta_sql import compact_table, table_detail
from lakewright.lake.observation import observe_table, open_log
from lakewright.spec.models.places import Address
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity_settings import Maintenance


_OPTIMIZE = "spark.databricks.delta.optimize"


@dataclass(frozen=True, slots=True)
class TableShape:
    """The files that hold a table's rows.

    Attributes:
        files: Number of live data files.
        small_files: Number of files below the wanted size, in the partition that has most of them.
        size: Size of all live files, in bytes.
        marked: Share of their rows that deletion vectors mark as deleted; None if unknown.
    """

    files: int
    small_files: int
    size: int
    marked: float | None

    def reasons(self, wanted: Maintenance) -> tuple[str, ...]:
        """Return the reasons to compact the table; none if there is no need."""
        found = []
        if self.small_files >= wanted.small_files:
            found.append(f"{counted(self.small_files, 'file')} below {wanted.file_mib} MiB")
        if self.marked is not None and self.marked > wanted.marked_rows:
            found.append(f"{self.marked:.0%} of the rows in its files are marked as replaced")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of a compaction: how many files it removed, and how many it added in their place."""

    removed: int
    added: int


def observe_shape(lake: Lake, address: Address, wanted: Maintenance) -> TableShape | None:
    """Return the shape of a table, or None if there is no table.

    Raises:
        TargetError: Its log is damaged or lost.
    """
    if not observe_table(lake, address).exists:
        return None
    log, _, table = open_log(lake, address)
    if log is None or table is None:
        return _shape_with_spark(lake, address, wanted)
    return _shape(table, log, wanted.file_bytes)


def _shape(table: DeltaFile, log: TableLog, file_bytes: int) -> TableShape:
    actions = table.get_add_actions(flatten=True)
    sizes: list[int] = [int(size) for size in actions.column("size_bytes").to_pylist()]
    names = [name for name in actions.column_names if name.startswith("partition.")]
    values = [actions.column(name).to_pylist() for name in names]
    partitions = list(zip(*values, strict=True)) if values else [()] * len(sizes)
    small = Counter(part for part, size in zip(partitions, sizes, strict=True) if size < file_bytes)
    rows, marked = record_counts(actions), marked_rows(log, table.version())
    return TableShape(
        files=len(sizes),
        small_files=max(small.values(), default=0),
        size=sum(sizes),
        marked=None if marked is None or None in rows else marked / max(1, sum(filter(None, rows))),
    )


def _shape_with_spark(lake: Lake, address: Address, wanted: Maintenance) -> TableShape | None:
    """Return the shape by the table's totals: all files count as small if they are small on average."""
    detail = table_detail(lake.spark, address)
    files, size = int(detail["numFiles"]), int(detail["sizeInBytes"])
    is_small = size < files * wanted.file_bytes / 2
    return TableShape(files, files if is_small and not detail["partitionColumns"] else 0, size, None)


def compact(lake: Lake, address: Address, wanted: Maintenance, note: Mapping[str, Any]) -> CompactionResult:
    """Compact small files, and files with too many marked rows, in one commit.

    Args:
        lake: The lake.
        address: The table.
        wanted: The limits above which to compact.
        note: Stored in the commit, as JSON.
    """
    session = lake.new_session()
    conf = {
        f"{_OPTIMIZE}.minFileSize": str(wanted.file_bytes),
        f"{_OPTIMIZE}.maxFileSize": str(wanted.file_bytes),
        f"{_OPTIMIZE}.maxDeletedRowsRatio": str(wanted.marked_rows),
        METADATA: json.dumps(dict(note), sort_keys=True),
    }
    for key, value in conf.items():
        session.conf.set(key, value)
    metrics = compact_table(session, address)
    if metrics is None:
        return CompactionResult(0, 0)
    return CompactionResult(metrics["numFilesRemoved"], metrics["numFilesAdded"])
