"""Reading of a slice: exactly its files, with the options and types that its format needs.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lakewright.lake.parquet_footer import MisreadColumns, misread_columns
from lakewright.lake.paths import local_path
from lakewright.slices.quotes import quote_options
from lakewright.transform.casts import micros_sql
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.slices.discover import Slice
    from lakewright.spec.models.entity import Entity

__all__ = ["read_slice"]

_RAW = "org.apache.hadoop.fs.RawLocalFileSystem"

_OPTIONS: dict[str, dict[str, str]] = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "escape": '"'},
    "json": {"mode": "FAILFAST"},
    "parquet": {"parquet.page.verify-checksum.enabled": "true"},
    "avro": {},
    "orc": {},
}


def read_slice(session: SparkSession, slice_: Slice, entity: Entity) -> DataFrame:
    """Return the rows of a slice, lazily; columns of several files are merged by name.

    Raises:
        SliceError: A quote in a CSV file is not closed.
    """
    misread = _misread_columns(slice_) if entity.settings.bronze_format == "parquet" else None
    nanoseconds = (misread and misread.nanoseconds) or {}
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true" if nanoseconds else "false")
    frame = (
        session.read.format(entity.settings.bronze_format)
        .options(**_options(session, slice_, entity))
        .load(slice_.path)
    )
    if misread is None:
        return frame
    keys = {name.lower() for name in entity.business_keys}
    typeless = [name for name in misread.typeless if name.lower() not in keys]
    return _with_true_types(frame, nanoseconds, typeless) if nanoseconds or typeless else frame


def _misread_columns(slice_: Slice) -> MisreadColumns | None:
    """Return the columns of all files that Spark misreads, or None if the footers cannot be read.

    Nanoseconds are left out if some are inside other types. A column has a type if it has one in any file.
    """
    nanoseconds: dict[str, bool] = {}
    typeless: frozenset[str] = frozenset()
    typed: frozenset[str] = frozenset()
    are_inside = False
    for file in slice_.paths:
        path = local_path(file)
        try:
            own = None if path is None else misread_columns(path)
        except (ValueError, OSError):
            own = None  # Spark reports the error when it reads the file
        if own is None:
            return None
        are_inside = are_inside or own.nanoseconds is None
        nanoseconds |= own.nanoseconds or {}
        typeless, typed = typeless | own.typeless, typed | own.typed
    return MisreadColumns({} if are_inside else nanoseconds, typeless - typed, typed)


def _with_true_types(frame: DataFrame, times: Mapping[str, bool], typeless: Iterable[str]) -> DataFrame:
    """Return the frame with nanoseconds as timestamps, and with columns without a type as nulls."""
    from pyspark.sql import functions

    columns = {
        name: functions.expr(micros_sql(name_sql(name), column=name, is_utc=is_utc))
        for name, is_utc in times.items()
    }
    return frame.withColumns({**columns, **dict.fromkeys(typeless, functions.lit(None))})


def _options(session: SparkSession, slice_: Slice, entity: Entity) -> dict[str, str]:
    # A name with `*` or `[` is not a pattern.
    options = {"__globPaths__": "false", **_OPTIONS[entity.settings.bronze_format]}
    if entity.settings.bronze_format == "csv":
        options |= quote_options(session, slice_)
    if len(slice_.files) > 1 and entity.settings.bronze_format in {"parquet", "orc"}:
        options["mergeSchema"] = "true"
    if local_path(slice_.path) is not None and any(
        ":" in name for name in (slice_.name, *(f.name for f in slice_.files))
    ):
        # Hadoop's file system with checksums cannot open local files with a colon in their name.
        options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
    return options
