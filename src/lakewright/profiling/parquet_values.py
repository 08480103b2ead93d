"""Values of the columns of a Parquet file that may be keys, read by `deltalake` without a JVM.

`deltalake` reads no files without a log: a file is made the only one of a Delta table whose log is written
into a temporary folder. No other library that reads Parquet is required.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from lakewright.lake.files import Files
from lakewright.lake.paths import local_path
from lakewright.profiling.places import FoundFile
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Decimal, Type

__all__ = ["parquet_values"]

_NAMES = {
    "string": "string",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "date": "date",
    "timestamp": "timestamp",
    "boolean": "boolean",
}
"""Types of columns whose values are looked at, with their names in Delta's log."""

_MOST_BYTES = 16 << 20
"""Bytes of a file in an object store that is copied to be looked into."""

_ACTIONS: tuple[dict[str, Any], ...] = ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},)


def parquet_values(
    file: FoundFile, system: Files, types: Mapping[str, Type], most: int
) -> Mapping[str, list[Hashable]]:
    """Return the first values of the columns that have a plain type; none where they can't be read."""
    wanted = {name: _NAMES[kind.ddl] for name, kind in types.items() if kind.ddl in _NAMES}
    wanted |= {
        name: kind.ddl for name, kind in types.items() if isinstance(kind, Decimal) and kind.precision <= 38
    }
    local = local_path(file.path)
    if not wanted or (local is None and file.size > _MOST_BYTES):
        return {}
    with tempfile.TemporaryDirectory(prefix="lakewright-") as folder:
        if local is None:
            local = Path(folder, "copy.parquet")
            local.write_bytes(system.read_range(file.path, 0, file.size))
        return _read(Path(folder), local, wanted, most)


def _read(folder: Path, file: Path, types: Mapping[str, str], most: int) -> Mapping[str, list[Hashable]]:
    from deltalake import DeltaTable, QueryBuilder

    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    meta = {
        "id": "0",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    add = {"path": file.absolute().as_uri(), "partitionValues": {}, "size": file.stat().st_size}
    actions = (*_ACTIONS, {"metaData": meta}, {"add": {**add, "modificationTime": 0, "dataChange": True}})
    log = folder / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)), "utf-8")
    query = f"SELECT {', '.join(map(name_sql, types))} FROM looked LIMIT {most}"  # noqa: S608 - quoted names
    try:
        found = QueryBuilder().register("looked", DeltaTable(str(folder))).execute(query).read_all()
    except Exception:
        return {}  # the library does not know all that Spark reads
    return {name: list(found.column(index).to_pylist()) for index, name in enumerate(types)}
